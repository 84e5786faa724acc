"""Collects what a reader noticed about an input, as diagnostics with a count.

A finding with count zero is no finding, so that checks can be written without an ``if``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.text import counted

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Findings"]


class Findings:
    """Diagnostics about one file, in the order in which they were found."""

    def __init__(self, where: Path) -> None:
        self._where = where.name
        self._found: list[Diagnostic] = []

    def add(
        self,
        code: str,
        count: int,
        one: str,
        several: str,
        *,
        severity: Severity = Severity.WARNING,
        cause: str | None = None,
        remedy: str | None = None,
    ) -> None:
        """Record a fact that continues the number ``count``, of ``one`` or of ``several``, unless it is 0."""
        if count:
            self._found.append(
                Diagnostic(
                    code, counted(count, one, several), severity, cause, remedy, self._where, int(count)
                )
            )

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._found)
