"""What the tables of a rocprofiler-compute workload folder look like, told by their header.

Tables of rocprof v1, which Omniperf 1.x merged into its folders, name the columns in another way
(``KernelName``, ``grd``, ``BeginNs``); ``current_names`` gives them those of later releases.

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

__all__ = [
    "WORKLOAD_FORMAT",
    "CounterColumn",
    "TableForm",
    "WideHeader",
    "current_names",
    "table_form",
    "wide_header",
]

WORKLOAD_FORMAT = "rocprofiler-compute workload"
_REQUIRED = frozenset({"dispatch_id", "gpu_id", "grid_size", "workgroup_size", "kernel_name"})
_TIMES = frozenset({"start_timestamp", "end_timestamp"})
_LONG = frozenset({"counter_name", "counter_value"})
#: Columns that describe the dispatch. Spellings of rocprof v1, v2 and rocprofv3.
_DESCRIPTION = (
    *(*_REQUIRED, *_TIMES, *_LONG),
    *("queue_id", "queue-id", "queue-index", "pid", "tid", "lds_per_workgroup", "scratch_per_workitem"),
    *("arch_vgpr", "accum_vgpr", "sgpr", "wave_size", "correlation_id", "obj", "sig", "dispatchns"),
    *("completens", "xcc_index", "kernel_id", "vgpr", "fbar", "durationns", "executiontime"),
)
#: Columns of rocprof v1 (docs/reference/formats.md, 6). Its ``vgpr`` and the ``sgpr`` beside it count in
#: granules of the wrong size on some GPUs and are not used.
_OF_ROCPROF_V1 = {
    "index": "Dispatch_ID",
    "kernelname": "Kernel_Name",
    "gpu-id": "GPU_ID",
    "grd": "Grid_Size",
    "wgr": "Workgroup_Size",
    "lds": "LDS_Per_Workgroup",
    "scr": "Scratch_Per_Workitem",
    "beginns": "Start_Timestamp",
    "endns": "End_Timestamp",
}
_MARKS_OF_V1 = frozenset({"kernelname", "gpu-id", "grd"})
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


def current_names(header: Sequence[str]) -> tuple[str, ...]:
    """The names that later releases give to these columns; all others as they are."""
    present = {name.strip().lower() for name in header}
    if not present >= _MARKS_OF_V1:
        return tuple(header)
    old = _OF_ROCPROF_V1 if "arch_vgpr" in present else {**_OF_ROCPROF_V1, "sgpr": "vgpr"}
    named = []
    for name in header:
        match = _REPEATED.fullmatch(name.strip())
        base, number = (match["base"], f"_{match['pass']}") if match else (name.strip(), "")
        found = old.get(base.lower())
        named.append(name.strip() if found is None else found + number)
    return tuple(named)


def table_form(header: Sequence[str]) -> TableForm | None:
    """What a table with this header holds; None when it is no workload table."""
    header = current_names(header)
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
    header = current_names(header)
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
