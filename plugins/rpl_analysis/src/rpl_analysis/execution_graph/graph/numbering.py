"""Dense numbers for keys: the array form of a dictionary, by table where keys lie close together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]

__all__ = ["BLOCK", "first_rows", "is_constant", "join_keys", "number_keys", "places"]

#: Rows that are worked on at a time where nothing per row is to be kept: such columns stay in the caches.
BLOCK = 2**16

#: Keys within a span of this size (or four times their count) are counted in a table, wider ones sorted.
_TABLE_SPAN = 2**22


def is_constant(column: NDArray[np.generic]) -> bool:
    """Whether the column is one value for all rows by construction, as readers hand them out."""
    return column.strides == (0,) and column.size > 0


def number_keys(keys: NDArray[np.integer]) -> tuple[IntArray, NDArray[np.int32]]:
    """The distinct keys ascending, and for each key its index among them."""
    if keys.size == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
    if is_constant(keys):
        return keys[:1].astype(np.int64), np.broadcast_to(np.int32(0), keys.shape)
    low, high = int(keys.min()), int(keys.max())
    if high - low >= max(_TABLE_SPAN, 4 * keys.size):
        distinct, index = np.unique(keys, return_inverse=True)
        return distinct.astype(np.int64), index.reshape(-1).astype(np.int32)
    offset = keys - low
    seen = np.zeros(high - low + 1, dtype=np.bool_)
    seen[offset] = True
    table = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(seen) + low, table[offset]


def join_keys(columns: Iterable[NDArray[np.integer]]) -> IntArray:
    """One key per row: equal exactly where all columns are equal, ordered like the columns in turn."""
    joined: NDArray[np.integer] | None = None
    for column in columns:
        if joined is None:
            joined = column if is_constant(column) else column.astype(np.int64)
        elif not is_constant(column) and column.size and int(column.min()) != int(column.max()):
            # Numbering both sides keeps the product of the counts inside int64.
            _, before = number_keys(joined)
            distinct, index = number_keys(column)
            joined = before * np.int64(distinct.size) + index
    assert joined is not None, "no columns"
    return joined.astype(np.int64, copy=False)


def first_rows(index: NDArray[np.integer], count: int) -> IntArray:
    """The first row of each number below ``count`` in ``index``, where each occurs."""
    first = np.full(count, -1, dtype=np.int64)
    for begin in range(0, index.size, BLOCK):
        block = index[begin : begin + BLOCK]
        new = np.flatnonzero(first[block] < 0)[::-1]
        if new.size:
            first[block[new]] = new + begin  # the last assignment counts, which is that of the first row
        if int(first.min()) >= 0:
            break
    return first


def places(keys: NDArray[np.integer], known: NDArray[np.integer]) -> IntArray:
    """Index of each key in ``known`` (ascending, distinct), -1 where it does not occur."""
    if known.size == 0:
        return np.full(keys.size, -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(known, keys), known.size - 1)
    return np.where(known[place] == keys, place, -1)
