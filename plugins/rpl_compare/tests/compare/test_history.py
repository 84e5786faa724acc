"""`rpl compare --history`: the entry where a kernel became slower, and what is not a regression."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_compare.comparison.documents import Series, judge_series
from rpl_compare.comparison.judging import CompareRule, Verdict
from rpl_compare.contract import HistoryDocument
from rpl_measure.samples import ItemKey, Kind

pytestmark = pytest.mark.usefixtures("synthetic_counts")

WIGGLE = (0.001, -0.002, 0.0, 0.002, -0.001, 0.0015, -0.0005, 0.0007)


def judged(*logs: float, forced: bool = False):
    values = tuple(value + WIGGLE[i % len(WIGGLE)] for i, value in enumerate(logs))
    names = tuple(f"r{i}" for i in range(len(values)))
    series = Series(ItemKey(Kind.KERNEL, "k"), names, values)
    return judge_series(series, CompareRule(forced=forced))


@pytest.mark.parametrize(
    ("logs", "verdict", "steps"),
    [
        ([0.0] * 10, Verdict.UNCHANGED, 0),
        ([0.0] * 6 + [0.08] * 4, Verdict.REGRESSED, 1),
        ([0.0] * 6 + [-0.08] * 4, Verdict.IMPROVED, 1),
        # up and back down: over
        ([0.0] * 5 + [0.08] * 5 + [0.0] * 5, Verdict.UNCHANGED, 2),
        # faster, then half of it lost again: slower than before that step
        ([0.0] * 5 + [-0.10] * 5 + [-0.05] * 5, Verdict.REGRESSED, 2),
        # a step below the limit
        ([0.0] * 6 + [0.02] * 6, Verdict.UNCHANGED, 0),
        # seen once
        ([0.0] * 9 + [0.3], Verdict.INCONCLUSIVE, 1),
        ([0.0, 0.0, 0.1, 0.1], Verdict.INCONCLUSIVE, 0),
    ],
)
def test_each_verdict_over_a_history(logs: list[float], verdict: Verdict, steps: int) -> None:
    found, _, listed = judged(*logs)
    assert found is verdict
    assert len(listed) == steps


def test_a_noisy_history_can_not_be_called_unchanged() -> None:
    noisy = [0.1 * (-1) ** i for i in range(10)]
    found, reason, _ = judged(*noisy)
    assert found is Verdict.INCONCLUSIVE
    assert "can't be seen" in reason
    assert judged(*noisy, forced=True)[0] is Verdict.UNCHANGED


def test_the_step_is_found_at_its_entry(make_runs, steady, rpl_cli, tmp_path: Path) -> None:
    history = make_runs.under("history")
    # Names against the order of time: the manifest's time counts.
    for day in range(12):
        time = 100_000 if day < 7 else 108_000
        history(
            f"run-{99 - day}",
            steady(time, 3, spread=0.004 + 0.0002 * day, other=50_000, tiny=20 if day else 0),
            created_utc=f"2026-01-{day + 1:02d}T00:00:00Z",
        )
    document = rpl_cli("compare", "--history", tmp_path / "history", "--json").assert_exit(1).json()
    kernels = {item["name"]: item for item in document["kernels"]}
    (step,) = kernels["k"]["steps"]
    assert (step["previous_entry"], step["entry"]) == ("run-93", "run-92")
    assert step["change"] == pytest.approx(0.08, abs=0.002)
    assert (step["entries_before"], step["entries_after"]) == (7, 5)
    assert kernels["other"]["verdict"] == "unchanged"
    assert set(kernels) == {"k", "other"}  # the tiny one has less than 1 % of the time in every entry
    assert kernels["k"]["last_ns"] == pytest.approx(4 * 108_000, rel=0.01)
    assert [entry["name"] for entry in document["entries"]][:2] == ["run-99", "run-98"]
    text = rpl_cli("compare", "--history", tmp_path / "history").assert_exit(1).stdout
    assert "run-92" in text
    assert "since run-92" in text
    quiet = rpl_cli("compare", "--history", tmp_path / "history", "--quiet").assert_exit(1)
    assert float(quiet.stdout) == pytest.approx(8.0, abs=0.3)
    rpl_cli("compare", "--history", tmp_path / "history", "--kernel", "other").assert_ok()
    rpl_cli("compare", "--history", tmp_path / "history", "--fail-above", "20%").assert_ok()


def test_a_steady_history_passes_and_is_written(make_runs, steady, rpl_cli, tmp_path: Path) -> None:
    history = make_runs.under("history")
    for day in range(8):
        history(
            f"r{day}",
            steady(100_000, 2, spread=0.001 * (day + 1)),
            created_utc=f"2026-01-0{day + 1}T00:00:00Z",
        )
    outcome = rpl_cli("compare", "--history", tmp_path / "history", "-o", tmp_path / "out").assert_ok()
    assert "no step in any item" in outcome.stdout
    written = HistoryDocument.model_validate_json((tmp_path / "out" / "history.json").read_bytes())
    assert written.outcome == "pass"
    synthetic = rpl_cli("compare", "--history", tmp_path / "history", env={"RPL_ALLOW_SYNTHETIC_GATES": ""})
    assert "NO VERDICT" in synthetic.assert_exit(75).stdout


def test_few_entries_cannot_tell(make_runs, steady, rpl_cli, tmp_path: Path) -> None:
    history = make_runs.under("history")
    for day in range(3):
        history(f"r{day}", steady(100_000, 2), created_utc=f"2026-01-0{day + 1}T00:00:00Z")
    assert "5 are needed" in rpl_cli("compare", "--history", tmp_path / "history").assert_exit(75).stdout


def test_an_empty_or_absent_folder_is_missing(rpl_cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    rpl_cli("compare", "--history", tmp_path / "empty").assert_exit(69)
    rpl_cli("compare", "--history", tmp_path / "absent").assert_exit(69)


def test_an_entry_of_another_process_count_is_named(make_runs, steady, rpl_cli, tmp_path: Path) -> None:
    history = make_runs.under("history")
    for day in range(6):
        created = f"2026-01-0{day + 1}T00:00:00Z"
        history(f"day-{day}", steady(100_000, 2), created_utc=created, processes=2 if day == 4 else 1)
    outcome = rpl_cli("compare", "--history", tmp_path / "history").assert_exit(75)
    assert "day-0 ran with 1 processes and day-4 with 2" in outcome.stdout
