"""What the records of a results JSON refer to: process, agents, kernels, counters, operation names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import BadDataError
from rpl_core.model.trace import NOT_RECORDED, Agent, Kernel, Process
from rpl_rocprofv3.readers.columns.kernel_names import display_name, plain_symbol
from rpl_rocprofv3.readers.json.records import entries, number_at, text_at, value_at
from rpl_rocprofv3.readers.trace.agents import agent_from_facts, whole_number
from rpl_rocprofv3.readers.trace.origin_marks import ORIGIN_MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["JSON_NODE", "JsonInfo", "first_process", "read_info"]

#: The file does not name the machine.
JSON_NODE = "node"
_CALL_NAMES = "strings.buffer_records.item"


@attrs.frozen(eq=False)
class JsonInfo:
    """Objects by the numbers under which records name them."""

    process: Process
    origin_marks: tuple[str, ...]
    grouped_by_queue: bool
    agents: tuple[Agent, ...]
    agent_of: Mapping[int, int]  # agent handle -> index
    symbols: Mapping[int, Kernel]
    counter_names: Mapping[int, str]  # counter handle -> name
    kinds: Sequence[tuple[str, Sequence[str]]]  # record kind -> (domain, operation names)

    def operation(self, record: Any) -> tuple[str, str]:
        """Domain and operation name of a record."""
        kind, number = number_at(record, "kind"), number_at(record, "operation")
        if not 0 <= kind < len(self.kinds):
            return "", "unknown"
        domain, operations = self.kinds[kind]
        return domain, operations[number] if 0 <= number < len(operations) else "unknown"


def read_info(path: Path) -> JsonInfo:
    """Read the small sections. Raises ``BadDataError`` unless exactly one process is recorded."""
    metadata = list(entries(path, "metadata"))
    if len(metadata) != 1:
        raise BadDataError(
            f"{path} holds {len(metadata)} processes, and rpl reads JSON of one process",
            next_step="record one file per process (`-o %hostname%/%pid%`, the default)",
        )
    agents, agent_of = _agents(path)
    return JsonInfo(
        process=_process(metadata[0]),
        origin_marks=_origin_marks(metadata[0]),
        grouped_by_queue=value_at(metadata[0], "config", "group_by_queue") is True,
        agents=agents,
        agent_of=agent_of,
        symbols=_symbols(path),
        counter_names={
            number_at(entry, "id", "handle"): text_at(entry, "name") or "unknown"
            for entry in entries(path, "counters.item")
        },
        kinds=[_kind(entry) for entry in entries(path, _CALL_NAMES)],
    )


def first_process(path: Path) -> Process:
    """The process that the file names first. Reads up to its ``metadata`` only."""
    return _process(next(entries(path, "metadata"), None))


def _origin_marks(metadata: Any) -> tuple[str, ...]:
    mark = value_at(metadata, ORIGIN_MARK)
    return () if mark is None else (str(mark),)


def _process(metadata: Any) -> Process:
    command = value_at(metadata, "command")
    pid = number_at(metadata, "pid")
    return Process(
        guid=f"pid {pid}",
        pid=pid,
        node=JSON_NODE,
        command=" ".join(map(str, command)) if isinstance(command, list) else None,
        begin_ns=whole_number(value_at(metadata, "init_time")) or None,
        end_ns=whole_number(value_at(metadata, "fini_time")) or None,
    )


def _agents(path: Path) -> tuple[tuple[Agent, ...], dict[int, int]]:
    found: list[Agent] = []
    handles: dict[int, int] = {}
    for entry in entries(path, "agents.item"):
        if isinstance(entry, dict):
            handles.setdefault(number_at(entry, "id", "handle"), len(found))
            kind, name = value_at(entry, "type"), text_at(entry, "name")
            found.append(agent_from_facts(JSON_NODE, number_at(entry, "node_id"), kind, entry, name))
    return tuple(found), handles


def _symbols(path: Path) -> dict[int, Kernel]:
    uris = {number_at(e, "code_object_id"): text_at(e, "uri") for e in entries(path, "code_objects.item")}
    found: dict[int, Kernel] = {}
    for entry in entries(path, "kernel_symbols.item"):
        symbol = text_at(entry, "kernel_name")
        name = text_at(entry, "formatted_kernel_name") or symbol
        if name:
            found[number_at(entry, "kernel_id")] = Kernel(
                name=display_name(name),
                symbol=plain_symbol(symbol),
                process=0,
                arch_vgpr=whole_number(value_at(entry, "arch_vgpr_count")),
                accum_vgpr=whole_number(value_at(entry, "accum_vgpr_count")),
                sgpr=whole_number(value_at(entry, "sgpr_count")),
                static_lds_bytes=whole_number(value_at(entry, "group_segment_size")),
                kernarg_bytes=whole_number(value_at(entry, "kernarg_segment_size")),
                code_object=uris.get(number_at(entry, "code_object_id")),
            )
    found.pop(NOT_RECORDED, None)
    return found


def _kind(entry: Any) -> tuple[str, list[str]]:
    operations = value_at(entry, "operations")
    return text_at(entry, "kind") or "", [str(o) for o in operations] if isinstance(operations, list) else []
