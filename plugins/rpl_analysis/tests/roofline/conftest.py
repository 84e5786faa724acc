"""A small device with round ceilings, and kernels as figures per launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rpl_analysis.contracts.roofline import KernelRooflineDoc
from rpl_analysis.roofline.kernel import KernelFigures, kernel_roofline
from rpl_core.model.device import (
    Architecture,
    CeilingOrigin,
    ComputeCeiling,
    CounterMap,
    DeviceModel,
    MemoryCeiling,
    PackedArithmetic,
    Pipe,
    TypedWork,
)
from rpl_core.model.metric import Exactness, Metric, Origin
from rpl_testkit.traces import make_device as a_device

SPEC, MEASURED = CeilingOrigin.SPEC, CeilingOrigin.MEASURED
COUNTER_MAP = CounterMap(
    (),
    (),
    work=(
        *(TypedWork(f"valu_flops_{t.lower()}", t, Pipe.VALU) for t in ("F64", "F32", "F16")),
        *(TypedWork(f"mfma_flops_{t.lower()}", t, Pipe.MFMA) for t in ("F64", "F32", "F16", "BF16", "F8")),
        TypedWork("mfma_ops_i8", "I8", Pipe.MFMA, floating=False),
    ),
    memory_bytes=("hbm_bytes", "tcc_bytes"),
)
FACTS = Architecture(
    name="gfx000",
    packed=tuple(
        PackedArithmetic(data_type=t, operations_per_counted=2, source="made up") for t in ("F16", "F32")
    ),
)


def figure(value: float | None, exactness: Exactness = Exactness.EXACT, **more: Any) -> Metric:
    if value is None:
        return Metric.unknown("", "not recorded: X", ("X",))
    return Metric(value, "", exactness, Origin.MEASURED, **more)


@pytest.fixture
def metric() -> Callable[..., Metric]:
    """``metric(value, exactness, upper=..)``: a measured figure, or an unknown one for ``None``."""
    return figure


@pytest.fixture
def make_device() -> Callable[..., DeviceModel]:
    """GFLOP/s: 1000 FP32, 2000 packed FP32, 500 FP64, 8000 FP16 matrix, 16000 I8; HBM 100 GB/s (80)."""

    def build(**fields: Any) -> DeviceModel:
        compute = (
            ComputeCeiling("F32", Pipe.VALU, 1000.0, SPEC, "sheet"),
            ComputeCeiling("F64", Pipe.VALU, 500.0, SPEC, "sheet"),
            ComputeCeiling("F32", Pipe.VALU_PACKED, 2000.0, SPEC, "sheet"),
            ComputeCeiling("F16", Pipe.MFMA, 8000.0, SPEC, "sheet"),
            ComputeCeiling("I8", Pipe.MFMA, 16000.0, SPEC, "sheet"),
            ComputeCeiling("F32", Pipe.VALU_PACKED, 1200.0, MEASURED, "benchmark"),
        )
        memory = (
            MemoryCeiling("hbm", 100.0, SPEC, "sheet"),
            MemoryCeiling("hbm", 80.0, MEASURED, "benchmark"),
            MemoryCeiling("l2", 400.0, SPEC, "sheet"),
        )
        given = {
            "llc_bytes": 10_000,
            "compute_ceilings": compute,
            "memory_ceilings": memory,
            "counter_map": COUNTER_MAP,
            "architecture_facts": FACTS,
        }
        return a_device(**{**given, **fields})

    return build


@pytest.fixture
def place(make_device: Callable[..., DeviceModel]) -> Callable[..., KernelRooflineDoc]:
    """``place({"flops": 10, ...}, time_ns=1000, model="per_op")``: one kernel on the roofline.

    Plain numbers are exact; missing classes of ``flops`` are exact zeros unless given.
    """

    def run(
        figures: dict[str, float | Metric | None],
        time_ns: float | Metric | None = 1000.0,
        model: str = "per_op",
        **device: Any,
    ) -> KernelRooflineDoc:
        metrics = {n: v if isinstance(v, Metric) else figure(v) for n, v in figures.items()}
        time = time_ns if isinstance(time_ns, Metric) else figure(time_ns)
        return kernel_roofline(KernelFigures("k", metrics, time, 1.0, 1), make_device(**device), model)

    return run
