"""Diagnostics as they appear in documents."""

from __future__ import annotations

from collections.abc import Iterable

from rpl_core.contracts.common import DiagnosticDoc
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.text.safety import encodable


def diagnostic_docs(diagnostics: Iterable[Diagnostic]) -> tuple[DiagnosticDoc, ...]:
    """Documents for ``diagnostics`` without repeats, in the order of their first occurrence."""
    unique = dict.fromkeys(diagnostics)
    return tuple(
        DiagnosticDoc(
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
