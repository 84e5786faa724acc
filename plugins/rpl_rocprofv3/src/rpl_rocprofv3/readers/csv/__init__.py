"""CSV sets of rocprofv3 (one process): one file per kind of record.

Both generations: ROCm 6.x writes segment sizes and integer agent ids, 7.x registers, streams and agent
texts. Tables of calls carry no arguments.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED, Agent, HostRange, Kernel, Process, Trace, TraceSource
from rpl_core.values import frozen
from rpl_rocprofv3.readers.claims import RecordedFile
from rpl_rocprofv3.readers.columns import Geometry, display_name, distinct_rows, flat_geometry, positions
from rpl_rocprofv3.readers.csv.tables import csv_header, open_text, read_columns
from rpl_rocprofv3.readers.gzip_limits import hollow
from rpl_rocprofv3.readers.trace import (
    TraceParts,
    agent_from_facts,
    assembled,
    mark_beside,
    mark_of_folder,
    origin_of,
    whole_number,
    with_flat_geometry,
)
from rpl_rocprofv3.readers.trace.tables import (
    CopyRows,
    CounterRows,
    DispatchRows,
    Findings,
    direction_name,
    no_arguments,
    only_first_pass,
    ordered_api_calls,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rpl_core.model.trace import ApiCalls, Int32Column, Int64Column
    from rpl_rocprofv3.readers.csv.tables import CsvColumns, TextColumn

# Which CSV files of rocprofv3 belong together: ``<prefix>_<kind>.csv`` with one prefix per process.

CSV_FORMAT = "rocprofv3 CSV"
#: CSV does not name the machine; files of one set share a clock.
CSV_NODE = "node"
_EDGE_BYTES = 1 << 16

KERNELS, COUNTERS, AGENTS = "kernel_trace", "counter_collection", "agent_info"
COPIES, MARKERS = "memory_copy_trace", "marker_api_trace"
_HIP = "hip_api_trace"
#: Tables of host calls, one per interface, with the same columns.
CALLS = (_HIP, "hsa_api_trace", "rccl_api_trace", "rocdecode_api_trace", "rocjpeg_api_trace")
# Written beside the kernel trace and not needed for a trace.
_UNUSED = (
    *("memory_allocation_trace", "scratch_memory_trace", "kernel_stats", "hip_api_stats", "hsa_api_stats"),
    *("memory_copy_stats", "domain_stats", "marker_api_stats"),
)
_SAME_KIND = {"hip_runtime_api_trace": _HIP}
_KINDS = (KERNELS, COUNTERS, AGENTS, *CALLS, COPIES, MARKERS, *_SAME_KIND, *_UNUSED)
_NAME = re.compile(rf"(?:(?P<prefix>.*)_)?(?P<kind>{'|'.join(_KINDS)})\.csv(?:\.gz)?")
_TIMES = ("start_timestamp", "end_timestamp")
_COLUMNS = {
    KERNELS: ("kernel_name", "dispatch_id", "agent_id", *_TIMES),
    COUNTERS: ("kernel_name", "dispatch_id", "counter_name", "counter_value"),
    AGENTS: ("node_id", "agent_type", "name"),
    **dict.fromkeys(CALLS, ("function", *_TIMES)),
    COPIES: ("direction", *_TIMES),
    MARKERS: ("function", *_TIMES),
}


@frozen(eq=False)
class CsvSet:
    """The files of one process by kind."""

    folder: Path
    prefix: str
    files: Mapping[str, Path]

    @property
    def pid(self) -> int | None:
        """The process id, which is the default prefix."""
        return int(self.prefix) if re.fullmatch(r"\d{1,9}", self.prefix) else None

    def paths(self) -> tuple[Path, ...]:
        """All files, in order of kind."""
        return tuple(path for _, path in sorted(self.files.items()))

    def call_tables(self) -> tuple[tuple[Path, bool], ...]:
        """The tables of host calls, the HIP runtime's first, and whether each is one by its header."""
        tables = [self.files[kind] for kind in CALLS if kind in self.files]
        return tuple((path, _is_table_of_calls(path)) for path in tables)

    def refusal(self) -> str | None:
        """Why the set gives no trace, judged by the headers."""
        for kind, path in sorted(self.files.items()):
            if kind in (*_UNUSED, *CALLS[1:]):
                continue
            if path.stat().st_size == 0:
                return f"{path.name} is empty (0 bytes)"
            if problem := hollow(path):
                return f"{path.name}: {problem}"
            present = {name.lower() for name in csv_header(path)}
            if not present:
                return f"{path.name} begins with no line of column names: it is damaged or cut off"
            missing = [column for column in _COLUMNS[kind] if column not in present]
            if missing:
                return f"{path.name} is no rocprofv3 {kind} table: it lacks {', '.join(missing)}"
        if KERNELS not in self.files and COUNTERS not in self.files:
            return "the CSV set holds no kernel trace"
        return None


