"""Inserting rows: numbers that are handed out, many rows at once, and the rows of machine and code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import UsageError
from rpl_testkit.rocpd_writer.rows import CounterDefinitionRow, KernelRow, RegionRow, RocpdContents
from rpl_testkit.rocpd_writer.tables import quoted

if TYPE_CHECKING:
    import sqlite3

#: One row of rocpd_event: id, category id, stack id, parent stack id, external correlation id.
EventRecord = tuple[int, int, int, int, int]


class Strings:
    """The string table: text to id in order of first use. Id 1 is the empty string."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {"": 1}

    def id_of(self, text: str) -> int:
        """Return the id of `text`, adding it when new."""
        return self._ids.setdefault(text, len(self._ids) + 1)

    def rows(self) -> Iterator[tuple[int, str]]:
        """Yield (id, text) in id order."""
        return ((number, text) for text, number in self._ids.items())


class Events:
    """Event rows collected in memory until `take`; ids are given in order of creation."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._next = 1
        self._pending: list[EventRecord] = []

    def add(self, category: str, stack_id: int, parent: int, external: int) -> int:
        """Create an event and return its id."""
        number = self._next
        self._next = number + 1
        self._pending.append((number, self._strings.id_of(category), stack_id, parent, external))
        return number

    def take(self) -> list[EventRecord]:
        """Return the events created since the last call."""
        pending, self._pending = self._pending, []
        return pending


# Insert many rows of one table quickly, in bounded memory.
#
# Knows batching and the suffix of physical tables; which values a row has is the caller's business.

_BATCH_ROWS = 50_000


class TableInsert:
    """Inserts into the physical tables of one file."""

    def __init__(self, connection: sqlite3.Connection, suffix: str, events: Events) -> None:
        self._connection = connection
        self._suffix = suffix
        self._events = events

    def rows(self, table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert `rows` (values in the order of the space-separated `columns`) and their events."""
        statement = self._statement(table, columns)
        iterator = iter(rows)
        while batch := list(islice(iterator, _BATCH_ROWS)):
            self._connection.executemany(statement, batch)
            self._flush_events()

    def _statement(self, table: str, columns: str) -> str:
        names = columns.split()
        marks = ", ".join("?" * len(names))
        listed = ", ".join(map(quoted, names))
        # Names are constants of this package, values are bound.
        return f"INSERT INTO {quoted(table + self._suffix)} ({listed}) VALUES ({marks})"

    def _flush_events(self) -> None:
        pending = self._events.take()
        if pending:
            columns = "id category_id stack_id parent_stack_id correlation_id"
            self._connection.executemany(self._statement("rocpd_event", columns), pending)


# Rows that describe the machine, the process and the loaded code.


def json_text(value: Mapping[str, Any]) -> str:
    """Return compact JSON, the form in which the profiler stores extdata."""
    return json.dumps(dict(value), separators=(",", ":"), ensure_ascii=False)


def process_thread_ids(contents: RocpdContents) -> tuple[int, ...]:
    """Return the thread ids of the file; the main thread has the pid."""
    return tuple(sorted({contents.process.pid, *contents.thread_ids}))


def write_info(insert: TableInsert, contents: RocpdContents, command: str) -> None:
    """Insert node, process, threads, agents, queues, streams, code objects and kernel symbols."""
    _write_machine(insert, contents, command)
    nid, pid = contents.node.node_id, contents.process.pid
    for kind, used in (
        ("queue", {0: "Default Queue", **{row.queue_id: row.name for row in contents.queues}}),
        ("stream", {0: "Default Stream", **{row.stream_id: row.name for row in contents.streams}}),
    ):
        rows = ((number, nid, pid, name) for number, name in sorted(used.items()))
        insert.rows(f"rocpd_info_{kind}", "id nid pid name", rows)
    insert.rows(
        "rocpd_info_code_object",
        "id nid pid agent_id uri load_base load_size load_delta extdata",
        _code_objects(contents),
    )
    insert.rows(
        "rocpd_info_kernel_symbol",
        "id nid pid code_object_id kernel_name display_name kernel_object kernarg_segment_size "
        "kernarg_segment_alignment group_segment_size private_segment_size sgpr_count arch_vgpr_count "
        "accum_vgpr_count extdata",
        (_kernel(kernel, nid, pid) for kernel in contents.kernels),
    )


