"""Candidates: everything that claims to be a plugin, found without importing any of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_core.plugins.entry_points import CORE_DISTRIBUTION, installed_entries, is_own, normalized
from rpl_core.plugins.records import PluginOrigin
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rpl_core.plugins.entry_points import InstalledEntry

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
