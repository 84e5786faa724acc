"""The list of what went wrong with plugins during one invocation, without repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.model.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from rpl_core.errors import PluginError


class DiagnosticLog:
    """Keeps diagnostics in the order in which they were first noticed."""

    def __init__(self) -> None:
        self._entries: dict[Diagnostic, None] = {}

    @property
    def entries(self) -> tuple[Diagnostic, ...]:
        return tuple(self._entries)

    def add(self, diagnostic: Diagnostic) -> None:
        self._entries.setdefault(diagnostic)

    def warn(self, code: str, fact: str, *, where: str, remedy: str | None = None) -> None:
        self.add(Diagnostic(code, fact, Severity.WARNING, remedy=remedy, where=where))

    def failure(self, error: PluginError) -> None:
        """A plugin's contribution was lost."""
        self.warn("plugin.failed", error.fact, where=f"plugin {error.plugin}", remedy=error.next_step)
