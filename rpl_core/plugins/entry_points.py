"""Entry points of installed distributions, one at a time, and which distribution brings what.

A distribution with unreadable metadata costs only itself (``importlib.metadata.entry_points`` would raise
for all). Nothing is imported and no cache is written.
"""

from __future__ import annotations

import json
import pkgutil
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib import metadata

#: The distribution whose plugins are built in.
CORE_DISTRIBUTION = "rpl-core"
#: Comma list of distributions: only their plugins and commands (and the core's) are used. Empty: none.
ONLY_VARIABLE = "RPL_LOAD_PLUGINS"

#: SHA-256 (first 16 digits) of the names of this project's own distributions. Of each name one distribution
#: can be installed, so no other package takes the mark; as digests, the core names none of them.
OWN_DISTRIBUTIONS = frozenset(
    (
        "1e2f02ab1afb3dbc",
        "2514d96aed228bf3",
        "297d1acadf6de822",
        "2f2bb00849f2edcf",
        "2f83fb21135df330",
        "31c5767ec907bb61",
        "3304f52c4835bb64",
        "35a12ee08e3ffd58",
        "44ce76cf8443c398",
        "4d84befbc61a20f5",
        "534b4b29336b3371",
        "74f8ef664028af64",
        "7635ceb38a817b6a",
        "7b90cba173f80db3",
        "8224b19896a3b5c6",
        "8ee1ea2757fbce2c",
        "91373725f975b21e",
        "9a20d75c981464ce",
        "a649b84a8b623fdb",
        "ad460d14a083438e",
        "bb807ee12a3ca8e7",
        "c0f54928fb6120da",
        "c138c61bab5bd022",
        "ed61bf25d3ee3314",
    )
)


class InstalledEntry(NamedTuple):  # attrs would cost `rpl --help` a third of its time
    """One entry point with the distribution that declares it."""

    name: str
    value: str
    distribution: str
    version: str
    group: str = ""


def normalized(distribution: str) -> str:
    """The distribution's name as PyPA's name normalization spells it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def only_distributions(environment: Mapping[str, str]) -> frozenset[str] | None:
    """The normalized names in ``RPL_LOAD_PLUGINS``, or ``None`` when it is not set."""
    text = environment.get(ONLY_VARIABLE)
    if text is None:
        return None
    return frozenset(normalized(part.strip()) for part in text.split(",") if part.strip())


def installed_entries(*groups: str) -> tuple[tuple[InstalledEntry, ...], tuple[str, ...]]:
    """All entries of ``groups``, sorted by name and distribution, and one line per unreadable distribution.

    Of a distribution that is installed twice, the copy counts that Python finds first.
    """
    from importlib import metadata

    problems: list[str] = []
    entries = {e for d in metadata.distributions() for e in _entries(d, groups, problems)}
    ordered = sorted(entries, key=lambda e: (e.name, normalized(e.distribution), e.value))
    return tuple(ordered), tuple(sorted(set(problems)))


def is_own(distribution: str) -> bool:
    """Whether a distribution is one of this project's own, whose types and tests hold what it does."""
    if distribution == CORE_DISTRIBUTION:
        return True
    from hashlib import sha256  # dearer than all that `rpl --help` asks of this module

    return sha256(distribution.encode()).hexdigest()[:16] in OWN_DISTRIBUTIONS


def _entries(
    distribution: metadata.Distribution, groups: tuple[str, ...], problems: list[str]
) -> Iterable[InstalledEntry]:
    from importlib import metadata

    try:
        text = distribution.read_text("entry_points.txt")
        if not text or not any(f"[{group}]" in text for group in groups):
            return []
        name, version = _name_and_version(distribution)
        if not name or metadata.distribution(name).locate_file("") != distribution.locate_file(""):
            return []  # Python finds another copy first
        return [
            InstalledEntry(entry.name, entry.value, name, version, entry.group)
            for entry in distribution.entry_points
            if entry.group in groups
        ]
    except Exception as error:  # noqa: BLE001 - any installed package may have broken metadata
        problems.append(f"unreadable package metadata skipped: {type(error).__name__}: {error}")
        return []


def _name_and_version(distribution: metadata.Distribution) -> tuple[str, str]:
    """Both from the headers of the metadata; "" for what is not there.

    ``distribution.metadata`` parses all of it as an e-mail, which was the dearest step of the search.
    """
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    headers = text.partition("\n\n")[0]
    name, version = (re.search(rf"^{header}:(.*)$", headers, re.M | re.I) for header in ("Name", "Version"))
    return name[1].strip() if name else "", version[1].strip() if version else ""


# Which distribution brings what, from the data file of the distribution that knows them all.


PACKAGES_GROUP = "rpl.packages"
_FILE = "packages.json"


def provider_of(kind: str, name: str) -> str | None:
    """The distribution that brings ``name`` of ``kind``, as far as anybody knows."""
    entry = _table().get(kind, {})
    provider = entry.get(name) if isinstance(entry, dict) else None
    return provider if isinstance(provider, str) else None


def missing_provider(kind: str, name: str) -> str | None:
    """The same where that distribution is not installed."""
    provider = provider_of(kind, name)
    if provider is None:
        return None
    from importlib import metadata

    distribution, _, extra = provider.partition("[")
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return provider
    return provider if extra else None  # who asks lacks ``name``, so the extra is what is missing


def missing_providers(kind: str) -> dict[str, str]:
    """All names of ``kind`` whose distribution is not installed, sorted, each with that distribution."""
    entry = _table().get(kind, {})
    names = sorted(entry) if isinstance(entry, dict) else ()
    return {name: provider for name in names if (provider := missing_provider(kind, name)) is not None}


def distribution_of(module: str) -> str | None:
    """The distribution with ``module``, if it is one of those in the data file."""
    name = module.partition(".")[0].replace("_", "-")
    groups = (group for group in _table().values() if isinstance(group, dict))
    return name if any(name in group.values() for group in groups) else None


def command_groups() -> dict[str, list[str]]:
    """Commands by what they are for, in the order of the help."""
    groups = _table().get("groups", {})
    return groups if isinstance(groups, dict) and all(isinstance(g, list) for g in groups.values()) else {}


@cache
def _table() -> dict[str, Any]:
    for entry in installed_entries(PACKAGES_GROUP)[0]:
        try:
            table = json.loads(pkgutil.get_data(entry.value, _FILE) or b"")
        except (ImportError, OSError, ValueError):
            continue
        if isinstance(table, dict):
            return table
    return {}
