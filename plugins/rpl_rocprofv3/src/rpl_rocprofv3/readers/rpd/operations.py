"""GPU operations of an RPD database: which are kernels, which are copies, and which call made them.

Operation types are strings (docs/reference/formats.md, 3). Kernels that a graph launched appear as ``Task``
with the kernel name but without geometry; ``FillBuffer`` is the fill kernel of a memset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.id_lookup import distinct_ids, positions
from rpl_rocprofv3.readers.sqlite.integer_columns import read_integers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column, Int64Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.sqlite.integer_columns import IntegerColumns
    from rpl_rocprofv3.readers.sqlite.tables import Tables

__all__ = ["Operations", "read_operations"]

_COPY_PREFIX = "Copy"
# Packets of the queue that execute nothing on the compute units.
_NO_WORK_PREFIXES = ("Barrier", "Marker")


@frozen(eq=False)
class Operations:
    """All operations in file order; ``api`` is the row id of the launching call, -1 if unknown."""

    raw: IntegerColumns
    api: Int64Column
    name_id: Int64Column  # description, or the operation type where there is none
    is_copy: NDArray[np.bool_]
    is_kernel: NDArray[np.bool_]


def read_operations(
    database: Database, tables: Tables, strings: Mapping[int, str], findings: Findings
) -> Operations:
    """Read ``rocpd_op`` with its links to API calls."""
    table, links = tables.get("rocpd_op"), tables.get("rocpd_api_ops")
    assert table is not None  # the identity check
    assert links is not None  # asked for both
    columns = ("id", "gpuId", "queueId", "start", "end", "description_id", "opType_id")
    raw = read_integers(database, table, columns)
    link = read_integers(database, links, ("api_id", "op_id"))
    findings.add(
        "dispatch.unreadable_values",
        raw.unreadable + link.unreadable,
        "value in rocpd_op or rocpd_api_ops is no integer and counts as not recorded",
        "values in rocpd_op or rocpd_api_ops are no integers and count as not recorded",
    )
    described = np.array([i for i, text in sorted(strings.items()) if text], np.int64)
    kind = raw["opType_id"]
    is_copy = _of_type(kind, strings, lambda text: text.startswith(_COPY_PREFIX))
    idle = _of_type(kind, strings, lambda text: text.startswith(_NO_WORK_PREFIXES))
    return Operations(
        raw=raw,
        api=_launching_call(raw["id"], link),
        name_id=np.where(positions(raw["description_id"], described) >= 0, raw["description_id"], kind),
        is_copy=is_copy,
        is_kernel=~is_copy & ~idle,
    )


def _of_type(
    kind: Int64Column, strings: Mapping[int, str], accepts: Callable[[str], bool]
) -> NDArray[np.bool_]:
    wanted = [i for i in distinct_ids(kind).tolist() if accepts(strings.get(i, ""))]
    return positions(kind, wanted) >= 0


def _launching_call(operation: Int64Column, link: IntegerColumns) -> Int64Column:
    ids, first = np.unique(link["op_id"], return_index=True)
    place: Int32Column = positions(operation, ids)
    if not len(ids):
        return np.full(len(operation), NOT_RECORDED, np.int64)
    return np.where(place < 0, NOT_RECORDED, link["api_id"][first][place])
