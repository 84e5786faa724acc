"""The plugin is installed, keeps rpl's contracts and does what it says."""

from __future__ import annotations

import pytest
from rpl_core.interfaces.doctor import DoctorStatus
from rpl_testkit.contracts import assert_doctor_check

from {{ cookiecutter.__module }} import free_space

CHECK = "{{ cookiecutter.plugin_name }}-free-space"


def test_the_plugin_loads_and_offers_its_check(rpl_host):
    host = rpl_host("{{ cookiecutter.plugin_name }}")
    assert CHECK in host.catalog.doctor_checks().names


def test_the_check_keeps_the_contract(rpl_host):
    assert_doctor_check(rpl_host("{{ cookiecutter.plugin_name }}").catalog.doctor_checks().get(CHECK))


def test_a_full_disk_is_reported_with_a_remedy(monkeypatch):
    monkeypatch.setattr(free_space, "NEEDED_BYTES", 1 << 80)
    report = free_space.FreeSpaceCheck().check()
    assert report.status is DoctorStatus.MISSING
    assert report.remedy


def test_rpl_doctor_shows_the_check(rpl_cli):
    assert CHECK in rpl_cli("doctor", "--json").json()


@pytest.mark.parametrize("command", [("plugins", "list"), ("plugins", "info", "{{ cookiecutter.plugin_name }}")])
def test_rpl_knows_the_plugin(rpl_cli, command):
    assert "loaded" in rpl_cli(*command).assert_ok().stdout
