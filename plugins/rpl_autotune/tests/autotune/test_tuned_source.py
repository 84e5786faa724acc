"""``rpl optimize --tune``: constants of a source are searched; the best pass the loop's own gates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from rpl_testkit.closed_loop import ClosedLoopBench, open_bench
from rpl_testkit.command_line import CommandLine, Outcome

pytestmark = pytest.mark.clang

KERNEL = "blur(float const*, float*, int)"
NOISE = {"cv": 0.005, "drift": 0.25, "build_offset": 0.0005, "outliers": 0.01}
SOURCE = Path(__file__).with_name("blur.hip")


@attrs.frozen
class Tuned:
    """Sessions over a copy of ``blur.hip``, with declared times per value of ``TILE``."""

    bench: ClosedLoopBench
    cli: CommandLine
    source: Path

    @property
    def root(self) -> Path:
        return self.bench.folder / "session"

    def declare(self, **factors: float) -> None:
        speed = [
            {"source_matches": rf"{name} {value}\b", "kernel": KERNEL, "factor": factor}
            for (name, value), factor in ((key.split("_"), factor) for key, factor in factors.items())
        ]
        kernels = ({"name": KERNEL, "nominal_ns": 800_000, "launches": 10},)
        self.bench.declare(kernels, speed, **NOISE)

    def __call__(self, *options: str) -> Outcome:
        place = ("--auto-approve", "--runs", "2", "--device", "gfx942", "--output", str(self.root))
        checked = ("--output-file", "blur.out:f32", "--no-traffic-gate", "--no-placement-check")
        return self.cli(
            "optimize", "--tune", *place, *checked, *options, "./blur", "1000", cwd=self.bench.folder
        )

    def document(self) -> dict[str, Any]:
        return json.loads((self.root / "optimize.json").read_text(encoding="utf-8"))

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.root / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
        return [line["data"] for line in map(json.loads, lines) if line["event"] == kind]


@pytest.fixture
def tuned(tmp_path: Path) -> Iterator[Tuned]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        open_bench(tmp_path / "bench", tmp_path / "programs", monkeypatch) as bench,
    ):
        source = bench.folder / "blur.hip"
        source.write_bytes(SOURCE.read_bytes())
        bench.build(source)
        monkeypatch.setenv("RPL_ALLOW_SYNTHETIC_GATES", "1")
        yield Tuned(bench, CommandLine(monkeypatch), source)


def test_the_best_constant_is_found_measured_and_accepted(tuned: Tuned) -> None:
    tuned.declare(TILE_8=0.95, TILE_32=0.8, TILE_4=1.5)
    outcome = tuned("--max-iters", "1").assert_ok()
    (candidate,) = tuned.document()["candidates"]
    assert candidate["judgement"]["verdict"] == "accepted", candidate["judgement"]
    assert candidate["summary"] == "tune TILE=32"
    print(
        outcome.stderr,
        outcome.stdout,
        [g for e in tuned.events("binary_guarded") for g in e["guards"]],
        tuned.events("note"),
        tuned.events("equivalence_checked"),
        (tuned.bench.folder / "blur_opt.hip").read_text()[:200],
    )
