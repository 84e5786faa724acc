"""Every way to be a bad plugin: it shows with a status and one line, and nobody else suffers."""

from __future__ import annotations

import pytest

from rpl_core.plugins.catalog import COLLECTORS, DEVICES
from rpl_core.plugins.discovery import PluginStatus

GOOD = """
    @hookimpl
    def rpl_device_models():
        return ()
"""

BAD_HEADER = "from rpl_core import hookimpl\n"

BAD = {
    "syntax-error": ("def broken(:\n", None, "broken", "SyntaxError"),
    "broken-import": ("import rpl_core.no_such_module\n", None, "broken", "no_such_module"),
    "missing-dependency": ("import not_installed_anywhere\n", None, "broken", "not_installed_anywhere"),
    "exits-at-import": ("import sys\nsys.exit(3)\n", None, "broken", "sys.exit(3)"),
    "asserts-at-import": ("assert 1 == 2, 'one is not two'\n", None, "broken", "one is not two"),
    "no-api": ("", BAD_HEADER, "incompatible", "states no RPL_API"),
    "older-api": (
        "",
        BAD_HEADER + "RPL_API = 1\n",
        "incompatible",
        "offers 2; what to change: `rpl docs plugins/migration`",
    ),
    "wrong-api": ("", BAD_HEADER + "RPL_API = 99\n", "incompatible", "RPL_API = 99"),
    "text-api": ("", BAD_HEADER + "RPL_API = '1'\n", "incompatible", "not a whole number"),
    "wrong-argument": ("@hookimpl\ndef rpl_device_models(devices): ...\n", None, "invalid", "devices"),
    "unknown-hook": (
        "@hookimpl\ndef rpl_devise_models(): ...\n",
        None,
        "invalid",
        "unknown hook rpl_devise_models; did you mean rpl_device_models?",
    ),
    "optional-and-unknown": (
        "@hookimpl(optionalhook=True)\ndef rpl_a(): ...\n@hookimpl\ndef rpl_b(): ...\n",
        None,
        "invalid",
        "unknown hook rpl_b",
    ),
    "unmarked-hook": ("def rpl_device_models(): ...\n", None, "invalid", "not marked with @hookimpl"),
    "async-hook": ("@hookimpl\nasync def rpl_device_models(): ...\n", None, "invalid", "async"),
    "default-argument": (
        "@hookimpl\ndef rpl_detect_device(agents=()): ...\n",
        None,
        "invalid",
        "'agents' has a default",
    ),
    "keyword-only": (
        "@hookimpl\ndef rpl_detect_device(*, agents): ...\n",
        None,
        "invalid",
        "'agents' is not a plain parameter",
    ),
    "jumps-the-queue": (
        "@hookimpl(tryfirst=True)\ndef rpl_device_models(): ...\n",
        None,
        "invalid",
        "tryfirst=True is not supported",
    ),
    "wrapper": (
        "@hookimpl(wrapper=True)\ndef rpl_device_models():\n    return (yield)\n",
        None,
        "invalid",
        "wrapper=True is not supported",
    ),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_plugin_costs_only_itself(rpl_site, name):
    source, header, status, reason = BAD[name]
    rpl_site.plugin("aaa-good", GOOD)
    rpl_site.plugin(name, source, **({} if header is None else {"header": header}))
    rpl_site.plugin("zzz-good", GOOD)
    records = {record.name: record for record in rpl_site.host().records}
    assert records[name].status.value == status
    assert reason in records[name].reason
    assert "\n" not in records[name].reason
    assert records[name].distribution == f"rpl-{name}"
    assert {records[n].status for n in ("aaa-good", "zzz-good")} == {PluginStatus.LOADED}


def test_all_bad_plugins_at_once_leave_the_good_one_working(rpl_site):
    for name, (source, header, _, _) in BAD.items():
        rpl_site.plugin(name, source, **({} if header is None else {"header": header}))
    rpl_site.plugin("good", GOOD)
    host = rpl_site.host()
    assert {r.name for r in host.records if r.status is PluginStatus.LOADED} >= {"good"}
    assert host.record("good")[0].hooks == ("rpl_device_models",)
    for name in BAD:
        assert any(d.where == f"plugin {name}" for d in host.diagnostics), name


def test_an_invalid_plugin_is_not_asked(rpl_site):
    rpl_site.plugin(
        "typo", "@hookimpl\ndef rpl_devise_models(): ...\n@hookimpl\ndef rpl_collectors():\n    1 / 0\n"
    )
    host = rpl_site.host()
    host.relay.collect(COLLECTORS)
    assert not any("division" in d.fact for d in host.diagnostics)


def test_an_optional_hook_of_a_later_version_is_accepted(rpl_site):
    rpl_site.plugin(
        "future",
        "@hookimpl(optionalhook=True)\ndef rpl_hook_of_tomorrow(): ...\n"
        + GOOD.replace("    @", "@").replace("    def", "def"),
    )
    record = rpl_site.host().record("future")[0]
    assert (record.status, record.hooks) == (PluginStatus.LOADED, ("rpl_device_models",))


def test_the_same_name_from_two_distributions_loads_neither(rpl_site):
    loaded = "open({!r}, 'w').close()\n".format(str(rpl_site.folder / "imported"))
    rpl_site.plugin("twin", loaded, distribution="rpl-first")
    rpl_site.plugin("twin", loaded, distribution="rpl-second")
    records = rpl_site.host().record("twin")
    assert [(r.distribution, r.status.value) for r in records] == [
        ("rpl-first", "conflict"),
        ("rpl-second", "conflict"),
    ]
    assert "rpl-first, rpl-second" in records[0].reason
    assert not (rpl_site.folder / "imported").exists()


def test_disabling_one_distribution_resolves_a_conflict(rpl_site):
    rpl_site.plugin("twin", "", distribution="rpl-first")
    rpl_site.plugin("twin", "", distribution="rpl-second")
    records = rpl_site.host(disabled=("rpl_second",)).record("twin")
    assert [r.status.value for r in records] == ["loaded", "disabled"]


def test_nobody_can_take_the_name_of_the_core(rpl_site):
    rpl_site.plugin("core", "1 / 0\n", distribution="rpl-impostor")
    records = {r.distribution: r for r in rpl_site.host().record("core")}
    assert records["rpl-impostor"].status is PluginStatus.CONFLICT
    assert records["rpl-core"].status is not PluginStatus.CONFLICT


def test_two_names_for_one_module_register_it_once(rpl_site):
    rpl_site.module("one_module", "")
    rpl_site.distribution("rpl-two-names", {"rpl.plugins": {"first": "one_module", "second": "one_module"}})
    host = rpl_site.host()
    assert host.record("first")[0].status is PluginStatus.LOADED
    assert "already registered as 'first'" in host.record("second")[0].reason


@pytest.mark.parametrize("target", ["module:attribute", "a b", "", "..", "os/../x"])
def test_an_entry_point_that_names_no_module_is_invalid(rpl_site, target):
    rpl_site.distribution("rpl-odd", {"rpl.plugins": {"odd": target}})
    found = [r for r in rpl_site.host().records if r.name == "odd"]
    assert [r.status.value for r in found] == ["invalid"]


@pytest.mark.parametrize("content", [b"[rpl.plugins]\n\xff\xfe = x\n", b"[rpl.plugins]\nonly words\n"])
def test_unreadable_metadata_of_a_stranger_is_reported_and_skipped(rpl_site, content):
    rpl_site.plugin("good", GOOD)
    rpl_site.distribution("rpl-garbage", {"rpl.plugins": {"x": "y"}})
    next(rpl_site.folder.glob("rpl_garbage*/entry_points.txt")).write_bytes(content)
    host = rpl_site.host()
    assert host.record("good")[0].status is PluginStatus.LOADED
    assert any(d.code == "plugin.metadata" for d in host.diagnostics)


def test_what_a_plugin_prints_never_reaches_stdout(rpl_site, capsys):
    rpl_site.plugin(
        "chatty",
        "print('hello from import')\n@hookimpl\ndef rpl_device_models():\n    print('hello from hook')\n",
    )
    rpl_site.host().relay.collect(DEVICES)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hello from import" in captured.err
    assert "hello from hook" in captured.err


def test_ctrl_c_during_an_import_is_not_swallowed(rpl_site):
    rpl_site.plugin("slow", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        rpl_site.host()


def test_a_broken_plugin_keeps_its_own_traceback_only(rpl_site):
    rpl_site.plugin("deep", "def fall():\n    raise ValueError('here')\nfall()\n")
    text = rpl_site.host().record("deep")[0].traceback
    assert "in fall" in text
    assert "stevedore" not in text
    assert "frozen" not in text


def test_an_exception_that_can_not_be_shown_is_survived(rpl_site):
    rpl_site.plugin(
        "nasty",
        """
        class Nasty(Exception):
            def __str__(self):
                raise RuntimeError("no")
        raise Nasty
        """,
    )
    record = rpl_site.host().record("nasty")[0]
    assert record.status is PluginStatus.BROKEN
    assert record.reason.startswith("Nasty")


def test_loading_writes_no_cache_into_the_home_directory(rpl_site, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    rpl_site.plugin("good", GOOD)
    rpl_site.host()
    assert not (tmp_path / "home").exists()
