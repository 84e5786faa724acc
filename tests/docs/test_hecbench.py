"""How tools/hecbench/run.py judges what a program printed, and that the page says what it recorded."""

from __future__ import annotations

import csv
import importlib.util
from collections import Counter
from pathlib import Path
from unittest.mock import create_autospec

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tools/hecbench"
OUTCOMES = {
    "pass",
    "x86",
    "no-check",
    "differs",
    "unfit",
    "wrong",
    "refused",
    "limit",
    "not-built",
    "not-run",
}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("hecbench", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("PASS", "pass"),
        ("correctness : PASS", "pass"),
        ("Found 0 errors in 8192 locations (PASS).", "pass"),
        ("FAIL", "wrong"),
        ("PASS or FAIL? FAIL", "wrong"),
        ("Test failed", "wrong"),
        ("Number of errors: 0", "pass"),
        ("mismatches: 3", "wrong"),
        ("Max error: 2.5e-06", "pass"),
        ("Error = 0.019465", None),
        ("Error (L2norm): 3.14329e-09", "pass"),
        ("error: invalid argument", "wrong"),
        ("Error statistics for the kernels:", None),
        ("Computing the error between host and device", None),
        ("failed 0 of 4096", "pass"),
        ("Backward3 pass benchmarks:", None),
        ("number of bypasses 3", None),
        ("checksum 12.5", None),
        ("Error: version 1.2.3 is too old", None),
        ("errors: 0, failed: 12", "wrong"),
        ("PASSED tests: 3, failed tests: 2", "wrong"),
        ("max error -nan, 0 of 5", None),
        ("Error tolerance: 1e-5", None),
    ],
)
def test_a_line_speaks_for_its_program_or_says_nothing(script, line, verdict):
    assert script._verdict(line) == verdict


@pytest.mark.parametrize(
    ("ours", "x86", "differs"),
    [
        (["sum = 1.00000"], ["sum = 1.00001"], False),
        (["sum = 1.0"], ["sum = 1.001"], True),
        (["size=8", "a"], ["size = 8", "a"], False),
        (["sum = 1"], ["total = 1"], True),
        (["sum = 1"], ["sum = 1", "more"], True),
        (["x nan"], ["x 1"], True),
        (["0.5 0.25"], ["0.50 .25"], False),
        (["##"], ["1 #"], True),
    ],
)
def test_equal_to_x86_is_equal_words_and_close_numbers(script, ours, x86, differs):
    assert (script._difference(ours, x86) is not None) == differs


def test_times_are_no_results(script):
    assert script._results("Average kernel time 3.5 us\nchecksum  7\n\n12.3 GB/s\n") == ["checksum 7"]


@pytest.mark.parametrize(
    ("status", "printed", "outcome"),
    [
        (0, "PASS", "pass"),
        (1, "error = 0", "wrong"),
        (3, "Errors 0 PASS", "wrong"),
        (0, "PASS" + "\n" * (4 << 20), "limit"),
        (2, "failed to open file x.csv", "not-run"),
    ],
)
def test_a_program_that_ends_with_an_error_never_passes(script, tmp_path, status, printed, outcome):
    class Ran(script.Checkout):
        def __init__(self):
            self.sources, self.outputs, self.seconds, self.words = tmp_path, tmp_path / "out", 1.0, {}

        def make(self, *_):
            return script.subprocess.CompletedProcess((), 0, "", "")

        def commands(self, *_):
            return [["./main"]]

        def call(self, *_):
            return status, printed, ""

    assert Ran().tried("it").outcome == outcome


def test_programs_run_in_their_folders_by_the_emulator_that_was_named(script, tmp_path, monkeypatch):
    for folder in ("usr/lib/llvm-21/lib/clang/21/amdgcn/bitcode", "usr/lib/x86_64-linux-gnu", "omp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "usr/lib/x86_64-linux-gnu/libamdhip64.so.6").touch()
    monkeypatch.setattr(script, "compiler", lambda: "clang++-22")
    # As it is called, too.
    monkeypatch.setattr(
        script, "fetched_runtime", create_autospec(script.fetched_runtime, return_value=tmp_path)
    )
    monkeypatch.setattr(
        script.subprocess, "run", lambda *_, **__: script.subprocess.CompletedProcess((), 0, "include", "")
    )
    monkeypatch.setenv("RPL_EMU_FOLDER", "build")
    monkeypatch.chdir(tmp_path)
    checkout = script.Checkout(tmp_path, tmp_path / "omp", 1.0)
    assert checkout.environment["RPL_EMU_FOLDER"] == str(tmp_path / "build")


@pytest.mark.parametrize(("given", "absent"), [(["gone"], "gone"), ([], "program")])
def test_a_program_that_is_not_there_has_no_row(script, tmp_path, monkeypatch, given, absent):
    class Empty(script.Checkout):
        def __init__(self, folder, *_):
            self.sources = folder / "src"

    monkeypatch.setattr(script, "Checkout", Empty)
    monkeypatch.setattr(
        script.sys, "argv", ["run.py", str(tmp_path), *given, "--record", str(tmp_path / "r")]
    )
    with pytest.raises(SystemExit, match=f"there is no {absent} in"):
        script.main()
    assert not (tmp_path / "r").exists()


def test_the_page_states_the_recorded_outcomes(documentation):
    with (FOLDER / "results.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    counted = Counter(row["outcome"] for row in rows)
    assert set(counted) <= OUTCOMES
    stated = {
        cells[0].strip("`"): int(cells[1])
        for cells in documentation.rows("docs/validation.md", "outcome", "programs", "which")
    }
    assert stated == dict(counted)
