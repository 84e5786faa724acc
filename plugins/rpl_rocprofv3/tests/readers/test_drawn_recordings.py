"""Drawn recordings read back from every form that the profiler writes: every row and field as it was put in.

What is expected are the values that were written, never another reader's. Databases are of every schema
version, one or several processes, apart, in one file with a suffix per process, and as JSON and CSV.
"""

from __future__ import annotations

import math
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from rpl_core.model.trace import NO_HANDLE, Trace
from rpl_testkit.rocpd_writer import (
    CodeObjectRow,
    CopyRow,
    CounterDefinitionRow,
    CounterRow,
    DispatchRow,
    KernelRow,
    ProcessRow,
    QueueRow,
    RegionArgument,
    RegionRow,
    RocpdContents,
    StreamRow,
    guid_from_seed,
    table_suffix,
    write_rocpd,
)
from rpl_testkit.rocpd_writer.rows import HipEventRow
from rpl_testkit.rocprofv3_standin.json_file import json_text
from rpl_testkit.rocprofv3_standin.result_files import csv_files
from rpl_testkit.synthetic_recording.mi300x import mi300x_agents

AGENTS = mi300x_agents(2)
GPUS = [agent.index for agent in AGENTS if agent.kind == "GPU"]
HOST = 0
HIP = "HIP_RUNTIME_API_EXT"
T0 = 5_000_000_000
DIRECTIONS = tuple(f"MEMORY_COPY_{a}_TO_{b}" for a in ("HOST", "DEVICE") for b in ("HOST", "DEVICE"))
COUNTERS = ("SQ_WAVES", "GRBM_GUI_ACTIVE", "TCC_HIT")


def _drawn(seed: int, *, pid: int = 100, counters: bool = True) -> RocpdContents:
    """Every value unlike its neighbours, in an order that is not that of time."""
    rng = random.Random(seed)
    kernels = tuple(
        KernelRow(
            kernel_id=number,
            name=f"kernel{pid}_{number}(float*)",
            symbol=f"_Z9kernel{pid}_{number}Pf",
            arch_vgpr=8 * rng.randint(1, 32),
            accum_vgpr=8 * rng.randint(0, 32),
            sgpr=16 * rng.randint(1, 6),
            lds_bytes=rng.randint(0, 60_000),
            kernarg_bytes=8 * rng.randint(1, 40),
        )
        for number in rng.sample(range(1, 90), 4)
    )
    begins = rng.sample(range(1_000_000), 40)
    dispatches = tuple(
        DispatchRow(
            dispatch_id=number,
            kernel_id=rng.choice(kernels).kernel_id,
            agent=rng.choice(GPUS),
            queue_id=rng.choice((1, 2, 9)),
            stream_id=rng.choice((0, 1, 7)),
            begin_ns=T0 + begins[number],
            end_ns=T0 + begins[number] + rng.choice((0, 1, rng.randint(2, 90_000))),
            grid=(64 * rng.randint(1, 900), rng.randint(1, 5), rng.randint(1, 3)),
            workgroup=(rng.choice((32, 64, 256)), rng.choice((1, 2)), 1),
            lds_bytes=rng.choice((0, 512, 8_192)),
            scratch_bytes=rng.choice((0, 16, 144)),
            stack_id=1_000 + number,
        )
        for number in range(1, 25)
    )
    copies = tuple(
        CopyRow(
            name=(name := rng.choice(DIRECTIONS)),
            source_agent=rng.choice(GPUS) if "_DEVICE_TO" in name else HOST,
            destination_agent=rng.choice(GPUS) if "TO_DEVICE" in name else HOST,
            size_bytes=rng.randint(1, 1 << 34),
            stream_id=rng.choice((0, 1, 7)),
            begin_ns=T0 + begins[number],
            end_ns=T0 + begins[number] + rng.randint(1, 90_000),
            stack_id=1_000 + number,
        )
        for number in range(25, 33)
    )
    regions = tuple(
        RegionRow(
            name=rng.choice(("hipLaunchKernel", "hipMemcpyAsync", "hipStreamSynchronize")),
            category=HIP,
            stack_id=1_000 + number,
            begin_ns=T0 + number * 25_000 + rng.randint(0, 9_000),
            end_ns=T0 + number * 25_000 + rng.randint(9_000, 24_000),
            arguments=(RegionArgument("hipStream_t", "stream", f"0x{rng.randint(1, 1 << 46):x}"),),
        )
        for number in rng.sample(range(1, 33), 32)
    )
    values = tuple(
        CounterRow(
            row.dispatch_id, name, tuple(float(rng.randint(0, 1 << 40)) for _ in range(rng.choice((1, 8))))
        )
        for row in dispatches
        for name in COUNTERS
        if counters and rng.random() < 0.8
    )
    return RocpdContents(
        guid=guid_from_seed(seed),
        process=ProcessRow(pid=pid, command="./app", begin_ns=T0 - 50, end_ns=T0 + 10**9),
        agents=AGENTS,
        kernels=kernels,
        dispatches=dispatches,
        copies=copies,
        regions=regions,
        counters=values,
        counter_definitions=tuple(CounterDefinitionRow(n, gpu, "SQ") for n in COUNTERS for gpu in GPUS),
        code_objects=(CodeObjectRow(1, GPUS[0], "file:///app"),),
        queues=tuple(QueueRow(number, f"Queue {number}") for number in (1, 2, 9)),
        streams=tuple(StreamRow(number, f"Stream {number}") for number in (1, 7)),
        thread_ids=(pid,),
    )


