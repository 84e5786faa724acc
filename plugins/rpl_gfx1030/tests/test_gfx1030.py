"""RDNA 2: products behind one chip id, and the published peak that the rates follow from."""

from __future__ import annotations

import pytest

from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_core.model.trace import Agent
from rpl_gfx1030.plugin import rpl_detect_device, rpl_device_models
from rpl_rocprofv3.collector.passes import plan_passes
from rpl_testkit.traces import launch_quantities

SPEC, PUBLISHED = CeilingOrigin.SPEC, CeilingOrigin.PUBLISHED
MODELS = {model.name: model for model in rpl_device_models()}


def agent(**facts):
    return Agent(**{"node": "n", "index": 0, "kind": "GPU", "architecture": "gfx1030", **facts})


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"chip_id": 0x73BF, "compute_units": 72}, "rx6800xt"),
        ({"chip_id": 0x73A3}, "w6800"),
        ({"product": "AMD Radeon PRO W6800"}, "w6800"),
        ({"compute_units": 60}, "gfx1030"),
        ({"architecture": "gfx1032", "chip_id": 0x73E3, "compute_units": 28}, "w6600"),
        ({"architecture": "gfx1031", "chip_id": 0x73DF, "compute_units": 36}, "rx6700"),
    ],
)
def test_products_are_told_apart(facts, name):
    assert rpl_detect_device((agent(**facts),)).name == name


def test_others_are_left_to_others():
    assert rpl_detect_device((agent(architecture="gfx1100", chip_id=0x744C),)) is None


def test_the_published_peak_of_the_rx_6950_xt():
    assert MODELS["rx6950xt"].compute_ceiling("F32", Pipe.VALU, SPEC).peak_gflops == pytest.approx(
        23_650, abs=10
    )
    assert MODELS["rx6950xt"].compute_ceiling("F64", Pipe.VALU, SPEC) is None


def test_the_recommended_set_takes_two_passes():
    plan = plan_passes(MODELS["w6800"].counter_map)
    assert (len(plan.passes), plan.refused) == (2, ())


def test_reads_of_four_sizes():
    quantity = launch_quantities(
        MODELS["w6800"],
        GL2C_EA_RDREQ_32B_sum=1.0,
        GL2C_EA_RDREQ_64B_sum=2.0,
        GL2C_EA_RDREQ_96B_sum=3.0,
        GL2C_EA_RDREQ_128B_sum=4.0,
    )
    assert quantity("hbm_read_bytes").value == 32 + 128 + 288 + 512
    assert quantity("flops") is None