def _is_table_of_calls(path: Path) -> bool:
    if path.stat().st_size == 0 or hollow(path):
        return False
    return {"function", *_TIMES} <= {name.lower() for name in csv_header(path)}


def csv_sets(files: Iterable[Path]) -> tuple[CsvSet, ...]:
    """The sets among ``files``, ordered by folder and prefix.

    Names tell; a table of dispatches under another name is a set of its own, by its header.
    """
    by_place: dict[tuple[Path, str], dict[str, Path]] = {}
    for path in sorted(files):
        if not path.is_file():
            continue
        match = _NAME.fullmatch(path.name)
        if match:
            kind = _SAME_KIND.get(match["kind"], match["kind"])
            by_place.setdefault((path.parent, match["prefix"] or ""), {}).setdefault(kind, path)
        elif renamed := _kind_by_header(path):
            by_place.setdefault((path.parent, path.name.partition(".csv")[0]), {}).setdefault(renamed, path)
    return tuple(
        CsvSet(folder, prefix, kinds)
        for (folder, prefix), kinds in sorted(by_place.items())
        if not kinds.keys() <= {MARKERS, *CALLS[1:], *_UNUSED}
    )


def _kind_by_header(path: Path) -> str | None:
    """What a table of dispatches is whose name does not say it: columns that rocprofv3 alone writes tell."""
    present = {name.lower() for name in csv_header(path)}
    if present >= {"kind", "correlation_id", *_COLUMNS[KERNELS]}:
        return KERNELS
    return COUNTERS if present >= {"correlation_id", "agent_id", *_COLUMNS[COUNTERS]} else None


def described(files: CsvSet) -> RecordedFile:
    """When the process ran, by the first and last row of its trace; CSV names no machine."""
    path = files.files.get(KERNELS) or files.files[COUNTERS]
    times = _edge_times(path)
    begin, end = (min(times), max(times)) if times else (None, None)
    return RecordedFile(
        path, CSV_NODE, None, begin, end, pids=frozenset(() if files.pid is None else (files.pid,))
    )


def _edge_times(path: Path) -> list[int]:
    """Timestamps of the first and the last row; none for compressed or unusual files. Bounded reads."""
    header = [name.lower() for name in csv_header(path)]
    if path.suffix == ".gz" or not set(_TIMES) <= set(header):
        return []
    with path.open("rb") as file:
        head = file.read(_EDGE_BYTES).decode("utf-8", "replace").splitlines()[1:2]
        file.seek(max(path.stat().st_size - _EDGE_BYTES, 0))
        tail = file.read(_EDGE_BYTES).decode("utf-8", "replace").splitlines()[-1:]
    try:
        rows = [row for row in csv.reader([*head, *tail]) if len(row) == len(header)]
        return [int(row[header.index(name)]) for row in rows for name in _TIMES]
    except (csv.Error, ValueError):
        return []


def read_csv_set(files: CsvSet, reader: str) -> Trace:
    """Read all tables of the set."""
    paths = files.files
    findings = Findings(paths.get(KERNELS) or paths[COUNTERS])
    agents = read_csv_agents(paths.get(AGENTS), CSV_NODE)
    readings = read_csv_counters(paths[COUNTERS], findings) if COUNTERS in paths else None
    if KERNELS in paths:
        dispatches = read_csv_dispatches(paths[KERNELS], agents, findings)
    else:
        assert readings is not None  # a set without both is refused
        dispatches = dispatches_of_counters(readings, agents)
    copies = read_csv_copies(paths[COPIES], agents, findings) if COPIES in paths else None
    calls = read_csv_calls(files.call_tables(), findings)
    pids = (files.pid, readings.pid if readings else None, calls.pid if calls else None)
    pid = next((pid for pid in pids if pid is not None), NOT_RECORDED)
    process = Process(f"{files.folder.name}/{files.prefix}", pid, CSV_NODE)
    marked = read_csv_ranges(paths[MARKERS], process.guid, pid, findings) if MARKERS in paths else ()
    parts = TraceParts(
        source=TraceSource(reader, CSV_FORMAT, tuple(str(path) for _, path in sorted(paths.items()))),
        processes=(process,),
        agents=tuple(agents.agents),
        kernels=dispatches.kernels,
        rows=dispatches.rows,
        stream_id=dispatches.stream_id,
        queue_id=dispatches.queue_id,
        copies=copies,
        calls=(calls.values, calls.functions) if calls else None,
        counter_names=readings.names if readings else (),
        ranges=tuple(marked),
        origin=origin_of((*mark_beside(files.folder, files.prefix), *mark_of_folder(files.folder)), findings),
    )
    trace = assembled(
        parts,
        lambda ordered: (
            readings.rows(dispatches.rows.dispatch_id, ordered.row_of, findings) if readings else None
        ),
        findings,
    )
    return trace if KERNELS in paths else with_flat_geometry(trace)


