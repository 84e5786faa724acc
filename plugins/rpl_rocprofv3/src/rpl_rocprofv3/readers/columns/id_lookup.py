"""Ids of a recording to indices of a tuple: vectorised look-up that survives dangling and huge ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.model.trace import NOT_RECORDED, distinct_values
from rpl_rocprofv3.readers.columns.row_groups import is_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column, Int64Column

    #: Integers of a recording: int32 where all fit, else int64.
    IntegerColumn = NDArray[np.signedinteger[Any]]

__all__ = ["distinct_ids", "positions", "taken"]

# Ids within a span of this size are looked up in a table, wider ones by bisection.
_TABLE_SPAN = 1 << 22


def _span(ids: IntegerColumn) -> tuple[int, int]:
    low = int(ids.min())
    return low, int(ids.max()) - low + 1


def distinct_ids(ids: IntegerColumn) -> Int64Column:
    """The values that occur in ``ids``, ascending."""
    if not len(ids):
        return np.empty(0, np.int64)
    if is_constant(ids):
        return ids[:1].astype(np.int64)
    low, span = _span(ids)
    if span > _TABLE_SPAN:
        return distinct_values(ids).astype(np.int64)
    seen = np.zeros(span, np.bool_)
    seen[ids - low] = True
    return np.flatnonzero(seen).astype(np.int64) + low


def positions(ids: IntegerColumn, keys: Sequence[int] | IntegerColumn) -> Int32Column:
    """Index of each id in ``keys`` (distinct, any order), -1 where it does not occur.

    One id for all rows gives one index for all rows, without memory per row.
    """
    known = keys if isinstance(keys, np.ndarray) else np.asarray(keys, dtype=np.int64)
    if not len(known) or not len(ids):
        return np.broadcast_to(np.int32(NOT_RECORDED), len(ids))
    if is_constant(ids) and len(ids) > 1:
        return np.broadcast_to(positions(ids[:1].copy(), known)[0], len(ids))
    low, span = _span(known)
    lowest, width = _span(ids)
    inside = lowest >= low and lowest + width <= low + span
    if span == len(known) and bool((known[1:] > known[:-1]).all()):
        return _offsets(ids, low) if inside else _offsets_or_none(ids, low, span)
    if span <= _TABLE_SPAN:
        return _by_table(ids, known, low, span, inside=inside)
    order = np.argsort(known, kind="stable")
    ranked = known[order]
    place = np.minimum(np.searchsorted(ranked, ids), len(ranked) - 1)
    return np.where(ranked[place] == ids, order[place], NOT_RECORDED).astype(np.int32)


def _offsets(ids: IntegerColumn, low: int) -> Int32Column:
    """``ids - low`` for ids that are none below it, and not too far above."""
    if ids.dtype == np.int32 and low > np.iinfo(np.int32).min:
        return np.asarray(ids - np.int32(low))
    return np.asarray((ids - np.int64(low)).astype(np.int32))


def _offsets_or_none(ids: IntegerColumn, low: int, span: int) -> Int32Column:
    place = ids.astype(np.int64) - low
    return np.where((place >= 0) & (place < span), place, NOT_RECORDED).astype(np.int32)


def _by_table(ids: IntegerColumn, known: IntegerColumn, low: int, span: int, *, inside: bool) -> Int32Column:
    # One slot before and one behind the span stand for everything outside it.
    table = np.full(span + 2, NOT_RECORDED, np.int32)
    table[known.astype(np.int64) - low + 1] = np.arange(len(known), dtype=np.int32)
    if inside:
        return np.asarray(table[1:][_offsets(ids, low)])
    return np.asarray(table[np.clip(ids.astype(np.int64), low - 1, low + span) - (low - 1)])


def taken(column: IntegerColumn, rows: Int32Column, *, none: int = NOT_RECORDED) -> Int64Column:
    """``column[rows]``, with -1 where ``rows`` is -1 or the value is ``none``."""
    if not len(column):
        return np.full(len(rows), NOT_RECORDED, np.int64)
    taken_rows = column[rows].astype(np.int64)
    taken_rows[taken_rows == none] = NOT_RECORDED
    if int(rows.min(initial=0)) < 0:
        taken_rows[rows < 0] = NOT_RECORDED
    return taken_rows
