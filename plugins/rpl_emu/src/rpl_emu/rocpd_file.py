"""A rocpd file, schema 3.0.4, of what was emulated: the tables that a kernel trace with counters needs.

Names and columns are those of rocprofv3's files (docs/reference/formats.md, 2.2). HIP's streams are not seen
below its runtime: each hardware queue stands for one, whose packets the software GPU does in their order.
The file says in its metadata, in the command line and in the agent's name that nothing in it was measured.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from rpl_core.errors import BadDataError, RplError
from rpl_core.files import storage_error
from rpl_core.model.metric import ORIGIN_MARK, Origin
from rpl_core.values import frozen
from rpl_emu.software_gpu import DEVICE, PRODUCT

# AMD's counter names for the emulator's classes of instructions. ``data/counters.json`` is the whole map.


@cache
def counter_map() -> dict[str, Any]:
    """``{"counters": {name: {"classes": [patterns], "of": field, "status": ..., "source": ...}}}``"""
    text = files("rpl_emu").joinpath("data/counters.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def amd_counters(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The counters of a launch, each with whether its classification is proven."""
    by_name: dict[str, dict[str, Any]] = {}
    for name, rule in counter_map()["counters"].items():
        if rule["of"] == "waves":
            value = int(document["waves"])
        else:
            value = sum(
                int(counts.get(rule["of"], 0))
                for class_, counts in document["classes"].items()
                if any(fnmatchcase(class_, pattern) for pattern in rule["classes"])
            )
        by_name[name] = {"value": value, "status": rule["status"]}
    return by_name


# What the software KFD wrote down of a program's launches, laid out in time by what is modelled.
#
# Emulation takes a time that says nothing about a GPU, so it is nowhere used. A launch takes its modelled
# bound (docs/EMULATOR.md, "Modelled"). It begins when the launch before it in its queue has ended, what
# barrier packets before it wait for, and what had ended when the program submitted it.

_LAUNCH, _BARRIER = "emulated ", "barrier "


@frozen(eq=False)
class EmulatedLaunch:
    """One launch with its place in the modelled order; times in ns from the first one's begin."""

    facts: Mapping[str, Any]
    begin_ns: int
    end_ns: int

    @property
    def queue(self) -> tuple[int, int]:
        return self.facts["gpu"], self.facts["queue"]


@frozen
class QueueEvent:
    """A barrier packet of ``queue`` that held back what follows until ``source_queue`` had set a signal.

    ``set_after`` and ``waited_at`` say how many launches of the process had ended by then.
    """

    source_queue: tuple[int, int]
    set_after: int
    set_ns: int
    queue: tuple[int, int]
    waited_at: int
    waited_ns: int


@frozen(eq=False)
class EmulatedWork:
    """What one process did: launches in the order in which they ended, and what ordered its queues."""

    launches: Sequence[EmulatedLaunch]
    events: Sequence[QueueEvent]


def read_work(log: Path) -> dict[int, EmulatedWork]:
    """The work of each process that launched something, by its id."""
    clocks: dict[int, _Clock] = {}
    with log.open(encoding="utf-8") as lines:
        for kind, facts in _records(lines, log):
            clock = clocks.setdefault(facts["pid"], _Clock())
            if kind == _LAUNCH:
                clock.launch(facts)
            else:
                clock.barrier(facts)
    return {
        pid: EmulatedWork(clock.launches, clock.events)
        for pid, clock in sorted(clocks.items())
        if clock.launches
    }


def _records(lines: Iterable[str], log: Path) -> Iterable[tuple[str, dict[str, Any]]]:
    for line in lines:
        kind = next((kind for kind in (_LAUNCH, _BARRIER) if line.startswith(kind)), None)
        if kind is None:
            continue
        try:
            yield kind, json.loads(line.removeprefix(kind))
        except ValueError:
            raise BadDataError(
                f"{log} holds a line that was cut off", next_step="run the program again"
            ) from None


@frozen
class _Set:
    """A signal that was set: by whom, behind which launch of the process, and when."""

    queue: tuple[int, int]
    after: int
    at_ns: int


