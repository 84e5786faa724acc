"""Drawn RPD databases read back: every row and field as put in, by section 3 of the formats' reference."""

from __future__ import annotations

import gzip
import random
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from rpl_core.model.trace import NO_HANDLE, RANGES

TABLES = """
CREATE TABLE rocpd_metadata (id integer PRIMARY KEY, tag varchar, value varchar);
CREATE TABLE rocpd_string (id integer PRIMARY KEY, string varchar);
CREATE TABLE rocpd_op (id integer PRIMARY KEY, gpuId integer, queueId integer, sequenceId integer,
    completionSignal varchar, start integer, end integer, description_id integer, opType_id integer);
CREATE TABLE rocpd_api (id integer PRIMARY KEY, pid integer, tid integer, start integer, end integer,
    apiName_id integer, args_id integer);
CREATE TABLE rocpd_api_ops (id integer PRIMARY KEY, api_id integer, op_id integer);
CREATE TABLE rocpd_kernelapi (api_ptr_id integer PRIMARY KEY, stream varchar, gridX integer, gridY integer,
    gridZ integer, workgroupX integer, workgroupY integer, workgroupZ integer, groupSegmentSize integer,
    privateSegmentSize integer);
CREATE TABLE rocpd_copyapi (api_ptr_id integer PRIMARY KEY, stream varchar, size integer, width integer,
    height integer, kind integer, dst varchar, src varchar);
INSERT INTO rocpd_metadata VALUES (1, 'schema_version', '2');
"""
T0 = 8_306_017_478_773_569
LAUNCHES = (
    "hipLaunchKernel",
    "hipModuleLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipHccModuleLaunchKernel",
)
KERNELS = {"_Z5scalePf.kd": "_Z5scalePf", "Cijk_Ailk.kd": "Cijk_Ailk", "add": "add"}
COPIES = {
    "CopyHostToDevice": ("MEMORY_COPY_HOST_TO_DEVICE", False, True),
    "CopyDeviceToHost": ("MEMORY_COPY_DEVICE_TO_HOST", True, False),
    "CopyDeviceToDevice": ("MEMORY_COPY_DEVICE_TO_DEVICE", True, True),
}


