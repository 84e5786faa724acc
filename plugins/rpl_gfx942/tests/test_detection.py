"""Products are told apart by chip id, name and size; what the agents leave open stays open."""

from __future__ import annotations

import pytest

from rpl_core.model.device import CeilingOrigin
from rpl_core.model.trace import Agent
from rpl_gfx942.plugin import rpl_detect_device, rpl_device_models
from rpl_testkit.contracts.recording import assert_device_model

SPEC, PUBLISHED = CeilingOrigin.SPEC, CeilingOrigin.PUBLISHED
FULL_MI300X = {"chip_id": 29857, "compute_units": 304, "xcd_count": 8}


@pytest.mark.parametrize(
    ("chip_id", "name"),
    [
        (29857, "mi300x"),
        (29877, "mi300x"),
        (29856, "mi300a"),
        (29876, "mi300a"),
        (29861, "mi325x"),
        (29881, "mi325x"),
        (29858, "mi308x"),
        (29878, "mi308x"),
    ],
)
def test_chip_ids_of_both_functions(agent, chip_id, name):
    assert rpl_detect_device((agent(chip_id=chip_id),)).name == name


@pytest.mark.parametrize(
    ("product", "name"), [("AMD Instinct MI325X", "mi325x"), ("MI300X_A1", "mi300x"), ("MI300A_A1", "mi300a")]
)
def test_the_product_name_serves_where_the_chip_id_is_missing(agent, product, name):
    units = 228 if name == "mi300a" else 304
    assert rpl_detect_device((agent(product=product, compute_units=units),)).name == name


def test_228_compute_units_are_an_mi300a(agent):
    found = rpl_detect_device((agent(compute_units=228),))
    assert (found.name, found.xcd_count, found.partition) == ("mi300a", 6, "SPX")


def test_304_compute_units_are_an_mi300x_or_an_mi325x(agent):
    found = rpl_detect_device((agent(compute_units=304),))
    assert found.name == "gfx942"
    assert found.product == "AMD Instinct MI300X or AMD Instinct MI325X"
    assert (found.compute_units, found.xcd_count, found.llc_bytes) == (304, 8, 256 * 2**20)
    assert found.memory_ceiling("hbm", SPEC) is None
    assert found.memory_ceiling("l2", SPEC) is not None
    assert found.unknown_facts


def test_a_name_alone_gives_the_facts_of_every_gfx942(agent):
    found = rpl_detect_device((agent(),))
    assert (found.name, found.compute_units, found.compute_ceilings) == ("gfx942", None, ())
    assert (found.wave_size, found.simd_per_cu, found.lds_bytes_per_cu) == (64, 4, 65536)


def test_an_unheard_of_chip_is_not_taken_for_another_of_its_size(agent):
    found = rpl_detect_device((agent(chip_id=1, compute_units=228, xcd_count=6),))
    assert (found.name, found.compute_units) == ("gfx942", 228)
    assert found.memory_ceiling("hbm", SPEC) is None


@pytest.mark.parametrize("architecture", ["gfx90a", "gfx950", "gfx1100"])
def test_other_architectures_are_not_ours(agent, architecture):
    assert rpl_detect_device((agent(architecture=architecture, compute_units=304),)) is None


def test_architecture_features_do_not_disturb(agent):
    assert rpl_detect_device((agent(architecture="gfx942:sramecc+:xnack-", **FULL_MI300X),)).name == "mi300x"


def test_a_chip_id_serves_without_an_architecture(agent):
    assert rpl_detect_device((agent(architecture=None, **FULL_MI300X),)).name == "mi300x"
    assert rpl_detect_device((agent(architecture=None, compute_units=304),)) is None


def test_eight_equal_gpus_are_one_device(agent):
    assert rpl_detect_device(tuple(agent(index=i, **FULL_MI300X) for i in range(8))).name == "mi300x"


def test_different_gpus_are_no_device(agent):
    assert rpl_detect_device((agent(**FULL_MI300X), agent(chip_id=29856, compute_units=228))) is None
    assert rpl_detect_device((agent(**FULL_MI300X), agent(architecture="gfx90a"))) is None


def test_no_gpu_is_no_device():
    assert rpl_detect_device(()) is None
    assert rpl_detect_device((Agent("node", 0, "CPU"),)) is None


def test_unknown_facts_of_mi308x_are_null_with_a_reason(agent):
    found = next(model for model in rpl_device_models() if model.name == "mi308x")
    assert (found.compute_units, found.clock_mhz, found.llc_bytes) == (None, None, None)
    # Its XCDs are known, and each of a gfx942 has 4 MiB of L2.
    assert (found.xcd_count, found.l2_bytes, found.partition) == (4, 16 * 2**20, None)
    assert (found.compute_ceilings, found.memory_ceiling("hbm", SPEC)) == ((), None)
    assert found.memory_ceiling("hbm", PUBLISHED).peak_gbps == 2003.45
    assert "MI308X" in found.unknown_facts[0]


def test_an_mi308x_takes_its_size_from_the_driver(agent):
    found = rpl_detect_device((agent(chip_id=29858, compute_units=80, clock_mhz=2000),))
    assert (found.name, found.compute_units) == ("mi308x", 80)
    assert found.memory_ceiling("lds", SPEC).peak_gbps == 128 * 80 * 2.0


def test_the_clock_of_the_driver_scales_the_ceilings(agent):
    found = rpl_detect_device((agent(clock_mhz=1050, **FULL_MI300X),))
    assert found.clock_mhz == 1050
    assert found.memory_ceiling("lds", SPEC).peak_gbps == pytest.approx(81_715.2 / 2)
    assert found.memory_ceiling("hbm", SPEC).peak_gbps == 5324.8


def test_masked_compute_units_keep_the_product_but_no_memory_ceiling(agent):
    found = rpl_detect_device((agent(chip_id=29857, compute_units=100),))
    assert (found.name, found.compute_units, found.partition) == ("mi300x", 100, None)
    assert found.memory_ceiling("hbm", SPEC) is None
    assert "fits no partition" in found.unknown_facts[0]


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"compute_units": 304},
        {"chip_id": 1},
        {"chip_id": 29857},
        {"chip_id": 29858, "compute_units": 80},
        {"chip_id": 29856, "compute_partition": "CPX"},
        {"compute_partition": "SPX"},
    ],
)
def test_every_recognised_device_keeps_the_contract_of_device_models(agent, facts):
    assert_device_model(rpl_detect_device((agent(**facts),)))
