"""Figures of launches, computed by hand: how much of the device a grid fills, which kernels have no LDS."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rpl_analysis.bottleneck import KernelEvidence, _kernels_without_lds, figures_of
from rpl_analysis.facts import KERNEL_TIMES
from rpl_analysis.runtime import RuntimeAnalyzer
from rpl_codeobject.occupancy import LaunchShape, UsedRegisters, theoretical_occupancy
from rpl_core.interfaces.analyzer import AnalysisContext
from rpl_core.model.metric import Origin
from rpl_core.model.recording import Recording
from rpl_gfx942.plugin import rpl_detect_device
from rpl_gfx942.products import FACTS
from rpl_testkit.traces import TracedDispatch, make_trace, mi300x_agent

DEVICE = rpl_detect_device((mi300x_agent(),))


def _time(dispatch: TracedDispatch):
    context = AnalysisContext(Recording((make_trace([dispatch]),)), DEVICE)
    return RuntimeAnalyzer().analyze(context).facts[KERNEL_TIMES][dispatch.kernel]


@pytest.mark.parametrize(
    ("workgroup", "grid", "vgprs", "fill"),
    [
        # 304 CUs of 4 SIMDs hold 8 waves of 64 VGPRs each: 9728. One workgroup of 4 waves per CU are 1216.
        ((256, 1, 1), (304 * 256, 1, 1), 64, 1216 / 9728),
        # 65 to 72 VGPRs leave 7 waves per SIMD: 8512 slots.
        ((256, 1, 1), (304 * 256, 1, 1), 72, 1216 / 8512),
        # 65 work-items are two waves; 10 work-items beyond the last workgroup are one more.
        ((65, 1, 1), (65 * 100, 1, 1), 64, 200 / 9728),
        ((64, 1, 1), (64 * 100 + 10, 1, 1), 64, 101 / 9728),
        # In three dimensions: 8 x 4 x 2 workgroups of one wave.
        ((8, 4, 2), (64, 16, 4), 64, 64 / 9728),
    ],
)
def test_a_grid_fills_its_waves_over_the_waves_that_the_device_holds(workgroup, grid, vgprs, fill) -> None:
    size = int(np.prod(workgroup))
    occupancy = theoretical_occupancy(
        FACTS,
        UsedRegisters(arch_vgprs=vgprs, accum_vgprs=0, sgprs=16),
        LaunchShape(workgroup_size=size, lds_bytes=0, wave_size=64),
    )
    time = _time(TracedDispatch("k", 0, 10, workgroup=workgroup, grid=grid))
    figures = figures_of(KernelEvidence(time, occupancy, None, None), DEVICE, Origin.MEASURED)
    assert figures["grid_fill"].value == pytest.approx(fill, rel=1e-12)


def _launched(**lds_bytes: int | None):
    """A run with a launch per kernel; None: the size of its LDS was not recorded."""
    rows = [
        TracedDispatch(name, 10 * i, 10 * i + 5, lds_bytes=size or 0)
        for i, (name, size) in enumerate(lds_bytes.items())
    ]
    trace = make_trace(rows)
    shape = trace.dispatches.shape.copy()
    shape[[size is None for size in lds_bytes.values()]] = -1
    return attrs.evolve(trace, dispatches=attrs.evolve(trace.dispatches, shape=shape))


@pytest.mark.parametrize(
    ("runs", "without"),
    [
        ([{"none": 0, "some": 64}], {"none"}),
        ([{"unrecorded": None, "none": 0}], {"none"}),
        # One launch of any run that has LDS is enough.
        ([{"k": 0}, {"k": 64}], set()),
        ([{"k": 64}, {"k": 0}], set()),
        ([{"k": 0}, {"other": 64}], {"k"}),
    ],
)
def test_a_kernel_has_no_lds_if_no_launch_of_it_allocates_any(runs, without) -> None:
    assert _kernels_without_lds(Recording(tuple(_launched(**run) for run in runs))) == without
