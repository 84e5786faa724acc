"""Groups rows by the values of several columns, cheap where few distinct rows occur.

Rows are mixed into one 64-bit key. Different rows can share a key, so users compare the values of a group
with its first row before they trust it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.model.trace import NOT_RECORDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column, Int64Column

__all__ = ["distinct_rows", "few_groups", "group_keys", "is_constant", "mixed_key"]

# Odd multipliers (fractional bits of square roots of primes) make the mix injective per column.
_MULTIPLIERS = (
    0x6A09E667F3BCC909,
    0xBB67AE8584CAA73B,
    0x3C6EF372FE94F82B,
    0xA54FF53A5F1D36F1,
    0x510E527FADE682D1,
    0x9B05688C2B3E6C1F,
    0x1F83D9ABFB41BD6B,
    0x5BE0CD19137E2179,
)
# Recordings have few distinct rows; peeling them off one by one beats sorting up to about this many.
_PEEL_LIMIT = 48


def is_constant(column: NDArray[Any]) -> bool:
    """Whether the column is one number for all rows by construction, and has rows."""
    return column.strides == (0,) and len(column) > 0


def mixed_key(columns: Sequence[NDArray[Any]]) -> NDArray[np.uint64]:
    """One key per row of up to eight columns of 64-bit (or narrower signed) integers."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column, multiplier in zip(columns, _MULTIPLIERS, strict=False):
        if not is_constant(column):
            wide = column if column.dtype == np.uint64 else column.astype(np.int64, copy=False)
            mixed += np.ascontiguousarray(wide).view(np.uint64) * np.uint64(multiplier)
    return mixed


def group_keys(keys: NDArray[np.uint64]) -> tuple[Int64Column, Int32Column]:
    """First row of each distinct key, and for each row the number of its key."""
    inverse = np.full(len(keys), NOT_RECORDED, np.int32)
    first: list[int] = []
    row = 0
    while row < len(keys) and len(first) < _PEEL_LIMIT:
        inverse[keys == keys[row]] = len(first)
        first.append(row)
        ahead = inverse[row:] == NOT_RECORDED
        step = int(ahead.argmax())
        if not ahead[step]:
            return np.array(first, np.int64), inverse
        row += step
    if row >= len(keys):
        return np.array(first, np.int64), inverse
    _, starts, numbers = np.unique(keys, return_index=True, return_inverse=True)
    return starts.astype(np.int64), numbers.reshape(-1).astype(np.int32)


def distinct_rows(columns: Sequence[NDArray[Any]]) -> tuple[Int64Column, Int32Column]:
    """The distinct rows of up to eight integer columns, shape (m, columns), and for each row its number."""
    first, inverse = group_keys(mixed_key(columns))
    table = np.stack([column[first] for column in columns], axis=1).astype(np.int64, copy=False)
    if all(is_constant(c) or np.array_equal(c, table[inverse, i]) for i, c in enumerate(columns)):
        return table, inverse
    table, numbers = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return table, numbers.reshape(-1).astype(np.int32)


def few_groups(keys: NDArray[np.uint64], most: int) -> list[Int64Column] | None:
    """The rows of each distinct key; None where there are more than ``most`` keys."""
    groups: list[Int64Column] = []
    rest = np.arange(len(keys))
    while len(rest):
        if len(groups) == most:
            return None
        same = keys[rest] == keys[rest[0]]
        groups.append(rest[same])
        rest = rest[~same]
    return groups
