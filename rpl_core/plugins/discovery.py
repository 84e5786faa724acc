"""Candidates: everything that claims to be a plugin, found without importing any of it."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from rpl_core.plugins.entry_points import installed_entries, normalized
from rpl_core.plugins.records import PluginOrigin
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Entry-point group of plugin modules.
GROUP = "rpl.plugins"
#: Entry-point group of modules with hook specs that a distribution owns.
SPECS_GROUP = "rpl.hookspecs"
#: The distribution whose plugins are built in.
CORE_DISTRIBUTION = "rpl-core"

#: SHA-256 (first 16 digits) of the names of this project's own distributions. Of each name one distribution
#: can be installed, so no other package takes the mark; as digests, the core names none of them.
OWN_DISTRIBUTIONS = frozenset(
    (
        "1e2f02ab1afb3dbc",
        "2514d96aed228bf3",
        "297d1acadf6de822",
        "2f2bb00849f2edcf",
        "2f83fb21135df330",
        "3304f52c4835bb64",
        "35a12ee08e3ffd58",
        "4d84befbc61a20f5",
        "534b4b29336b3371",
        "74f8ef664028af64",
        "7635ceb38a817b6a",
        "7b90cba173f80db3",
        "91373725f975b21e",
        "9a20d75c981464ce",
        "a649b84a8b623fdb",
        "bb807ee12a3ca8e7",
        "c0f54928fb6120da",
        "c138c61bab5bd022",
        "ed61bf25d3ee3314",
    )
)

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
        own = sha256((self.distribution or "").encode()).hexdigest()[:16] in OWN_DISTRIBUTIONS
        return self.is_builtin or (own and not self.is_development)

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
    """Candidates sorted by name, then distribution; hook specs as (distribution, module); ``problems`` has a
    line for each distribution that could not be read.
    """

    candidates: tuple[Candidate, ...]
    specs: tuple[tuple[str, str], ...]
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
    specs = tuple((e.distribution, e.value) for e in entries if e.group == SPECS_GROUP)
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
