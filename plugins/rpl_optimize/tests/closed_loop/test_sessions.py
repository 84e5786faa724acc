"""How sessions end and what they leave: no check, time on its own, in place, other kernels, limits."""

from __future__ import annotations

import json

import pytest

from rpl_optimize.running.sandbox import find_sandbox
from rpl_testkit.requirements import absent

pytestmark = pytest.mark.clang


@pytest.mark.long
def test_without_a_check_there_is_no_verdict(loop) -> None:
    loop.script("faster")
    loop("--no-traffic-gate", "--max-iters", "1").assert_exit(75)
    (candidate,) = loop.document()["candidates"]
    assert candidate["judgement"]["verdict"] == "no_verdict"
    assert candidate["judgement"]["stage"] == "equivalence"
    assert "--allow-unverified" in candidate["judgement"]["reason"]
    assert loop.is_untouched
    assert not loop.source.with_name("smooth_opt.hip").exists()
    runs = [json.loads(path.read_text())["passes"] for path in loop.root.rglob("run.json")]
    assert {one["role"] for passes in runs for one in passes} == {"timing"}
    assert not any("--hip-runtime-trace" in one["command"] for passes in runs for one in passes)
    # The candidate is kept for the user to look at.
    (proposed,) = loop.events("proposed")
    assert b"unroll 4" in (loop.root / proposed["source"]).read_bytes()
    loop.verify()


@pytest.mark.long
def test_on_time_alone_in_place_and_then_the_next_kernel(loop) -> None:
    """Accepting makes another kernel dominate: the loop turns to it. The original is kept."""
    loop.script("much faster", "fade does not build")
    options = ("--allow-unverified", "--in-place", "--no-traffic-gate", "--max-iters", "2")
    outcome = loop(*options).assert_ok()
    document = loop.document()
    first, second = document["candidates"]
    assert first["judgement"]["verdict"] == "accepted"
    assert first["judgement"]["verified"] is False
    assert "on time alone" in first["judgement"]["reason"]
    assert first["kernel_gain"] == pytest.approx(0.9, abs=0.01)
    assert second["kernel"] == "fade"
    assert second["judgement"]["stage"] == "source_guards"
    (shift,) = document["dominance_shifts"]
    assert "fade" in shift
    assert "accepted (unverified)" in outcome.stdout
    backup = loop.source.with_name("smooth.hip.rpl-backup")
    assert document["backup"] == str(backup)
    assert backup.read_bytes() == loop.original
    assert b"#pragma unroll 3" in loop.source.read_bytes()
    loop.verify()


@pytest.mark.long
def test_a_gain_is_measured_with_shifted_code_too(loop) -> None:
    """The padding moves the kernel and leaves its machine code; the verdict says what placement explains."""
    loop.script("faster")
    key = loop.bench.folder / "key"
    key.write_bytes(b"k" * 32)
    options = ("--placement-check", "--no-traffic-gate", "--max-iters", "1", "--sign", str(key))
    loop(*options, *loop.CHECKED).assert_ok()
    (placed,) = loop.events("placed")
    assert placed["placement"]["problem"] is None
    assert [shift["padding_bytes"] for shift in placed["placement"]["shifts"]] == [256, 4352]
    (candidate,) = loop.document()["candidates"]
    assert "with the code shifted it gains" in candidate["judgement"]["reason"]
    # Two builds of one source differ by 0.05 % in the model, and five pairs spread by about 0.5 %.
    assert 0 <= candidate["placement_share"] < 0.02
    assert [plan["stage"] for plan in loop.events("planned")] == [
        *("measurement", "remeasurement", "placement", "placement"),
    ]
    (profiled, _) = loop.events("baseline_profiled")
    assert list(profiled["recordings"]) == ["baselines/001/profile"]
    assert len(placed["recordings"]) == 2
    outcome = loop.cli("ledger", "verify", str(loop.root), "--key", str(key)).assert_ok()
    assert "signature: made with this key" in outcome.stdout


def test_no_time_left(loop) -> None:
    loop.script("faster")
    loop("--time-budget", "0.001", *loop.CHECKED).assert_exit(1)
    assert loop.document()["termination_reason"] == "time_budget"
    assert loop.document()["candidates"] == []
    assert loop.is_untouched


def test_a_kernel_that_is_not_worth_it(loop) -> None:
    loop.script("fade does not build")
    loop("--kernel", "fade", "--min-improvement", "0.2", *loop.CHECKED).assert_exit(1)
    assert loop.document()["termination_reason"] == "ceiling_too_low"
    assert loop.events("proposed") == []
    loop.verify()


def test_patience_ends_it_and_nothing_left_ends_it_too(loop) -> None:
    loop.script("does not build", "does not build either", "faster")
    loop("--patience", "2", "--max-iters", "9", *loop.CHECKED).assert_exit(1)
    assert loop.document()["termination_reason"] == "no_improvement"
    assert len(loop.document()["candidates"]) == 2
    loop.verify()


