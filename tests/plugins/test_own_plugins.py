"""The plugins of this repository keep the contracts that we ask of others."""

from __future__ import annotations

import pytest

from rpl_core.plugins.host import create_host
from rpl_core.plugins.selection import PluginSelection
from rpl_core.testing import contracts


@pytest.fixture(scope="module")
def host():
    own = frozenset({"rpl-rocprofv3", "rpl-gfx942"})
    return create_host(PluginSelection(only_distributions=own), config={})


def test_they_load_without_a_complaint(host):
    assert {r.status.value for r in host.records if r.distribution in {"rpl-core", "rpl-gfx942"}} == {
        "loaded"
    }
    assert host.diagnostics == ()


def test_their_devices(host):
    assert len(host.catalog.devices()) > 0
    for device in host.catalog.devices():
        contracts.assert_device_model(device)


def test_their_rules(host):
    for device in (None, *host.catalog.devices()):
        for rule in host.catalog.rules(device):
            contracts.assert_rule(rule)


def test_their_collectors(host, tmp_path):
    for number, collector in enumerate(host.catalog.collectors()):
        folder = tmp_path / str(number)
        folder.mkdir()
        contracts.assert_collector(collector, folder)


def test_their_collectors_with_a_profiler(host, tmp_path, standin_rocprofv3):
    contracts.assert_collector(host.catalog.collectors().get("rocprofv3"), tmp_path)


def test_their_doctor_checks(host):
    for check in host.catalog.doctor_checks():
        contracts.assert_doctor_check(check)


@pytest.mark.parametrize("number_of_launches", [1, 40])
def test_the_rocpd_reader(host, make_rocpd, tmp_path, number_of_launches):
    launches = [(f"kernel{i % 3}", 1000 * i, 1000 * i + 500) for i in range(1, number_of_launches + 1)]
    folder = tmp_path / "scratch"
    folder.mkdir()
    contracts.assert_reader(host.catalog.readers().get("rocpd"), make_rocpd(launches), folder)


def test_every_diagnostic_so_far_is_empty(host):
    """Last: nothing above made a plugin misbehave."""
    assert host.diagnostics == ()
