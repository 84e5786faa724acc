"""The advice that rpl-analysis gives, from ``advice.toml`` beside this module."""

from __future__ import annotations

from functools import cache
from typing import Any

from rpl_analysis.interfaces import Advice, AdviceState, Comparison, Condition
from rpl_analysis.text.packaged_toml import packaged_rules

__all__ = ["builtin_advice"]


@cache
def builtin_advice() -> tuple[Advice, ...]:
    """In the order of the file."""
    return tuple(_advice(entry) for entry in packaged_rules(__package__, "advice.toml"))


def _advice(entry: dict[str, Any]) -> Advice:
    tested = (
        Condition(one["quantity"], Comparison(one["comparison"]), one["threshold"], one["source"])
        for one in entry.get("conditions", ())
    )
    lists = {name: tuple(entry.get(name, ())) for name in ("labels", "rules", "confirm")}
    state = AdviceState(entry["state"]) if "state" in entry else None
    return Advice(**{**entry, **lists, "conditions": tuple(tested), "state": state})