# The tables of a set as parts of a trace. First what reading any of them noticed, as diagnostics.


def report_columns(columns: CsvColumns, findings: Findings) -> None:
    """Report rows and values that could not be taken as they are."""
    findings.add(
        "csv.misshapen_rows",
        columns.misshapen_rows,
        "row has more or fewer fields than the header and is left out",
        "rows have more or fewer fields than the header and are left out",
        severity=Severity.ERROR,
        cause="the file was cut off or edited",
        remedy="copy the file again, or record again",
    )
    findings.add(
        "csv.unreadable_values",
        columns.unreadable,
        "value is no integer and counts as not recorded",
        "values are no integers and count as not recorded",
    )
    findings.add(
        "dispatch.rounded_timestamps",
        max(columns.rounded.get(name, 0) for name in _TIMES),
        "row has rounded timestamps; its duration is unusable",
        "rows have rounded timestamps; their durations are unusable",
        severity=Severity.ERROR,
        cause="the file was saved by a spreadsheet, which keeps 5 or 15 digits",
        remedy="use the original file",
    )
    findings.add(
        "dispatch.averaged_timestamps",
        max(columns.averaged.get(name, 0) for name in _TIMES),
        "row has times with a fraction of a ns: means of several runs, used to the ns",
        "rows have times with a fraction of a ns: means of several runs, used to the ns",
        severity=Severity.INFO,
        cause="rocprofiler-compute merged runs",
    )


# Agents of a CSV set, and how its tables refer to them.
#
# Until ROCm 6.x tables name agents by node id (``2``), from 7.0 on by text whose meaning ``--agent-index``
# chooses: ``Agent 2`` (logical node id by default) or ``GPU 0`` (number among its type).

_MOST_AGENTS = 4096
_REFERENCE = re.compile(r"(?:(?P<kind>Agent|GPU|CPU)[ -])?(?P<number>\d{1,9})", re.IGNORECASE)


@attrs.define(eq=False)
class CsvAgents:
    """Agents in order of their node id; grows by what tables name when there is no agent table."""

    node: str
    agents: list[Agent]
    logical: dict[int, int]  # logical node id -> index into agents
    described: bool

    def positions(self, column: TextColumn | None, row_count: int) -> Int32Column:
        """Index of the agent of each row."""
        if column is None:
            return np.full(row_count, NOT_RECORDED, np.int32)
        known = np.array([self._find(text) for text in column.texts] or [NOT_RECORDED], np.int32)
        return np.asarray(known[column.code])

    def _find(self, text: str) -> int:
        match = _REFERENCE.fullmatch(text.strip())
        if match is None:
            return NOT_RECORDED
        number, kind = int(match["number"]), (match["kind"] or "").upper()
        if kind in ("GPU", "CPU"):
            same = [i for i, agent in enumerate(self.agents) if agent.kind == kind]
            position = same[number] if number < len(same) else None
        else:
            by_node = next((i for i, a in enumerate(self.agents) if a.index == number), None)
            position = self.logical.get(number, by_node) if kind else by_node
        if position is not None or self.described:
            return NOT_RECORDED if position is None else position
        self.agents.append(Agent(self.node, number, kind if kind == "CPU" else "GPU"))
        return len(self.agents) - 1


def read_csv_agents(path: Path | None, node: str) -> CsvAgents:
    """Read ``agent_info.csv``; without one, agents are made of what the tables name."""
    if path is None:
        return CsvAgents(node, [], {}, described=False)
    with open_text(path) as text:
        return _from_rows(node, csv.DictReader(text), path)


