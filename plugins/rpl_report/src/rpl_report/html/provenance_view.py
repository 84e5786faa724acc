"""Where the page's figures come from, and what the analysis had to say about its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rpl_core.text.safety import readable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_core.contracts.common import DiagnosticDoc

__all__ = ["ArtefactRow", "DiagnosticRow", "ProvenanceView", "provenance_view"]

#: Rows of each table (chosen); the documents hold all.
_ROWS_SHOWN = 200


@frozen
class ArtefactRow:
    path: str
    role: str
    format: str
    origin: str
    sha256: str


@frozen
class DiagnosticRow:
    severity: str
    code: str
    fact: str
    cause: str
    remedy: str
    where: str


@frozen
class ProvenanceView:
    facts: tuple[tuple[str, str], ...]
    artefacts: tuple[ArtefactRow, ...]
    artefacts_left_out: int
    diagnostics: tuple[DiagnosticRow, ...]
    diagnostics_left_out: int
    warnings: int


def provenance_view(profile: ProfileDocument, documents: Mapping[str, BaseModel]) -> ProvenanceView:
    provenance, diagnostics = profile.provenance, profile.diagnostics
    artefacts = provenance.artefacts if provenance else ()
    return ProvenanceView(
        facts=tuple(_facts(profile, documents)),
        artefacts=tuple(
            ArtefactRow(
                path=readable(artefact.path, 300),
                role=artefact.role,
                format=readable(artefact.format, 80),
                origin=artefact.origin,
                sha256=readable(artefact.sha256 or "not computed", 64),
            )
            for artefact in artefacts[:_ROWS_SHOWN]
        ),
        artefacts_left_out=max(0, len(artefacts) - _ROWS_SHOWN),
        diagnostics=tuple(_diagnostic(entry) for entry in diagnostics[:_ROWS_SHOWN]),
        diagnostics_left_out=max(0, len(diagnostics) - _ROWS_SHOWN),
        warnings=sum(1 for entry in diagnostics if entry.severity != "info"),
    )


def _facts(profile: ProfileDocument, documents: Mapping[str, BaseModel]) -> list[tuple[str, str]]:
    provenance = profile.provenance
    facts = [
        ("Documents", ", ".join(f"{name}.json {_version(doc)}" for name, doc in sorted(documents.items())))
    ]
    facts.append(("Time from", readable(profile.runtime_source or profile.runtime_reason or "unknown", 300)))
    if provenance is None:
        return facts
    facts.append(("Computed by", f"{provenance.tool} {provenance.tool_version or ''}".strip()))
    facts.append(("Origin", provenance.origin or "unknown"))
    device = provenance.device or "none"
    facts.append(
        ("Device model", f"{device} ({provenance.device_source})" if provenance.device_source else device)
    )
    if provenance.overrides:
        facts.append(("Overridden", ", ".join(provenance.overrides)))
    facts.append(("Plugins", ", ".join(provenance.plugins) or "none"))
    facts += [("Remark", remark) for remark in provenance.remarks]
    return [(label, readable(text, 600)) for label, text in facts]


def _version(document: BaseModel) -> str:
    return str(getattr(document, "schema_version", "?"))


def _diagnostic(entry: DiagnosticDoc) -> DiagnosticRow:
    return DiagnosticRow(
        severity=entry.severity,
        code=readable(entry.code, 80),
        fact=readable(entry.fact, 600),
        cause=readable(entry.cause or "", 600),
        remedy=readable(entry.remedy or "", 600),
        where=readable(entry.where or "", 300),
    )
