"""AMD's counter names for the emulator's classes of instructions. ``data/counters.json`` is the whole map."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def counter_map() -> dict[str, Any]:
    """``{"counters": {name: {"classes": [patterns], "of": field, "status": ..., "source": ...}}}``"""
    text = files("rpl_emu").joinpath("data/counters.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def amd_counters(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The counters of a launch, each with whether its classification is proven."""
    by_name: dict[str, dict[str, Any]] = {}
    for name, rule in counter_map()["counters"].items():
        if rule["of"] == "waves":
            value = int(document["waves"])
        else:
            value = sum(
                int(counts.get(rule["of"], 0))
                for class_, counts in document["classes"].items()
                if any(fnmatchcase(class_, pattern) for pattern in rule["classes"])
            )
        by_name[name] = {"value": value, "status": rule["status"]}
    return by_name
