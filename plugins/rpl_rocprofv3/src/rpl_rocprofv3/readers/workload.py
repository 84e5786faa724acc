"""Workload folders of rocprofiler-compute: the tables, told by their header, the machine, and the traces.

Tables of rocprof v1, which Omniperf 1.x merged into its folders, name the columns in another way
(``KernelName``, ``grd``, ``BeginNs``); ``current_names`` gives them those of later releases.

Wide tables have one row per dispatch and one column per counter (``TCC_HIT[3]`` is instance 3); long
ones one row per (dispatch, counter). Merging passes left repeated columns such as ``Wave_Size_1``.
"""

from __future__ import annotations

import csv
import io
import math
import re
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files import read_regular
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe
from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED, Agent, Kernel, Process, TraceSource
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns import display_name, distinct_ids, flat_geometry, positions
from rpl_rocprofv3.readers.csv import report_columns
from rpl_rocprofv3.readers.csv.tables import csv_header, read_columns
from rpl_rocprofv3.readers.trace import TraceParts, assembled, whole_number
from rpl_rocprofv3.readers.trace.tables import CounterRows, DispatchRows, Findings, only_first_pass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from rpl_core.model.trace import Float64Column, Int32Column, Int64Column, Trace
    from rpl_rocprofv3.readers.csv.tables import CsvColumns

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
        current = old.get(base.lower())
        named.append(name.strip() if current is None else current + number)
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


# The machine of a workload folder: ``sysinfo.csv``, and what its benchmark reached.

_UNKNOWN = frozenset({"", "na", "n/a", "none", "nan"})
_LARGEST_FILE = 1 << 20
#: Names of Omniperf 1.x for the same facts (docs/reference/formats.md, 6).
_OLD_NAMES = {
    "host_name": "hostname",
    "gpu_soc": "gpu_arch",
    "name": "gpu_model",
    "numCU": "cu_per_gpu",
    "numSIMD": "simd_per_cu",
    "maxWavesPerCU": "max_waves_per_cu",
    "waveSize": "wave_size",
    "sclk": "max_sclk",
}


@frozen
class SystemInfo:
    """The facts by column name; empty when the folder has no ``sysinfo.csv``."""

    facts: Mapping[str, str]

    def text(self, name: str) -> str | None:
        value = self.facts.get(name, "").strip()
        return None if value.lower() in _UNKNOWN else value

    def number(self, name: str) -> int | None:
        return whole_number(self.text(name)) or None

    @property
    def hostname(self) -> str | None:
        return self.text("hostname")

    @property
    def node(self) -> str:
        return self.hostname or "node"

    def agent(self, index: int) -> Agent:
        """The GPU that tables call ``index``. LDS size is not recorded in workload folders."""
        waves_per_cu, simds = self.number("max_waves_per_cu"), self.number("simd_per_cu")
        return Agent(
            node=self.node,
            index=index,
            kind="GPU",
            architecture=self.text("gpu_arch"),
            product=self.text("gpu_model"),
            chip_id=self.number("gpu_chip_id"),
            compute_units=self.number("cu_per_gpu"),
            xcd_count=self.number("num_xcd"),
            simd_per_cu=simds,
            max_waves_per_simd=waves_per_cu // simds if waves_per_cu and simds else None,
            wave_size=self.number("wave_size"),
            clock_mhz=self.number("max_sclk"),
            compute_partition=self.text("compute_partition"),
            memory_partition=self.text("memory_partition"),
        )


def read_system(path: Path | None) -> SystemInfo:
    """Read the one row of ``sysinfo.csv``; unreadable files count as absent."""
    if path is None:
        return SystemInfo({})
    try:
        text = read_regular(path, _LARGEST_FILE).decode("utf-8-sig", "replace")
        row = next(csv.DictReader(io.StringIO(text, newline="")), {})
    except (BadDataError, MissingError, csv.Error):
        return SystemInfo({})
    facts = {str(key): value for key, value in row.items() if isinstance(value, str)}
    if "gpu_soc" in facts:
        facts |= {new: facts[old] for old, new in _OLD_NAMES.items() if old in facts}
    return SystemInfo(facts)


# ``roofline.csv`` of a workload folder: what rocprofiler-compute's benchmark reached on each GPU there.
#
# One row per GPU, one column per rate in GB/s, GFLOP/s or GOP/s; columns ending in Low and High are its
# spread
# (rocm-systems @1b1610fc, projects/rocprofiler-compute/tests/workloads/path/MI200/roofline.csv).