@pytest.mark.long
def test_the_own_proposer_finds_the_unrolled_loop_and_then_its_better_factor(loop) -> None:
    """Unrolling by 4 helps in the model, by 8 more; every factor is tried, after the accepted one too."""
    loop.declare_speed(
        {"source_matches": r"unroll 4\b", "factor": 0.9}, {"source_matches": r"unroll 8\b", "factor": 0.8}
    )
    loop.rpl(*loop.CHECKED, "--max-iters", "6", "--patience", "6").assert_ok()
    found = {c["summary"]: c["judgement"]["verdict"] for c in loop.document()["candidates"]}
    verdicts = {2: "rejected", 4: "accepted", 8: "accepted"}
    unrolled = {f"unroll loop smooth-L28 by {factor}": verdict for factor, verdict in verdicts.items()}
    others = ("store past the caches in smooth: 1 store",)
    others += tuple(f"do the work of 2 blocks per block in {kernel}" for kernel in ("smooth", "fade"))
    assert found == {**unrolled, **dict.fromkeys(others, "rejected")}
    loop.verify()


_TALLY = rb"""
#include <cstdio>
#include <cstdlib>
static void tally(const char* place) {
    if (std::FILE* file = std::fopen(place, "a")) {
        std::fputs("run\n", file);
        std::fclose(file);
    }
}
struct Tally {
    Tally() {
        char home[512];
        std::snprintf(home, sizeof home, "%s/tally", std::getenv("HOME"));
        tally(home);
        tally("tally");
    }
};
static Tally tallied;
"""


@pytest.mark.long
def test_measured_runs_reach_neither_home_nor_the_working_directory(
    confined_loop, monkeypatch, tmp_path
) -> None:
    """The user's own version is profiled as they run it; afterwards their files stay as they are."""
    if (found := find_sandbox()).kind is None:
        absent("sandbox", found.reason)
    loop = confined_loop
    monkeypatch.setenv("HOME", str(tmp_path))
    loop.source.write_bytes(loop.original + _TALLY)
    loop.script("no faster")
    outcome = loop("--no-traffic-gate", "--max-iters", "1", *loop.CHECKED).assert_exit(1)
    assert "without a sandbox" not in outcome.stderr
    (note,) = [event["text"] for event in loop.events("note")]
    assert note.startswith(("measured runs: bubblewrap", "measured runs: namespaces"))
    (candidate,) = loop.document()["candidates"]
    assert candidate["judgement"]["stage"] == "measurement"
    own, copied = (
        place.read_text().count("run")
        for place in (tmp_path / "tally", loop.root / "runs" / "here" / "tally")
    )
    assert own == 2
    (measured,) = loop.events("measured")
    pairs = len(measured["measurement"]["log_ratios"])
    assert copied == 2 + 1 + 2 + 2 * pairs  # the user's own, the one that tried it, warm-ups and pairs
    assert (loop.bench.folder / "tally").read_text().count("run") == own
    loop.verify()


@pytest.mark.parametrize("keep", [False, pytest.param(True, marks=pytest.mark.long)])
def test_no_file_of_a_session_holds_a_secret_unless_it_is_wanted(loop, keep) -> None:
    """In the command, the build and the check: their logs never, what is resumed from with --keep-command."""
    secret = "s3cr3t-value"
    compiler, check = loop.bench.folder / "cc.sh", loop.bench.folder / "check.sh"
    compiler.write_text('#!/bin/sh\necho "compiling with $*"\nshift\nexec hipcc "$@"\n')
    check.write_text('#!/bin/sh\necho "checked by $*"\n')
    for program in (compiler, check):
        program.chmod(0o755)
    loop.script("does not build", *["no faster"] * keep)
    options = ("--build", f"./cc.sh --token={secret} -DAPI_KEY={secret} -O3 {{source}} -o {{output}}")
    options += ("--validate", f"./check.sh --password {secret} {{command}}")
    options += ("--no-traffic-gate", "--max-iters", str(1 + keep), *["--keep-command"] * keep)
    ended = loop(*options, command=("--", "./smooth", "64", "1", f"--token={secret}")).assert_exit(1)
    assert secret not in ended.stdout + ended.stderr
    files = [path for path in loop.root.rglob("*") if path.is_file()]
    holding = {
        path.relative_to(loop.root).as_posix() for path in files if secret.encode() in path.read_bytes()
    }
    kept = {"ledger.jsonl", "optimize.json", "request.json"} if keep else set()
    assert {name for name in holding if "/" not in name} == kept
    assert keep or not holding
    logs = [path.read_text() for path in files if path.suffix == ".log"]
    assert any("compiling with --token=*** -DAPI_KEY=***" in text for text in logs)
    assert not any(secret in text for text in logs)
    loop.verify()
