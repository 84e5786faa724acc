"""What a user gets who does not know a name: a question, a completion, examples, headings."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from rpl_core.text import did_you_mean


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    from rpl_core.cli.main import run as rpl

    folder = tmp_path_factory.mktemp("guided")
    assert rpl(["demo", "--recorded", "--runs", "1", "-o", str(folder / "rpl-runs" / "one")]) == 0
    (folder / "rpl-runs" / "latest").symlink_to("one")
    return folder


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("report", "--sort", "tmie"), "time"),
        (("report", "--names", "ful"), "full"),
        (("explain", "stream_traid"), "stream_triad"),
        (("what-if", "nbody_force5=2x"), "nbody_forces"),
        (("report", "--kernel", "stencil_tyle"), "stencil_tile"),
        (("compare", "rpl-runs/one", "rpl-runs/one", "--kernel", "cull_partikles"), "cull_particles"),
        (("analyze", "--device", "mi300y", "rpl-runs/one"), "mi300x"),
        (("docs", "USER_GIUDE"), "USER_GUIDE"),
        (("repot",), "report"),
    ],
)
def test_a_name_that_is_nearly_right_is_asked_back(runs, rpl_cli, words, meant):
    shown = rpl_cli(*words, cwd=runs)
    assert f"did you mean {meant!r}?" in shown.stderr + shown.stdout


def test_nothing_alike_asks_nothing():
    assert did_you_mean("gemm", ["softmax", "copy"]) == ""
    assert did_you_mean("", []) == ""
    assert did_you_mean("STREAM", ["stream"]) == "; did you mean 'stream'?"


def _completed(runs, shell, *words):
    """What ``shell`` is offered at the end of ``words``."""
    environment = {**os.environ, "_RPL_COMPLETE": f"{shell}_complete", "PWD": str(runs)}
    environment |= {"COMP_WORDS": " ".join(("rpl", *words)), "COMP_CWORD": str(len(words))}
    if shell == "fish":
        environment["COMP_CWORD"] = words[-1]
    code = "from rpl_core.cli.main import run; import sys; sys.exit(run([]))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=runs
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_values_are_completed(runs, shell):
    assert "stream_triad" in _completed(runs, shell, "explain", "st")


@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        (("analyze", "--device", "mi3"), "mi300x", "gfx942"),
        (("report", "--sort", "c"), "calls", "time"),
        (("report", "--kernel", "n"), "nbody_forces", "stream_triad"),
        (("report", "--names", "m"), "mangled", "short"),
        (("explain", "--run", "nowhere", "s"), "", "stream_triad"),  # no such run: nothing, and no error
    ],
)
def test_what_is_completed_fits_what_was_begun(runs, words, offered, not_offered):
    shown = _completed(runs, "bash", *words)
    assert offered in shown
    assert not_offered not in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_rpl(rpl_cli, shell):
    script = rpl_cli("completion", shell).assert_ok().stdout
    assert f"_RPL_COMPLETE={shell}_complete" in script
    assert "did you mean" not in rpl_cli("completion", "tcsh").assert_exit(64).stdout


def test_options_of_profile_stand_under_headings(rpl_cli):
    shown = rpl_cli("profile", "--help").assert_ok().stdout
    headings = re.findall(r"^([A-Z][a-z ]+):$", shown, re.M)
    assert headings[0] == "What is recorded"
    assert {"Analysis", "Output"} <= set(headings)
    assert headings[-1] == "Other"
    recorded, analysis = (shown.split(f"\n{title}:\n")[1].split("\n\n")[0] for title in headings[:2])
    assert "--runs" in recorded
    assert "--rocprof" in recorded
    assert "--clock-mhz" in analysis
    assert "--sort" in shown.split("\nOutput:\n")[1].split("\n\n")[0]


@pytest.mark.parametrize(
    "command",
    [
        *("profile", "analyze", "report", "explain", "compare", "what-if", "export", "demo", "docs"),
        *("doctor", "schema", "completion", "plugins list", "plugins info", "config show", "optimize"),
    ],
)
def test_the_help_of_a_command_has_an_example(rpl_cli, command, monkeypatch):
    monkeypatch.setenv("RPL_LOAD_PLUGINS", f"{os.environ['RPL_LOAD_PLUGINS']},rpl-emu")  # which has `demo`
    shown = rpl_cli(*command.split(), "--help").assert_ok().stdout
    assert re.search(
        rf"^ +(?:Example: |eval \"\$\()?rpl {command}\b", shown.partition("Options:")[0], re.M
    ), shown
