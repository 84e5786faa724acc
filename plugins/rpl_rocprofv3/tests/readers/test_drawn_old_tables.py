"""Drawn tables of older profilers read back, every field as it was written.

Columns by docs/reference/formats.md: 2.8 (CSV of rocprofv3 up to ROCm 6.4: no streams, plain numbers for
agents, segments instead of block sizes) and 6 (rocprof v1 with and without registers, the wide tables of v2
with a column per channel, the long ones of several passes). What is expected are the values that were
written.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from rpl_core.model.trace import Trace, TraceRole

Read = Callable[..., tuple[Trace, ...]]
NAMES = ("void f<float, 2u>(float*)", "gemm", "fill, then add")
#: Counter -> number of channels, 0 where it is a sum over the device.
COUNTERS = {"SQ_WAVES": 0, "TCC_HIT": 3, "TCC_EA_WRREQ_sum": 0, "SQ_WAVES_LT_32": 0}


@attrs.frozen(eq=False)
class _Launch:
    number: int
    gpu: int
    pid: int
    name: str
    registers: tuple[int, int, int]
    begin_ns: int
    end_ns: int
    workgroup: int
    grid: int
    lds: int
    scratch: int
    #: (counter, channel or -1) -> value
    counted: dict[tuple[str, int], float]


CHANNELS = [(n, i) for n, many in COUNTERS.items() for i in (range(many) if many else (-1,))]


def _drawn(seed: int, *, processes: int = 2) -> list[_Launch]:
    """In an order that is not that of their times; ids count anew on each GPU. Some lack a counter."""
    rng = random.Random(seed)
    registers = {
        name: (4 * rng.randint(1, 60), 4 * rng.randint(0, 9), 16 * rng.randint(1, 6)) for name in NAMES
    }
    launches = []
    for gpu in (4, 7):
        begin = 10**9 + rng.randint(0, 50)
        for number in range(rng.randint(4, 7)):
            begin += rng.randint(1, 500)
            workgroup = 64 * rng.randint(1, 4)
            lost = rng.choice((*COUNTERS, "", "", ""))
            name = rng.choice(NAMES)
            launches.append(
                _Launch(
                    *(number, gpu, 500 + gpu * (processes - 1), name, registers[name]),
                    *(
                        begin,
                        begin + rng.choice((0, rng.randint(1, 900))),
                        workgroup,
                        workgroup * rng.randint(1, 99),
                    ),
                    *(512 * rng.randint(0, 3), 16 * rng.randint(0, 3)),
                    {channel: float(rng.randint(0, 10**6)) for channel in CHANNELS if channel[0] != lost},
                )
            )
    rng.shuffle(launches)
    return launches


def _write(path: Path, header: list[str], rows: Iterable[list[object]]) -> None:
    with path.open("w", newline="") as text:
        csv.writer(text, lineterminator="\n").writerows([header, *rows])


def _dispatches(trace: Trace, *, registers: bool = True, times: bool = True) -> Counter[tuple[Any, ...]]:
    """What the trace has of each launch, as ``_expected``."""
    d, shapes = trace.dispatches, trace.shapes
    found: Counter[tuple[Any, ...]] = Counter()
    for i in range(len(d)):
        kernel = trace.kernels[int(d.kernel[i])]
        shape = d.shape[i]
        own = (kernel.arch_vgpr, kernel.accum_vgpr, kernel.sgpr)
        assert registers or own == (None, None, None)
        assert kernel.process == (0 if len(trace.processes) == 1 else -1), (
            "a table tells it of one process only"
        )
        found[
            int(d.dispatch_id[i]),
            trace.agents[d.agent[i]].index,
            trace.processes[d.process[i]].pid,
            kernel.name,
            own if registers else None,
            (int(d.begin_ns[i]), int(d.end_ns[i])) if times else None,
            tuple(shapes.workgroup[shape].tolist()),
            tuple(shapes.grid[shape].tolist()),
            int(shapes.lds_bytes[shape]),
            int(shapes.scratch_bytes[shape]),
        ] += 1
    return found


def _expected(
    launches: Iterable[_Launch], *, registers: bool = True, times: bool = True
) -> Counter[tuple[Any, ...]]:
    return Counter(
        (
            *(one.number, one.gpu, one.pid, one.name, one.registers if registers else None),
            (one.begin_ns, one.end_ns) if times else None,
            # Products over the axes are all that these tables tell.
            *((one.workgroup, 1, 1), (one.grid, 1, 1), one.lds, one.scratch),
        )
        for one in launches
    )


def _readings(trace: Trace) -> Counter[tuple[Any, ...]]:
    v, d = trace.counters, trace.dispatches
    assert v is not None
    assert v.instance is not None
    columns = (v.dispatch, v.counter, v.instance, v.value, v.duration_ns)
    return Counter(
        (int(d.dispatch_id[row]), trace.agents[d.agent[row]].index, trace.counter_names[c], i, x, ns)
        for row, c, i, x, ns in zip(*(column.tolist() for column in columns), strict=True)
    )


def _in_time(trace: Trace) -> bool:
    begins = trace.dispatches.begin_ns.tolist()
    return begins == sorted(begins)


def _counted(launches: Iterable[_Launch], took: Callable[[_Launch, str], int]) -> Counter[tuple[Any, ...]]:
    return Counter(
        (one.number, one.gpu, name, channel, value, took(one, name))
        for one in launches
        for (name, channel), value in one.counted.items()
    )


def _columns() -> list[str]:
    return [name if channel < 0 else f"{name}[{channel}]" for name, channel in CHANNELS]


def _cells(launch: _Launch) -> list[object]:
    return [launch.counted.get(channel, "") for channel in CHANNELS]


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("counters", [False, True])
def test_tables_of_rocprof_v1(tmp_path: Path, read: Read, *, registers: bool, counters: bool) -> None:
    launches = _drawn(1 + registers + 2 * counters, processes=1 + counters)
    header = [
        "Index",
        "KernelName",
        "gpu-id",
        "queue-id",
        "queue-index",
        "pid",
        "tid",
        "grd",
        "wgr",
        "lds",
        "scr",
    ]
    header += ["arch_vgpr", "accum_vgpr", "sgpr", "wave_size"] if registers else ["vgpr", "sgpr", "fbar"]
    header += ["sig", "obj"] + (_columns() if counters else [])
    header += ["DispatchNs", "BeginNs", "EndNs", "CompleteNs", "DurationNs"]
    _write(
        tmp_path / "results.csv",
        header,
        (
            [
                *(one.number, f"{one.name} [clone .kd]", one.gpu, 0, 2 * one.number, one.pid, 9, one.grid),
                *(one.workgroup, one.lds, one.scratch),
                *((*one.registers, 64) if registers else (one.registers[0] // 4, 2, 14336)),
                *("0x0", "0x7f", *(_cells(one) if counters else ())),
                *(one.begin_ns - 9, one.begin_ns, one.end_ns, one.end_ns + 5, one.end_ns - one.begin_ns),
            ]
            for one in launches
        ),
    )
    (trace,) = read(tmp_path)
    assert trace.role is (TraceRole.COUNTERS if counters else TraceRole.TIMING)
    assert _dispatches(trace, registers=registers) == _expected(launches, registers=registers)
    assert _in_time(trace)
    if counters:
        # Nothing tells in which pass of several a counter was read, so none has a duration of its own.
        assert _readings(trace) == _counted(launches, lambda *_: -1)


_WIDE = [
    *("Dispatch_ID", "GPU_ID", "Queue_ID", "PID", "TID", "Grid_Size", "Workgroup_Size", "LDS_Per_Workgroup"),
    *("Scratch_Per_Workitem", "Arch_VGPR", "Accum_VGPR", "SGPR", "Wave_Size", "Kernel_Name"),
    *("Start_Timestamp", "End_Timestamp", "Correlation_ID"),
]


def _wide_row(one: _Launch, begin_ns: int, end_ns: int) -> list[object]:
    return [
        *(one.number, one.gpu, 1, one.pid, 9, one.grid, one.workgroup, one.lds, one.scratch, *one.registers),
        *(64, one.name, begin_ns, end_ns, 0),
    ]


def test_wide_tables_with_passes_that_were_merged(tmp_path: Path, read: Read) -> None:
    """The second pass repeats columns; what it read again of a counter is left out."""
    launches = _drawn(5)
    again = ["Wave_Size_1", "Kernel_Name_1", "SQ_WAVES_1", "Start_Timestamp_1"]
    _write(
        tmp_path / "pmc_perf.csv",
        [*_WIDE, *_columns(), *again],
        ([*_wide_row(one, one.begin_ns, one.end_ns), *_cells(one), 64, one.name, 999, 5] for one in launches),
    )
    _write(
        tmp_path / "timestamps.csv",
        _WIDE,
        (_wide_row(one, one.begin_ns + 7, one.end_ns + 9) for one in launches),
    )
    timing, passes = read(tmp_path)
    assert (timing.role, passes.role) == (TraceRole.TIMING, TraceRole.COUNTERS)
    later = [attrs.evolve(one, begin_ns=one.begin_ns + 7, end_ns=one.end_ns + 9) for one in launches]
    assert _dispatches(timing) == _expected(later)
    assert _dispatches(passes) == _expected(launches)
    assert _in_time(timing)
    assert _readings(passes) == _counted(launches, lambda *_: -1)
    (finding,) = [d for d in passes.diagnostics if d.code == "counter.repeated_column"]
    assert finding.count == 1


def _passes(launches: list[_Launch]) -> Iterator[tuple[_Launch, str, int, float, int, int]]:
    """Each counter in a pass of its own, which begins later and lasts longer; SQ_WAVES once more at last."""
    for number, name in enumerate((*COUNTERS, "SQ_WAVES")):
        for one in launches:
            begin = one.begin_ns + 10**6 * number
            end = one.end_ns + 10**6 * number + number
            for (counter, channel), value in one.counted.items():
                if counter == name:
                    read_again = number == len(COUNTERS)
                    yield one, counter, channel, value + read_again, begin, end


def test_long_tables_of_several_passes(tmp_path: Path, read: Read) -> None:
    """A dispatch begins when it first ran; its counters last as long as their pass; the first pass counts."""
    launches = _drawn(6)
    rows = [
        [
            *_wide_row(one, begin, end)[:-1],
            counter if channel < 0 else f"{counter}[{channel}]",
            value,
        ]
        for one, counter, channel, value, begin, end in _passes(launches)
    ]
    random.Random(6).shuffle(rows)
    _write(tmp_path / "pmc_perf.csv", [*_WIDE[:-1], "Counter_Name", "Counter_Value"], rows)
    (trace,) = read(tmp_path)
    assert trace.role is TraceRole.COUNTERS
    number = {name: i for i, name in enumerate(COUNTERS)}
    first = {one: min(number[name] for name, _ in one.counted) for one in launches}
    began = [
        attrs.evolve(one, begin_ns=one.begin_ns + 10**6 * at, end_ns=one.end_ns + (10**6 + 1) * at)
        for one, at in first.items()
    ]
    assert _dispatches(trace) == _expected(began)
    assert _readings(trace) == _counted(launches, lambda one, name: one.end_ns - one.begin_ns + number[name])
    (finding,) = [d for d in trace.diagnostics if d.code == "counter.read_again"]
    assert finding.count == sum(("SQ_WAVES", -1) in one.counted for one in launches)


def test_csv_of_rocprofv3_before_rocm_7(tmp_path: Path, read: Read) -> None:
    launches = _drawn(7)
    _write(
        tmp_path / "500_kernel_trace.csv",
        [
            *("Kind", "Agent_Id", "Queue_Id", "Thread_Id", "Dispatch_Id", "Kernel_Id", "Kernel_Name"),
            *("Correlation_Id", "Start_Timestamp", "End_Timestamp", "Private_Segment_Size"),
            *("Group_Segment_Size", "Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z"),
            *("Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z"),
        ],
        (
            [
                *(
                    "KERNEL_DISPATCH",
                    one.gpu,
                    one.gpu + 10,
                    77,
                    one.number,
                    1 + NAMES.index(one.name),
                    one.name,
                ),
                *(100 + one.number, one.begin_ns, one.end_ns, one.scratch, one.lds),
                *(one.workgroup // 32, 8, 4, one.grid // 32, 16, 12),
            ]
            for one in launches
        ),
    )
    (trace,) = read(tmp_path)
    d, shapes = trace.dispatches, trace.shapes
    found = Counter(
        (
            *(int(d.dispatch_id[i]), trace.agents[d.agent[i]].index, trace.queues[d.queue[i]].id),
            *(int(d.stream[i]), int(d.correlation_id[i]), trace.kernels[int(d.kernel[i])].name),
            *(int(d.begin_ns[i]), int(d.end_ns[i])),
            *(tuple(shapes.workgroup[d.shape[i]].tolist()), tuple(shapes.grid[d.shape[i]].tolist())),
            *(int(shapes.lds_bytes[d.shape[i]]), int(shapes.scratch_bytes[d.shape[i]])),
            int(shapes.workgroups()[d.shape[i]]),
        )
        for i in range(len(d))
    )
    assert found == Counter(
        (
            *(one.number, one.gpu, one.gpu + 10, -1, 100 + one.number, one.name, one.begin_ns, one.end_ns),
            *((one.workgroup // 32, 8, 4), (one.grid // 32, 16, 12), one.lds, one.scratch),
            one.grid // one.workgroup * 2 * 3,
        )
        for one in launches
    )
    assert _in_time(trace)
    assert [process.pid for process in trace.processes] == [500]
    assert {(k.arch_vgpr, k.accum_vgpr, k.sgpr) for k in trace.kernels} == {(None, None, None)}
    assert trace.counters is None or not len(trace.counters)
