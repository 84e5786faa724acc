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

import numpy as np

from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.trace.tables import CounterRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Float64Column, Int32Column, Int64Column
    from rpl_rocprofv3.readers.csv.tables import CsvColumns
    from rpl_rocprofv3.readers.findings import Findings

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


# Counter readings of workload tables, wide and long, as rows in long form.

_INDEXED_COUNTER = re.compile(r"(?P<name>[^\[\]]+)\[(?P<instance>\d{1,6})\]")


@frozen(eq=False)
class WideCounters:
    """Readings of a wide table, one array per counter column."""

    names: tuple[str, ...]
    counter: Int32Column  # per column
    instance: Int32Column  # per column
    cells: tuple[Float64Column, ...]  # per column the values of all rows
    repeated: int

    @classmethod
    def of(cls, columns: CsvColumns, header: WideHeader) -> WideCounters:
        names = tuple(sorted({column.counter for column in header.counters}))
        number = {name: index for index, name in enumerate(names)}
        return cls(
            names=names,
            counter=np.array([number[c.counter] for c in header.counters], np.int32),
            instance=np.array([c.instance for c in header.counters], np.int32),
            cells=tuple(columns.floats[c.column.lower()] for c in header.counters),
            repeated=len(header.repeated),
        )

    def rows(self, row_of: Int64Column, findings: Findings) -> CounterRows:
        """The readings; an empty cell is a counter that the pass of this dispatch lacks."""
        findings.add(
            "counter.repeated_column",
            self.repeated,
            "counter column repeats another under a pass number and is left out",
            "counter columns repeat others under a pass number and are left out",
            severity=Severity.INFO,
            cause="passes that read the same counter were merged into one table",
        )
        count = len(row_of)
        value = np.concatenate(self.cells)
        counter = np.repeat(self.counter, count)
        row = np.tile(np.arange(count), len(self.cells))
        recorded = _recorded_pairs(row, counter, value, len(self.names))
        return CounterRows(
            dispatch=row_of[row[recorded]],
            counter=counter[recorded],
            value=value[recorded],
            duration_ns=np.full(int(recorded.sum()), NOT_RECORDED, np.int64),
            instance=np.repeat(self.instance, count)[recorded],
        )


def _recorded_pairs(
    row: Int64Column, counter: Int32Column, value: Float64Column, names: int
) -> NDArray[np.bool_]:
    """Readings of (row, counter) pairs that have at least one value."""
    pair = row * max(names, 1) + counter
    with_value = np.zeros(int(pair.max(initial=-1)) + 1, np.bool_)
    with_value[pair[~np.isnan(value)]] = True
    return np.asarray(with_value[pair])


@frozen(eq=False)
class LongCounters:
    """Readings of a long table, each with the times of its dispatch in its pass."""

    names: tuple[str, ...]
    columns: CsvColumns
    counter: Int32Column
    instance: Int32Column
    dispatch_of_row: Int32Column

    @classmethod
    def of(cls, columns: CsvColumns, dispatch_of_row: Int32Column) -> LongCounters:
        texts = columns.texts["counter_name"]
        parsed = [_name_and_instance(text) for text in texts.texts]
        names = tuple(sorted({name for name, _ in parsed}))
        number = {name: index for index, name in enumerate(names)}
        counter = np.array([number[name] for name, _ in parsed], np.int32)[texts.code]
        instance = np.array([instance for _, instance in parsed], np.int32)[texts.code]
        return cls(names, columns, counter, instance, dispatch_of_row)

    def rows(self, row_of: Int64Column, findings: Findings) -> CounterRows:
        begin, end = (self.columns.integer(name) for name in ("Start_Timestamp", "End_Timestamp"))
        rows = CounterRows(
            dispatch=row_of[self.dispatch_of_row],
            counter=self.counter,
            value=self.columns.floats["counter_value"],
            duration_ns=np.where((begin >= 0) & (end >= begin), end - begin, NOT_RECORDED),
            instance=self.instance,
        )
        return only_first_pass(rows, begin, findings)


def _name_and_instance(text: str) -> tuple[str, int]:
    match = _INDEXED_COUNTER.fullmatch(text.strip())
    return (match["name"], int(match["instance"])) if match else (text.strip(), NOT_RECORDED)


def only_first_pass(rows: CounterRows, begin_ns: Int64Column, findings: Findings) -> CounterRows:
    """Without the readings of counters that a later pass read again; adding them up would double them."""
    assert rows.instance is not None  # callers know the instance
    order = np.lexsort((begin_ns, rows.instance, rows.counter, rows.dispatch))
    keys = (rows.dispatch[order], rows.counter[order], rows.instance[order])
    new = np.ones(len(order), np.bool_)
    if len(order):
        new[1:] = np.logical_or.reduce([np.diff(key) != 0 for key in keys])
    first_begin = begin_ns[order][np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    again = begin_ns[order] != first_begin
    findings.add(
        "counter.read_again",
        int(again.sum()),
        "counter reading repeats a counter that an earlier pass read for the same dispatch; the first counts",
        "counter readings repeat a counter that an earlier pass read for the same dispatch; the first counts",
        severity=Severity.INFO,
    )
    kept = np.sort(order[~again])
    return CounterRows(
        rows.dispatch[kept], rows.counter[kept], rows.value[kept], rows.duration_ns[kept], rows.instance[kept]
    )
