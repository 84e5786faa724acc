"""A results JSON of rocprofv3 (one process) as a ``Trace``, and what its records refer to."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.model.metric import ORIGIN_MARK
from rpl_core.model.trace import NOT_RECORDED, Agent, Kernel, Process, TraceSource
from rpl_core.text import masked_words
from rpl_rocprofv3.readers.columns import display_name, plain_symbol, positions, taken
from rpl_rocprofv3.readers.json import METADATA, entries, number_at, refusing_depth, text_at, value_at
from rpl_rocprofv3.readers.json.work import (
    JsonCalls,
    JsonCopies,
    JsonCounters,
    JsonDispatches,
    JsonRanges,
    counter_names,
    launches_replayed,
    replay_pass_of,
)
from rpl_rocprofv3.readers.trace import TraceParts, agent_from_facts, assembled, origin_of, whole_number
from rpl_rocprofv3.readers.trace.tables import Findings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rpl_core.model.trace import Int32Column, Int64Column, Trace

# What the records of a results JSON refer to: process, agents, kernels, counters, operation names.
#
# A file may describe a thing behind the records that name it, so records keep the numbers as recorded, and
# what the numbers mean is asked for when the whole file was read.

#: The file does not name the machine.
JSON_NODE = "node"
#: Entries before the metadata, which stand at the beginning of real files (chosen).
_FIRST_ENTRIES = 1000


@attrs.define(eq=False)
class JsonInfo:
    """The small sections, growing entry by entry."""

    processes: list[Process] = attrs.field(factory=list)
    origin_marks: tuple[str, ...] = ()
    grouped_by_queue: bool = False
    agents: list[Agent] = attrs.field(factory=list)
    counter_names: dict[int, str] = attrs.field(factory=dict)  # by counter handle
    _agent_of: dict[int, int] = attrs.field(factory=dict)  # agent handle -> index
    _symbols: dict[int, tuple[Kernel, int]] = attrs.field(factory=dict)  # with the id of the code object
    _uris: dict[int, str | None] = attrs.field(factory=dict)  # by code object id
    _kinds: list[tuple[str, list[str]]] = attrs.field(factory=list)  # record kind -> domain, operations

    def sections(self) -> Mapping[str, Callable[[Any], None]]:
        """What takes the entries of each section."""
        return {
            METADATA: self._add_process,
            "agents": self._add_agent,
            "counters": self._add_counter,
            "code_objects": self._add_code_object,
            "kernel_symbols": self._add_symbol,
            "strings.buffer_records": self._add_kind,
        }

    def agent_positions(self, handles: Int64Column) -> Int32Column:
        """Index of the agent that each handle names, -1 where there is none."""
        index = np.array(list(self._agent_of.values()), np.int64)
        return taken(index, positions(handles, list(self._agent_of))).astype(np.int32)

    def symbol(self, kernel_id: int) -> Kernel | None:
        if kernel_id == NOT_RECORDED or kernel_id not in self._symbols:
            return None
        kernel, code_object = self._symbols[kernel_id]
        return attrs.evolve(kernel, code_object=self._uris.get(code_object))

    def operation(self, kind: int, number: int) -> tuple[str, str]:
        """Domain and name of an operation."""
        if not 0 <= kind < len(self._kinds):
            return "", "unknown"
        domain, operations = self._kinds[kind]
        return domain, operations[number] if 0 <= number < len(operations) else "unknown"

    def _add_process(self, metadata: Any) -> None:
        if not self.processes:
            mark = value_at(metadata, ORIGIN_MARK)
            self.origin_marks = () if mark is None else (str(mark),)
            self.grouped_by_queue = value_at(metadata, "config", "group_by_queue") is True
        self.processes.append(_process(metadata))

    def _add_agent(self, entry: Any) -> None:
        if isinstance(entry, dict):
            self._agent_of.setdefault(number_at(entry, "id", "handle"), len(self.agents))
            kind, name = value_at(entry, "type"), text_at(entry, "name")
            self.agents.append(agent_from_facts(JSON_NODE, number_at(entry, "node_id"), kind, entry, name))

    def _add_counter(self, entry: Any) -> None:
        self.counter_names[number_at(entry, "id", "handle")] = text_at(entry, "name") or "unknown"

    def _add_code_object(self, entry: Any) -> None:
        self._uris[number_at(entry, "code_object_id")] = text_at(entry, "uri")

    def _add_symbol(self, entry: Any) -> None:
        symbol = text_at(entry, "kernel_name")
        name = text_at(entry, "formatted_kernel_name") or symbol
        if name:
            kernel = Kernel(
                name=display_name(name),
                symbol=plain_symbol(symbol),
                process=0,
                arch_vgpr=whole_number(value_at(entry, "arch_vgpr_count")),
                accum_vgpr=whole_number(value_at(entry, "accum_vgpr_count")),
                sgpr=whole_number(value_at(entry, "sgpr_count")),
                static_lds_bytes=whole_number(value_at(entry, "group_segment_size")),
                kernarg_bytes=whole_number(value_at(entry, "kernarg_segment_size")),
            )
            self._symbols[number_at(entry, "kernel_id")] = kernel, number_at(entry, "code_object_id")

    def _add_kind(self, entry: Any) -> None:
        operations = value_at(entry, "operations")
        names = [str(name) for name in operations] if isinstance(operations, list) else []
        self._kinds.append((text_at(entry, "kind") or "", names))


def first_process(path: Path) -> Process:
    """The process that the file names first. Reads up to its ``metadata`` only."""
    with refusing_depth(path):
        first = islice(entries(path), _FIRST_ENTRIES)  # the file is read once, and not for this
        return _process(next((value for section, value in first if section == METADATA), None))


def _process(metadata: Any) -> Process:
    command = value_at(metadata, "command")
    pid = number_at(metadata, "pid")
    return Process(
        guid=f"pid {pid}",
        pid=pid,
        node=JSON_NODE,
        command=" ".join(masked_words([*map(str, command)])) if isinstance(command, list) else None,
        begin_ns=whole_number(value_at(metadata, "init_time")) or None,
        end_ns=whole_number(value_at(metadata, "fini_time")) or None,
    )


_FORMAT = "rocprofv3 JSON"


def read_results_json(path: Path, reader: str) -> Trace:
    """Read one file in one pass. Raises ``BadDataError`` unless exactly one process is recorded."""
    with refusing_depth(path):
        return _trace(path, reader, Findings(path))


def _trace(path: Path, reader: str, findings: Findings) -> Trace:
    records = _read(path)
    info, counters = records.info, records.counters
    dispatches = records.traced if len(records.traced) else records.counted
    rows, kernels = dispatches.rows(info, findings)
    parts = TraceParts(
        source=TraceSource(reader, _FORMAT, (str(path),)),
        processes=tuple(info.processes),
        agents=tuple(info.agents),
        kernels=kernels,
        rows=rows,
        stream_id=dispatches.column("stream"),
        queue_id=dispatches.column("queue"),
        copies=records.copies.copies(info),
        calls=records.calls.calls(info, findings),
        ranges=tuple(records.ranges.ranges(info)),
        counter_names=counter_names(info.counter_names),
        grouped_by_queue=info.grouped_by_queue,
        origin=origin_of(info.origin_marks, findings),
    )
    if records.replayed:
        _note_not_replayed(records, findings)
    return assembled(
        parts,
        lambda ordered: (
            counters.rows(info.counter_names, rows.dispatch_id, ordered.row_of, findings)
            if len(counters)
            else None
        ),
        findings,
    )


def _note_not_replayed(records: _Records, findings: Findings) -> None:
    """Launches that have fewer counter groups than others, by kernel: what kernel replay left out."""
    ids, passes = launches_replayed(records.counters)
    fewer = set(ids[passes < passes.max()].tolist()) if len(ids) else set()
    columns = (records.counted.column(name).tolist() for name in ("dispatch", "kernel"))
    counted = zip(*columns, strict=True)
    kernels = [kernel for dispatch, kernel in counted if dispatch in fewer]
    for kernel in dict.fromkeys(kernels):
        known = records.info.symbol(kernel)
        name = "an unknown kernel" if known is None else known.name
        findings.add(
            "counter.not_replayed",
            kernels.count(kernel),
            f"launch of {name} was not replayed: it has one counter group only",
            f"launches of {name} were not replayed: they have one counter group only",
            cause="a HIP graph, a submission of several packets, or memory that could not be restored",
            remedy="count these with --replay off",
        )


@attrs.define(eq=False)
class _Records:
    """Everything of a file that a trace holds.

    Dispatches of the kernel trace count; those of the counter records stand in where no trace was made.
    """

    info: JsonInfo = attrs.field(factory=JsonInfo)
    traced: JsonDispatches = attrs.field(factory=JsonDispatches)
    counted: JsonDispatches = attrs.field(factory=JsonDispatches)
    counters: JsonCounters = attrs.field(factory=JsonCounters)
    calls: JsonCalls = attrs.field(factory=JsonCalls)
    ranges: JsonRanges = attrs.field(factory=JsonRanges)
    copies: JsonCopies = attrs.field(factory=JsonCopies)
    replayed: set[int] = attrs.field(factory=set)

    def add_traced(self, record: Any) -> None:
        self.traced.add(record, value_at(record, "stream_id"))

    def add_counted(self, record: Any) -> None:
        self.counters.add(record)
        if replay_pass_of(record) != NOT_RECORDED:
            # All replays of a launch have its id: it ran once for the application.
            dispatch = number_at(record, "dispatch_data", "dispatch_info", "dispatch_id")
            if dispatch in self.replayed:
                return
            self.replayed.add(dispatch)
        self.counted.add(value_at(record, "dispatch_data"), value_at(record, "stream_id"))


def _read(path: Path) -> _Records:
    records = _Records()
    sections = {
        **records.info.sections(),
        "callback_records.counter_collection": records.add_counted,
        "buffer_records.kernel_dispatch": records.add_traced,
        "buffer_records.hip_api": records.calls.add,
        "buffer_records.marker_api": records.ranges.add,
        "buffer_records.memory_copy": records.copies.add,
        "strings.marker_api": records.ranges.add_text,
    }
    for section, value in entries(path):
        add = sections.get(section)
        if add is not None:
            add(value)
    processes = len(records.info.processes)
    if processes != 1:
        raise BadDataError(
            f"{path} holds {processes} processes, and rpl reads JSON of one process",
            next_step="record one file per process (`-o %hostname%/%pid%`, the default)",
        )
    return records
