"""Rows of GPU work and API calls with the events that link them, and counters with their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import UsageError
from rpl_testkit.rocpd_writer.insert_info import json_text
from rpl_testkit.rocpd_writer.rows import CounterDefinitionRow, RegionRow, RocpdContents

if TYPE_CHECKING:
    from rpl_testkit.rocpd_writer.insert_info import Events, Strings, TableInsert


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
