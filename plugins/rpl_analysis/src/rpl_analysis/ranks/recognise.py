"""Which kernels communicate between GPUs, by the rules that plugins offer."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from rpl_analysis.interfaces import CollectiveRule, CollectiveWait
from rpl_analysis.text.packaged_toml import packaged_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["builtin_collective_rules", "collectives_among"]

#: Longer names are searched so far: rules look at what a function is called.
_MOST_CHARACTERS = 512


@cache
def builtin_collective_rules() -> tuple[CollectiveRule, ...]:
    """The rules of ``collectives.toml`` beside this module."""
    entries = packaged_rules(__package__, "collectives.toml")
    return tuple(CollectiveRule(**{**entry, "waits": CollectiveWait(entry["waits"])}) for entry in entries)


def collectives_among(names: Sequence[str], rules: Iterable[CollectiveRule]) -> Mapping[int, CollectiveRule]:
    """The rule for each of ``names`` that communicates, by its place."""
    compiled = [(re.compile(rule.pattern, re.IGNORECASE), rule) for rule in rules]
    functions = [_function(name) for name in names]
    matches = {
        place: next((rule for pattern, rule in compiled if pattern.search(function)), None)
        for place, function in enumerate(functions)
    }
    return {place: rule for place, rule in matches.items() if rule is not None}


def _function(name: str) -> str:
    """What stands before template arguments and parameters."""
    text = name[:_MOST_CHARACTERS].replace("(anonymous namespace)", "")
    return re.split("[<(]", text, maxsplit=1)[0]
