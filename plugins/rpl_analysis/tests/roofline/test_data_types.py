"""Data types are names: what a device declares has a place under its ceilings, whatever it is called."""

from __future__ import annotations

from types import ModuleType

import attrs
import pytest

from rpl_core import hookimpl
from rpl_core.model.device import (
    CeilingOrigin,
    ComputeCeiling,
    CounterMap,
    Formula,
    MemoryCeiling,
    Pipe,
    Quantity,
    TypedWork,
)
from rpl_core.model.metric import Exactness
from rpl_core.model.recording import Recording
from rpl_core.pipeline import AnalysisRequest, analyse
from rpl_testkit.traces import TracedDispatch, make_device, make_trace

SPEC = CeilingOrigin.SPEC


def _counted(name, unit, expression):
    return Quantity(name, unit, (Formula(expression, Exactness.EXACT, "made up"),))


BY_NAME = CounterMap(
    (
        Quantity("flops", "FLOP", sum_of=("mfma_flops_f6f4",)),
        _counted("mfma_flops_f6f4", "FLOP", "512 * MATRIX_OPS"),
        _counted("hbm_bytes", "B", "64 * REQUESTS"),
    ),
    ("MATRIX_OPS", "REQUESTS"),
)
#: The same work under a name that says nothing, declared as what it is.
DECLARED = attrs.evolve(
    BY_NAME,
    quantities=(
        _counted("flops", "FLOP", "512 * MATRIX_OPS"),
        _counted("tiny_floats", "FLOP", "512 * MATRIX_OPS"),
        BY_NAME.quantities[2],
    ),
    work=(TypedWork("tiny_floats", "F6F4", Pipe.MFMA),),
)
UNDECLARED = attrs.evolve(DECLARED, work=())


@pytest.fixture
def documents(rpl_host):
    """``documents(counter_map)``: a kernel at 614.4 GFLOP/s and 64 GB/s on a GPU of 1024 and 1000."""

    def run(counter_map):
        device = make_device(
            compute_ceilings=(ComputeCeiling("F6F4", Pipe.MFMA, 1024.0, SPEC, "sheet"),),
            memory_ceilings=(MemoryCeiling("hbm", 1000.0, SPEC, "sheet"),),
            counter_map=counter_map,
        )
        module = ModuleType("made_up_device")
        module.RPL_API = 2
        module.rpl_device_models = hookimpl(lambda: (device,), specname="rpl_device_models")
        module.rpl_detect_device = hookimpl(lambda agents: device, specname="rpl_detect_device")
        counters = {"MATRIX_OPS": 1200.0, "REQUESTS": 1000.0}
        traces = (
            make_trace([("k", 0, 1000)]),
            make_trace([TracedDispatch("k", 0, 1000, counters=counters)]),
        )
        return analyse(Recording(traces), AnalysisRequest(), rpl_host("analysis", "codeobject", module))

    return run


@pytest.mark.parametrize("counter_map", [BY_NAME, DECLARED], ids=["by name", "declared"])
def test_sixty_percent_of_a_type_that_nobody_else_knows_leaves_forty(documents, counter_map):
    made = documents(counter_map)
    (kernel,) = made.model("analysis").kernels
    assert kernel.roofline_position == pytest.approx(0.6)
    assert kernel.headroom_fraction == pytest.approx(0.4)
    (placed,) = made.model("roofline").kernels
    assert (placed.dominant_type, placed.dominant_pipe) == ("F6F4", "mfma")


def test_work_of_no_declared_type_is_told_and_leaves_the_headroom_unknown(documents):
    made = documents(UNDECLARED)
    (kernel,) = made.model("analysis").kernels
    assert kernel.headroom_fraction is None
    (told,) = [d for d in made.model("roofline").diagnostics if d.code == "roofline.untyped_flops"]
    assert "6.144e+05 FLOP" in told.fact