def _from_rows(node: str, rows: Iterable[dict[str, str]], path: Path) -> CsvAgents:
    agents: dict[int, tuple[Agent, int]] = {}
    for row in rows:
        facts = {str(key).lower(): value for key, value in row.items()}
        index = whole_number(facts.get("node_id"))
        if index is None or len(agents) >= _MOST_AGENTS:
            raise BadDataError(f"{path}: a row has no Node_Id, or there are more than {_MOST_AGENTS} agents")
        agent = agent_from_facts(node, index, facts.get("agent_type"), facts, facts.get("name"))
        logical = whole_number(facts.get("logical_node_id"))
        agents.setdefault(index, (agent, index if logical is None else logical))
    ordered = [agents[index] for index in sorted(agents)]
    logical_ids = {logical: place for place, (_, logical) in enumerate(ordered)}
    return CsvAgents(node, [agent for agent, _ in ordered], logical_ids, described=True)


# Dispatches of a CSV set: from the kernel trace, or from the counter table where there is no trace.

_WORKGROUP = tuple(f"Workgroup_Size_{axis}" for axis in "XYZ")
_GRID = tuple(f"Grid_Size_{axis}" for axis in "XYZ")
_REGISTERS = ("VGPR_Count", "Accum_VGPR_Count", "SGPR_Count")
_IDS = ("Dispatch_Id", "Kernel_Id", "Queue_Id", "Stream_Id", "Correlation_Id")
_DISPATCH_TIMES = ("Start_Timestamp", "End_Timestamp")
# ROCm 6.x and 7.x spellings of the same facts.
_LDS = ("LDS_Block_Size", "Group_Segment_Size")
_SCRATCH = ("Scratch_Size", "Private_Segment_Size")
_DISPATCH_INTEGERS = (*_IDS, *_DISPATCH_TIMES, *_WORKGROUP, *_GRID, *_REGISTERS, *_LDS, *_SCRATCH)


@frozen(eq=False)
class CsvDispatches:
    """Dispatches in file order with raw stream and queue ids."""

    rows: DispatchRows
    kernels: tuple[Kernel, ...]
    stream_id: Int64Column
    queue_id: Int64Column


def read_csv_dispatches(path: Path, agents: CsvAgents, findings: Findings) -> CsvDispatches:
    """Read a kernel trace."""
    columns = read_columns(path, integers=_DISPATCH_INTEGERS, texts=("Kernel_Name", "Agent_Id"))
    report_columns(columns, findings)
    geometry = Geometry(
        (columns.integer(_WORKGROUP[0]), columns.integer(_WORKGROUP[1]), columns.integer(_WORKGROUP[2])),
        (columns.integer(_GRID[0]), columns.integer(_GRID[1]), columns.integer(_GRID[2])),
        _either(columns, _LDS),
        _either(columns, _SCRATCH),
    )
    return _dispatches(columns, np.arange(columns.row_count), geometry, agents)


def dispatches_of_counters(counters: CsvCounters, agents: CsvAgents) -> CsvDispatches:
    """The dispatches that a counter table names, one per dispatch id."""
    columns, rows = counters.columns, counters.first_rows
    geometry = flat_geometry(
        columns.integer("Workgroup_Size")[rows],
        columns.integer("Grid_Size")[rows],
        _either(columns, _LDS)[rows],
        _either(columns, _SCRATCH)[rows],
    )
    return _dispatches(columns, rows, geometry, agents)


def _either(columns: CsvColumns, names: tuple[str, str]) -> Int64Column:
    return columns.integer(next((name for name in names if name.lower() in columns.integers), names[0]))


def _dispatches(
    columns: CsvColumns, rows: Int64Column, geometry: Geometry, agents: CsvAgents
) -> CsvDispatches:
    kernels, kernel = _kernels(columns, rows)
    absent = np.full(len(rows), NOT_RECORDED, np.int32)
    table = DispatchRows(
        process=np.zeros(len(rows), np.int32),
        agent=agents.positions(columns.texts.get("agent_id"), columns.row_count)[rows],
        kernel=kernel,
        stream=absent,
        queue=absent,
        dispatch_id=columns.integer("Dispatch_Id")[rows],
        correlation_id=np.where((c := columns.integer("Correlation_Id")[rows]) == 0, NOT_RECORDED, c),
        begin_ns=columns.integer("Start_Timestamp")[rows],
        end_ns=columns.integer("End_Timestamp")[rows],
        geometry=geometry,
    )
    return CsvDispatches(
        table, kernels, columns.integer("Stream_Id")[rows], columns.integer("Queue_Id")[rows]
    )