class _Clock:
    """The modelled time of one process: when each queue is free, each signal set, each logged record done."""

    def __init__(self) -> None:
        self.launches: list[EmulatedLaunch] = []
        self.events: list[QueueEvent] = []
        self._queues: dict[tuple[int, int], int] = {}
        self._signals: dict[int, _Set] = {}
        #: By number of records: when the last of them had ended.
        self._done = [0]

    def launch(self, facts: dict[str, Any]) -> None:
        queue = facts["gpu"], facts["queue"]
        # The program can have waited for no more than what had ended when the packet was found.
        begin = max(self._queues.get(queue, 0), self._done[min(facts["done_before"], len(self._done) - 1)])
        end = begin + max(1, round(facts["modelled"]["bound_ns"]))
        self.launches.append(EmulatedLaunch(facts, begin, end))
        self._finish(queue, facts["completes"], end)

    def barrier(self, facts: dict[str, Any]) -> None:
        queue = facts["gpu"], facts["queue"]
        # What nobody is known to have set was set by copies, by the host, or before the first launch.
        waits = [self._signals[signal] for signal in facts["waits_for"] if signal in self._signals]
        end = max([self._queues.get(queue, 0), *(wait.at_ns for wait in waits)])
        self.events += (
            QueueEvent(wait.queue, wait.after, wait.at_ns, queue, len(self.launches), end)
            for wait in waits
            if wait.queue != queue
        )
        self._finish(queue, facts["completes"], end)

    def _finish(self, queue: tuple[int, int], signal: int, end: int) -> None:
        self._queues[queue] = end
        if signal:
            self._signals[signal] = _Set(queue, len(self.launches), end)
        self._done.append(max(self._done[-1], end))


#: How SQLite says it (https://sqlite.org/rescode.html#full); Python 3.10 tells no number.
_DISK_IS_FULL = "database or disk is full"
COMMAND_MARK = "[modelled, emulated by rpl] "
#: What native/softkfd/topology/device.h tells the runtime; docs/reference/devices.md, 1.1.
_GPU = {
    "device_id": 29857,
    "gfx_target_version": 90402,
    "cu_count": 304,
    "num_xcc": 8,
    "simd_per_cu": 4,
    "simd_count": 1216,
    "max_waves_per_simd": 8,
    "wave_front_size": 64,
    "lds_size_in_kb": 64,
    "max_engine_clk_fcompute": 2100,
    "product_name": PRODUCT,
}
_NODE = 1
_STRINGS = ("", "KERNEL_DISPATCH", "HIP_EVENT", "HIP_EVENT_RECORD", "HIP_EVENT_WAIT")
_TABLES = {
    "rocpd_metadata": "tag value",
    "rocpd_string": "string",
    "rocpd_info_node": "hash machine_id system_name hostname release version hardware_name domain_name",
    "rocpd_info_process": "nid ppid pid init fini start end command environment extdata",
    "rocpd_info_thread": "nid ppid pid tid name start end extdata",
    "rocpd_info_agent": "nid pid type absolute_index logical_index type_index uuid name model_name "
    "vendor_name product_name user_name extdata",
    "rocpd_info_queue": "nid pid name extdata",
    "rocpd_info_stream": "nid pid name extdata",
    "rocpd_info_pmc": "nid pid agent_id target_arch event_code instance_id name symbol description "
    "long_description component units value_type block expression is_constant is_derived extdata",
    "rocpd_info_code_object": "nid pid agent_id uri load_base load_size load_delta storage_type extdata",
    "rocpd_info_kernel_symbol": "nid pid code_object_id kernel_name display_name kernel_object "
    "kernarg_segment_size kernarg_segment_alignment group_segment_size private_segment_size sgpr_count "
    "arch_vgpr_count accum_vgpr_count extdata",
    "rocpd_event": "category_id stack_id parent_stack_id correlation_id call_stack line_info extdata",
    "rocpd_pmc_event": "event_id pmc_id value extdata",
    "rocpd_kernel_dispatch": "nid pid tid agent_id kernel_id dispatch_id queue_id stream_id start end "
    "private_segment_size group_segment_size workgroup_size_x workgroup_size_y workgroup_size_z grid_size_x "
    "grid_size_y grid_size_z region_name_id event_id extdata",
    "rocpd_hip_event": "nid pid tid agent_id name_id hip_event_handle queue_id source_queue_id start end "
    "event_id extdata",
}
_NUMBERS = """
hash nid ppid pid tid init fini start end absolute_index logical_index type_index uuid agent_id event_code
instance_id is_constant is_derived load_base load_size load_delta code_object_id kernel_object
kernarg_segment_size kernarg_segment_alignment group_segment_size private_segment_size sgpr_count
arch_vgpr_count accum_vgpr_count category_id stack_id parent_stack_id correlation_id event_id pmc_id kernel_id
dispatch_id queue_id stream_id workgroup_size_x workgroup_size_y workgroup_size_z grid_size_x grid_size_y
grid_size_z region_name_id name_id hip_event_handle source_queue_id
"""


def write_rocpd(path: Path, pid: int, command: str, work: EmulatedWork, counters: Sequence[str]) -> None:
    """Write the work of one process with these counters; the file appears whole or not at all.

    Raises ``RplError``.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            guid = _guid(pid, command, work.launches, counters)
            _File(connection, guid).write(pid, command, work, counters)
            connection.execute("COMMIT")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise storage_error(path, error) from error
    except sqlite3.Error as error:
        temporary.unlink(missing_ok=True)
        if _DISK_IS_FULL not in str(error):
            raise RplError(f"can't write {path}: {error}", next_step="check the file system") from error
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise storage_error(path, full, _size_of(pid, command, work, counters)) from error


def _size_of(pid: int, command: str, work: EmulatedWork, counters: Sequence[str]) -> int:
    """Bytes that the file takes."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _File(connection, _guid(pid, command, work.launches, counters)).write(pid, command, work, counters)
        pages, bytes_of_page = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size")
        )
        return pages * bytes_of_page


