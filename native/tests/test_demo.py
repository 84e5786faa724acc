"""`make demo` does its job with what there is: everything, no runtime of ROCm, or no compiler at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


def demo(folder, *options, **variables):
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "demo.py", "-o", folder, *options],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "report.html").stat().st_size > 100_000
    told = re.search(
        r"^(\d+) s in all: (\d+) s for Python's packages, (\d+) s for ROCm's and builds, "
        r"(\d+) s for rpl \(beside builds\)\.$",
        done.stdout,
        re.M,
    )
    assert told, done.stdout
    all_s, *parts = map(int, told.groups())
    assert abs(all_s - sum(parts)) <= len(parts)  # each is rounded
    return done.stdout


def documents(run):
    return [
        json.loads((run / f"{name}.json").read_text()) for name in ("profile", "roofline", "dag", "analysis")
    ]


@pytest.mark.long
def test_with_a_runtime_it_does_everything(tmp_path, emulator, hip_runtime):
    del emulator, hip_runtime
    told = demo(tmp_path / "demo")
    assert "[9/9] write the report" in told
    assert "isolate its dominant kernel, attention_values" in told
    assert "reproduced        yes" in told
    assert "verdict: no_verdict (by the model modelled-issue-cycles; nothing was measured)" in told
    assert (tmp_path / "demo" / "optimize" / "smooth_opt.hip").exists()
    for document in documents(tmp_path / "demo" / "attention"):
        assert document["provenance"]["origin"] == "modelled"
    exports = "\n".join(line for line in told.splitlines() if line.startswith(("  . ", "  export ")))
    (tmp_path / "isolate_capture").symlink_to(tmp_path / "demo" / "capture")
    for command in ("replay reserve-check", "replay full-vm", "replay full-vm --iterations 2 --no-recopy"):
        done = subprocess.run(
            ["bash", "-c", f"{exports}\nrocm-perf {command}"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_without_a_runtime_the_capture_of_the_checkout_is_replayed(tmp_path, emulator):
    del emulator
    told = demo(tmp_path / "demo", "--without-rocr")
    assert told.startswith("The way without ROCm's runtime (ROCr), since --without-rocr asks for it.")
    assert "whole: 4 regions, 36864 bytes" in told
    assert "reproduced        yes" in told
    for document in documents(tmp_path / "demo" / "synthetic"):
        assert document["provenance"]["origin"] == "synthetic"


def test_without_compilers_a_recording_is_analysed_and_both_reasons_are_told(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "mkdir", "cp"):
        (programs / name).symlink_to(shutil.which(name))
    told = demo(tmp_path / "demo", PATH=str(programs))
    assert "since there is no clang++-22 with ld.lld-22" in told
    assert "A recorded application only, since there is no cmake" in told
    assert len(documents(tmp_path / "demo" / "synthetic")) == 4
