"""``rpl optimize --tune``: constants of a source are searched; the best pass the loop's own gates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from rpl_testkit.fixtures import ClosedLoopBench, CommandLine, Outcome, open_bench

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

    def declare(self, factors: dict[str, float]) -> None:
        """Times of the kernel, by what the source says."""
        speed = [
            {"source_matches": rf"{name}\b", "kernel": KERNEL, "factor": factor}
            for name, factor in factors.items()
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


@pytest.mark.long
def test_the_best_constant_is_accepted_and_built_upon(tuned: Tuned) -> None:
    """The fastest is wrong, the next best is accepted, and later candidates have the new launches."""
    tuned.declare({"TILE 8": 0.5, "TILE 32": 0.8, "TILE 4": 1.5, "__builtin_nontemporal_store": 0.85})
    outcome = tuned("--max-iters", "3").assert_ok()
    first, refused, second = tuned.document()["candidates"]
    assert (first["summary"], first["transformation"]) == ("tune TILE=32", "tuned-constants")
    assert first["kernel_gain"] == pytest.approx(0.2, abs=0.01)
    # The size of the grid is a hidden argument, of which this kernel had none.
    assert (refused["transformation"], refused["judgement"]["verdict"]) == ("coarsening", "rejected")
    assert second["transformation"] == "nontemporal-stores"
    assert [one["judgement"]["verdict"] for one in (first, second)] == ["accepted", "accepted"]
    written = tuned.bench.folder / "blur_opt.hip"
    assert {b"#define TILE 32", b"nontemporal_store"} <= set(
        re.findall(rb"#define TILE \d+|nontemporal_store", written.read_bytes())
    )
    assert [event["retuned"] for event in tuned.events("proposed")] == ["launches", None, None]
    guards = [{guard["guard"] for guard in event["guards"]} for event in tuned.events("binary_guarded")]
    assert "host-code" not in guards[0]
    assert all("host-code" in later for later in guards[1:])
    told = [event["text"] for event in tuned.events("note") if "tried out" in event["text"]]
    assert sum("other results" in text for text in told) == 1  # TILE 8
    assert sum("4096 work-items" in text for text in told) == 1  # TILE 64
    assert "TILE (4, 8, 16, 32, 64); launches follow TILE" in outcome.stderr
    assert "5 configurations; at most 5 are built, checked and run 3 times each" in outcome.stderr
    tuned.cli("ledger", "verify", str(tuned.root)).assert_ok()


@pytest.mark.long
def test_nothing_beats_the_source_as_it_stands(tuned: Tuned) -> None:
    tuned.declare({"TILE 8": 0.5, "TILE 32": 1.2, "TILE 4": 1.5})
    outcome = tuned("--max-iters", "1", "--tune-runs", "1", "--tune-budget", "3")
    assert "none beats the source as it stands" in outcome.stderr
    assert {one["transformation"] for one in tuned.document()["candidates"]} == {"coarsening"}
