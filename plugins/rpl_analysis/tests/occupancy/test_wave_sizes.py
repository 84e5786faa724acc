"""Each kernel of an RDNA GPU has its own wave size: by its code or by counted waves; else both are named."""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.counters import CountersAnalyzer
from rpl_analysis.facts import KERNEL_TIMES, OCCUPANCY
from rpl_analysis.occupancy import OccupancyAnalyzer
from rpl_analysis.runtime import RuntimeAnalyzer
from rpl_codeobject.kernel_code import KERNEL_CODE, Kernel, KernelCode
from rpl_codeobject.occupancy import NoOccupancy
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.recording import Recording
from rpl_core.schedule import Step, analyze
from rpl_gfx950.plugin import rpl_device_models as gfx950_models
from rpl_gfx1100.plugin import rpl_device_models as gfx1100_models
from rpl_testkit.traces import TracedDispatch, make_trace

W7900 = next(model for model in gfx1100_models() if model.name == "w7900")
MI355X = next(model for model in gfx950_models() if model.name == "mi355x")
#: Waves of 32 lanes: 1536 / 120 = 12 of 16 slots; of 64 lanes: 768 / 108 = 7.
VGPRS = 100


class Code(Analyzer):
    """As if a code object with this kernel were at hand."""

    name, summary, provides = "code", "for tests", frozenset({KERNEL_CODE})

    def __init__(self, architecture, **fields):
        compiled = {
            "name": "k",
            "symbol": "k.kd",
            "arguments": (),
            "kernarg_bytes": 0,
            "kernarg_align": 8,
            "lds_bytes": 0,
            "scratch_bytes": 0,
            "max_workgroup_size": 1024,
            "wavefront_size": 64,
            "required_workgroup": None,
            "dynamic_stack": None,
            "vgprs": VGPRS,
            "agprs": None,
            "sgprs": 16,
            "vgpr_spills": 0,
            "sgpr_spills": 0,
            "workgroup_processor_mode": 1,
            "uniform_workgroups": None,
            "descriptor": None,
        }
        self._code = KernelCode("k", "k", architecture, "a.co", {}, metadata=Kernel(**{**compiled, **fields}))

    def analyze(self, context):
        return AnalysisOutcome({KERNEL_CODE: (self._code,)})


def occupancy(device, *more, vgprs=VGPRS, accum=0, waves=None, workgroup=256):
    """The answer for a kernel of 1024 work-items, with ``waves`` counted if given."""
    counters = {} if waves is None else {"SQ_WAVES": float(waves)}
    launch = TracedDispatch("k", 0, 1000, grid=(1024, 1, 1), workgroup=(workgroup, 1, 1), counters=counters)
    traces = []
    for one in (attrs.evolve(launch, counters={}), launch):
        trace = make_trace([one])
        agents = tuple(
            attrs.evolve(agent, architecture=device.architecture, wave_size=device.wave_size)
            for agent in trace.agents
        )
        kernels = tuple(
            attrs.evolve(kernel, arch_vgpr=vgprs, accum_vgpr=accum, sgpr=16) for kernel in trace.kernels
        )
        shapes = attrs.evolve(trace.shapes, lds_bytes=0 * trace.shapes.lds_bytes)
        traces.append(attrs.evolve(trace, agents=agents, kernels=kernels, shapes=shapes))
    analyzers = (RuntimeAnalyzer(), CountersAnalyzer(), OccupancyAnalyzer(), *more)
    context = AnalysisContext(Recording(tuple(traces if counters else traces[:1])), device)
    facts = analyze(context, [Step("tests", analyzer) for analyzer in analyzers]).facts
    assert list(facts[KERNEL_TIMES]) == ["k"]
    return facts[OCCUPANCY]["k"]


def test_the_code_object_tells():
    for size, waves in ((32, 12), (64, 7)):
        found = occupancy(W7900, Code("gfx1100", wavefront_size=size))
        assert (found.waves_per_simd, found.wave_size) == (waves, size)


def test_code_for_another_gpu_tells_nothing():
    assert isinstance(occupancy(W7900, Code("gfx1030", wavefront_size=64)), NoOccupancy)


@pytest.mark.parametrize(("counted", "size", "waves"), [(32, 32, 12), (16, 64, 7)])
def test_counted_waves_tell(counted, size, waves):
    # 1024 work-items are 32 waves of 32 lanes or 16 of 64.
    found = occupancy(W7900, waves=counted)
    assert (found.waves_per_simd, found.wave_size) == (waves, size)


def test_without_either_both_figures_are_named():
    found = occupancy(W7900)
    assert isinstance(found, NoOccupancy)
    assert "between 44% and 75%" in found.reason
    assert found.between == (7 / 16, 12 / 16)
    assert "75% with waves of 32 lanes, 44% with waves of 64 lanes" in found.reason


def test_where_the_size_makes_no_difference_there_is_a_figure():
    found = occupancy(W7900, vgprs=16)
    assert (found.fraction, found.wave_size) == (1.0, None)


@pytest.mark.parametrize(("mode", "waves"), [(0, 10), (1, 15)])
def test_the_mode_of_the_code_counts(mode, waves):
    # 20 waves: one workgroup in the 32 slots of a CU, three in the 64 of a workgroup processor.
    code = Code("gfx1100", wavefront_size=32, workgroup_processor_mode=mode)
    assert occupancy(W7900, code, vgprs=8, workgroup=640).waves_per_simd == waves


def test_a_record_that_may_be_half_of_the_truth_gives_way_to_the_code():
    assert "half" in occupancy(MI355X, vgprs=64).reason
    found = occupancy(MI355X, Code("gfx950", vgprs=128, agprs=0), vgprs=64)
    assert (found.waves_per_simd, found.limiter) == (4, "vgpr")


def test_a_record_that_is_believed_is_not_replaced():
    found = occupancy(MI355X, Code("gfx950", vgprs=128, agprs=0), vgprs=60, accum=4)
    assert found.waves_per_simd == 8
