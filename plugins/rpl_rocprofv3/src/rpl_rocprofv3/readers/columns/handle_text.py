"""Pointers and numbers as profilers print them in API arguments, back to numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_core.model.trace import Int64Column, UInt64Column

__all__ = ["handle_value", "handle_values", "number_values"]

_NULLS = frozenset({"nullptr", "null", "(nil)", "nil", "0", ""})
_LONGEST_NUMBER = 20
_HANDLE_LIMIT = 1 << 64
_NUMBER_LIMIT = 1 << 63


def _integer(text: str) -> int | None:
    text = text.strip().lower()
    if text in _NULLS:
        return 0
    if len(text) > _LONGEST_NUMBER:
        return None
    try:
        return int(text, 16) if text.startswith("0x") else int(text)
    except ValueError:
        return None


def handle_value(text: object) -> int | None:
    """A pointer such as ``0x55d0c0a01000`` or ``nullptr``; None when ``text`` is no pointer."""
    number = _integer(str(text)) if text is not None else None
    return number if number is not None and 0 <= number < _HANDLE_LIMIT - 1 else None


def handle_values(texts: Iterable[object]) -> UInt64Column:
    """Pointers, ``NO_HANDLE`` where a text is none. Each distinct text is parsed once."""
    seen: dict[object, int] = {}
    none = int(NO_HANDLE)
    values = []
    for text in texts:
        value = seen.get(text)
        if value is None:
            parsed = handle_value(text)
            value = seen[text] = none if parsed is None else parsed
        values.append(value)
    return np.array(values, np.uint64)


def number_values(texts: Iterable[object]) -> Int64Column:
    """Decimal or hexadecimal numbers, -1 where a text is none."""
    seen: dict[object, int] = {}
    numbers = []
    for text in texts:
        value = seen.get(text)
        if value is None:
            parsed = _integer(str(text)) if text is not None else None
            usable = parsed is not None and 0 <= parsed < _NUMBER_LIMIT
            value = seen[text] = parsed if usable and parsed is not None else NOT_RECORDED
        numbers.append(value)
    return np.array(numbers, np.int64)
