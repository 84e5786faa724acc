"""Launch geometry of RPD kernels, always as work-items.

RPD stores what the API call was given: blocks for the hipLaunchKernel family, work-items for
hipExtModuleLaunchKernel and its predecessor (docs/reference/formats.md, trap 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.handle_text import handle_value
from rpl_rocprofv3.readers.columns.id_lookup import positions, taken
from rpl_rocprofv3.readers.columns.launch_shapes import Geometry
from rpl_rocprofv3.readers.sqlite.integer_columns import read_integers

if TYPE_CHECKING:
    from rpl_core.model.trace import Int32Column, Int64Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.rpd.calls import RpdCalls
    from rpl_rocprofv3.readers.sqlite.integer_columns import IntegerColumns
    from rpl_rocprofv3.readers.sqlite.tables import Tables

__all__ = ["LaunchTable", "read_launches", "stream_ids"]

_TAKES_WORK_ITEMS = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")
_WORKGROUP = ("workgroupX", "workgroupY", "workgroupZ")
_GRID = ("gridX", "gridY", "gridZ")


@frozen(eq=False)
class LaunchTable:
    """Rows of ``rocpd_kernelapi`` by API call."""

    raw: IntegerColumns
    stream_id: Int64Column
    in_work_items: Int32Column  # 1 where the grid counts work-items, 0 where blocks

    def geometry(self, api: Int64Column) -> Geometry:
        """Geometry of the kernels that the calls ``api`` launched."""
        row = positions(api, self.raw["api_ptr_id"])
        workgroup = tuple(taken(self.raw[name], row) for name in _WORKGROUP)
        scale = taken(self.in_work_items.astype(np.int64), row)
        grid = tuple(
            np.where(scale == 0, _product(size, group), size)
            for size, group in zip((taken(self.raw[name], row) for name in _GRID), workgroup, strict=True)
        )
        return Geometry(
            (workgroup[0], workgroup[1], workgroup[2]),
            (grid[0], grid[1], grid[2]),
            taken(self.raw["groupSegmentSize"], row),
            taken(self.raw["privateSegmentSize"], row),
        )

    def stream(self, api: Int64Column) -> Int64Column:
        return taken(self.stream_id, positions(api, self.raw["api_ptr_id"]))


def _product(blocks: Int64Column, workgroup: Int64Column) -> Int64Column:
    # Sizes beyond 32 bits are impossible and are kept so that the shape check sees them.
    possible = (blocks >= 0) & (blocks <= 0xFFFF_FFFF) & (workgroup >= 0) & (workgroup <= 0xFFFF)
    return np.where(possible, blocks * workgroup, blocks)


def read_launches(database: Database, tables: Tables, calls: RpdCalls) -> LaunchTable:
    """Read ``rocpd_kernelapi``."""
    table = tables.get("rocpd_kernelapi")
    assert table is not None  # the identity check asked for it
    columns = ("api_ptr_id", *_GRID, *_WORKGROUP, "groupSegmentSize", "privateSegmentSize")
    raw = read_integers(database, table, columns)
    name = calls.name_of(raw["api_ptr_id"])
    functions = [i for i, function in enumerate(calls.functions) if function in _TAKES_WORK_ITEMS]
    in_work_items = (positions(name.astype(np.int64), functions) >= 0).astype(np.int32)
    texts = [row[0] for row in table.rows(database.connection, ("stream",))]
    return LaunchTable(raw, stream_ids(texts), in_work_items)


def stream_ids(texts: list[object]) -> Int64Column:
    """Stream pointers as ids; RPD has no other stream identity. -1 where there is no pointer."""
    known: dict[object, int] = {}
    for text in texts:
        if text not in known:
            value = handle_value(text)
            known[text] = value if value is not None and value < 1 << 63 else NOT_RECORDED
    return np.fromiter((known[text] for text in texts), np.int64, len(texts))
