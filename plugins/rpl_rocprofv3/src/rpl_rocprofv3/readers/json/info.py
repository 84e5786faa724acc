"""What the records of a results JSON refer to: process, agents, kernels, counters, operation names.

A file may describe a thing behind the records that name it, so records keep the numbers as recorded, and
what the numbers mean is asked for when the whole file was read.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.origin import ORIGIN_MARK
from rpl_core.model.trace import NOT_RECORDED, Agent, Kernel, Process
from rpl_core.text.secrets import masked_words
from rpl_rocprofv3.readers.columns.id_lookup import positions, taken
from rpl_rocprofv3.readers.columns.kernel_names import display_name, plain_symbol
from rpl_rocprofv3.readers.json.records import METADATA, entries, number_at, refusing_depth, text_at, value_at
from rpl_rocprofv3.readers.trace.agents import agent_from_facts, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rpl_core.model.trace import Int32Column, Int64Column

__all__ = ["JSON_NODE", "JsonInfo", "first_process"]

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
