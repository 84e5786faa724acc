"""``rpl devices``: what is known with its sources, and where the rest is to be had."""

from __future__ import annotations

import pytest


@pytest.fixture
def absent(monkeypatch):
    """As if the package of gfx950 were not installed."""
    from rpl_core.plugins import entry_points

    def provider(kind, name):
        return "rpl-gfx950" if (kind, name) in {("devices", "gfx950"), ("devices", "mi350x")} else None

    monkeypatch.setattr(entry_points, "missing_provider", provider)


def test_every_device_has_a_line_with_its_plugin(rpl_cli):
    lines = rpl_cli("devices").assert_ok().stdout.splitlines()
    assert lines[0].split()[:2] == ["DEVICE", "ARCHITECTURE"]
    rows = {line.split()[0]: line.split() for line in lines[1:]}
    assert {"mi300x", "mi355x", "mi210", "rx7900xtx", "w6800"} <= set(rows)
    assert rows["mi300x"][-1] == "gfx942"
    assert rows["w6800"][-3:-1] == ["-", "-"]  # no source states its memory, or its clock


def test_packages_that_are_not_installed_are_named(rpl_cli, absent):
    outcome = rpl_cli("devices").assert_ok()
    assert "gfx950, mi350x: pip install rpl-gfx950" in outcome.stderr
    assert rpl_cli("devices", "--json").json()["not_installed"] == {
        "gfx950": "rpl-gfx950",
        "mi350x": "rpl-gfx950",
    }


def test_a_product_is_shown_with_sources_and_what_can_not_be_counted(rpl_cli):
    text = rpl_cli("devices", "info", "MI355X").assert_ok().stdout
    assert "8000.0 GB/s" in text
    assert "mi350.rst @002654d6" in text
    (device,) = rpl_cli("devices", "info", "w7900", "--json").json()["devices"]
    assert "floating-point operations" in device["not_counted"]
    assert device["counted"]["hbm_bytes"]["at_best"] == "estimate"
    assert any("l2_channels" in reason for reason in device["unknown_facts"])


def test_an_architecture_shows_all_of_its_products(rpl_cli):
    shown = rpl_cli("devices", "info", "gfx90a", "--json").json()["devices"]
    assert [device["name"] for device in shown] == ["mi210", "mi250", "mi250x"]
    assert all(c["source"] for device in shown for c in device["memory_ceilings"])


def test_an_unknown_device_says_where_to_look(rpl_cli):
    outcome = rpl_cli("devices", "info", "gfx1").assert_exit(69)
    assert "no installed plugin knows the device 'gfx1'" in outcome.stderr