def _kernels(trace: Trace, row: int) -> dict[str, Any]:
    kernel = trace.kernels[int(trace.dispatches.kernel[row])]
    return {
        "name": kernel.name,
        "arch": kernel.arch_vgpr,
        "accum": kernel.accum_vgpr,
        "sgpr": kernel.sgpr,
    }


def _pid(trace: Trace, index: int) -> int:
    return trace.processes[index].pid


def _read_dispatches(trace: Trace) -> list[dict[str, Any]]:
    d, shapes = trace.dispatches, trace.shapes
    return [
        {
            "pid": _pid(trace, d.process[i]),
            "agent": trace.agents[d.agent[i]].index,
            "stream": trace.streams[d.stream[i]].id,
            "queue": trace.queues[d.queue[i]].id,
            "id": int(d.dispatch_id[i]),
            "call": int(d.correlation_id[i]),
            "times": (int(d.begin_ns[i]), int(d.end_ns[i])),
            "grid": tuple(shapes.grid[d.shape[i]].tolist()),
            "workgroup": tuple(shapes.workgroup[d.shape[i]].tolist()),
            "lds": int(shapes.lds_bytes[d.shape[i]]),
            "scratch": int(shapes.scratch_bytes[d.shape[i]]),
            **_kernels(trace, i),
        }
        for i in range(len(d))
    ]


def _written_dispatches(contents: RocpdContents) -> Iterable[dict[str, Any]]:
    kernels = {kernel.kernel_id: kernel for kernel in contents.kernels}
    for row in contents.dispatches:
        kernel = kernels[row.kernel_id]
        yield {
            "pid": contents.process.pid,
            "agent": row.agent,
            "stream": row.stream_id,
            "queue": row.queue_id,
            "id": row.dispatch_id,
            "call": row.stack_id,
            "times": (row.begin_ns, row.end_ns),
            "grid": row.grid,
            "workgroup": row.workgroup,
            "lds": row.lds_bytes,
            "scratch": row.scratch_bytes,
            "name": kernel.name,
            "arch": kernel.arch_vgpr,
            "accum": kernel.accum_vgpr,
            "sgpr": kernel.sgpr,
        }


def _written(parts: Iterable[RocpdContents]) -> list[dict[str, Any]]:
    rows = [row for contents in parts for row in _written_dispatches(contents)]
    return sorted(rows, key=lambda row: (*row["times"], row["pid"], row["id"]))


def _check_copies(trace: Trace, parts: Iterable[RocpdContents], *, sizes: bool = True) -> None:
    c = trace.copies
    assert c is not None
    found = [
        (
            *(int(c.begin_ns[i]), int(c.end_ns[i]), _pid(trace, c.process[i]), int(c.correlation_id[i])),
            trace.copy_directions[c.direction[i]],
            *(trace.agents[agent[i]].index for agent in (c.source_agent, c.destination_agent)),
            trace.streams[c.stream[i]].id,
            int(c.size_bytes[i]) if sizes else None,
        )
        for i in range(len(c))
    ]
    assert found == sorted(
        (
            *(row.begin_ns, row.end_ns, contents.process.pid, row.stack_id, row.name),
            *(row.source_agent, row.destination_agent, row.stream_id),
            row.size_bytes if sizes else None,
        )
        for contents in parts
        for row in contents.copies
    )


