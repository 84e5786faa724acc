"""Which distribution brings what, from the data file of the distribution that knows them all.

It declares an entry point in the group ``rpl.packages`` whose value is a package with ``packages.json``:
``{"commands": {name: distribution}, "options": ..., "devices": ..., "kinds": ...}``. Without it nobody knows.
A distribution may stand with the extra that it takes, as ``pip`` reads it: ``name[extra]``.
"""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from typing import Any

from rpl_core.plugins.entry_points import installed_entries

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
