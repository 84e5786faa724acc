"""The examples of docs/compare.md are run: same output, same exit code.

The recordings behind them are synthetic and made here; RPL_WRITE_EXAMPLES=1 renews the outputs in the page.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[4] / "docs" / "compare.md"
EXAMPLE = re.compile(
    r"```console\n\$ rpl (?P<words>[^\n]*)\n(?P<shown>.*?)\[exit code (?P<code>\d+)\]\n```", re.S
)

SCENARIO = """
import sys
from rpl_testkit.synthetic_recording.application_model import (
    Application, KernelModel, Launch, Repeat, SyncStream,
)
old = any("app_old" in word for word in sys.argv)
shape = {"grid": (65536, 1, 1), "workgroup": (256, 1, 1)}
GEMM = KernelModel(name="gemm_f16", symbol="gemm", nominal_ns=165_000 if old else 151_000, **shape)
TRIAD = KernelModel(name="stream_triad", symbol="triad", nominal_ns=205_000, **shape)
APPLICATION = Application(
    name="app",
    kernels=(GEMM, TRIAD),
    streams=1,
    steps=(Repeat(20, (Launch("gemm_f16", 1), Launch("stream_triad", 1))), SyncStream(1)),
)
"""


@pytest.fixture
def place(make_runs, steady, rpl_standin_rocprofv3, synthetic_counts, monkeypatch, tmp_path: Path) -> Path:
    runs = make_runs.under("rpl-runs")

    def recorded(name: str, gemm_ns: int, count: int, **more: int) -> None:
        runs(name, steady(gemm_ns, count, kernel="gemm_f16", stream_triad=205_000, add_bias=2600, **more))

    recorded("main", 165_000, 10, cull_particles=96_000)
    recorded("my-branch", 173_500, 10, cull_fast=70_000)
    recorded("same-as-main", 165_100, 10, cull_particles=96_000)
    recorded("main-3-runs", 165_000, 3)
    recorded("branch-3-runs", 173_500, 3)
    nightly = make_runs.under("nightly")
    for day in range(1, 13):
        gemm_ns = 165_000 if day < 8 else 175_000
        nightly(
            f"2026-03-{day:02d}",
            steady(gemm_ns, 3, spread=0.002 + 0.0002 * day, kernel="gemm_f16", stream_triad=205_000),
            created_utc=f"2026-03-{day:02d}T01:00:00Z",
        )
    monkeypatch.setattr("secrets.randbits", lambda _bits: 7)  # the order of the pairs
    (tmp_path / "scenario.py").write_text(SCENARIO)
    monkeypatch.setenv("RPL_STANDIN_SCENARIO", str(tmp_path / "scenario.py"))
    monkeypatch.setenv("RPL_STANDIN_STATE", str(tmp_path / "state"))
    for name in ("app_old", "app_new"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_the_examples_of_the_page_are_what_the_command_prints(place: Path, rpl_cli) -> None:
    page = PAGE.read_text(encoding="utf-8")
    examples = list(EXAMPLE.finditer(page))
    assert len(examples) >= 5
    for example in examples:
        outcome = rpl_cli(*shlex.split(example["words"]), cwd=place)
        if os.environ.get("RPL_WRITE_EXAMPLES") == "1":
            block = (
                f"```console\n$ rpl {example['words']}\n{outcome.stdout}[exit code {outcome.exit_code}]\n```"
            )
            page = page.replace(example[0], block)
            continue
        outcome.assert_exit(int(example["code"]))
        assert outcome.stdout == example["shown"]
    if os.environ.get("RPL_WRITE_EXAMPLES") == "1":
        PAGE.write_text(page, encoding="utf-8")


def test_every_option_is_described(rpl_cli) -> None:
    page = PAGE.read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z-]+", rpl_cli("compare", "--help").assert_ok().stdout)) - {"--help"}
    assert sorted(option for option in options if f"`{option}" not in page) == []