def _kernels(columns: CsvColumns, rows: Int64Column) -> tuple[tuple[Kernel, ...], Int32Column]:
    """Distinct kernels: the same name may be loaded twice with other registers."""
    names = columns.texts["kernel_name"]
    fields = [columns.integer(name)[rows] for name in ("Kernel_Id", *_REGISTERS)]
    rows_of_kernels, number = distinct_rows([names.code[rows], *fields])
    distinct, rank = np.unique(rows_of_kernels, axis=0, return_inverse=True)  # few, in ascending order
    kernels = tuple(
        Kernel(display_name(names.texts[code]), None, 0, *(v if v >= 0 else None for v in registers))
        for code, _, *registers in distinct.tolist()
    )
    return kernels, rank.reshape(-1).astype(np.int32)[number]


# Host calls and copies of a CSV set. Calls have no arguments, copies no size.

_CALL_INTEGERS = ("Process_Id", "Thread_Id", "Correlation_Id", "Start_Timestamp", "End_Timestamp")
_COPY_INTEGERS = ("Stream_Id", "Correlation_Id", "Start_Timestamp", "End_Timestamp")


@frozen(eq=False)
class CsvCalls:
    values: ApiCalls
    functions: tuple[str, ...]
    pid: int | None


def read_csv_calls(tables_of: Sequence[tuple[Path, bool]], findings: Findings) -> CsvCalls | None:
    """Read the calls of all interfaces that were traced, in all of their domains; ``None`` without a table.

    What a function of another interface than the HIP runtime's means for the order of work is not known, but
    the host was in it. A damaged table of another interface costs its calls, and that is told.
    """
    paths = [path for path, is_table in tables_of if is_table]
    damaged = [path.name for path, is_table in tables_of if not is_table]
    findings.add(
        "api.table_not_read",
        len(damaged),
        f"table of host calls is not read: {', '.join(damaged)}",
        f"tables of host calls are not read: {', '.join(damaged)}",
        cause="a file is empty, damaged, or no table of rocprofv3",
    )
    if not paths:
        return None
    tables = [read_columns(path, integers=_CALL_INTEGERS, texts=("Domain", "Function")) for path in paths]
    for columns in tables:
        report_columns(columns, findings)
    names: dict[str, int] = {}
    functions = []
    for columns in tables:
        function = columns.texts["function"]
        code = np.array([names.setdefault(text, len(names)) for text in function.texts], np.int32)
        functions.append(np.append(code, np.int32(NOT_RECORDED))[function.code])

    def joined(name: str) -> Int64Column:
        return np.concatenate([columns.integer(name) for columns in tables])

    count = sum(columns.row_count for columns in tables)
    pids = joined("Process_Id")
    values = ordered_api_calls(
        process=np.zeros(count, np.int32),
        thread_id=joined("Thread_Id"),
        function=np.concatenate(functions),
        correlation_id=joined("Correlation_Id"),
        begin_ns=joined("Start_Timestamp"),
        end_ns=joined("End_Timestamp"),
        arguments=no_arguments(count),
        findings=findings,
    )
    return CsvCalls(values, tuple(names), int(pids[0]) if len(pids) and pids[0] >= 0 else None)


def read_csv_ranges(path: Path, guid: str, pid: int, findings: Findings) -> Iterator[HostRange]:
    """Ranges of roctx, whose message stands in place of a function. Releases with a domain for ranges repeat
    them as calls in another one (docs/reference/formats.md, 2.2)."""
    columns = read_columns(path, integers=_CALL_INTEGERS, texts=("Domain", "Function"))
    report_columns(columns, findings)
    names, domain = columns.texts["function"], columns.texts.get("domain")
    begin, end = columns.integer("Start_Timestamp"), columns.integer("End_Timestamp")
    chosen = begin < end
    if (
        domain is not None
        and (known := [text.endswith("_RANGE_API") for text in domain.texts])
        and any(known)
    ):
        chosen &= np.array(known, np.bool_)[domain.code]
    thread = columns.integer("Thread_Id")
    for row in np.flatnonzero(chosen).tolist():
        yield HostRange(
            names.texts[names.code[row]], guid, pid, int(thread[row]), int(begin[row]), int(end[row])
        )


