"""Traces and device models in memory for tests of analyzers, with exactly what a test is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.metric import Metric, Origin
    from rpl_core.model.trace import Agent, CounterValues, Trace, TraceRole


@frozen
class TracedDispatch:
    """One kernel execution. ``grid`` counts work-items; stream and queue are ids."""

    kernel: str
    begin_ns: int
    end_ns: int
    stream: int = 0
    queue: int = 1
    process: int = 0
    workgroup: tuple[int, int, int] = (256, 1, 1)
    grid: tuple[int, int, int] = (65536, 1, 1)
    lds_bytes: int = 0
    counters: dict[str, float] = attrs.field(factory=dict)


def mi300x_agent(node: str = "node") -> Agent:
    """The agent of an MI300X as the driver describes it (docs/reference/devices.md, 1)."""
    from rpl_core.model.trace import Agent

    return Agent(
        node=node,
        index=2,
        kind="GPU",
        architecture="gfx942",
        product="AMD Instinct MI300X",
        chip_id=29857,
        compute_units=304,
        xcd_count=8,
        simd_per_cu=4,
        max_waves_per_simd=8,
        wave_size=64,
        lds_bytes_per_cu=65536,
        clock_mhz=2100,
    )


def make_trace(
    dispatches: Sequence[TracedDispatch | tuple[str, int, int]],
    *,
    role: TraceRole | None = None,
    agent: Agent | None = None,
    machines: Sequence[str] = ("node",),
    origin: Origin | None = None,
) -> Trace:
    """A trace of one process per machine on ``agent`` (default: an MI300X).

    A tuple is (kernel, begin_ns, end_ns). The role follows from whether counters are given; the origin is
    synthetic unless a test of a gate says otherwise.
    """
    import numpy as np

    from rpl_core.model.metric import Origin
    from rpl_core.model.trace import (
        Dispatches,
        Kernel,
        LaunchShapes,
        Process,
        Queue,
        Stream,
        Trace,
        TraceSource,
    )

    rows = [item if isinstance(item, TracedDispatch) else TracedDispatch(*item) for item in dispatches]
    rows.sort(key=lambda row: (row.begin_ns, row.end_ns))
    names = sorted({row.kernel for row in rows})
    streams = sorted({(row.process, row.stream) for row in rows})
    queues = sorted({(row.process, row.queue) for row in rows})
    shapes = sorted({(row.workgroup, row.grid, row.lds_bytes) for row in rows})
    values, counter_names = _counter_values(rows)

    def column(items: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return np.array(items, dtype=np.int32)

    return Trace(
        source=TraceSource("test", "in memory", ()),
        role=role or _role(values is not None),
        origin=origin or Origin.SYNTHETIC,
        processes=tuple(Process(f"guid-{i}", 100 + i, machine) for i, machine in enumerate(machines)),
        agents=(agent or mi300x_agent(machines[0]),),
        kernels=tuple(
            Kernel(name, process=0, arch_vgpr=32, accum_vgpr=0, sgpr=32, static_lds_bytes=0) for name in names
        ),
        streams=tuple(Stream(process, stream) for process, stream in streams),
        queues=tuple(Queue(process, queue) for process, queue in queues),
        dispatches=Dispatches(
            process=column([row.process for row in rows]),
            agent=column([0] * len(rows)),
            kernel=column([names.index(row.kernel) for row in rows]),
            stream=column([streams.index((row.process, row.stream)) for row in rows]),
            queue=column([queues.index((row.process, row.queue)) for row in rows]),
            shape=column([shapes.index((row.workgroup, row.grid, row.lds_bytes)) for row in rows]),
            dispatch_id=np.arange(1, len(rows) + 1, dtype=np.int64),
            correlation_id=np.arange(1, len(rows) + 1, dtype=np.int64),
            begin_ns=np.array([row.begin_ns for row in rows], dtype=np.int64),
            end_ns=np.array([row.end_ns for row in rows], dtype=np.int64),
        ),
        shapes=LaunchShapes(
            workgroup=np.array([shape[0] for shape in shapes], dtype=np.int64).reshape(-1, 3),
            grid=np.array([shape[1] for shape in shapes], dtype=np.int64).reshape(-1, 3),
            lds_bytes=np.array([shape[2] for shape in shapes], dtype=np.int64),
            scratch_bytes=np.zeros(len(shapes), dtype=np.int64),
        ),
        counters=values,
        counter_names=counter_names,
    )


def _role(with_counters: bool) -> TraceRole:
    from rpl_core.model.trace import TraceRole

    return TraceRole.COUNTERS if with_counters else TraceRole.TIMING


def _counter_values(rows: Sequence[TracedDispatch]) -> tuple[CounterValues | None, tuple[str, ...]]:
    import numpy as np

    from rpl_core.model.trace import CounterValues

    names = sorted({name for row in rows for name in row.counters})
    if not names:
        return None, ()
    flat = [
        (i, names.index(name), value, row.end_ns - row.begin_ns)
        for i, row in enumerate(rows)
        for name, value in sorted(row.counters.items())
    ]
    values = CounterValues(
        dispatch=np.array([f[0] for f in flat], dtype=np.int64),
        counter=np.array([f[1] for f in flat], dtype=np.int32),
        instance=np.full(len(flat), -1, dtype=np.int32),
        value=np.array([f[2] for f in flat], dtype=np.float64),
        duration_ns=np.array([f[3] for f in flat], dtype=np.int64),
    )
    return values, tuple(names)


# Device models for tests: a made-up GPU to change, and what the formulas of a device make of counters.


def make_device(**fields: Any) -> DeviceModel:
    """A GPU of 4 CUs and 2 XCDs at 1 GHz without ceilings or counters; ``fields`` replace its facts."""
    from rpl_core.model.device import CounterMap, DeviceModel

    defaults: dict[str, Any] = {
        "name": "test-gpu",
        "architecture": "gfx000",
        "product": "Test GPU",
        "chip_ids": (),
        "compute_units": 4,
        "xcd_count": 2,
        "simd_per_cu": 4,
        "wave_size": 64,
        "max_waves_per_simd": 8,
        "lds_bytes_per_cu": 65536,
        "clock_mhz": 1000.0,
        "l2_bytes": None,
        "llc_bytes": None,
        "l2_channels": None,
        "fp32_valu_width": 8,
        "compute_ceilings": (),
        "memory_ceilings": (),
        "counter_map": CounterMap((), ()),
    }
    return DeviceModel(**{**defaults, **fields})


def launch_quantities(device: DeviceModel, **counters: float) -> Callable[[str], Metric | None]:
    """``quantity("hbm_read_bytes")``: what the formulas of ``device`` make of one launch."""
    from rpl_analysis.counters.join import join_counters
    from rpl_analysis.counters.quantities import derive_quantities
    from rpl_core.model.metric import Origin
    from rpl_core.model.recording import Recording

    launch = TracedDispatch("kernel", 0, 1000, counters=dict(counters))
    (kernel,) = join_counters(Recording((make_trace([launch]),))).kernels.values()
    return derive_quantities(kernel, device, Origin.MEASURED)[0].per_launch
