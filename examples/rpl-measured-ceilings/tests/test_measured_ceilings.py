"""Rates of a benchmark become ceilings of the named device, and of no other."""

from __future__ import annotations

import csv

import pytest

from rpl_core.errors import BadDataError
from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_gfx90a.plugin import rpl_device_models
from rpl_measured_ceilings.plugin import rpl_ceilings

MI250X = next(model for model in rpl_device_models() if model.name == "mi250x")


@pytest.fixture
def benchmark(rpl_shared_data):
    return rpl_shared_data / "counters_gfx942" / "path_MI200" / "roofline.csv"


def ceilings(file, **settings):
    settings = {"file": str(file), "device": "gfx90a", **settings}
    config = {f"plugins.measured-ceilings.{name}": value for name, value in settings.items()}
    return rpl_ceilings(device=MI250X, config=config)


@pytest.mark.parametrize("row", [0, 1])
def test_every_measured_rate_is_a_ceiling(benchmark, row):
    with benchmark.open(newline="") as text:
        rates = list(csv.DictReader(text))[row]
    found = ceilings(benchmark, row=row)
    assert {c.origin for c in found} == {CeilingOrigin.MEASURED}
    memory = {c.level: c.peak_gbps for c in found if hasattr(c, "level")}
    assert memory == {
        level: float(rates[name])
        for level, name in (("hbm", "HBMBw"), ("l2", "L2Bw"), ("vl1d", "L1Bw"), ("lds", "LDSBw"))
    }
    compute = {(c.data_type, c.pipe): c.peak_gflops for c in found if not hasattr(c, "level")}
    assert compute["F64", Pipe.MFMA] == float(rates["MFMAF64Flops"])
    assert len(compute) == 7


def test_another_device_gets_nothing(benchmark):
    assert ceilings(benchmark, device="mi210") == ()
    assert rpl_ceilings(device=MI250X, config={}) == ()


def test_a_row_that_is_not_there_is_said(benchmark):
    with pytest.raises(BadDataError, match="no row 99"):
        ceilings(benchmark, row=99)
