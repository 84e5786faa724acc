"""Entry points of installed distributions, read one distribution at a time.

A distribution with unreadable metadata costs only itself (``importlib.metadata.entry_points`` would raise
for all). Nothing is imported and no cache is written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rpl_core import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib import metadata
    from importlib.metadata import PackageMetadata

#: The distribution whose plugins are built in.
CORE_DISTRIBUTION = "rpl-core"
#: Comma list of distributions: only their plugins and commands (and the core's) are used. Empty: none.
ONLY_VARIABLE = "RPL_LOAD_PLUGINS"


class InstalledEntry(NamedTuple):  # attrs would cost `rpl --help` a third of its time
    """One entry point with the distribution that declares it."""

    name: str
    value: str
    distribution: str
    version: str
    group: str = ""
    own: bool = False  # of this project: ``is_own``


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


def is_own(described: PackageMetadata) -> bool:
    """Whether a distribution with this metadata is one of this project's own, whose code is not tried first.

    They carry the version of the core, and require each other in exactly it; a stranger states a range.
    """
    if normalized(str(described["Name"])) == CORE_DISTRIBUTION:
        return True
    pin = f"{CORE_DISTRIBUTION}=={__version__}"
    required = described.get_all("Requires-Dist") or ()
    return described["Version"] == __version__ and any(str(one).replace(" ", "") == pin for one in required)


def _entries(
    distribution: metadata.Distribution, groups: tuple[str, ...], problems: list[str]
) -> Iterable[InstalledEntry]:
    from importlib import metadata

    try:
        text = distribution.read_text("entry_points.txt")
        if not text or not any(f"[{group}]" in text for group in groups):
            return []
        described = distribution.metadata  # parsed once: the dearest step of the search
        name = str(described["Name"] or "")
        if not name or metadata.distribution(name).locate_file("") != distribution.locate_file(""):
            return []  # Python finds another copy first
        return [
            InstalledEntry(
                entry.name, entry.value, name, described["Version"], entry.group, is_own(described)
            )
            for entry in distribution.entry_points
            if entry.group in groups
        ]
    except Exception as error:  # noqa: BLE001 - any installed package may have broken metadata
        problems.append(f"unreadable package metadata skipped: {type(error).__name__}: {error}")
        return []