def _write_machine(insert: TableInsert, contents: RocpdContents, command: str) -> None:
    node, process = contents.node, contents.process
    texts = (
        node.system_name,
        node.hostname,
        node.release,
        node.version,
        node.hardware_name,
        node.domain_name,
    )
    insert.rows(
        "rocpd_info_node",
        "id hash machine_id system_name hostname release version hardware_name domain_name",
        [(node.node_id, node.node_id, node.machine_id, *texts)],
    )
    span = (process.begin_ns, process.end_ns, process.begin_ns, process.end_ns)
    insert.rows(
        "rocpd_info_process",
        "id nid ppid pid init fini start end command environment extdata",
        # The environment may hold secrets in real files; ours is always empty.
        [
            (
                process.pid,
                node.node_id,
                process.ppid,
                process.pid,
                *span,
                command,
                "{}",
                json_text(process.extdata),
            )
        ],
    )
    insert.rows(
        "rocpd_info_thread",
        "id nid ppid pid tid",
        ((tid, node.node_id, process.ppid, process.pid, tid) for tid in process_thread_ids(contents)),
    )
    insert.rows(
        "rocpd_info_agent",
        "id nid pid type absolute_index logical_index type_index uuid name model_name vendor_name "
        "product_name user_name extdata",
        (
            (
                agent.index,
                node.node_id,
                process.pid,
                agent.kind,
                agent.index,
                logical_index,
                agent.type_index,
                agent.device_id,
                agent.name,
                agent.model_name,
                agent.vendor_name,
                agent.product_name,
                agent.product_name,
                json_text(agent.extdata),
            )
            for logical_index, agent in enumerate(contents.agents)
        ),
    )


def _code_objects(contents: RocpdContents) -> Iterator[tuple[Any, ...]]:
    for code in contents.code_objects:
        yield (
            code.code_object_id,
            contents.node.node_id,
            contents.process.pid,
            code.agent,
            code.uri,
            code.load_base,
            code.load_bytes,
            code.load_base,
            json_text({"size": 88, "code_object_id": code.code_object_id, "uri": code.uri, **code.extdata}),
        )


def _kernel(kernel: KernelRow, nid: int, pid: int) -> tuple[Any, ...]:
    extdata = {
        "kernel_id": kernel.kernel_id,
        "code_object_id": kernel.code_object_id,
        "kernel_name": f"{kernel.symbol}.kd",
        "kernel_object": kernel.kernel_object,
        "formatted_kernel_name": kernel.name,
        "demangled_kernel_name": kernel.name,
    }
    return (
        kernel.kernel_id,
        nid,
        pid,
        kernel.code_object_id,
        f"{kernel.symbol}.kd",
        kernel.name,
        kernel.kernel_object,
        kernel.kernarg_bytes,
        8,
        kernel.lds_bytes,
        kernel.scratch_bytes,
        kernel.sgpr,
        kernel.arch_vgpr,
        kernel.accum_vgpr,
        json_text(extdata),
    )


# Rows of GPU work and API calls with the events that link them, and counters with their values.

#: Event row id and agent of a dispatch, needed by its counter values.
DispatchLink = tuple[int, int]

_GRAPH_COLUMNS = " graph_exec_id graph_node_id"


