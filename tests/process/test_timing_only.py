"""The collector without a profiler."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rpl_core.builtin.timing_only import TimingOnlyCollector
from rpl_core.errors import ApplicationError, MissingError, TimeLimitError, UsageError
from rpl_core.interfaces.collector import CollectRequest


def request(*code: str, **options: object) -> CollectRequest:
    options.setdefault("runs", 1)
    return CollectRequest(command=(sys.executable, "-c", *code), **options)  # type: ignore[arg-type]


def test_every_run_is_timed_around_the_whole_process(tmp_path: Path) -> None:
    collector = TimingOnlyCollector()
    passes = collector.plan(request("import time; time.sleep(0.2); print('done')", runs=2)).passes
    outcomes = [collector.run(planned, tmp_path, lambda _line: None) for planned in passes]
    assert [outcome.planned.name for outcome in outcomes] == ["run_1", "run_2"]
    for outcome in outcomes:
        assert outcome.process_ms is not None
        assert 200 <= outcome.process_ms < 20_000
        assert outcome.process_ms == outcome.wall_s * 1000
        assert outcome.log is not None
        assert (tmp_path / outcome.log).read_text() == "done\n"
        assert outcome.files == ()
        assert outcome.tool_version is None


def test_the_plan_says_that_no_kernel_is_observed() -> None:
    (finding,) = TimingOnlyCollector().plan(request("pass")).diagnostics
    assert finding.code == "collect.process_time_only"


def test_it_is_never_missing_and_runs_the_bare_command() -> None:
    assert TimingOnlyCollector().missing() is None
    wanted = request("pass", time_limit_s=3.0)
    (planned,) = TimingOnlyCollector().plan(wanted).passes
    assert (planned.command, planned.time_limit_s) == (wanted.command, 3.0)


def test_counters_are_refused() -> None:
    with pytest.raises(UsageError, match="counters need a profiler"):
        TimingOnlyCollector().plan(request("pass", counters=("SQ_WAVES",)))


def test_a_missing_application_is_noticed_in_the_plan() -> None:
    with pytest.raises(MissingError, match="no such file"):
        TimingOnlyCollector().plan(CollectRequest(command=("./no-such-app",), runs=1))
    with pytest.raises(MissingError, match="not on PATH"):
        TimingOnlyCollector().plan(CollectRequest(command=("no-such-app",), runs=1))


def test_an_empty_command_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no application"):
        TimingOnlyCollector().plan(CollectRequest(command=(), runs=1))


def test_a_failing_application_is_its_own_fault(tmp_path: Path) -> None:
    collector = TimingOnlyCollector()
    (planned,) = collector.plan(request("raise SystemExit(9)")).passes
    with pytest.raises(ApplicationError, match="exited with status 9"):
        collector.run(planned, tmp_path, lambda _line: None)


def test_the_time_limit_holds(tmp_path: Path) -> None:
    collector = TimingOnlyCollector()
    (planned,) = collector.plan(request("import time; time.sleep(600)", time_limit_s=0.5)).passes
    with pytest.raises(TimeLimitError):
        collector.run(planned, tmp_path, lambda _line: None)
