"""What the tables of a rocprofiler-compute workload folder look like, told by their header.

Wide tables have one row per dispatch and one column per counter (``TCC_HIT[3]`` is instance 3); long
ones one row per (dispatch, counter). Merging passes left repeated columns such as ``Wave_Size_1``.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WORKLOAD_FORMAT", "CounterColumn", "TableForm", "WideHeader", "table_form", "wide_header"]

WORKLOAD_FORMAT = "rocprofiler-compute workload"
_REQUIRED = frozenset({"dispatch_id", "gpu_id", "grid_size", "workgroup_size", "kernel_name"})
_TIMES = frozenset({"start_timestamp", "end_timestamp"})
_LONG = frozenset({"counter_name", "counter_value"})
#: Columns that describe the dispatch. Spellings of rocprof v1, v2 and rocprofv3.
_DESCRIPTION = (
    *(*_REQUIRED, *_TIMES, *_LONG),
    *("queue_id", "queue-id", "queue-index", "pid", "tid", "lds_per_workgroup", "scratch_per_workitem"),
    *("arch_vgpr", "accum_vgpr", "sgpr", "wave_size", "correlation_id", "obj", "sig", "dispatchns"),
    *("completens", "xcc_index", "kernel_id"),
)
_REPEATED = re.compile(r"(?P<base>.+)[_.](?P<pass>\d+)")
_INDEXED = re.compile(r"(?P<name>[^\[\]]+)\[(?P<instance>\d{1,6})\]")


class TableForm(Enum):
    WIDE = "wide counters"
    LONG = "long counters"
    TIMES = "timestamps"


@frozen
class CounterColumn:
    """A column of a wide table: which counter and, -1 where it is a sum, which instance."""

    column: str
    counter: str
    instance: int


@frozen
class WideHeader:
    """The counters of a wide table, and the counter columns left out because they repeat others."""

    counters: tuple[CounterColumn, ...]
    repeated: tuple[str, ...]


def table_form(header: Sequence[str]) -> TableForm | None:
    """What a table with this header holds; None when it is no workload table."""
    names = {name.lower() for name in header}
    if not names >= _REQUIRED:
        return None
    if names >= _LONG:
        return TableForm.LONG
    if wide_header(header).counters:
        return TableForm.WIDE
    return TableForm.TIMES if names >= _TIMES else None


def wide_header(header: Sequence[str]) -> WideHeader:
    """Sort the columns of a wide table into counters and repetitions."""
    present = set(header)
    counters: list[CounterColumn] = []
    repeated: list[str] = []
    indexed = {match["name"] for name in header if (match := _INDEXED.fullmatch(name))}
    for name in header:
        if not name or name.lower() in _DESCRIPTION:
            continue
        match = _INDEXED.fullmatch(name)
        base = _base(name, present)
        if match:
            counters.append(CounterColumn(name, match["name"], int(match["instance"])))
        elif name in indexed or base is not None:
            if base is None or base.lower() not in _DESCRIPTION:
                repeated.append(name)
        else:
            counters.append(CounterColumn(name, name, -1))
    return WideHeader(tuple(counters), tuple(repeated))


def _base(name: str, present: set[str]) -> str | None:
    """``X`` where ``X_2`` repeats a column ``X``, else None.

    SQ_WAVES_LT_32 is a counter of its own, because there is no SQ_WAVES_LT.
    """
    match = _REPEATED.fullmatch(name)
    if match is None:
        return None
    base = match["base"]
    return base if base in present or base.lower() in _DESCRIPTION else None
