"""Architectures without a device plugin: each keeps the contract, and gives recordings an occupancy."""

from __future__ import annotations

import attrs

from rpl_amdgpu.plugin import rpl_architectures
from rpl_analysis.facts import KERNEL_TIMES, OCCUPANCY
from rpl_analysis.occupancy.analyzer import OccupancyAnalyzer
from rpl_analysis.runtime.analyzer import RuntimeAnalyzer
from rpl_core.interfaces.analyzer import AnalysisContext
from rpl_core.model.recording import Recording
from rpl_core.pipeline import architectures
from rpl_core.schedule import Step, analyze
from rpl_testkit.contracts import assert_architecture
from rpl_testkit.traces import make_trace


def test_every_architecture_keeps_the_contract():
    known = rpl_architectures()
    assert [architecture.name for architecture in known] == sorted(
        architecture.name for architecture in known
    )
    for architecture in known:
        assert_architecture(architecture)


def test_a_recording_of_an_unknown_product_gets_its_occupancy_from_here(rpl_host):
    trace = make_trace([("k", 0, 100)])
    agents = tuple(attrs.evolve(agent, architecture="gfx90a") for agent in trace.agents)
    kernels = tuple(attrs.evolve(k, arch_vgpr=124, accum_vgpr=4, sgpr=16) for k in trace.kernels)
    shapes = attrs.evolve(trace.shapes, lds_bytes=0 * trace.shapes.lds_bytes)
    recording = Recording((attrs.evolve(trace, agents=agents, kernels=kernels, shapes=shapes),))
    steps = [Step("analysis", analyzer) for analyzer in (RuntimeAnalyzer(), OccupancyAnalyzer())]

    def occupancy(host):
        context = AnalysisContext(recording, None, architecture=architectures(None, host))
        facts = analyze(context, steps).facts
        assert list(facts[KERNEL_TIMES]) == ["k"]
        return facts[OCCUPANCY]["k"]

    # ROCm's documented case of an MI250: 128 registers leave half of the waves.
    assert occupancy(rpl_host("amdgpu")).fraction == 0.5
    assert occupancy(rpl_host()).reason == "no occupancy limits for architecture 'gfx90a'"
