"""Ceilings equal the figures of rocprofiler-compute (dense rates) and AMD's data sheets, with sources."""

from __future__ import annotations

import pytest

from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_gfx942.plugin import rpl_device_models

SPEC = CeilingOrigin.SPEC
MODELS = {model.name: model for model in rpl_device_models()}


@pytest.mark.parametrize(
    ("device", "data_type", "pipe", "gflops"),
    [
        ("mi300x", "F64", Pipe.VALU, 81_715.2),
        ("mi300x", "F32", Pipe.VALU, 81_715.2),
        ("mi300x", "F32", Pipe.VALU_PACKED, 163_430.4),
        ("mi300x", "F16", Pipe.MFMA, 1_307_443.2),
        ("mi300x", "BF16", Pipe.MFMA, 1_307_443.2),
        ("mi300x", "F8", Pipe.MFMA, 2_614_886.4),
        ("mi300x", "I8", Pipe.MFMA, 2_614_886.4),
        ("mi300x", "F64", Pipe.MFMA, 163_430.4),
        ("mi300x", "XF32", Pipe.MFMA, 653_721.6),
        ("mi300a", "F32", Pipe.VALU, 61_286.4),
        ("mi300a", "F16", Pipe.MFMA, 980_582.4),
        ("mi300a", "F32", Pipe.MFMA, 122_572.8),
        ("mi325x", "F16", Pipe.MFMA, 1_307_443.2),
    ],
)
def test_arithmetic_peaks(device, data_type, pipe, gflops):
    assert MODELS[device].compute_ceiling(data_type, pipe, SPEC).peak_gflops == pytest.approx(gflops)


@pytest.mark.parametrize(
    ("device", "level", "gbps"),
    [
        ("mi300x", "hbm", 5324.8),
        ("mi300x", "l2", 34_406.4),
        ("mi300x", "vl1d", 81_715.2),
        ("mi300x", "lds", 81_715.2),
        ("mi300a", "hbm", 5324.8),
        ("mi300a", "l2", 25_804.8),
        ("mi325x", "hbm", 6000.0),
    ],
)
def test_memory_peaks(device, level, gbps):
    assert MODELS[device].memory_ceiling(level, SPEC).peak_gbps == pytest.approx(gbps)


def test_the_fp32_ridge_of_an_mi300x():
    model = MODELS["mi300x"]
    ridge = (
        model.compute_ceiling("F32", Pipe.VALU, SPEC).peak_gflops
        / model.memory_ceiling("hbm", SPEC).peak_gbps
    )
    assert ridge == pytest.approx(15.35, abs=0.01)


def test_every_ceiling_names_its_source():
    ceilings = [c for model in MODELS.values() for c in (*model.compute_ceilings, *model.memory_ceilings)]
    assert all(len(ceiling.source) > 10 for ceiling in ceilings)


def test_names_and_chip_ids_are_unique():
    assert list(MODELS) == ["mi300x", "mi300a", "mi325x", "mi308x"]
    chips = [chip for model in MODELS.values() for chip in model.chip_ids]
    assert len(chips) == len(set(chips)) == 8


def test_the_documented_valu_width_is_kept():
    assert {model.fp32_valu_width for model in MODELS.values()} == {8}
