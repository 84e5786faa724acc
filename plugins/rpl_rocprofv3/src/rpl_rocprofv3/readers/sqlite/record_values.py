"""Values out of the bytes of SQLite records: by one serial type that all share, or by the type of each.

Serial types: https://www.sqlite.org/fileformat2.html, section 2.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns import is_constant
from rpl_rocprofv3.readers.sqlite.leaves import UnsupportedLayoutError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int64Column

    Bytes = NDArray[np.uint8]
    #: Rows of a batch: all of them, or their numbers.
    Rows = slice | Int64Column

__all__ = ["NULL", "WIDTHS", "ColumnBatch", "floats", "integers", "scattered", "shared_kind"]

NULL = 0
_REAL, _ZERO, _ONE, _FIRST_TEXT = 7, 8, 9, 12
_WIDEST_INT32 = 4
_CONSTANTS = {NULL: NOT_RECORDED, _ZERO: 0, _ONE: 1}
#: Bytes of a value by its serial type; texts and blobs of up to 57 bytes fit one-byte serial types.
WIDTHS = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *((t - 12) // 2 for t in range(12, 128))], np.int64)
_IS_INT32 = np.isin(np.arange(128), (0, 1, 2, 3, 4, 8, 9))
# How far a big-endian word is shifted right to leave the integer, sign extended.
_SHIFTS = np.array([0, 56, 48, 40, 32, 16, 0, 0, *[0] * 120], np.int64)
# By serial type: the number that begins at the value, and how far it is shifted right.
_STORED = {1: (">i1", 0), 2: (">i2", 0), 3: (">i4", 8), 4: (">i4", 0), 5: (">i8", 16), 6: (">i8", 0)}


@frozen(eq=False)
class ColumnBatch:
    """Values of one column in one batch: int32 or int64, or float64.

    ``unreadable`` values are neither number nor NULL.
    """

    values: NDArray[Any]
    unreadable: int


def shared_kind(kind: int, windows: Bytes, offset: int, *, as_float: bool) -> ColumnBatch:
    """Values of one serial type that begin at ``offset`` in each of ``windows``, shape (n, bytes)."""
    _refuse_reserved(kind in (10, 11))
    count, width = windows.shape
    if kind == _REAL and as_float:
        return ColumnBatch(np.ndarray((count,), ">f8", windows, offset, (width,)).astype(np.float64), 0)
    if kind >= _FIRST_TEXT or kind == _REAL or (kind == NULL and as_float):
        unknown = np.float64(np.nan) if as_float else np.int32(NOT_RECORDED)
        return ColumnBatch(np.broadcast_to(unknown, count), count if kind != NULL else 0)
    values: NDArray[Any]
    if kind in _CONSTANTS:
        values = np.broadcast_to(np.int32(_CONSTANTS[kind]), count)
    else:
        number, shift = _STORED[kind]
        stored = np.ndarray((count,), number, windows, offset, (width,))
        values = stored.astype(np.int32 if kind <= _WIDEST_INT32 else np.int64)
        values >>= shift
    return ColumnBatch(values.astype(np.float64) if as_float else values, 0)


def scattered(size: int, parts: Sequence[tuple[Rows, ColumnBatch]]) -> ColumnBatch:
    """One column of ``size`` rows out of parts that hold some of them each."""
    unreadable = sum(batch.unreadable for _, batch in parts)
    columns = [batch.values for _, batch in parts]
    first = columns[0]
    if all(is_constant(column) and column[0] == first[0] for column in columns):
        return ColumnBatch(np.broadcast_to(first[0], size), unreadable)
    values = np.empty(size, np.result_type(*columns))
    for rows, batch in parts:
        values[rows] = batch.values
    return ColumnBatch(values, unreadable)


def integers(types: Bytes, words: Int64Column) -> ColumnBatch:
    """Values of any serial types, given the eight bytes that begin at each as big-endian numbers."""
    _refuse_reserved(bool(((types == 10) | (types == 11)).any()))
    values = words >> _SHIFTS[types]
    if bool(_IS_INT32[types].all()):
        values = values.astype(np.int32)
    values[types == _ZERO] = 0
    values[types == _ONE] = 1
    other = (types == _REAL) | (types >= _FIRST_TEXT)
    values[(types == NULL) | other] = NOT_RECORDED
    return ColumnBatch(values, int(other.sum()))


def floats(types: Bytes, words: Int64Column) -> ColumnBatch:
    """The same as float64, NaN where there is no number."""
    whole = integers(types, words)
    values = np.where(types == _REAL, words.view(np.float64), whole.values.astype(np.float64))
    text = types >= _FIRST_TEXT
    values[(types == NULL) | text] = np.nan
    return ColumnBatch(values, int(text.sum()))


def _refuse_reserved(found: bool) -> None:
    if found:
        raise UnsupportedLayoutError  # never in a file that SQLite wrote
