"""A partition is a share of the product: CUs, L2 channels and bandwidth scale with its XCDs."""

from __future__ import annotations

import attrs
import pytest

from rpl_amdgpu.detection import partition_of
from rpl_amdgpu.models import Partition
from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_gfx942.plugin import rpl_detect_device
from rpl_gfx942.products import GFX942

SPEC, PUBLISHED = CeilingOrigin.SPEC, CeilingOrigin.PUBLISHED


@pytest.mark.parametrize(
    ("mode", "xcds", "units", "channels", "hbm_gbps"),
    [
        ("SPX", 8, 304, 128, 5324.8),
        ("DPX", 4, 152, 64, 2662.4),
        ("QPX", 2, 76, 32, 1331.2),
        ("CPX", 1, 38, 16, 665.6),
    ],
)
def test_modes_of_an_mi300x(agent, mode, xcds, units, channels, hbm_gbps):
    found = rpl_detect_device((agent(chip_id=29857, compute_partition=mode),))
    assert (found.partition, found.xcd_count, found.compute_units) == (mode, xcds, units)
    assert (found.l2_channels, found.l2_bytes) == (channels, xcds * 4 * 2**20)
    assert found.memory_ceiling("hbm", SPEC).peak_gbps == pytest.approx(hbm_gbps)
    assert found.memory_ceiling("l2", SPEC).peak_gbps == pytest.approx(34_406.4 * xcds / 8)
    assert found.compute_ceiling("F64", Pipe.MFMA, SPEC).peak_gflops == pytest.approx(163_430.4 * xcds / 8)


@pytest.mark.parametrize(("mode", "xcds"), [("SPX", 6), ("TPX", 2), ("CPX", 1)])
def test_modes_of_an_mi300a(agent, mode, xcds):
    found = rpl_detect_device((agent(chip_id=29856, compute_partition=mode),))
    assert (found.xcd_count, found.compute_units) == (xcds, 38 * xcds)


@pytest.mark.parametrize(("facts", "mode"), [({"compute_units": 76}, "QPX"), ({"xcd_count": 4}, "DPX")])
def test_the_mode_follows_from_the_size(agent, facts, mode):
    assert rpl_detect_device((agent(chip_id=29857, **facts),)).partition == mode


def test_contradicting_facts_settle_no_partition(agent):
    found = rpl_detect_device((agent(chip_id=29857, compute_partition="CPX", compute_units=304),))
    assert found.partition is None
    assert found.memory_ceiling("hbm", SPEC) is None


def test_measured_ceilings_hold_only_in_the_partition_they_were_published_in(agent):
    def measured(chip_id: int, mode: str) -> float | None:
        ceiling = rpl_detect_device((agent(chip_id=chip_id, compute_partition=mode),)).memory_ceiling(
            "hbm", PUBLISHED
        )
        return ceiling.peak_gbps if ceiling else None

    whole, part = (
        rpl_detect_device((agent(chip_id=29857, compute_partition=mode),)).compute_ceiling(
            "F32", Pipe.VALU_PACKED, PUBLISHED
        )
        for mode in ("SPX", "CPX")
    )
    assert (whole.peak_gflops, part) == (96_500.0, None)
    assert measured(29857, "SPX") == 3910.62
    assert measured(29857, "CPX") is None
    assert measured(29856, "SPX") == 3034.0
    assert measured(29856, "CPX") == 710.23


def test_infinity_cache_is_shared_unless_memory_is_split_too(agent):
    shared = rpl_detect_device((agent(chip_id=29857, compute_partition="CPX", memory_partition="NPS1"),))
    split = rpl_detect_device((agent(chip_id=29857, compute_partition="CPX", memory_partition="NPS4"),))
    assert (shared.llc_bytes, split.llc_bytes) == (256 * 2**20, 64 * 2**20)


@pytest.mark.parametrize(
    ("facts", "partition"),
    [
        # Each fact alone tells the mode: an MI300X has 8 XCDs of 38 CUs (rpl_amdgpu.models).
        ({"compute_partition": "DPX"}, Partition("DPX", 4)),
        ({"compute_partition": "dpx"}, Partition("DPX", 4)),
        ({"xcd_count": 2}, Partition("QPX", 2)),
        ({"compute_units": 38}, Partition("CPX", 1)),
        ({"compute_partition": "DPX", "xcd_count": 4, "compute_units": 152}, Partition("DPX", 4)),
        ({"compute_partition": "CPX", "memory_partition": "nps4"}, Partition("CPX", 1, 4)),
        # Facts that disagree, or fit no mode, tell none; neither does an agent that says nothing.
        ({"compute_partition": "DPX", "xcd_count": 8}, None),
        ({"xcd_count": 4, "compute_units": 304}, None),
        ({"compute_partition": "TPX"}, None),
        ({"compute_units": 100}, None),
        ({"memory_partition": "NPS1"}, None),
        ({}, None),
    ],
)
def test_the_partition_that_an_agent_describes(agent, facts, partition):
    assert partition_of(GFX942.products[0], agent(**facts)) == partition


def test_even_the_only_mode_of_a_product_must_be_recorded(agent):
    one_mode = attrs.evolve(GFX942.products[0], partitions=(("SPX", 8),))
    assert partition_of(one_mode, agent()) is None
    assert partition_of(one_mode, agent(compute_partition="SPX")) == Partition("SPX", 8)


def test_facts_that_fit_two_modes_of_a_product_settle_none(agent):
    alike = attrs.evolve(GFX942.products[0], partitions=(("A", 4), ("B", 4)))
    assert partition_of(alike, agent(xcd_count=4)) is None
    assert partition_of(alike, agent(xcd_count=4, compute_partition="B")) == Partition("B", 4)


def test_a_mode_says_nothing_about_a_product_that_has_none(agent):
    undivided = attrs.evolve(GFX942.products[0], partitions=())
    assert partition_of(undivided, agent(compute_partition="SPX")) is None
    assert partition_of(undivided, agent(xcd_count=8)) == Partition(None, 8)
