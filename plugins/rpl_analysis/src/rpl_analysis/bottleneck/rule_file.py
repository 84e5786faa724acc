"""Read rules from TOML: the built-in file, and the form in which plugins may ship theirs."""

from __future__ import annotations

import math
import sys
from importlib import resources
from typing import Any

from rpl_analysis.interfaces import Comparison, Condition, Rule
from rpl_core.errors import BadDataError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def builtin_rules() -> tuple[Rule, ...]:
    """The rules of ``rules.toml`` beside this module."""
    text = resources.files(__package__).joinpath("rules.toml").read_text(encoding="utf-8")
    return parse_rules(text, "rules.toml")


def parse_rules(text: str, origin: str) -> tuple[Rule, ...]:
    """Rules from TOML ``text``. Raises ``BadDataError`` naming ``origin`` and the rule at fault."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # the library raises others than its own for long numbers
        raise BadDataError(f"{origin} is not valid TOML: {error}") from None
    entries = document.get("rule", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadDataError(f"{origin}: rules are tables: [[rule]]")
    return tuple(_rule(entry, origin) for entry in entries)


def _rule(entry: dict[str, Any], origin: str) -> Rule:
    try:
        return Rule(
            id=_word(entry["id"]),
            label=_word(entry["label"]),
            priority=int(entry["priority"]),
            conditions=_conditions(entry["conditions"]),
            explanation=_word(entry["explanation"]),
            required=entry.get("required", False) is True,
            corroborates=None if entry.get("corroborates") is None else _word(entry["corroborates"]),
        )
    except KeyError as error:
        raise BadDataError(f"{origin}, rule {_named(entry)}: {error} is missing") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise BadDataError(f"{origin}, rule {_named(entry)}: {error}") from None


def _named(entry: dict[str, Any]) -> str:
    return repr(entry.get("id", "?"))[:80]


def _word(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected text, found {value!r}")
    return value


def _conditions(entries: object) -> tuple[Condition, ...]:
    if not isinstance(entries, list) or not entries or not all(isinstance(c, dict) for c in entries):
        raise ValueError("it needs conditions, or it would always win")
    return tuple(_condition(entry) for entry in entries)


def _condition(entry: dict[str, Any]) -> Condition:
    quantity, threshold = _word(entry["quantity"]), float(entry["threshold"])
    if not quantity.isidentifier() or not math.isfinite(threshold):
        raise ValueError(f"{quantity!r} and {threshold} are no quantity and threshold")
    return Condition(quantity, Comparison(entry["comparison"]), threshold, source=_word(entry["source"]))
