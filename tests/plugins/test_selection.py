"""Choosing plugins: configuration, environment, flags, and modules under development."""

from __future__ import annotations

import pytest

from rpl_core.plugins.discovery import PluginOrigin, PluginSelection, PluginStatus

MARKS_ITS_IMPORT = "import pathlib\npathlib.Path(__file__).with_suffix('.imported').touch()\n"


def test_a_disabled_plugin_is_not_imported(rpl_site):
    module = rpl_site.plugin("noisy", MARKS_ITS_IMPORT)
    record = rpl_site.host(disabled=("noisy",)).record("noisy")[0]
    assert (record.status, record.reason) == (PluginStatus.DISABLED, "disabled by name (noisy)")
    assert not (rpl_site.folder / f"{module}.imported").exists()


def test_a_distribution_name_disables_all_its_plugins(rpl_site):
    rpl_site.module("one", "")
    rpl_site.module("two", "")
    rpl_site.distribution("rpl-pair", {"rpl.plugins": {"one": "one", "two": "two"}})
    host = rpl_site.host(disabled=("RPL_pair",))
    assert {host.record(n)[0].status for n in ("one", "two")} == {PluginStatus.DISABLED}


def test_disabling_what_is_not_installed_is_reported(rpl_site):
    host = rpl_site.host(disabled=("gfx9000",))
    assert [d.code for d in host.diagnostics if "gfx9000" in d.fact] == ["plugin.unknown_name"]


def test_only_the_named_distributions_are_loaded_and_the_core_stays(rpl_site):
    rpl_site.plugin("wanted", "")
    module = rpl_site.plugin("other", MARKS_ITS_IMPORT)
    host = rpl_site.host(only_distributions=frozenset({"rpl-wanted"}))
    statuses = {r.name: r.status for r in host.records}
    assert statuses["wanted"] is PluginStatus.LOADED
    assert statuses["other"] is PluginStatus.DISABLED
    assert statuses["core"] is not PluginStatus.DISABLED
    assert not (rpl_site.folder / f"{module}.imported").exists()
    assert host.record("other")[0].reason == "RPL_LOAD_PLUGINS does not name rpl-other"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("", frozenset()), (" Rpl_A ,rpl.b", frozenset({"rpl-a", "rpl-b"}))],
)
def test_the_environment_names_distributions(text, expected):
    environment = {} if text is None else {"RPL_LOAD_PLUGINS": text}
    assert PluginSelection.from_environment(environment=environment).only_distributions == expected


@pytest.mark.parametrize(("text", "expected"), [("1", True), ("0", False), ("", False)])
def test_the_environment_switches_tracing(text, expected):
    assert PluginSelection.from_environment(environment={"RPL_TRACE_PLUGINS": text}).trace is expected


def test_a_module_under_development_needs_no_installation(rpl_site):
    rpl_site.module("my_plugin", "@hookimpl\ndef rpl_device_models(): ...\n")
    host = rpl_site.host(modules=("my_plugin",))
    record = host.record("my_plugin")[0]
    assert record.origin is PluginOrigin.DEVELOPMENT
    assert (record.status, record.hooks) == (PluginStatus.LOADED, ("rpl_device_models",))


def test_a_module_under_development_is_found_in_the_working_directory(rpl_site, tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "plugin_in_cwd.py").write_text("RPL_API = 2\n")
    monkeypatch.chdir(folder)
    assert rpl_site.host(modules=("plugin_in_cwd",)).record("plugin_in_cwd")[0].status is PluginStatus.LOADED


def test_an_installed_plugin_under_development_stands_once(rpl_site):
    module = rpl_site.plugin("mine", "")
    host = rpl_site.host(modules=(module,), only_distributions=frozenset())
    assert [(r.name, r.origin, r.status) for r in host.records if r.target == module] == [
        ("mine", PluginOrigin.DEVELOPMENT, PluginStatus.LOADED)
    ]


def test_a_requested_plugin_that_does_not_load_is_an_error_on_demand(rpl_site):
    from rpl_core.errors import PluginError

    host = rpl_site.host(modules=("no_such_module_anywhere",))
    assert host.record("no_such_module_anywhere")[0].status is PluginStatus.BROKEN
    with pytest.raises(PluginError, match="no_such_module_anywhere"):
        host.require_requested()


def test_disabled_wins_over_development(rpl_site):
    rpl_site.module("my_plugin", "1 / 0\n")
    host = rpl_site.host(modules=("my_plugin",), disabled=("my_plugin",))
    assert host.record("my_plugin")[0].status is PluginStatus.DISABLED


def test_records_come_in_the_order_of_names(rpl_site):
    for name in ("zeta", "alpha", "mid"):
        rpl_site.plugin(name, "")
    names = [r.name for r in rpl_site.host().records]
    assert names == sorted(names)
