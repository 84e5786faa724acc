"""What readers do with columns: group rows, find ids, read handles and names, tell launch shapes apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED, LaunchShapes, distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column, Int64Column

    IntegerColumn = NDArray[np.signedinteger[Any]]
    from collections.abc import Iterable, Mapping

    from rpl_core.model.trace import UInt64Column

# Groups rows by the values of several columns, cheap where few distinct rows occur.
#
# Rows are mixed into one 64-bit key. Different rows can share a key, so users compare the values of a group
# with its first row before they trust it.

# Rows are mixed into one 64-bit key. Different rows can share a key, so users compare the values of a group
# with its first row before they trust it.

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
# With more among the first keys than that they are sorted right away (chosen).
_SAMPLED_KEYS = 4096


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
    few = len(distinct_values(keys[:_SAMPLED_KEYS])) <= _PEEL_LIMIT
    while few and row < len(keys) and len(first) < _PEEL_LIMIT:
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


# Ids of a recording to indices of a tuple: vectorised look-up that survives dangling and huge ids.

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


# Pointers and numbers as profilers print them in API arguments, back to numbers.

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


# Kernel names as people and other passes write them: without the suffixes of loaders and profilers.

# rocprofv2 appends " (.kd)", demanglers " [clone .kd]", the loader ".kd" (docs/reference/formats.md, 2.2; the
# workload folders of MI300 and MI200).
_SUFFIXES = (" (.kd)", " [clone .kd]", ".kd")


def display_name(name: str) -> str:
    """``name`` without a kernel-descriptor suffix, so that passes and formats agree."""
    name = name.strip()
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def plain_symbol(name: str | None) -> str | None:
    """The linker symbol of a mangled or unmangled name, None when there is none."""
    return display_name(name) if name else None


# The distinct launch geometries of many dispatches.
#
# Rows are told apart by a 64-bit mix of their eight numbers and then compared exactly, so that a million
# dispatches cost a few array passes and a collision costs time, never truth.

_AXES = 3
_FIELDS = 2 * _AXES + 2
# HSA grids and workgroups are 32-bit numbers per axis.
_LARGEST_AXIS = 0xFFFF_FFFF
_LARGEST_VOLUME = float(1 << 62)


@frozen(eq=False)
class Geometry:
    """Launch geometry per dispatch: eight columns of equal length, -1 where not recorded.

    ``workgroup`` and ``grid`` are (x, y, z) in work-items; LDS is per workgroup, scratch per work-item.
    """

    workgroup: tuple[Int64Column, Int64Column, Int64Column]
    grid: tuple[Int64Column, Int64Column, Int64Column]
    lds_bytes: Int64Column
    scratch_bytes: Int64Column

    def columns(self) -> tuple[Int64Column, ...]:
        return (*self.workgroup, *self.grid, self.lds_bytes, self.scratch_bytes)


def flat_geometry(
    workgroup_size: Int64Column, grid_size: Int64Column, lds_bytes: Int64Column, scratch_bytes: Int64Column
) -> Geometry:
    """Geometry from total sizes (work-items), for sources that record no axes."""
    ones = np.where(workgroup_size < 0, NOT_RECORDED, 1)
    return Geometry((workgroup_size, ones, ones), (grid_size, ones, ones), lds_bytes, scratch_bytes)


def distinct_shapes(geometry: Geometry) -> tuple[LaunchShapes, Int32Column, int]:
    """The shapes in ascending order, the shape of each row, and the rows whose geometry is impossible.

    Impossible sizes (negative, zero or beyond 32 bits per axis) become -1.
    """
    columns = geometry.columns()
    if all(is_constant(column) for column in columns):
        return _only_shape(columns)
    table, inverse = distinct_rows(columns)
    bad = _make_impossible_unknown(table)
    table, numbers = np.unique(table, axis=0, return_inverse=True)
    rank = numbers.reshape(-1).astype(np.int32)
    shapes = LaunchShapes(
        np.ascontiguousarray(table[:, :_AXES]),
        np.ascontiguousarray(table[:, _AXES : 2 * _AXES]),
        np.ascontiguousarray(table[:, _FIELDS - 2]),
        np.ascontiguousarray(table[:, _FIELDS - 1]),
    )
    return shapes, rank[inverse], int(bad[inverse].sum()) if bad.any() else 0


def _only_shape(columns: Sequence[Int64Column]) -> tuple[LaunchShapes, Int32Column, int]:
    """The same for rows that all have one shape."""
    rows = len(columns[0])
    first = [column[:1].astype(np.int64) for column in columns]
    shapes, _, impossible = distinct_shapes(
        Geometry((first[0], first[1], first[2]), (first[3], first[4], first[5]), first[6], first[7])
    )
    return shapes, np.broadcast_to(np.int32(0), rows), impossible * rows


def _make_impossible_unknown(table: Int64Column) -> NDArray[np.bool_]:
    """Set sizes that no GPU accepts to -1 in place; tells which shapes had one."""
    sizes = table[:, : 2 * _AXES]
    bad = (((sizes < 1) & (sizes != NOT_RECORDED)) | (sizes > _LARGEST_AXIS)).any(axis=1)
    bad |= np.prod(np.abs(sizes[:, _AXES:].astype(np.float64)), axis=1) > _LARGEST_VOLUME
    sizes[bad] = NOT_RECORDED
    table[:, _FIELDS - 2 :] = np.maximum(table[:, _FIELDS - 2 :], NOT_RECORDED)
    return np.asarray(bad)


# Columns in the exact types that the trace model declares.

_TYPES: dict[str, type[np.generic]] = {
    "Int32Column": np.int32,
    "Int64Column": np.int64,
    "UInt64Column": np.uint64,
    "Float64Column": np.float64,
}


def typed_columns(
    model: type, columns: Mapping[str, NDArray[Any]], selection: NDArray[Any] | None
) -> dict[str, NDArray[Any]]:
    """The columns of a model class (``Dispatches``, ...), cast and, if asked, selected and ordered.

    Columns of one number for all rows stay without memory per row, and read-only.
    """
    return {
        field.name: _typed(columns[field.name], _TYPES[str(field.type)], selection)
        for field in attrs.fields(model)
    }


def _typed(column: NDArray[Any], kind: type[np.generic], selection: NDArray[Any] | None) -> NDArray[Any]:
    if is_constant(column):
        return np.broadcast_to(
            column[:1].astype(kind)[0], len(column) if selection is None else len(selection)
        )
    return np.ascontiguousarray(column if selection is None else column.take(selection), dtype=kind)
