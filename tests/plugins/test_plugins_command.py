"""``rpl plugins list`` and ``rpl plugins info``, through the real entry point."""

from __future__ import annotations

import json

import pytest

from rpl_core.cli.main import run

BAD = {
    "broken": "import not_installed_anywhere\n",
    "leaves": "raise SystemExit('bye')\n",
    "typo": "@hookimpl\ndef rpl_devices(): ...\n",
}

RENDERER = """
from rpl_core.interfaces.section import Renderer

class Item(Renderer):
    name, summary, suffix = "braille", "For finger tips.", ".brl"
    def render(self, request): return ""

@hookimpl
def rpl_renderers():
    return (Item(),)
"""


@pytest.fixture
def rpl(rpl_site, monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setenv("RPL_LOAD_PLUGINS", ",".join(rpl_site.distributions))
        code = run(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_list_shows_good_and_bad_alike_and_succeeds(rpl_site, rpl):
    rpl_site.plugin("braille", RENDERER)
    for name, source in BAD.items():
        rpl_site.plugin(name, source)
    code, out, _ = rpl("plugins", "list")
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines()[1:]}
    assert "loaded" in lines["braille"]
    assert "No module named 'not_installed_anywhere'" in lines["broken"]
    assert "it called sys.exit('bye')" in lines["leaves"]
    assert "unknown hook rpl_devices" in lines["typo"]


def test_list_as_json_is_one_document_with_the_whole_record(rpl_site, rpl):
    module = rpl_site.plugin("braille", RENDERER)
    code, out, _ = rpl("plugins", "list", "--json")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)["plugins"]}
    assert rows["braille"] == {
        "name": "braille",
        "status": "loaded",
        "reason": None,
        "origin": "installed",
        "distribution": "rpl-braille",
        "version": "1.0",
        "target": module,
        "api": 2,
        "hooks": ["rpl_renderers"],
    }


def test_info_names_contributions(rpl_site, rpl):
    rpl_site.plugin("braille", RENDERER)
    code, out, _ = rpl("plugins", "info", "braille", "--json")
    assert code == 0
    [document] = json.loads(out)["plugins"]
    assert document["contributions"] == [
        {"hook": "rpl_renderers", "kind": "Renderer", "name": "braille", "summary": "For finger tips."}
    ]
    code, out, _ = rpl("plugins", "info", "braille")
    assert "Renderer braille: For finger tips." in out


def test_info_says_why_a_plugin_is_broken(rpl_site, rpl):
    rpl_site.plugin("broken", BAD["broken"])
    code, out, _ = rpl("plugins", "info", "broken")
    assert code == 0
    assert "reason        ModuleNotFoundError: No module named 'not_installed_anywhere'" in out
    assert "import not_installed_anywhere" in out  # the line of the traceback


def test_info_shows_both_sides_of_a_conflict(rpl_site, rpl):
    rpl_site.plugin("twin", "", distribution="rpl-first")
    rpl_site.plugin("twin", "", distribution="rpl-second")
    _, out, _ = rpl("plugins", "info", "twin", "--json")
    assert [d["distribution"] for d in json.loads(out)["plugins"]] == ["rpl-first", "rpl-second"]


def test_info_of_an_unknown_plugin_names_the_known_ones(rpl):
    code, out, err = rpl("plugins", "info", "nothing")
    assert (code, out) == (69, "")
    assert "no plugin named 'nothing'; known: " in err
    assert "core" in err


def test_info_shows_problems_of_a_hook_that_raises_even_for_a_named_module(rpl_site, rpl):
    module = rpl_site.plugin("mine", "@hookimpl\ndef rpl_readers():\n    1 / 0\n" + RENDERER)
    code, out, _ = rpl("-p", module, "plugins", "info", "mine", "--json")
    assert code == 0
    [document] = json.loads(out)["plugins"]
    assert any("ZeroDivisionError" in problem for problem in document["problems"])
    assert [c["name"] for c in document["contributions"]] == ["braille"]


def test_a_named_module_that_does_not_load_ends_every_other_command(rpl):
    named = ("-p", "no_such_module_anywhere")
    code, out, _ = rpl(*named, "plugins", "list", "--json")
    assert code == 0
    assert "no_such_module_anywhere" in {row["name"] for row in json.loads(out)["plugins"]}
    code, out, err = rpl(*named, "doctor")
    assert (code, out) == (70, "")
    assert "No module named 'no_such_module_anywhere'" in err


def test_a_flag_disables_a_plugin(rpl_site, rpl):
    rpl_site.plugin("braille", RENDERER)
    _, out, _ = rpl("--disable-plugin", "braille", "plugins", "list", "--json")
    rows = {row["name"]: row["status"] for row in json.loads(out)["plugins"]}
    assert rows["braille"] == "disabled"


def test_a_flag_that_names_no_plugin_is_refused(rpl_site, rpl):
    rpl_site.plugin("braille", RENDERER)
    code, _, err = rpl("--disable-plugin", "brailel", "plugins", "list")
    assert code == 64
    assert "did you mean 'braille'?" in err
    assert rpl("--disable-plugin", "nosuch", "doctor")[0] == 64


def test_the_environment_disables_a_plugin(rpl_site, rpl, monkeypatch):
    rpl_site.plugin("braille", RENDERER)
    monkeypatch.setenv("RPL_PLUGINS_DISABLED", "braille")
    _, out, _ = rpl("plugins", "list", "--json")
    assert {r["name"]: r["status"] for r in json.loads(out)["plugins"]}["braille"] == "disabled"


def test_the_configuration_disables_a_plugin(rpl_site, rpl, monkeypatch, tmp_path):
    rpl_site.plugin("braille", RENDERER)
    (tmp_path / "rpl.toml").write_text('[plugins]\ndisabled = ["braille"]\n')
    monkeypatch.chdir(tmp_path)
    _, out, _ = rpl("plugins", "list", "--json")
    assert {r["name"]: r["status"] for r in json.loads(out)["plugins"]}["braille"] == "disabled"


def test_the_flag_adds_to_the_configuration(rpl_site, rpl, monkeypatch):
    rpl_site.plugin("braille", RENDERER)
    rpl_site.plugin("other", "")
    monkeypatch.setenv("RPL_PLUGINS_DISABLED", "braille")
    _, out, _ = rpl("--disable-plugin", "other", "plugins", "list", "--json")
    statuses = {r["name"]: r["status"] for r in json.loads(out)["plugins"]}
    assert (statuses["braille"], statuses["other"]) == ("disabled", "disabled")


def test_the_trace_flag_keeps_stdout_clean(rpl_site, rpl):
    rpl_site.plugin("braille", RENDERER)
    _, out, err = rpl("--trace-plugins", "plugins", "info", "braille", "--json")
    json.loads(out)
    assert "rpl-hook: answer rpl_renderers from braille: 1 of Item braille" in err


def test_escape_sequences_in_a_reason_do_not_reach_the_terminal(rpl_site, rpl):
    rpl_site.plugin("painted", "raise ValueError('\\x1b[31mred\\x1b]0;title\\x07')\n")
    for command in (("list",), ("info", "painted")):
        _, out, _ = rpl("plugins", *command)
        assert "\x1b" not in out
        assert "\x07" not in out
