"""Counter definitions and values. One file row per hardware instance, as the profiler writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rpl_core.errors import UsageError
from rpl_testkit.rocpd_writer.insert_info import json_text
from rpl_testkit.rocpd_writer.rows import CounterDefinitionRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rpl_testkit.rocpd_writer.insert_work import DispatchLink
    from rpl_testkit.rocpd_writer.rows import RocpdContents
    from rpl_testkit.rocpd_writer.table_insert import TableInsert

__all__ = ["CounterInsert"]


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
