"""The tables of a CSV set as parts of a trace: agents, dispatches, calls and copies, counter readings."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED, Agent, HostRange, Kernel
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns import Geometry, display_name, distinct_rows, flat_geometry, positions
from rpl_rocprofv3.readers.csv.tables import open_text, read_columns
from rpl_rocprofv3.readers.trace import agent_from_facts, whole_number
from rpl_rocprofv3.readers.trace.tables import (
    CopyRows,
    CounterRows,
    DispatchRows,
    direction_name,
    no_arguments,
    only_first_pass,
    ordered_api_calls,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rpl_core.model.trace import ApiCalls, Int32Column, Int64Column
    from rpl_rocprofv3.readers.csv.tables import CsvColumns, TextColumn
    from rpl_rocprofv3.readers.trace.tables import Findings

# What reading a CSV table noticed, as diagnostics. Shared by all CSV formats.

_TIMES = ("start_timestamp", "end_timestamp")


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
            found = same[number] if number < len(same) else None
        else:
            by_node = next((i for i, a in enumerate(self.agents) if a.index == number), None)
            found = self.logical.get(number, by_node) if kind else by_node
        if found is not None or self.described:
            return NOT_RECORDED if found is None else found
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
    found, number = distinct_rows([names.code[rows], *fields])
    distinct, rank = np.unique(found, axis=0, return_inverse=True)  # few, in ascending order
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