class Drawn:
    """What is written, kept as it will be asked for."""

    def __init__(self, seed: int, pids: tuple[int, ...]) -> None:
        rng = self.rng = random.Random(seed)
        self.ids: dict[str, int] = {}
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.dispatches, self.copies, self.calls, self.ranges = [], [], [], []
        #: Row ids of calls, in an order that is not that of time.
        call_ids = iter(rng.sample(range(1, 400), 90))
        operation_ids = iter(rng.sample(range(1, 400), 90))
        for number in range(45):
            pid, at = rng.choice(pids), T0 + 1000 * number
            begin, end = at + rng.randint(1, 400), at + rng.randint(400, 990)
            thread = 10 * pid + rng.randint(0, 1)
            stream = rng.choice((0, 0, 0x7F00_0000_1000, 0x7F00_0000_2000))
            call = (next(call_ids), pid, thread, begin, end)
            what = rng.choice(
                (
                    "kernel",
                    "kernel",
                    "copy",
                    "graph",
                    "fill",
                    "sync",
                    "event",
                    "marker",
                    "mark",
                    "idle",
                    "lost",
                )
            )
            if what == "kernel":
                self.launch(call, stream, next(operation_ids))
            elif what == "copy":
                self.copy(call, stream, next(operation_ids))
            elif what == "graph":
                self.call(call, "hipGraphLaunch", f"graphExec=0x1 | stream={stream:#x}", stream)
                for _ in range(2):
                    self.operation(next(operation_ids), call, "Task", "add", stream, None)
            elif what == "fill":
                self.call(call, "hipMemsetAsync", f"dst=0x10 | stream={stream:#x}", stream)
                self.operation(next(operation_ids), call, "FillBuffer", "", stream, None)
            elif what == "sync":
                self.call(call, "hipStreamSynchronize", f"stream={stream:#x}", stream)
            elif what == "event":
                event = rng.randint(1, 1 << 47)
                self.call(call, "hipEventRecord", f"event={event:#x} | stream={stream:#x}", stream, event)
            elif what == "marker":
                self.row("api", (*call, self.text("UserMarker"), self.text(f"step {number}")))
                self.ranges.append((f"step {number}", pid, thread, begin, end))
            elif what == "mark":
                self.row("api", (*call[:3], begin, begin, self.text("UserMarker"), self.text("a mark")))
            elif what == "idle":
                self.call(call, "hipStreamWaitEvent", "", None)
                kind = self.text(rng.choice(("Barrier", "Marker")))
                self.row("op", (next(operation_ids), 0, 0, 0, "", begin, end, self.text(""), kind))
            else:  # an operation of which no call is known
                self.operation(next(operation_ids), None, "KernelExecution", "add", None, None)

    def text(self, text: str) -> int:
        return self.ids.setdefault(text, 7 + 3 * len(self.ids))

    def row(self, table: str, values: tuple[Any, ...]) -> None:
        self.rows.setdefault(table, []).append(values)

    def call(
        self, call: tuple[int, ...], name: str, arguments: str, stream: int | None, event: int | None = None
    ):
        self.row("api", (*call, self.text(name), self.text(arguments)))
        handles = [NO_HANDLE if one is None else one for one in (stream, event)]
        self.calls.append((*call, name, *map(int, handles)))

    def launch(self, call: tuple[int, ...], stream: int, operation: int) -> None:
        rng, name = self.rng, self.rng.choice(LAUNCHES)
        workgroup = (rng.choice((64, 256)), rng.choice((1, 2)), rng.choice((1, 3)))
        blocks = (rng.randint(1, 900), rng.randint(1, 4), rng.randint(1, 2))
        items = tuple(a * b for a, b in zip(blocks, workgroup, strict=True))
        given = items if name in LAUNCHES[2:] else blocks  # trap 2
        memory = (rng.choice((0, 512)), rng.choice((0, 16, 144)))
        # The argument text of a launch may lack the stream; the launch's own row has it.
        self.call(call, name, "kernel=add", None)
        self.row("kernelapi", (call[0], f"{stream:#x}", *given, *workgroup, *memory))
        self.operation(
            operation, call, "KernelExecution", rng.choice(list(KERNELS)), stream, (items, workgroup, *memory)
        )

    def operation(self, number: int, call: Any, kind: str, name: str, stream: Any, shape: Any) -> None:
        gpu, queue = self.rng.choice((0, 2)), self.rng.choice((0, 5))
        begin = (T0 if call is None else call[4]) + self.rng.randint(1, 5000)
        end = begin + self.rng.choice((0, 1, 77_777))
        self.row("op", (number, gpu, queue, 0, "", begin, end, self.text(name), self.text(kind)))
        if call is not None:
            self.row("api_ops", (len(self.rows.get("api_ops", ())) + 1, call[0], number))
        self.dispatches.append(
            {
                "id": number,
                "kernel": KERNELS.get(name, name) or kind,
                "gpu": gpu,
                "queue": queue,
                "time": (begin, end),
                "pid": None if call is None else call[1],
                "call": -1 if call is None else call[0],
                "stream": stream,
                "shape": shape or ((-1,) * 3, (-1,) * 3, -1, -1),
            }
        )

    def copy(self, call: tuple[int, ...], stream: int, operation: int) -> None:
        kind, gpu, size = self.rng.choice(list(COPIES)), self.rng.choice((0, 2)), self.rng.randint(1, 1 << 40)
        begin = call[4] + self.rng.randint(1, 5000)
        end = begin + self.rng.randint(1, 9000)
        self.call(call, "hipMemcpyAsync", f"stream = {stream:#x}", stream)
        self.row("copyapi", (call[0], f"{stream:#x}", size, "", "", 1, "0x1", "0x2"))
        self.row("op", (operation, gpu, 1, 0, "", begin, end, self.text(""), self.text(kind)))
        self.row("api_ops", (len(self.rows.get("api_ops", ())) + 1, call[0], operation))
        direction, source, destination = COPIES[kind]
        ends = (gpu if source else None, gpu if destination else None)
        self.copies.append((direction, *ends, size, call[1], call[0], stream, begin, end))

    def write(self, path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(TABLES)
            self.rows["string"] = [(number, text) for text, number in self.ids.items()]
            for table, rows in self.rows.items():
                mixed = self.rng.sample(rows, len(rows))
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO rocpd_{table} VALUES ({marks})", mixed)
            connection.commit()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("pids", [(31,), (31, 47)])
@pytest.mark.parametrize("seed", range(6))
def test_every_row_is_read_as_it_was_written(tmp_path, read, seed, pids, packed):
    drawn = Drawn(seed, pids)
    path = tmp_path / "trace.rpd"
    drawn.write(path)
    if packed:
        (tmp_path / "trace.rpd.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
        path = tmp_path / "trace.rpd.gz"
    (trace,) = read(path)
    assert {(one.pid, one.guid) for one in trace.processes} == {(pid, path.name) for pid in pids}
    gpus = {one["gpu"] for one in drawn.dispatches} | {
        g for c in drawn.copies for g in c[1:3] if g is not None
    }
    assert gpus <= {agent.index for agent in trace.agents}
    assert {(agent.kind, agent.architecture) for agent in trace.agents} == {("GPU", None)}
    assert trace.counters is None

    def pid_of(process: int) -> int | None:
        return None if process < 0 else trace.processes[process].pid

    def gpu_of(agent: int) -> int | None:
        return None if agent < 0 else trace.agents[agent].index

    def stream_of(stream: int) -> int | None:
        return None if stream < 0 else trace.streams[stream].id

    found, shapes = trace.dispatches, trace.shapes
    seen = []
    for i in range(len(found)):
        shape = int(found.shape[i])
        seen.append(
            {
                "id": int(found.dispatch_id[i]),
                "kernel": trace.kernels[found.kernel[i]].name,
                "gpu": gpu_of(found.agent[i]),
                "queue": trace.queues[found.queue[i]].id,
                "time": (int(found.begin_ns[i]), int(found.end_ns[i])),
                "pid": pid_of(found.process[i]),
                "call": int(found.correlation_id[i]),
                "stream": stream_of(found.stream[i]),
                "shape": (
                    tuple(shapes.grid[shape].tolist()),
                    tuple(shapes.workgroup[shape].tolist()),
                    int(shapes.lds_bytes[shape]),
                    int(shapes.scratch_bytes[shape]),
                ),
            }
        )
    # Of a file of one process everything is its own.
    wanted = [one | {"pid": one["pid"] or (pids[0] if len(pids) == 1 else None)} for one in drawn.dispatches]
    assert sorted(seen, key=lambda one: one["id"]) == sorted(wanted, key=lambda one: one["id"])
    assert [one["time"] for one in seen] == sorted(one["time"] for one in seen)
    symbols = {kernel.name: kernel.symbol for kernel in trace.kernels}
    assert symbols == {name: name if name.startswith("_Z") else None for name in symbols}
    without = sum(one["shape"][2] < 0 for one in drawn.dispatches)
    assert sum(d.count for d in trace.diagnostics if d.code == "dispatch.no_geometry") == without

    copies = trace.copies
    assert sorted(
        (
            trace.copy_directions[copies.direction[i]],
            gpu_of(copies.source_agent[i]),
            gpu_of(copies.destination_agent[i]),
            int(copies.size_bytes[i]),
            pid_of(copies.process[i]),
            int(copies.correlation_id[i]),
            stream_of(copies.stream[i]),
            int(copies.begin_ns[i]),
            int(copies.end_ns[i]),
        )
        for i in range(len(copies))
    ) == sorted(drawn.copies)

    calls = trace.api_calls
    assert sorted(
        (
            int(calls.correlation_id[i]),
            pid_of(calls.process[i]),
            int(calls.thread_id[i]),
            int(calls.begin_ns[i]),
            int(calls.end_ns[i]),
            trace.api_functions[calls.function[i]],
            int(calls.stream_handle[i]),
            int(calls.event_handle[i]),
        )
        for i in range(len(calls))
    ) == sorted(drawn.calls)
    ranges = trace.extras.get(RANGES, ())
    assert sorted((r.name, r.pid, r.thread_id, r.begin_ns, r.end_ns) for r in ranges) == sorted(drawn.ranges)
    assert {one.guid for one in ranges} <= {path.name}


def test_a_file_without_calls_still_has_its_kernels(tmp_path, read):
    drawn = Drawn(1, (31,))
    drawn.rows = {"op": drawn.rows["op"]}
    drawn.write(tmp_path / "trace.rpd")
    (trace,) = read(tmp_path / "trace.rpd")
    assert len(trace.dispatches) == len(drawn.dispatches)
    assert trace.api_calls is None
    assert set(trace.dispatches.correlation_id.tolist()) == {-1}
    assert set(trace.dispatches.process.tolist()) == {0}
    assert (trace.shapes.grid < 0).all()


def test_values_that_are_no_integers_are_counted(tmp_path, read):
    drawn = Drawn(2, (31,))
    drawn.write(tmp_path / "trace.rpd")
    with closing(sqlite3.connect(tmp_path / "trace.rpd")) as connection:
        calls = [row[0] for row in connection.execute("SELECT id FROM rocpd_api ORDER BY id LIMIT 3")]
        connection.executemany("UPDATE rocpd_api SET tid = 'x' WHERE id = ?", [(one,) for one in calls])
        (kernel,) = connection.execute(
            "SELECT o.id FROM rocpd_op o JOIN rocpd_string s ON s.id = o.opType_id "
            "WHERE s.string = 'KernelExecution'"
        ).fetchone()
        connection.execute("UPDATE rocpd_op SET queueId = 'x' WHERE id = ?", (kernel,))
        connection.commit()
    (trace,) = read(tmp_path / "trace.rpd")
    codes = {one.code: one.count for one in trace.diagnostics}
    assert (codes["api.unreadable_values"], codes["dispatch.unreadable_values"]) == (3, 1)
