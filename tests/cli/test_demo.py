"""`rpl demo`: the main job from start to end on synthetic data, for a look without a GPU."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from rpl_analysis.contracts.analysis import AnalysisDocument
from rpl_testkit.fixtures import CommandLine
from rpl_testkit.rocpd_writer import write_rocpd
from rpl_testkit.synthetic_recording.demo_application import DEMO_APPLICATION
from rpl_testkit.synthetic_recording.recording import Collection, ProcessIdentity, record


@pytest.fixture(autouse=True)
def _with_rpl_emu(monkeypatch):
    monkeypatch.setenv("RPL_LOAD_PLUGINS", f"{os.environ['RPL_LOAD_PLUGINS']},rpl-emu")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demo prints, and the folder that it ran in."""
    folder = tmp_path_factory.mktemp("demo")
    before = dict(os.environ)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RPL_LOAD_PLUGINS", raising=False)
        outcome = CommandLine(patch)("demo", "--recorded", "--runs", "2", cwd=folder).assert_ok()
    assert dict(os.environ) == before
    return outcome.stdout, folder


@pytest.fixture
def document(shown):
    return lambda name: json.loads((shown[1] / "rpl-runs" / "latest" / f"{name}.json").read_text())


def test_it_shows_a_synthetic_profile_and_how_to_go_on(shown, document):
    text, _ = shown
    assert text.startswith("This is SYNTHETIC data")
    assert "synthetic: not a measurement of hardware" in text
    assert "rpl profile --device gfx942 --from" in text
    assert document("profile")["provenance"]["origin"] == "synthetic"
    assert document("roofline")["status"] == "available"


def test_its_kernels_stand_for_every_label(document):
    found = {kernel["bottleneck"] for kernel in document("analysis")["kernels"]}
    assert {"memory_bandwidth_bound", "divergence_limited", "compute_throughput_limited"} <= found
    AnalysisDocument.model_validate(document("analysis"))


def test_commands_that_it_names_work(shown, rpl_cli):
    text, folder = shown
    line = next(line for line in text.splitlines() if line.startswith("Look again:"))
    for command in line.removeprefix("Look again:").split(";"):
        program, *words = command.split()
        assert program == "rpl"
        rpl_cli(*words, cwd=folder).assert_ok()


def test_its_recordings_hold_what_a_profile_asks_for_today(shown):
    """Where this fails, the recording is outdated: python tools/write_demo_recording.py."""
    run = shown[1] / "rpl-runs" / "latest"
    passes = json.loads((run / "run.json").read_text())["passes"]
    assert [one["role"] for one in passes][:3] == ["timing", "timing", "reference"]
    for one in passes:
        (artefact,) = one["artefacts"]
        with closing(sqlite3.connect(run / artefact["path"])) as base:
            held = {name for (name,) in base.execute("SELECT DISTINCT name FROM rocpd_info_pmc")}
        assert held == set(one["counters"])


def test_its_recordings_are_what_the_test_kit_writes_today(shown, tmp_path):
    """Where this fails, the recording is outdated: python tools/write_demo_recording.py."""
    shipped = shown[1] / "rpl-runs" / "latest" / ".rocpd_profile" / "run_2" / "run_5002_results.db"
    identity = ProcessIdentity(5002, "python3 -c pass", ppid=5000)
    written = tmp_path / "written.db"
    write_rocpd(written, record(DEMO_APPLICATION, identity, Collection(), seed="0/run_2"), synthetic=True)
    assert _dump(shipped) == _dump(written)


def _dump(database):
    with closing(sqlite3.connect(database)) as base:
        return list(base.iterdump())


def test_demo_into_a_chosen_folder(rpl_cli, workplace):
    rpl_cli("demo", "--recorded", "--runs", "1", "-o", "here").assert_ok()
    assert (workplace / "here" / "profile.json").is_file()
    assert not (workplace / "rpl-runs").exists()


def test_where_no_program_was_built_before_it_says_so_and_takes_the_recording(
    rpl_cli, workplace, monkeypatch
):
    monkeypatch.setattr("rpl_emu.demo.command.PROGRAMS", "absent")
    outcome = rpl_cli("demo", "--runs", "1", "-o", "here").assert_ok()
    assert "a recorded application only: this installation of rpl-emu holds no programs" in outcome.stderr
    assert outcome.stdout.startswith("This is SYNTHETIC data")
    assert (workplace / "here" / "profile.json").is_file()


def test_the_recording_needs_no_path(rpl_cli, workplace, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    rpl_cli("demo", "--recorded", "--runs", "1", "-o", "here").assert_ok()
    assert (workplace / "here" / "profile.json").is_file()


def test_more_runs_than_were_recorded_are_refused(rpl_cli):
    assert "1<=x<=10" in rpl_cli("demo", "--runs", "11").assert_exit(64).stderr


def test_demo_without_the_plugins_says_what_to_install(rpl_cli, workplace):
    without = ("--disable-plugin", "rocprofv3", "--disable-plugin", "gfx942")
    outcome = rpl_cli(*without, "demo", "--recorded").assert_exit(69)
    assert "pip install rpl-rocprofv3" in outcome.stderr


def make_demo():
    """tools/demo.py."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("make_demo", Path(__file__).parents[2] / "tools" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    demo = module_from_spec(spec)
    spec.loader.exec_module(demo)
    return demo


def test_make_demo_prints_commands_that_can_be_copied(tmp_path, monkeypatch, capsys):
    """A shell reads the words that were run, also those that hold a whole command."""
    demo, called = make_demo(), []

    class Recorded(demo.Steps):
        def call(self, command, statuses=(0,), folder=None):
            called.append((command, folder))
            return ""

    steps = Recorded(1, print, {})
    monkeypatch.chdir(Path(__file__).parents[2])
    library = str(tmp_path / "a folder" / "lib")
    words = [*demo.COMPILERS[:1], "-x", "hip", "{source}", "-L", library, *["-Wall"] * 40]
    demo._optimize(steps, tmp_path, words)
    shown = [line.strip().removeprefix("$ ") for line in capsys.readouterr().out.splitlines()]
    assert shown[0] == f"cd {tmp_path}"
    ((command, folder),) = called
    assert folder == tmp_path
    rpl = tmp_path / "rpl"
    rpl.write_text("#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done\n")
    rpl.chmod(0o755)
    script = "\n".join(shown).replace("\nrpl ", "\n./rpl ")
    words = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=True).stdout
    assert words.split("\0")[:-1] == command[1:]
    assert any("{output}" in word and library in word for word in command)


def test_make_demo_tells_builds_and_tries_apart_from_rpl(tmp_path, monkeypatch, capsys):
    demo = make_demo()
    clock = [0.0]
    monkeypatch.setattr(demo.time, "monotonic", lambda: clock[0])
    steps = demo.Steps(2, print, {})
    clock[0] += 7  # CMake looks at what is here
    for title, seconds, prepares in (("build", 20, True), ("profile", 5, False)):
        with steps.step(title, prepares=prepares):
            clock[0] += seconds
    capsys.readouterr()
    # 3 s of pip, and 11 s of a way that could not be gone.
    demo._tell(tmp_path, steps, 3, 3 + 11 + clock[0])
    told = capsys.readouterr().out.splitlines()[0]
    assert told.startswith("46 s in all: 3 s for Python's packages, 38 s for ROCm's and builds, 5 s for rpl")
