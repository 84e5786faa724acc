"""The user's own ceilings take the place of the data sheet's, never of measured ones."""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.options import at_clock, with_bandwidth
from rpl_core.errors import UsageError
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe
from rpl_testkit.traces import make_device

GPU = make_device(
    clock_mhz=2000.0,
    compute_ceilings=(
        ComputeCeiling("F32", Pipe.VALU, 100.0, CeilingOrigin.SPEC, "sheet"),
        ComputeCeiling("F32", Pipe.VALU, 90.0, CeilingOrigin.MEASURED, "bench"),
    ),
    memory_ceilings=(
        MemoryCeiling("hbm", 5000.0, CeilingOrigin.SPEC, "sheet"),
        MemoryCeiling("l2", 30.0, CeilingOrigin.SPEC, "sheet", on_engine_clock=True),
    ),
)


def test_clock_override_scales_sheet_ceilings_and_keeps_measured_ones():
    scaled = at_clock(GPU, 1000.0)

    assert scaled.compute_ceiling("F32", Pipe.VALU, CeilingOrigin.SPEC).peak_gflops == 50.0
    assert scaled.compute_ceiling("F32", Pipe.VALU, CeilingOrigin.MEASURED).peak_gflops == 90.0
    assert scaled.memory_ceiling("l2", CeilingOrigin.SPEC).peak_gbps == 15.0
    assert scaled.memory_ceiling("hbm", CeilingOrigin.SPEC).peak_gbps == 5000.0
    assert scaled.overrides == ("clock_mhz=1000",)


def test_bandwidth_override_replaces_the_hbm_ceiling_and_names_its_source():
    changed = with_bandwidth(GPU, 100.0)

    ceiling = changed.memory_ceiling("hbm", CeilingOrigin.SPEC)
    assert ceiling.peak_gbps == 100.0
    assert "user" in ceiling.source


def test_clock_override_without_a_known_clock_is_refused():
    with pytest.raises(UsageError, match="clock"):
        at_clock(attrs.evolve(GPU, clock_mhz=None), 1000.0)