BENCHMARK = "roofline.csv"
#: A machine has few GPUs; a longer file is none of the benchmark.
_MOST_ROWS = 256
_MOST_BYTES = 1 << 20
_MEMORY = {"HBMBw": "hbm", "L2Bw": "l2", "L1Bw": "vl1d", "LDSBw": "lds"}
_COMPUTE = {
    "FP32Flops": ("F32", Pipe.VALU),
    "FP64Flops": ("F64", Pipe.VALU),
    **{f"MFMA{kind}Flops": (kind, Pipe.MFMA) for kind in ("BF16", "F16", "F32", "F64", "F8")},
    "MFMAI8Ops": ("I8", Pipe.MFMA),
}


def read_benchmark(path: Path) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
    """The lowest of all GPUs for each rate: which of them ran the recording is not in the file.

    A rate that is absent, empty or zero was not measured; a file that can't be read gives none.
    """
    try:
        text = io.StringIO(read_regular(path, _MOST_BYTES).decode(), newline="")
        rows = [row for row, _ in zip(csv.DictReader(text), range(_MOST_ROWS), strict=False)]
    except (BadDataError, MissingError, UnicodeDecodeError, csv.Error):
        return ()
    gpus = "the GPU" if len(rows) == 1 else f"the slowest of {len(rows)} GPUs"
    source = f"{path.name} of the recording: benchmark of rocprofiler-compute, {gpus}"
    origin = CeilingOrigin.MEASURED
    memory = {level: _lowest(rows, name) for name, level in _MEMORY.items()}
    compute = {kind: _lowest(rows, name) for name, kind in _COMPUTE.items()}
    return (
        *(MemoryCeiling(level, rate, origin, source) for level, rate in memory.items() if rate),
        *(ComputeCeiling(*kind, rate, origin, source) for kind, rate in compute.items() if rate),
    )


def _lowest(rows: list[dict[str, str]], name: str) -> float | None:
    rates = [rate for row in rows if (rate := _rate(row.get(name))) is not None]
    return min(rates, default=None)


def _rate(text: str | None) -> float | None:
    try:
        rate = float(text or 0)
    except ValueError:
        return None
    return rate if math.isfinite(rate) and rate > 0 else None


# One table of a workload folder as a ``Trace``.
#
# In wide tables all passes were merged and only the times of the separate timing run were kept, so a
# counter there has no duration of its own. In long tables every row carries the times of its pass.

_INTEGERS = (
    *("Dispatch_ID", "GPU_ID", "PID", "Grid_Size", "Workgroup_Size", "LDS_Per_Workgroup"),
    *("Scratch_Per_Workitem", "Arch_VGPR", "Accum_VGPR", "SGPR", "Start_Timestamp", "End_Timestamp"),
)
_REGISTERS = ("Arch_VGPR", "Accum_VGPR", "SGPR")


def read_workload_table(path: Path, system: SystemInfo, reader: str) -> Trace:
    """Read a wide, long or timestamps table."""
    header = csv_header(path)
    findings = Findings(path)
    if table_form(header) is TableForm.LONG:
        columns = read_columns(
            path,
            integers=_INTEGERS,
            floats=["Counter_Value"],
            texts=["Kernel_Name", "Counter_Name"],
            names=current_names,
        )
        table = _WorkloadTable(path, system, columns, _first_rows(columns))
        counters: WideCounters | LongCounters = LongCounters.of(columns, table.dispatch_of_row())
    else:
        wide = wide_header(header)
        columns = read_columns(
            path,
            integers=_INTEGERS,
            floats=[c.column for c in wide.counters],
            texts=["Kernel_Name"],
            names=current_names,
        )
        table = _WorkloadTable(path, system, columns, np.arange(columns.row_count))
        counters = WideCounters.of(columns, wide)
    report_columns(columns, findings)
    _report_unknown(header, findings)
    parts = table.parts(counters.names, TraceSource(reader, WORKLOAD_FORMAT, (str(path),)))
    return assembled(
        parts,
        lambda ordered: counters.rows(ordered.row_of, findings) if counters.names else None,
        findings,
    )


