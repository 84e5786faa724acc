"""What the host knows about one plugin, loaded or not, and what went wrong with plugins, without repeats."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.errors import PluginError


class PluginStatus(str, Enum):
    """How the attempt to load a plugin ended."""

    LOADED = "loaded"
    DISABLED = "disabled"  # the user said so; its code was not imported
    BROKEN = "broken"  # importing it failed
    CONFLICT = "conflict"  # its name is claimed twice; its code was not imported
    INCOMPATIBLE = "incompatible"  # written for another RPL_API
    INVALID = "invalid"  # its hooks do not match the specs


class PluginOrigin(str, Enum):
    """Which door a plugin came through."""

    BUILTIN = "builtin"  # part of rpl-core
    INSTALLED = "installed"  # entry point of an installed distribution
    DEVELOPMENT = "development"  # named with -p


@frozen
class PluginRecord:
    """One plugin as ``rpl plugins list`` shows it.

    ``reason`` is one line and set exactly when the plugin is not loaded; ``traceback`` only when its own
    code raised. ``hooks`` are the implemented hooks, sorted. ``api`` is ``None`` when the plugin was not
    imported or states none.
    """

    name: str
    target: str  # the dotted module
    origin: PluginOrigin
    status: PluginStatus
    distribution: str | None = None
    version: str | None = None
    api: int | None = None
    hooks: tuple[str, ...] = ()
    reason: str | None = None
    traceback: str | None = None


class DiagnosticLog:
    """Keeps diagnostics in the order in which they were first noticed."""

    def __init__(self) -> None:
        self._entries: dict[Diagnostic, None] = {}

    @property
    def entries(self) -> tuple[Diagnostic, ...]:
        return tuple(self._entries)

    def warn(self, code: str, fact: str, *, where: str, remedy: str | None = None) -> None:
        self._entries.setdefault(Diagnostic(code, fact, Severity.WARNING, remedy=remedy, where=where))

    def failure(self, error: PluginError) -> None:
        """A plugin's contribution was lost."""
        self.warn("plugin.failed", error.fact, where=f"plugin {error.plugin}", remedy=error.next_step)
