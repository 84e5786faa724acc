"""Inserting rows: numbers that are handed out, many rows at once, and the rows of machine and code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from rpl_testkit.rocpd_writer.rows import KernelRow, RocpdContents
from rpl_testkit.rocpd_writer.schema.tables import quoted

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
