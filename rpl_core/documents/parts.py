"""The parts that all documents share: to type checkers the models of the contracts, at run time drafts."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["ArtefactDoc", "DiagnosticDoc", "MetricDoc", "ProvenanceDoc"]

if TYPE_CHECKING:
    from rpl_core.contracts.common import ArtefactDoc, DiagnosticDoc, MetricDoc, ProvenanceDoc
else:
    from rpl_core.documents.drafts import Draft

    globals().update(dict.fromkeys(__all__, Draft))
