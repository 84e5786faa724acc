"""Which device a recording gets: recorded agents first, never a silent default."""

from __future__ import annotations

import attrs
import pytest

from rpl_core.devices import named_device, resolve_device
from rpl_core.errors import DeviceMismatchError, MissingError
from rpl_core.model.device import (
    CeilingOrigin,
    ComputeCeiling,
    CounterMap,
    DeviceModel,
    MemoryCeiling,
    Pipe,
)
from rpl_testkit.traces import mi300x_agent


def device(name, compute_units, bandwidth):
    return DeviceModel(
        name=name,
        architecture="gfx942",
        product=f"AMD {name}",
        chip_ids=(1,),
        compute_units=compute_units,
        xcd_count=8,
        simd_per_cu=4,
        wave_size=64,
        max_waves_per_simd=8,
        lds_bytes_per_cu=65536,
        clock_mhz=2000.0,
        l2_bytes=None,
        llc_bytes=None,
        l2_channels=None,
        fp32_valu_width=8,
        compute_ceilings=(
            ComputeCeiling("F32", Pipe.VALU, 100.0, CeilingOrigin.SPEC, "sheet"),
            ComputeCeiling("F32", Pipe.VALU, 90.0, CeilingOrigin.MEASURED, "bench"),
        ),
        memory_ceilings=(
            MemoryCeiling("hbm", bandwidth, CeilingOrigin.SPEC, "sheet"),
            MemoryCeiling("l2", 30.0, CeilingOrigin.SPEC, "sheet", on_engine_clock=True),
        ),
        counter_map=CounterMap(quantities=(), recommended=()),
    )


BIG, SMALL = device("BIG", 304, 5000.0), device("SMALL", 80, 4000.0)
MODELS = (BIG, SMALL)


def never(_agents):
    return None


def test_family_keeps_only_what_its_products_share():
    family = named_device("gfx942", MODELS)

    assert family.compute_units is None
    assert family.wave_size == 64
    assert family.memory_ceiling("hbm", CeilingOrigin.SPEC) is None
    assert family.memory_ceiling("l2", CeilingOrigin.SPEC).peak_gbps == 30.0
    assert any("compute_units" in fact for fact in family.unknown_facts)


def test_product_name_is_found_whatever_its_case():
    assert named_device("small", MODELS) is SMALL


def test_unknown_device_names_the_known_ones_and_the_way_to_a_plugin():
    with pytest.raises(MissingError) as error:
        named_device("gfx1250", MODELS)

    line = error.value.one_line()
    assert "gfx942, BIG, SMALL" in line
    assert "rpl docs plugins/device" in line


def test_a_device_that_is_not_installed_is_told_with_its_package():
    with pytest.raises(MissingError, match="'MI250X' comes from rpl-gfx90a, which is not installed") as error:
        named_device("MI250X", MODELS)
    assert error.value.next_step == "pip install rpl-gfx90a"
    with pytest.raises(MissingError, match="'mi9999' is unknown: no device plugin is installed"):
        named_device("mi9999", ())


def test_family_is_refined_to_the_recorded_product():
    found = resolve_device("gfx942", (mi300x_agent(),), MODELS, lambda agents: BIG)

    assert (found.model, found.source) == (BIG, "recorded agents")


def test_recording_of_another_architecture_is_refused():
    agent = attrs.evolve(mi300x_agent(), architecture="gfx90a")

    with pytest.raises(DeviceMismatchError, match="made on gfx90a"):
        resolve_device("gfx942", (agent,), MODELS, never)


def test_recording_without_agents_takes_the_named_device_and_says_so():
    found = resolve_device("gfx942", (), MODELS, never)

    assert found.model.compute_units is None
    assert found.diagnostics[0].code == "device.not_recorded"


def test_unrecognised_agents_give_no_device_and_name_them():
    agent = attrs.evolve(mi300x_agent(), architecture="gfx1250")

    found = resolve_device(None, (agent,), MODELS, never)

    assert found.model is None
    assert "gfx1250" in found.diagnostics[0].fact


def test_named_product_wins_over_the_recognised_one_with_a_diagnostic():
    found = resolve_device("SMALL", (mi300x_agent(),), MODELS, lambda agents: BIG)

    assert found.model is SMALL
    assert found.diagnostics[0].code == "device.other_product"