def _guid(pid: int, command: str, launches: Sequence[EmulatedLaunch], counters: Sequence[str]) -> str:
    seen = json.dumps(
        [pid, command, list(counters), [(launch.begin_ns, launch.facts["symbol"]) for launch in launches]]
    )
    digits = hashlib.sha256(seen.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-7{digits[12:15]}-8{digits[15:18]}-{digits[18:30]}"


class _File:
    def __init__(self, connection: sqlite3.Connection, guid: str) -> None:
        self._connection = connection
        self._guid = guid
        self._suffix = "_" + guid.replace("-", "_")
        for table, columns in _TABLES.items():
            guid_column = "" if table == "rocpd_metadata" else f", guid TEXT NOT NULL DEFAULT '{guid}'"
            typed = ", ".join(f'"{name}" {_type_of(table, name)}' for name in columns.split())
            head = f'CREATE TABLE "{table}{self._suffix}" (id INTEGER NOT NULL PRIMARY KEY{guid_column}'
            connection.execute(f"{head}, {typed})")
            connection.execute(f'CREATE VIEW "{table}" AS SELECT * FROM "{table}{self._suffix}"')  # noqa: S608

    def _rows(self, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        names = columns.split()
        listed, marks = ", ".join(f'"{name}"' for name in names), ", ".join("?" * len(names))
        statement = f'INSERT INTO "{table}{self._suffix}" ({listed}) VALUES ({marks})'  # noqa: S608
        self._connection.executemany(statement, rows)

    def write(self, pid: int, command: str, work: EmulatedWork, counters: Sequence[str]) -> None:
        launches = work.launches
        self._process(pid, command, launches)
        gpus = sorted({launch.facts["gpu"] for launch in launches})
        self._agents(pid, gpus)
        queues = {
            queue: number for number, queue in enumerate(sorted({launch.queue for launch in launches}), 1)
        }
        for table in ("rocpd_info_queue", "rocpd_info_stream"):
            names = ((number, _NODE, pid, f"Queue {number}") for number in queues.values())
            self._rows(table, "id nid pid name", names)
        kernels = self._kernels(pid, launches)
        self._rows("rocpd_string", "id string", [*enumerate(_STRINGS, 1)])
        self._dispatches(pid, launches, queues, kernels)
        self._hip_events(pid, work, queues)
        self._counters(pid, launches, counters)

    def _process(self, pid: int, command: str, launches: Sequence[EmulatedLaunch]) -> None:
        tags = [("schema_version", "3"), ("uuid", self._suffix), ("guid", self._guid)]
        tags.append((ORIGIN_MARK, Origin.MODELLED.value))
        self._rows("rocpd_metadata", "tag value", tags)
        node = (_NODE, _NODE, "emulated", "Linux", "emulated")
        self._rows("rocpd_info_node", "id hash machine_id system_name hostname", [node])
        end = max(launch.end_ns for launch in launches)
        process = (pid, _NODE, 0, pid, 0, end, 0, end, COMMAND_MARK + command, "{}", "{}")
        columns = "id nid ppid pid init fini start end command environment extdata"
        self._rows("rocpd_info_process", columns, [process])
        self._rows("rocpd_info_thread", "id nid ppid pid tid", [(pid, _NODE, 0, pid, pid)])

    def _agents(self, pid: int, gpus: Sequence[int]) -> None:
        columns = (
            "id nid pid type absolute_index logical_index type_index uuid name model_name vendor_name "
            "product_name user_name extdata"
        )
        rows = (
            (
                gpu,
                _NODE,
                pid,
                "GPU",
                gpu,
                gpu,
                gpu,
                _GPU["device_id"],
                DEVICE,
                PRODUCT,
                "AMD",
                PRODUCT,
                PRODUCT,
                json.dumps(_GPU),
            )
            for gpu in gpus
        )
        self._rows("rocpd_info_agent", columns, rows)

    def _kernels(self, pid: int, launches: Sequence[EmulatedLaunch]) -> dict[int, int]:
        """Numbers of kernels by address of the descriptor."""
        first: dict[int, EmulatedLaunch] = {}
        for launch in launches:
            first.setdefault(launch.facts["kernel_object"], launch)
        code = [(1, _NODE, pid, launches[0].facts["gpu"], "memory://emulated", "MEMORY")]
        self._rows("rocpd_info_code_object", "id nid pid agent_id uri storage_type", code)
        columns = (
            "id nid pid code_object_id kernel_name display_name kernel_object kernarg_segment_size "
            "kernarg_segment_alignment group_segment_size private_segment_size sgpr_count arch_vgpr_count "
            "accum_vgpr_count"
        )
        numbers = {address: number for number, address in enumerate(sorted(first), 1)}
        rows = (_kernel_row(numbers[address], pid, launch.facts) for address, launch in first.items())
        self._rows("rocpd_info_kernel_symbol", columns, rows)
        return numbers

    def _dispatches(
        self,
        pid: int,
        launches: Sequence[EmulatedLaunch],
        queues: dict[tuple[int, int], int],
        kernels: dict[int, int],
    ) -> None:
        numbers = range(1, len(launches) + 1)
        # What correlates is the place: each launch, behind it what was set, then what was waited for.
        events = ((number, 2, 3 * number, 3 * number, 0) for number in numbers)
        self._rows("rocpd_event", "id category_id stack_id parent_stack_id correlation_id", events)
        columns = (
            "id nid pid tid agent_id kernel_id dispatch_id queue_id stream_id start end private_segment_size "
            "group_segment_size workgroup_size_x workgroup_size_y workgroup_size_z grid_size_x grid_size_y "
            "grid_size_z region_name_id event_id"
        )
        rows = (
            (
                number,
                _NODE,
                pid,
                pid,
                launch.facts["gpu"],
                kernels[launch.facts["kernel_object"]],
                number,
                queues[launch.queue],
                queues[launch.queue],
                launch.begin_ns,
                launch.end_ns,
                launch.facts["scratch_bytes"],
                launch.facts["lds_bytes"],
                *launch.facts["workgroup"],
                *launch.facts["grid"],
                1,
                number,
            )
            for number, launch in zip(numbers, launches, strict=True)
        )
        self._rows("rocpd_kernel_dispatch", columns, rows)

    def _hip_events(self, pid: int, work: EmulatedWork, queues: dict[tuple[int, int], int]) -> None:
        """A record and a wait, with a handle of their own, for each signal that one queue set for another."""
        rows, events = [], []
        number = len(work.launches)
        for handle, event in enumerate(work.events, 1):
            if event.source_queue not in queues or event.queue not in queues:
                continue  # a queue without launches orders nothing
            source, queue = queues[event.source_queue], queues[event.queue]
            sides = (
                (4, event.source_queue[0], source, 3 * event.set_after + 1, event.set_ns),
                (5, event.queue[0], queue, 3 * event.waited_at + 2, event.waited_ns),
            )
            for name, gpu, of, place, at in sides:
                number += 1
                events.append((number, 3, place, place, 0))
                rows.append((_NODE, pid, pid, gpu, name, handle, of, source, at, at, number))
        self._rows("rocpd_event", "id category_id stack_id parent_stack_id correlation_id", events)
        columns = "nid pid tid agent_id name_id hip_event_handle queue_id source_queue_id start end event_id"
        self._rows("rocpd_hip_event", columns, rows)

    def _counters(self, pid: int, launches: Sequence[EmulatedLaunch], names: Sequence[str]) -> None:
        gpus = sorted({launch.facts["gpu"] for launch in launches})
        ids = {(gpu, name): gpu * 10_000 + k for gpu in gpus for k, name in enumerate(names, 1)}
        columns = (
            "id nid pid agent_id target_arch name symbol description component value_type block is_constant "
            "is_derived extdata"
        )
        about = "counted by the emulator; whether hardware counts the same is unverified"
        rows = (
            (k, _NODE, pid, gpu, "GPU", name, name, about, "rpl-emu", "ABS", name.split("_")[0], 0, 0, "{}")
            for (gpu, name), k in ids.items()
        )
        self._rows("rocpd_info_pmc", columns, rows)
        values = []
        for number, launch in enumerate(launches, 1):
            counters = amd_counters(launch.facts)
            gpu = launch.facts["gpu"]
            values += [(number, ids[gpu, name], counters[name]["value"], "{}") for name in names]
        self._rows("rocpd_pmc_event", "event_id pmc_id value extdata", values)


def _type_of(table: str, name: str) -> str:
    if name == "value" and table == "rocpd_pmc_event":
        return "REAL"
    return "INTEGER" if name in _NUMBERS.split() else "TEXT"


def _kernel_row(number: int, pid: int, facts: Any) -> tuple[Any, ...]:
    sizes = facts["kernarg_bytes"], 8, facts["static_lds_bytes"], facts["scratch_bytes"]
    names = f"{facts['symbol']}.kd", facts["kernel"]
    registers = facts["sgpr"], facts["arch_vgpr"], facts["accum_vgpr"]
    return (number, _NODE, pid, 1, *names, facts["kernel_object"], *sizes, *registers)