def read_csv_copies(path: Path, agents: CsvAgents, findings: Findings) -> tuple[CopyRows, Int64Column]:
    """Read a memory copy trace, with the stream id of each copy."""
    columns = read_columns(
        path, integers=_COPY_INTEGERS, texts=("Direction", "Source_Agent_Id", "Destination_Agent_Id")
    )
    report_columns(columns, findings)
    direction = columns.texts["direction"]
    count = columns.row_count
    rows = CopyRows(
        process=np.zeros(count, np.int32),
        source_agent=agents.positions(columns.texts.get("source_agent_id"), count),
        destination_agent=agents.positions(columns.texts.get("destination_agent_id"), count),
        stream=np.full(count, NOT_RECORDED, np.int32),
        direction=direction.code,
        size_bytes=np.full(count, NOT_RECORDED, np.int64),
        correlation_id=columns.integer("Correlation_Id"),
        begin_ns=columns.integer("Start_Timestamp"),
        end_ns=columns.integer("End_Timestamp"),
        directions=tuple(direction_name(text) for text in direction.texts),
    )
    return rows, columns.integer("Stream_Id")


# The counter table of a CSV set: one row per (dispatch, counter), already summed over instances.

_COUNTER_INTEGERS = (
    *("Correlation_Id", "Dispatch_Id", "Queue_Id", "Process_Id", "Grid_Size", "Kernel_Id", "Workgroup_Size"),
    *("LDS_Block_Size", "Scratch_Size", "VGPR_Count", "Accum_VGPR_Count", "SGPR_Count"),
    *("Start_Timestamp", "End_Timestamp"),
)


@frozen(eq=False)
class CsvCounters:
    """The table, its counter names, and the first row of each dispatch."""

    columns: CsvColumns
    names: tuple[str, ...]
    first_rows: Int64Column

    @property
    def pid(self) -> int | None:
        pids = self.columns.integer("Process_Id")
        return int(pids[0]) if len(pids) and pids[0] >= 0 else None

    def rows(self, dispatch_ids: Int64Column, row_of: Int64Column, findings: Findings) -> CounterRows:
        """The readings attached to the final dispatch rows."""
        columns = self.columns
        ids, first = np.unique(dispatch_ids, return_index=True)
        place = positions(columns.integer("Dispatch_Id"), ids)
        target = row_of[first][place] if len(ids) else place
        texts = columns.texts["counter_name"]
        number = np.array([self.names.index(text.strip()) for text in texts.texts] or [0], np.int32)
        begin, end = columns.integer("Start_Timestamp"), columns.integer("End_Timestamp")
        duration = np.where((begin >= 0) & (end >= begin), end - begin, NOT_RECORDED)
        rows = CounterRows(
            dispatch=np.where(place < 0, NOT_RECORDED, target),
            counter=number[texts.code],
            value=columns.floats["counter_value"],
            duration_ns=duration,
            instance=np.full(len(place), NOT_RECORDED, np.int32),
        )
        return _numbered(only_first_pass(rows, begin, findings), findings)


def read_csv_counters(path: Path, findings: Findings) -> CsvCounters:
    """Read a counter table."""
    columns = read_columns(
        path,
        integers=_COUNTER_INTEGERS,
        floats=("Counter_Value",),
        texts=("Kernel_Name", "Counter_Name", "Agent_Id"),
    )
    report_columns(columns, findings)
    names = tuple(sorted({text.strip() for text in columns.texts["counter_name"].texts}))
    _, first = np.unique(columns.integer("Dispatch_Id"), return_index=True)
    return CsvCounters(columns, names, first.astype(np.int64))


def _numbered(rows: CounterRows, findings: Findings) -> CounterRows:
    """Rows whose instances are numbered by ``checked_counters`` if a pair occurs more than once."""
    pair = np.stack([rows.dispatch, rows.counter.astype(np.int64)], axis=1)
    repeated = len(pair) - len(np.unique(pair, axis=0)) if len(pair) else 0
    findings.add(
        "counter.several_rows",
        repeated,
        "counter row shares dispatch and counter with another row; both count as hardware instances",
        "counter rows share dispatch and counter with another row; they count as hardware instances",
        cause="the profiler wrote one row per instance",
    )
    return attrs.evolve(rows, instance=None)