def _report_unknown(header: Sequence[str], findings: Findings) -> None:
    """What tables of rocprof v1 don't tell, or not rightly."""
    names = {name.lower() for name in current_names(header)}
    if names == {name.lower() for name in header}:
        return
    findings.add(
        "table.no_registers",
        int("arch_vgpr" not in names),
        "table tells no register counts to go by: rocprof v1 counted them in granules of another GPU",
        "tables tell no register counts to go by",
        severity=Severity.INFO,
        remedy="record with rocprofv3, or give the code object",
    )
    findings.add(
        "table.no_times",
        int(not names >= {"start_timestamp", "end_timestamp"}),
        "table has no times: its dispatches begin and end at 0, and their duration is unknown",
        "tables have no times",
        remedy="record with `rocprof --timestamp on`, or with rocprofv3",
    )


def _first_rows(columns: CsvColumns) -> Int64Column:
    """The row with the earliest begin of each (GPU, dispatch) of a long table."""
    gpu, dispatch = columns.integer("GPU_ID"), columns.integer("Dispatch_ID")
    begin = columns.integer("Start_Timestamp")
    order = np.lexsort((begin, dispatch, gpu))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(gpu[order]) != 0) | (np.diff(dispatch[order]) != 0)
    return order[new]


class _WorkloadTable:
    """The dispatches of one table; ``rows`` are the table rows that stand for one dispatch each."""

    def __init__(self, path: Path, system: SystemInfo, columns: CsvColumns, rows: Int64Column) -> None:
        self.path, self.system, self.columns, self.rows = path, system, columns, rows
        self.gpus = distinct_ids(self._of("GPU_ID"))
        self.pids = distinct_ids(self._of("PID"))
        self.kernels, self.kernel = self._kernels()

    def _of(self, name: str) -> Int64Column:
        return self.columns.integer(name)[self.rows]

    def _time(self, name: str) -> Int64Column:
        """0 in a table without times: its counters still belong to dispatches in their order."""
        known = name.lower() in self.columns.integers
        return self._of(name) if known else np.zeros(len(self.rows), np.int64)

    def _kernels(self) -> tuple[tuple[Kernel, ...], Int32Column]:
        names = self.columns.texts["kernel_name"]
        key = np.stack([names.code[self.rows], *(self._of(name) for name in _REGISTERS)], axis=1)
        distinct, number = np.unique(key, axis=0, return_inverse=True)
        process = 0 if len(self.pids) == 1 else NOT_RECORDED
        kernels = tuple(
            Kernel(
                display_name(names.texts[code]), None, process, *(v if v >= 0 else None for v in registers)
            )
            for code, *registers in distinct.tolist()
        )
        return kernels, number.reshape(-1).astype(np.int32)

    def dispatch_rows(self) -> DispatchRows:
        absent = np.full(len(self.rows), NOT_RECORDED, np.int32)
        return DispatchRows(
            process=positions(self._of("PID"), self.pids),
            agent=positions(self._of("GPU_ID"), self.gpus),
            kernel=self.kernel,
            stream=absent,
            queue=absent,
            dispatch_id=self._of("Dispatch_ID"),
            correlation_id=absent.astype(np.int64),
            begin_ns=self._time("Start_Timestamp"),
            end_ns=self._time("End_Timestamp"),
            geometry=flat_geometry(
                self._of("Workgroup_Size"),
                self._of("Grid_Size"),
                self._of("LDS_Per_Workgroup"),
                self._of("Scratch_Per_Workitem"),
            ),
        )

    def dispatch_of_row(self) -> Int32Column:
        """For each row of a long table the number of its dispatch."""
        # GPU ids are KFD numbers below 2**20; a dispatch id beyond 2**42 is no count of dispatches.
        key = (self.columns.integer("GPU_ID") << 42) ^ self.columns.integer("Dispatch_ID")
        return positions(key, key[self.rows])

    def parts(self, counter_names: tuple[str, ...], source: TraceSource) -> TraceParts:
        guid = f"{self.path.parent.name}/{self.path.name}"
        system = self.system
        absent = np.broadcast_to(np.int64(NOT_RECORDED), len(self.rows))
        return TraceParts(
            source=source,
            processes=tuple(
                Process(guid, pid, system.node, system.hostname, system.text("command"))
                for pid in self.pids.tolist()
            ),
            agents=tuple(system.agent(gpu) for gpu in self.gpus.tolist()),
            kernels=self.kernels,
            rows=self.dispatch_rows(),
            stream_id=absent,
            queue_id=absent,
            counter_names=counter_names,
        )
