"""The distinct launch geometries of many dispatches.

Rows are told apart by a 64-bit mix of their eight numbers and then compared exactly, so that a million
dispatches cost a few array passes and a collision costs time, never truth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NOT_RECORDED, LaunchShapes
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.row_groups import distinct_rows, is_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column, Int64Column

__all__ = ["Geometry", "distinct_shapes", "flat_geometry"]

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
    one = np.where(workgroup_size < 0, NOT_RECORDED, 1)
    return Geometry((workgroup_size, one, one), (grid_size, one, one), lds_bytes, scratch_bytes)


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
    one = [column[:1].astype(np.int64) for column in columns]
    shapes, _, impossible = distinct_shapes(
        Geometry((one[0], one[1], one[2]), (one[3], one[4], one[5]), one[6], one[7])
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
