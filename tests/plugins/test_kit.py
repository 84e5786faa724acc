"""The fixtures for plugin authors do what docs/plugins/testing.md says."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import types
from contextlib import closing

import pytest

from rpl_core import hookimpl
from rpl_testkit.fixtures import Launch

pytest_plugins = ["pytester"]


def plugin_module(**hooks):
    module = types.ModuleType("plugin_made_in_a_test")
    module.RPL_API = 2
    for name, function in hooks.items():
        setattr(module, name, hookimpl(function))
    return module


def test_the_host_holds_only_the_named_plugins(rpl_site, rpl_host):
    rpl_site.plugin("mine", "")
    rpl_site.plugin("other", "1 / 0\n")
    host = rpl_host("mine")
    assert [r.name for r in host.records if r.status.value == "loaded"] == ["mine"]


def test_the_host_takes_a_module_made_in_the_test(rpl_host):
    seen = []

    def rpl_device_models(config):
        seen.append(dict(config))

    rpl_host(plugin_module(rpl_device_models=rpl_device_models), config={"plugins.x.y": 3}).catalog.devices()
    assert seen == [{"plugins.x.y": 3}]


def test_the_host_fails_the_test_when_the_plugin_does_not_load(rpl_site, rpl_host):
    rpl_site.plugin("mine", "import not_installed_anywhere\n")
    with pytest.raises(AssertionError, match="plugin 'mine' is broken: ModuleNotFoundError"):
        rpl_host("mine")


def test_a_hook_that_raises_fails_the_test(rpl_host):
    from rpl_core.errors import PluginError

    def rpl_readers():
        raise ValueError("not ready")

    host = rpl_host(plugin_module(rpl_readers=rpl_readers))
    with pytest.raises(PluginError, match="not ready"):
        host.catalog.readers()


def test_the_command_line_gives_exit_code_and_streams(rpl_cli):
    outcome = rpl_cli("plugins", "info", "no-such-plugin").assert_exit(69)
    assert outcome.stdout == ""
    assert "no plugin named" in outcome.stderr
    with pytest.raises(AssertionError, match="expected exit code 0"):
        outcome.assert_ok()
    with pytest.raises(AssertionError, match="not one JSON document"):
        outcome.json()


def test_the_command_line_takes_environment_and_folder(rpl_cli, tmp_path):
    (tmp_path / "rpl.toml").write_text('[plugins]\ndisabled = ["gfx942"]\n')
    disabled = rpl_cli("plugins", "list", "--json", cwd=tmp_path, env={"RPL_LOAD_PLUGINS": ""}).json()
    statuses = {row["name"]: row["reason"] for row in disabled["plugins"]}
    assert statuses["gfx942"] == "disabled by name (gfx942)"
    assert statuses["rocprofv3"] == "RPL_LOAD_PLUGINS does not name rpl-rocprofv3"


def test_the_command_runs_in_its_own_process(rpl_cli):
    assert rpl_cli.process("--version").assert_ok().stdout.startswith("rpl (ROCm Perf Lab) ")


@pytest.mark.parametrize("text", ["{} {}", "NaN", '{"a": Infinity}', ""])
def test_only_one_valid_json_document_is_json(text):
    from rpl_testkit.fixtures import Outcome

    with pytest.raises(AssertionError):
        Outcome((), 0, text, "").json()


def test_a_recording_holds_exactly_the_given_dispatches(rpl_make_rocpd):
    path = rpl_make_rocpd(
        [("copy", 1000, 3000), Launch("gemm", 4000, 9000, stream=2, counters={"SQ_WAVES": 64.0})]
    )
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT name, start, end, stream_id FROM kernels ORDER BY start").fetchall()
        counters = connection.execute("SELECT counter_name, value FROM counters_collection").fetchall()
    assert [row[:3] for row in rows] == [("copy", 1000, 3000), ("gemm", 4000, 9000)]
    assert rows[0][3] != rows[1][3]
    assert counters == [("SQ_WAVES", 64.0)]


def test_equal_recordings_have_equal_bytes(rpl_make_rocpd):
    first, second = (rpl_make_rocpd([("k", 1, 2)]).read_bytes() for _ in range(2))
    assert first == second


def test_the_stand_in_is_found_on_the_path(rpl_standin_rocprofv3):
    import shutil

    assert shutil.which("rocprofv3") == str(rpl_standin_rocprofv3)


def run_suite(pytester, monkeypatch, source, **environment):
    for name in ("CI", "RPL_ALLOW_SKIP", "RPL_SHARED_DATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    pytester.makepyfile(source)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider")


NEEDS_A_COMPILER = "def test_it(rpl_require):\n    rpl_require('no-such-compiler-22')\n"


def test_an_absent_program_skips_and_is_counted(pytester, monkeypatch):
    result = run_suite(pytester, monkeypatch, NEEDS_A_COMPILER)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*tests skipped because something is absent: no-such-compiler-22 1*"])


def test_in_ci_an_absent_program_fails(pytester, monkeypatch):
    result = run_suite(pytester, monkeypatch, NEEDS_A_COMPILER, CI="true")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*RPL_ALLOW_SKIP names 'no-such-compiler-22'*"])


def test_in_ci_a_named_absence_is_allowed(pytester, monkeypatch):
    result = run_suite(
        pytester, monkeypatch, NEEDS_A_COMPILER, CI="true", RPL_ALLOW_SKIP="data, no-such-compiler-22"
    )
    result.assert_outcomes(skipped=1)


def test_absent_recordings_skip(pytester, monkeypatch, tmp_path):
    source = "def test_it(rpl_shared_data):\n    pass\n"
    result = run_suite(pytester, monkeypatch, source, RPL_SHARED_DATA=str(tmp_path / "nowhere"))
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*something is absent: data 1*"])


def test_recordings_are_found_where_the_variable_says(pytester, monkeypatch, tmp_path):
    source = f"def test_it(rpl_shared_data):\n    assert str(rpl_shared_data) == {str(tmp_path)!r}\n"
    run_suite(pytester, monkeypatch, source, RPL_SHARED_DATA=str(tmp_path)).assert_outcomes(passed=1)


def test_a_suite_without_needs_shows_no_line(pytester, monkeypatch):
    source = "import pytest\ndef test_it():\n    pytest.skip('for reasons')\n"
    result = run_suite(pytester, monkeypatch, source)
    result.stdout.no_fnmatch_line("*something is absent*")


def test_the_pytest_plugin_imports_nothing_heavy():
    probe = (
        "import sys, pytest, rpl_testkit.pytest_plugin, json\n"
        "heavy = {'numpy', 'networkx', 'pydantic', 'rich', 'stevedore', 'click'}\n"
        "print(json.dumps(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
