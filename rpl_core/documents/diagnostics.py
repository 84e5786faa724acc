"""Diagnostics as they appear in documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rpl_core.documents import parts
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.text.safety import encodable

if TYPE_CHECKING:
    from rpl_core.contracts.common import DiagnosticDoc


def diagnostic_docs(diagnostics: Iterable[Diagnostic]) -> tuple[DiagnosticDoc, ...]:
    """Documents for ``diagnostics`` without repeats, in the order of their first occurrence."""
    from rpl_core.contracts.common import DiagnosticDoc

    return tuple(DiagnosticDoc.model_validate(draft) for draft in diagnostic_drafts(diagnostics))


def diagnostic_drafts(diagnostics: Iterable[Diagnostic]) -> tuple[parts.DiagnosticDoc, ...]:
    """The same as drafts (`rpl_core.documents.drafts`)."""
    unique = dict.fromkeys(diagnostics)
    return tuple(
        parts.DiagnosticDoc(
            code=d.code,
            severity=d.severity.value,
            fact=encodable(d.fact),
            cause=d.cause and encodable(d.cause),
            remedy=d.remedy and encodable(d.remedy),
            where=d.where and encodable(d.where),
            count=d.count,
        )
        for d in unique
    )
