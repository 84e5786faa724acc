"""The first import of a stranger happens in a child: what hangs, crashes or leaves costs only its plugin."""

from __future__ import annotations

import json

import pytest

from rpl_core.plugins.entry_points import installed_entries, is_own, normalized

LOADED = "rpl-core,rpl-analysis,rpl-report,rpl-rocprofv3,rpl-gfx942"


@pytest.fixture
def analysed(rpl_cli, rpl_site, rpl_make_rocpd, tmp_path):
    """``analysed(source)``: ``rpl analyze`` beside a plugin made of ``source``, and how often it ran."""
    path = rpl_make_rocpd([("k", 100, 200)])
    counter = tmp_path / "imports"

    def run(source, limit_s="60", command=("analyze", "--json", path, "--device", "gfx942")):
        counted = f"open({str(counter)!r}, 'a').write('x')\n{source}"
        if not rpl_site.distributions:
            rpl_site.plugin("bad", counted)
        env = {
            "PYTHONPATH": str(rpl_site.folder),
            "RPL_LOAD_PLUGINS": f"{LOADED},rpl-bad",
            "RPL_IMPORT_LIMIT_S": limit_s,
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }
        return rpl_cli.process(*command, env=env), counter.stat().st_size

    return run


@pytest.mark.parametrize(
    ("source", "limit_s", "what"),
    [
        ("import os\nos._exit(0)\n", "60", "ended the process with exit code 0"),
        ("import os\nos.kill(os.getpid(), 11)\n", "60", "crashed the process (SIGSEGV)"),
        ("import time\nwhile True: time.sleep(1)\n", "2", "did not end within 2 s"),
    ],
)
def test_an_import_that_does_not_come_back_costs_only_its_plugin_and_names_it(
    source, limit_s, what, analysed, tmp_path
):
    outcome, imports = analysed(source, limit_s)
    assert outcome.assert_ok().json()["runtime_ms"] is not None
    said = [line for line in outcome.stderr.splitlines() if "'bad' is broken" in line]
    assert said, outcome.stderr
    assert what in said[0]
    assert imports == 1  # in the child
    (kept,) = (tmp_path / "cache/rpl/imports").iterdir()
    assert what in json.loads(kept.read_text())["problem"]
    again, imports = analysed(source, limit_s, command=("plugins", "info", "bad"))
    assert imports == 1  # what came of it is kept
    assert str(kept) in again.stdout


def test_a_sound_plugin_is_tried_once_per_files(analysed, rpl_site):
    source = "@hookimpl\ndef rpl_device_models(): return ()\n"
    for expected in (2, 3):  # in the child and here; then only here
        outcome, imports = analysed(source, command=("plugins", "list"))
        outcome.assert_ok()
        assert imports == expected
    module = next(rpl_site.folder.glob("fake_*.py"))
    module.write_text(module.read_text() + "\n# another one\n")
    assert analysed(source, command=("plugins", "list"))[1] == 5


def test_where_nothing_can_be_kept_it_is_tried_each_time(analysed, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    for expected in (2, 4):
        outcome, imports = analysed("", command=("plugins", "list"))
        outcome.assert_ok()
        assert imports == expected


def test_a_command_and_hook_specs_of_a_stranger_are_tried_too(analysed, rpl_site):
    rpl_site.module("fake_leaves", "import os\nos._exit(0)\n")
    groups = {"rpl.commands": {"leaving": "fake_leaves:command"}, "rpl.hookspecs": {"leaving": "fake_leaves"}}
    rpl_site.distribution("rpl-bad", groups)
    rpl_site.module("counted", "")
    (rpl_site.folder.parent / "imports").write_text("")
    outcome, _ = analysed("", command=("leaving",))
    assert "ended the process with exit code 0" in outcome.assert_exit(69).stderr
    assert "rpl-bad" in outcome.stderr
    outcome, _ = analysed("")
    outcome.assert_ok()
    assert "ended the process with exit code 0" in outcome.stderr


def test_this_projects_own_distributions_are_not_tried():
    entries = installed_entries("rpl.plugins", "rpl.hookspecs", "rpl.commands")[0]
    own = {normalized(entry.distribution) for entry in entries if is_own(entry.distribution)}
    assert {"rpl-core", "rpl-analysis", "rpl-gfx942", "rpl-vmreplay"} <= own


def test_a_name_alone_makes_no_distribution_our_own(rpl_site):
    rpl_site.plugin("x", "", distribution="rpl-gfx90b")
    (entry,) = (e for e in installed_entries("rpl.plugins")[0] if e.distribution == "rpl-gfx90b")
    assert not is_own(entry.distribution)


@pytest.mark.parametrize(
    "api",
    [
        "10 ** 5000",
        "-1",
        "type('Odd', (int,), {'__ne__': lambda a, b: 1 / 0, '__format__': lambda a, b: 1 / 0})(1)",
        "type('Odd', (), {'__eq__': lambda a, b: 1 / 0, '__class__': int})()",
        "'1'",
        "True",
        "float('nan')",
    ],
)
def test_an_odd_api_number_costs_only_its_plugin_and_names_it(api, rpl_cli, rpl_site):
    rpl_site.plugin("odd", "", header=f"RPL_API = {api}\n")
    env = {"RPL_LOAD_PLUGINS": "rpl-odd"}
    listed = rpl_cli("plugins", "list", "--json", env=env).assert_ok().json()
    (odd,) = (one for one in listed["plugins"] if one["name"] == "odd")
    assert odd["status"] == "incompatible"
    assert "RPL_API" in odd["reason"]


def test_a_module_that_replaces_itself_costs_only_its_plugin(rpl_cli, rpl_site):
    source = "import sys\nclass Odd:\n    __slots__ = ()\nsys.modules[__name__] = Odd()\n"
    rpl_site.plugin("odd", source)
    listed = rpl_cli("plugins", "list", "--json", env={"RPL_LOAD_PLUGINS": "rpl-odd"}).assert_ok().json()
    (odd,) = (one for one in listed["plugins"] if one["name"] == "odd")
    assert odd["status"] == "broken"