def _check_calls(trace: Trace, parts: Iterable[RocpdContents], *, arguments: bool = True) -> None:
    calls = trace.api_calls
    assert calls is not None
    found = [
        (
            *(int(calls.begin_ns[i]), int(calls.end_ns[i]), _pid(trace, calls.process[i])),
            *(int(calls.correlation_id[i]), int(calls.thread_id[i])),
            trace.api_functions[calls.function[i]],
            int(calls.stream_handle[i]) if arguments else None,
        )
        for i in range(len(calls.begin_ns))
    ]
    assert sorted(found) == sorted(
        (
            *(row.begin_ns, row.end_ns, contents.process.pid, row.stack_id, contents.process.pid),
            row.name,
            int(row.arguments[0].value, 16) if arguments else None,
        )
        for contents in parts
        for row in contents.regions
    )
    if not arguments:
        assert set(calls.stream_handle.tolist()) == {int(NO_HANDLE)}


def _check_counters(trace: Trace, parts: Iterable[RocpdContents], *, summed: bool = False) -> None:
    values, d = trace.counters, trace.dispatches
    assert values is not None
    columns = (values.dispatch, values.counter, values.value, values.duration_ns)
    found = Counter(
        (
            _pid(trace, d.process[row]),
            int(d.dispatch_id[row]),
            trace.counter_names[counter],
            float(value),
            int(ns),
        )
        for row, counter, value, ns in zip(*(column.tolist() for column in columns), strict=True)
    )
    expected: Counter[tuple[Any, ...]] = Counter()
    for contents in parts:
        took = {row.dispatch_id: row.end_ns - row.begin_ns for row in contents.dispatches}
        for row in contents.counters:
            numbers = [math.fsum(row.values)] if summed else row.values
            for value in numbers:
                key = contents.process.pid, row.dispatch_id, row.name, value, took[row.dispatch_id]
                expected[key] += 1
    assert found == expected


@pytest.mark.parametrize("version", ["3", "3.0.0", "3.0.1", "3.0.2", "3.0.3", "3.0.4", "3.0.5"])
def test_a_database_of_any_version(tmp_path: Path, read, version: str) -> None:
    contents = _drawn(int(version[-1]))
    write_rocpd(tmp_path / "1_results.db", contents, synthetic=False, schema_version=version)
    (trace,) = read(tmp_path)
    assert _read_dispatches(trace) == _written([contents])
    _check_copies(trace, [contents])
    _check_calls(trace, [contents])
    _check_counters(trace, [contents])
    counted = {found.code: found.count for found in trace.diagnostics}
    assert counted["dispatch.zero_duration"] == sum(row.begin_ns == row.end_ns for row in contents.dispatches)
    calls = {row.stack_id: row.begin_ns for row in contents.regions}
    early = sum(row.begin_ns < calls[row.stack_id] for row in contents.dispatches)
    assert counted["clock.before_launch"] == early
    assert not any(code.startswith(("rocpd.", "copy.")) or "unknown" in code for code in counted)
    kernels = {kernel.name: kernel for kernel in contents.kernels}
    for kernel in trace.kernels:
        own = kernels[kernel.name]
        assert (kernel.symbol, kernel.static_lds_bytes) == (own.symbol, own.lds_bytes)
        assert (kernel.kernarg_bytes, kernel.code_object) == (own.kernarg_bytes, "file:///app")


def _one_file(target: Path, sources: dict[str, Path]) -> None:
    """As `rocpd merge` does it: the tables of all processes, each with its suffix, and views of all rows."""
    with closing(sqlite3.connect(target)) as connection:
        tables: dict[str, list[str]] = {}
        for number, (suffix, source) in enumerate(sources.items()):
            connection.execute(f"ATTACH '{source}' AS s{number}")
            listed = (
                f"SELECT name, sql FROM s{number}.sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'"
            )
            for name, sql in connection.execute(listed).fetchall():
                connection.execute(sql)
                connection.execute(f'INSERT INTO main."{name}" SELECT * FROM s{number}."{name}"')
                tables.setdefault(name.removesuffix(suffix), []).append(name)
        for base, names in tables.items():
            union = " UNION ALL ".join(f'SELECT * FROM "{name}"' for name in names)
            connection.execute(f'CREATE VIEW "{base}" AS {union}')
        connection.commit()


@pytest.mark.parametrize("form", ["merged", "folder"])
@pytest.mark.parametrize("count", [2, 3])
def test_several_processes_with_the_same_ids(tmp_path: Path, read, form: str, count: int) -> None:
    parts = [_drawn(40 + number, pid=100 + number) for number in range(count)]
    apart = tmp_path / "apart"
    apart.mkdir()
    files = {}
    for contents in parts:
        path = apart / f"{contents.process.pid}_results.db"
        write_rocpd(path, contents, synthetic=False)
        files[table_suffix(contents.guid)] = path
    if form == "merged":
        (tmp_path / "one").mkdir()
        _one_file(tmp_path / "one" / "merged.db", files)
    (trace,) = read(apart if form == "folder" else tmp_path / "one")
    assert _read_dispatches(trace) == _written(parts)
    assert sorted(p.pid for p in trace.processes) == [contents.process.pid for contents in parts]
    _check_copies(trace, parts)
    _check_calls(trace, parts)
    _check_counters(trace, parts)


