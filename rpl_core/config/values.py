"""Parsers of settings and options: text, numbers, flags and TOML values into the value, or ``UsageError``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rpl_core.errors import UsageError
from rpl_core.text import did_you_mean


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"expected text, found {value!r}")
    return value


def positive_int(value: Any) -> int:
    parsed = number(value)
    if parsed < 1 or parsed != int(parsed):
        raise UsageError(f"expected a whole number of at least 1, found {value!r}")
    return int(parsed)


def at_most(most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if (parsed := positive_int(value)) > most:
            raise UsageError(f"expected at most {most}, found {parsed}")
        return parsed

    return parse


def positive(value: Any) -> float:
    parsed = number(value)
    if parsed <= 0:
        raise UsageError(f"expected a number above 0, found {value!r}")
    return parsed


def number(value: Any) -> float:
    try:
        parsed = float(value)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"expected a number, found {value!r}") from None
    if isinstance(value, bool) or parsed != parsed or parsed in (float("inf"), float("-inf")):
        raise UsageError(f"expected a number, found {value!r}")
    return parsed


def number_within(low: float, high: float) -> Callable[[Any], float]:
    """Both ends are allowed."""

    def parse(value: Any) -> float:
        try:
            parsed = float(value)
        except (TypeError, ValueError, OverflowError):
            parsed = float("nan")
        if not low <= parsed <= high:
            raise UsageError(f"expected a number from {low:g} to {high:g}, found {value!r}")
        return parsed

    return parse


def whole_within(low: int, high: int) -> Callable[[Any], int]:
    """Digits alone, with a minus; both ends are allowed."""

    def parse(value: Any) -> int:
        digits = str(value).removeprefix("-")
        # Fewer than 20: no number that is taken has more, and int() of millions of them takes minutes.
        parsed = int(str(value)) if digits.isascii() and digits.isdigit() and len(digits) < 20 else low - 1
        if not low <= parsed <= high:
            raise UsageError(f"expected a whole number from {low} to {high}, found {value!r}")
        return parsed

    return parse


def flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off", ""}:
        return False
    raise UsageError(f"expected true or false, found {value!r}")


def names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise UsageError(f"expected a list of names, found {value!r}")


def one_of(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            meant = did_you_mean(str(value), choices)
            raise UsageError(f"expected one of {', '.join(choices)}, found {value!r}{meant}")
        return str(value)

    return parse
