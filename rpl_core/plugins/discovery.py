"""Everything that claims to be a plugin, found without importing it, and which of them the user wants."""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import TYPE_CHECKING

from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.plugins.entry_points import (
    CORE_DISTRIBUTION,
    ONLY_VARIABLE,
    installed_entries,
    is_own,
    normalized,
    only_distributions,
)
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rpl_core.errors import PluginError
    from rpl_core.plugins.entry_points import InstalledEntry


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


#: Entry-point group of plugin modules.
GROUP = "rpl.plugins"
#: Entry-point group of modules with hook specs that a distribution owns.
SPECS_GROUP = "rpl.hookspecs"

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@frozen
class Candidate:
    """A plugin before anything of it is imported."""

    name: str
    target: str
    origin: PluginOrigin
    distribution: str | None = None
    version: str | None = None

    @property
    def is_builtin(self) -> bool:
        return self.origin is PluginOrigin.BUILTIN

    @property
    def is_trusted(self) -> bool:
        """Whether it is this project's own, whose types and tests hold what it returns; never with ``-p``."""
        return self.distribution is not None and is_own(self.distribution) and not self.is_development

    @property
    def is_development(self) -> bool:
        return self.origin is PluginOrigin.DEVELOPMENT

    def malformed(self) -> str | None:
        """Why the target can't be a plugin module, or ``None``."""
        if _MODULE.fullmatch(self.target):
            return None
        return f"the entry point must name a module, found {self.target!r}"


@frozen
class Discovered:
    """Candidates sorted by name, then distribution; entries of hook specs; ``problems`` has a line for each
    distribution that could not be read.
    """

    candidates: tuple[Candidate, ...]
    specs: tuple[InstalledEntry, ...]
    problems: tuple[str, ...]


def discover(modules: Iterable[str] = ()) -> Discovered:
    """Everything that is installed.

    A module of ``modules`` that is also installed stands once, under its installed name, as under
    development.
    """
    entries, problems = installed_entries(GROUP, SPECS_GROUP)
    wanted = tuple(dict.fromkeys(modules))
    found = [
        Candidate(e.name, e.value, _origin(e.distribution, e.value, wanted), e.distribution, e.version)
        for e in entries
        if e.group == GROUP
    ]
    installed = {candidate.target for candidate in found}
    found += [Candidate(m, m, PluginOrigin.DEVELOPMENT) for m in wanted if m not in installed]
    specs = tuple(e for e in entries if e.group == SPECS_GROUP)
    ordered = sorted(found, key=lambda c: (c.name, c.distribution or "", c.target))
    return Discovered(tuple(ordered), specs, problems)


def _origin(distribution: str, target: str, wanted: tuple[str, ...]) -> PluginOrigin:
    if normalized(distribution) == CORE_DISTRIBUTION:
        return PluginOrigin.BUILTIN
    return PluginOrigin.DEVELOPMENT if target in wanted else PluginOrigin.INSTALLED


def conflicts(candidates: Iterable[Candidate]) -> Mapping[Candidate, str]:
    """Candidates whose name or module is claimed more than once, each with the reason.

    Nobody wins, so that an intruder can't silently replace a plugin; only the core keeps its own names.
    """
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.name, []).append(candidate)
    refused: dict[Candidate, str] = {}
    for name, claimants in groups.items():
        if len(claimants) < 2:
            continue
        owners = ", ".join(c.distribution or c.target for c in claimants)
        for candidate in claimants:
            if not candidate.is_builtin:
                refused[candidate] = (
                    f"the name {name!r} is claimed by {owners}; "
                    "uninstall one, or disable one by its distribution"
                )
    return refused


# Which plugins the user wants: disabled names, the only allowed distributions, modules under development.


#: "1" shows every hook call on stderr.
TRACE_VARIABLE = "RPL_TRACE_PLUGINS"


@frozen
class PluginSelection:
    """``disabled`` holds plugin or distribution names and always wins.

    ``modules`` are dotted modules under development; a failure of one of them is fatal, because the user
    asked for it by name. ``only_distributions`` is ``None`` for "whatever is installed".
    """

    modules: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    only_distributions: frozenset[str] | None = None
    trace: bool = False

    @classmethod
    def from_environment(
        cls,
        *,
        modules: Iterable[str] = (),
        disabled: Iterable[str] = (),
        trace: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> PluginSelection:
        """Flags and resolved settings, completed by ``RPL_LOAD_PLUGINS`` and ``RPL_TRACE_PLUGINS``.

        ``disabled`` comes from the configuration, which knows ``RPL_PLUGINS_DISABLED``.
        """
        variables = os.environ if environment is None else environment
        return cls(
            modules=tuple(dict.fromkeys(modules)),
            disabled=tuple(dict.fromkeys(disabled)),
            only_distributions=only_distributions(variables),
            trace=trace or variables.get(TRACE_VARIABLE, "0") not in {"", "0"},
        )

    def refusal(self, candidate: Candidate) -> str | None:
        """Why ``candidate`` is not to be imported, or ``None``."""
        for name in self.disabled:
            if name == candidate.name or _same_distribution(name, candidate.distribution):
                return f"disabled by name ({name})"
        if self.only_distributions is None or candidate.is_builtin or candidate.is_development:
            return None
        if normalized(candidate.distribution or "") in self.only_distributions:
            return None
        return f"{ONLY_VARIABLE} does not name {candidate.distribution}"

    def allows(self, distribution: str) -> bool:
        """Whether anything of ``distribution`` may be imported."""
        return self.only_distributions is None or normalized(distribution) in self.only_distributions

    def unknown_names(self, candidates: Iterable[Candidate | PluginRecord]) -> tuple[str, ...]:
        """Disabled names that match no plugin: probably a typing error."""
        known = tuple(candidates)
        return tuple(
            name
            for name in self.disabled
            if not any(name == c.name or _same_distribution(name, c.distribution) for c in known)
        )


def _same_distribution(name: str, distribution: str | None) -> bool:
    return distribution is not None and normalized(name) == normalized(distribution)