def test_calls_inside_others_give_their_work_to_the_hip_call(tmp_path: Path, read) -> None:
    """A dispatch names the innermost call; the launch is the nearest HIP call around it, if there is one."""
    rng = random.Random(3)
    contents = _drawn(3, counters=False)
    outer = {row.stack_id: row for row in contents.regions}
    inner, dispatches, expected = [], [], {}
    for row in contents.dispatches:
        depth = rng.randint(0, 3)
        parent = row.stack_id if rng.random() < 0.8 else 0
        expected[row.dispatch_id] = row.stack_id
        named = row.stack_id
        for level in range(depth):
            call = 10_000 + 10 * row.dispatch_id + level
            around = outer[row.stack_id]
            inner.append(
                RegionRow(
                    "hsa_x", "HSA_CORE_API", call, around.begin_ns, around.end_ns, parent_stack_id=parent
                )
            )
            named = parent = call
        if depth and inner[-depth].parent_stack_id == 0:
            expected[row.dispatch_id] = named
        dispatches.append(attrs.evolve(row, stack_id=named))
    nested = attrs.evolve(contents, dispatches=tuple(dispatches), regions=(*contents.regions, *inner))
    write_rocpd(tmp_path / "1_results.db", nested, synthetic=False)
    (trace,) = read(tmp_path)
    d = trace.dispatches
    assert dict(zip(d.dispatch_id.tolist(), d.correlation_id.tolist(), strict=True)) == expected
    _check_calls(trace, [contents])


def test_events_as_the_gpu_saw_them(tmp_path: Path, read) -> None:
    rng = random.Random(11)
    rows = tuple(
        HipEventRow(
            operation=rng.choice(("HIP_EVENT_RECORD", "HIP_EVENT_WAIT")),
            handle=rng.randint(1, 1 << 47),
            queue_id=rng.choice((1, 2, 9)),
            source_queue_id=rng.choice((1, 2, 9)),
            begin_ns=(begin := T0 + rng.randint(0, 900)),
            end_ns=begin + rng.randint(0, 900),
            stack_id=2_000 + number,
            agent=rng.choice(GPUS),
        )
        for number in range(30)
    )
    contents = attrs.evolve(_drawn(4, counters=False), hip_events=rows)
    write_rocpd(tmp_path / "1_results.db", contents, synthetic=False, schema_version="3.0.5")
    (trace,) = read(tmp_path)
    events = trace.device_events
    assert events is not None
    found = [
        (
            *(int(events.begin_ns[i]), int(events.end_ns[i]), int(events.correlation_id[i])),
            *(trace.queues[queue[i]].id for queue in (events.queue, events.source_queue)),
            *(int(events.event_handle[i]), bool(events.is_wait[i]), trace.agents[events.agent[i]].index),
        )
        for i in range(len(events))
    ]
    assert found == sorted(
        (
            *(row.begin_ns, row.end_ns, row.stack_id, row.queue_id, row.source_queue_id, row.handle),
            *(row.operation == "HIP_EVENT_WAIT", row.agent),
        )
        for row in rows
    )


@pytest.mark.parametrize("seed", [20, 21])
def test_the_same_as_json(tmp_path: Path, read, seed: int) -> None:
    contents = _drawn(seed)
    (tmp_path / "1_results.json").write_text(json_text(contents, kernel_trace=True), encoding="utf-8")
    (trace,) = read(tmp_path)
    assert _read_dispatches(trace) == _written([contents])
    _check_copies(trace, [contents])
    _check_calls(trace, [contents])
    _check_counters(trace, [contents])


@pytest.mark.parametrize("seed", [30, 31])
def test_the_same_as_csv(tmp_path: Path, read, seed: int) -> None:
    """LDS of a dispatch is that of its kernel there, in steps of 512 bytes, and copies have no size."""
    contents = _drawn(seed)
    for ending, text in csv_files(contents, wide=True, kernel_trace=True):
        (tmp_path / f"100_{ending}").write_text(text, encoding="utf-8")
    (trace,) = read(tmp_path)
    static = {kernel.name: -(-kernel.lds_bytes // 512) * 512 for kernel in contents.kernels}
    assert _read_dispatches(trace) == [row | {"lds": static[row["name"]]} for row in _written([contents])]
    _check_copies(trace, [contents], sizes=False)
    _check_calls(trace, [contents], arguments=False)
    _check_counters(trace, [contents], summed=True)
