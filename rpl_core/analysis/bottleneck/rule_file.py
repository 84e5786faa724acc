"""Read rules from TOML: the built-in file, and the form in which plugins may ship theirs."""

from __future__ import annotations

import sys
from importlib import resources
from typing import Any

from rpl_core.errors import BadDataError
from rpl_core.interfaces.rule import BottleneckLabel, Comparison, Condition, Rule

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
    except tomllib.TOMLDecodeError as error:
        raise BadDataError(f"{origin} is not valid TOML: {error}") from None
    return tuple(_rule(entry, origin) for entry in document.get("rule", []))


def _rule(entry: dict[str, Any], origin: str) -> Rule:
    try:
        return Rule(
            id=str(entry["id"]),
            label=BottleneckLabel(entry["label"]),
            priority=int(entry["priority"]),
            conditions=tuple(_condition(c) for c in entry["conditions"]),
            explanation=str(entry["explanation"]),
            corroborates=None if entry.get("corroborates") is None else str(entry["corroborates"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadDataError(f"{origin}, rule {entry.get('id', '?')!r}: {error}") from None


def _condition(entry: dict[str, Any]) -> Condition:
    return Condition(
        quantity=str(entry["quantity"]),
        comparison=Comparison(entry["comparison"]),
        threshold=float(entry["threshold"]),
        source=str(entry["source"]),
    )