@attrs.define
class WorkInsert:
    """Writes the work of one recording; `links` afterwards maps dispatch id to event and agent."""

    insert: TableInsert
    strings: Strings
    events: Events
    contents: RocpdContents
    level: int
    links: dict[int, DispatchLink] = attrs.field(factory=dict)

    def write_regions(self) -> None:
        """Insert API calls and their arguments; arguments wait until their events exist."""
        arguments: list[tuple[Any, ...]] = []
        self.insert.rows(
            "rocpd_region",
            "id nid pid tid start end name_id event_id extdata",
            (self._region(region, arguments) for region in self.contents.regions),
        )
        self.insert.rows("rocpd_arg", "event_id position type name value", arguments)

    def _region(self, region: RegionRow, arguments: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        event = self.events.add(region.category, region.stack_id, region.parent_stack_id, region.external_id)
        arguments += [(event, i, a.type, a.name, a.value) for i, a in enumerate(region.arguments)]
        nid, pid = self._ids()
        tid = pid if region.tid is None else region.tid
        name = self.strings.id_of(region.name)
        return (
            region.stack_id,
            nid,
            pid,
            tid,
            region.begin_ns,
            region.end_ns,
            name,
            event,
            json_text(region.extdata),
        )

    def _ids(self) -> tuple[int, int]:
        return self.contents.node.node_id, self.contents.process.pid

    def write_dispatches(self, *, keep_links: bool) -> None:
        """Insert kernel executions; `keep_links` remembers their events for counter values."""
        columns = (
            "id nid pid tid agent_id kernel_id dispatch_id queue_id stream_id start end private_segment_size "
            "group_segment_size workgroup_size_x workgroup_size_y workgroup_size_z grid_size_x grid_size_y "
            "grid_size_z region_name_id event_id"
        )
        rows = self._dispatches(keep_links=keep_links)
        self.insert.rows("rocpd_kernel_dispatch", columns + self._graph_columns(), rows)

    def _graph_columns(self) -> str:
        return _GRAPH_COLUMNS if self.level >= 2 else ""

    def _dispatches(self, *, keep_links: bool) -> Iterator[tuple[Any, ...]]:
        nid, pid = self._ids()
        add_event, id_of, links = self.events.add, self.strings.id_of, self.links
        with_graph = self.level >= 2
        for row in self.contents.dispatches:
            event = add_event("KERNEL_DISPATCH", row.stack_id, row.stack_id, row.external_id)
            if keep_links:
                links[row.dispatch_id] = (event, row.agent)
            graph = (row.graph_exec_id, row.graph_node_id) if with_graph else ()
            yield (
                row.dispatch_id,
                nid,
                pid,
                pid if row.tid is None else row.tid,
                row.agent,
                row.kernel_id,
                row.dispatch_id,
                row.queue_id,
                row.stream_id,
                row.begin_ns,
                row.end_ns,
                row.scratch_bytes,
                row.lds_bytes,
                *row.workgroup,
                *row.grid,
                id_of(row.region),
                event,
                *graph,
            )

    def write_copies(self) -> None:
        """Insert copies; queue and region stay NULL as in real files (docs/reference/formats.md, 2.2)."""
        columns = (
            "nid pid tid start end name_id dst_agent_id dst_address src_agent_id src_address size "
            "stream_id event_id"
        )
        self.insert.rows("rocpd_memory_copy", columns + self._graph_columns(), self._copies())

    def _copies(self) -> Iterator[tuple[Any, ...]]:
        nid, pid = self._ids()
        for row in self.contents.copies:
            event = self.events.add("MEMORY_COPY", row.stack_id, row.stack_id, row.external_id)
            graph = (row.graph_exec_id, row.graph_node_id) if self.level >= 2 else ()
            yield (
                nid,
                pid,
                pid if row.tid is None else row.tid,
                row.begin_ns,
                row.end_ns,
                self.strings.id_of(row.name),
                row.destination_agent,
                row.destination_address,
                row.source_agent,
                row.source_address,
                row.size_bytes,
                row.stream_id,
                event,
                *graph,
            )

    def write_allocations(self) -> None:
        """Insert memory operations."""
        self.insert.rows(
            "rocpd_memory_allocate",
            "nid pid tid agent_id type level start end address size queue_id stream_id event_id extdata",
            self._allocations(),
        )

    def _allocations(self) -> Iterator[tuple[Any, ...]]:
        nid, pid = self._ids()
        for row in self.contents.allocations:
            category = "SCRATCH_MEMORY" if row.level == "SCRATCH" else "MEMORY_ALLOCATION"
            event = self.events.add(category, row.stack_id, row.stack_id, 0)
            tid = pid if row.tid is None else row.tid
            span = (row.begin_ns, row.end_ns)
            place = (row.address, row.size_bytes, row.queue_id, row.stream_id)
            yield (
                nid,
                pid,
                tid,
                row.agent,
                row.operation,
                row.level,
                *span,
                *place,
                event,
                json_text(row.extdata),
            )

    def write_graph_launches(self) -> None:
        """Insert graph launches (schema 3.0.2)."""
        self.insert.rows(
            "rocpd_graph_launch",
            "nid pid tid agent_id queue_id start end graph_exec_id kernel_dispatch_count event_id",
            self._graph_launches(),
        )

    def _graph_launches(self) -> Iterator[tuple[Any, ...]]:
        nid, pid = self._ids()
        for row in self.contents.graph_launches:
            event = self.events.add("HIP_GRAPH", row.stack_id, row.stack_id, 0)
            tid = pid if row.tid is None else row.tid
            graph = (row.graph_exec_id, row.kernel_dispatch_count)
            yield (nid, pid, tid, row.agent, row.queue_id, row.begin_ns, row.end_ns, *graph, event)

    def write_hip_events(self) -> None:
        """Insert GPU-side event barriers (schema 3.0.4)."""
        self.insert.rows(
            "rocpd_hip_event",
            "nid pid tid agent_id name_id hip_event_handle queue_id source_queue_id start end event_id",
            self._hip_events(),
        )

    def _hip_events(self) -> Iterator[tuple[Any, ...]]:
        nid, pid = self._ids()
        for row in self.contents.hip_events:
            event = self.events.add("HIP_EVENT", row.stack_id, row.stack_id, 0)
            tid = pid if row.tid is None else row.tid
            name = self.strings.id_of(row.operation)
            queues = (row.queue_id, row.source_queue_id)
            yield (nid, pid, tid, row.agent, name, row.handle, *queues, row.begin_ns, row.end_ns, event)


# Counter definitions and values. One file row per hardware instance, as the profiler writes them.


class CounterInsert:
    """Writes counters of one recording; definitions that nobody gave are derived from use."""

    def __init__(
        self, insert: TableInsert, contents: RocpdContents, links: dict[int, DispatchLink], level: int
    ) -> None:
        self._insert = insert
        self._contents = contents
        self._links = links
        self._level = level
        self._definitions: dict[tuple[int, str], tuple[int, CounterDefinitionRow]] = {}
        for definition in contents.counter_definitions:
            self._define(definition)

    def _define(self, definition: CounterDefinitionRow) -> int:
        # Real ids are handles that encode the agent; ours are agent * 10000 + position from 1.
        number = definition.counter_id or definition.agent * 10_000 + len(self._definitions) + 1
        self._definitions[definition.agent, definition.name] = (number, definition)
        return number

    def _counter_id(self, agent: int, name: str) -> int:
        known = self._definitions.get((agent, name))
        if known:
            return known[0]
        block = re.split("[_:]", name, maxsplit=1)[0]
        return self._define(CounterDefinitionRow(name=name, agent=agent, block=block))

    def _link(self, dispatch_id: int, counter: str) -> tuple[int, int]:
        try:
            event, agent = self._links[dispatch_id]
        except KeyError:
            raise UsageError(
                f"counter {counter} names dispatch {dispatch_id}, which the recording does not hold"
            ) from None
        return event, self._counter_id(agent, counter)

    def write(self) -> None:
        """Insert values, streamed samples and finally the definitions."""
        self._insert.rows("rocpd_pmc_event", "event_id pmc_id value", self._values())
        if self._level >= 3:
            self._write_streamed()
        self._insert.rows("rocpd_info_pmc", self._definition_columns(), self._definition_rows())

    def _values(self) -> Iterator[tuple[Any, ...]]:
        for row in self._contents.counters:
            event, counter = self._link(row.dispatch_id, row.name)
            for value in row.values:
                yield event, counter, value

    def _write_streamed(self) -> None:
        samples = list(self._contents.streamed_counters)
        if not samples:
            return
        nid, pid = self._contents.node.node_id, self._contents.process.pid
        self._insert.rows("rocpd_track", "id nid pid tid", [(1, nid, pid, pid)])
        linked = [
            (number, row, *self._link(row.dispatch_id, row.name)) for number, row in enumerate(samples, 1)
        ]
        self._insert.rows(
            "rocpd_sample",
            "id track_id timestamp event_id",
            ((number, 1, row.timestamp_ns, event) for number, row, event, _ in linked),
        )
        columns = "event_id pmc_id value sample_id xcc shader_engine instance"
        rows: Iterable[tuple[Any, ...]] = (
            (event, counter, row.value, number, row.xcc, row.shader_engine, row.instance)
            + ((row.shader_array, row.wgp) if self._level >= 5 else ())
            for number, row, event, counter in linked
        )
        self._insert.rows(
            "rocpd_pmc_event", columns + (" shader_array wgp" if self._level >= 5 else ""), rows
        )

    def _definition_columns(self) -> str:
        columns = (
            "id nid pid agent_id target_arch name symbol description component value_type block "
            "expression is_constant is_derived extdata"
        )
        return columns + (" spm_support" if self._level >= 3 else "")

    def _definition_rows(self) -> Iterator[tuple[Any, ...]]:
        agents = {agent.index: agent for agent in self._contents.agents}
        nid, pid = self._contents.node.node_id, self._contents.process.pid
        for number, row in sorted(self._definitions.values(), key=lambda item: item[0]):
            agent = agents.get(row.agent)
            yield (
                number,
                nid,
                pid,
                row.agent,
                "GPU",
                row.name,
                row.name,
                row.description,
                "rocm",
                "ABS",
                row.block,
                row.expression,
                int(row.is_constant),
                int(row.is_derived),
                json_text(agent.extdata if agent else {}),
                *((0,) if self._level >= 3 else ()),
            )
