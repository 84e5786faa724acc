"""Rules that a distribution ships as TOML beside its modules."""

from __future__ import annotations

import sys
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["packaged_rules"]


def packaged_rules(package: str | None, name: str) -> list[dict[str, Any]]:
    """The tables ``[[rule]]`` of the file ``name`` in ``package``, which is part of the installation."""
    text = resources.files(package or __name__).joinpath(name).read_text(encoding="utf-8")
    rules: list[dict[str, Any]] = tomllib.loads(text)["rule"]
    return rules
