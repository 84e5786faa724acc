"""The plugin is installed, keeps rpl's contracts and tells its products apart."""

from __future__ import annotations

import pytest
from rpl_core.model.trace import Agent
from rpl_testkit.contracts import assert_device_model
from rpl_testkit.traces import launch_quantities

from {{ cookiecutter.__module }} import plugin

NAMES = [model.name for model in plugin.rpl_device_models()]


def test_the_plugin_loads_and_offers_its_devices(rpl_host):
    assert set(NAMES) <= set(rpl_host("{{ cookiecutter.plugin_name }}").catalog.devices().names)


@pytest.mark.parametrize("model", plugin.rpl_device_models(), ids=lambda model: model.name)
def test_each_device_keeps_the_contract(model):
    assert_device_model(model)


@pytest.mark.parametrize(("units", "name"), [(60, "rx7800xt"), (54, "rx7700xt")])
def test_one_chip_id_is_two_products(units, name):
    agent = Agent("node", 0, "GPU", architecture="gfx1101", chip_id=0x747E, compute_units=units)
    assert plugin.rpl_detect_device((agent,)).name == name


def test_reads_by_size():
    counters = {f"GL2C_EA_RDREQ_{size}B_sum": 1.0 for size in (32, 64, 96, 128)}
    read = launch_quantities(plugin.rpl_device_models()[0], **counters)("hbm_read_bytes")
    assert read.value == 320


def test_rpl_devices_shows_them(rpl_cli):
    shown = {row["name"] for row in rpl_cli("devices", "--json").json()["devices"]}
    assert set(NAMES) <= shown
