"""Times of a configuration by a profiler: sums over launches of drawn runs, and how they are asked for."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rpl_autotune.interfaces import Timing
from rpl_autotune.run_job import TimedRun, TimesUnknownError, record_run, timed_runs
from rpl_core import ingest, pipeline, profiling
from rpl_core.errors import ApplicationError
from rpl_core.ingest import Recording
from rpl_core.model.trace import TraceRole
from rpl_testkit.traces import TracedDispatch, make_trace


@pytest.fixture
def profiled(tmp_path, monkeypatch):
    """``profiled(traces)``: the answer of a worker whose profiler recorded these; what it was asked for."""
    seen: dict[str, Any] = {}

    def record(request: Any, collector: Any, host: Any, *_: Any) -> Any:
        seen.update(request=request, collector=collector)
        request.output.mkdir(parents=True)
        return SimpleNamespace(failure=seen["failure"], directory=request.output)

    def choose(host: Any, name: str, options: Any) -> str:
        return f"collector {name}"

    def load(paths: tuple[Path, ...], readers: Any) -> Recording:
        assert paths == (seen["request"].output,)
        assert paths[0].is_dir()
        return Recording(traces=tuple(seen["traces"]))

    def device(request: Any, agents: Any, host: Any) -> None:
        seen["device"] = request.device

    monkeypatch.setattr(profiling, "record_application", record)
    monkeypatch.setattr(profiling, "choose_collector", choose)
    monkeypatch.setattr(ingest, "load_recording", load)
    monkeypatch.setattr(pipeline, "recorded_device", device)
    offers = SimpleNamespace(contributions=())
    host = SimpleNamespace(catalog=SimpleNamespace(readers=lambda: offers))

    def call(traces: list[Any], *, failure: Exception | None = None, **timing: Any) -> Any:
        seen.update(traces=traces, failure=failure)
        usual = {"source": "profile", "runs": 3, "device": "mi300x", "collector": "rocprofv3"}
        run = TimedRun(("./app", "7"), tmp_path, 12.5, 3)
        try:
            return timed_runs(run, Timing(**usual | timing), lambda: host)
        finally:
            assert not seen["request"].output.parent.exists(), "nothing is left"

    call.seen = seen
    return call


def run_of(*lengths: int, role: TraceRole = TraceRole.TIMING) -> Any:
    launches = [TracedDispatch(f"k{n}", 100 * n, 100 * n + length) for n, length in enumerate(lengths)]
    return make_trace(launches, role=role)


@pytest.mark.parametrize("seed", range(12))
def test_a_run_takes_the_sum_of_its_launches(profiled, seed):
    draw = random.Random(seed)
    lengths = [[draw.randint(1, 99) for _ in range(draw.randint(1, 5))] for _ in range(draw.randint(1, 4))]
    traces = [run_of(*one) for one in lengths]
    others = [run_of(50, role=TraceRole.COUNTERS), run_of(60, role=TraceRole.REFERENCE)]
    found = profiled([*others[:1], *traces, *others[1:]])
    assert found.times_ms == tuple(pytest.approx(sum(one) / 1e6, rel=1e-12) for one in lengths)
    assert found.origin == traces[0].origin.value
    request = profiled.seen["request"]
    assert (request.command, request.runs, request.time_limit_s) == (("./app", "7"), 3, 12.5)
    assert (request.roofline, request.trace_dependencies, request.allow_dangerous_counters) == (
        False, False, False,
    )  # fmt: skip
    assert request.analysis.device == profiled.seen["device"] == "mi300x"
    assert profiled.seen["collector"] == "collector rocprofv3"


def test_a_run_without_launches_has_no_time(profiled):
    for traces in ([run_of()], [run_of(5), run_of()], [run_of(), run_of(5)]):
        with pytest.raises(TimesUnknownError, match="a run of the program launched no kernel"):
            profiled(traces)
    for traces in ([], [run_of(5, role=TraceRole.COUNTERS)], [run_of(5, role=TraceRole.REFERENCE)]):
        with pytest.raises(TimesUnknownError, match="holds no timing run with kernels"):
            profiled(traces)


def test_a_program_that_fails_is_told_as_it_failed(profiled):
    with pytest.raises(ApplicationError, match="it broke"):
        profiled([run_of(5)], failure=ApplicationError("it broke"))


@pytest.mark.parametrize("source", ["wall", "printed"])
def test_a_run_whose_times_come_from_elsewhere_needs_no_profiler(profiled, tmp_path, source):
    profiled.seen.update(failure=None)
    run = TimedRun(("./app",), tmp_path, 1.0, 1)
    timing = Timing(source=source, runs=1, collector="rocprofv3", pattern="x")
    folder = record_run(run, timing, SimpleNamespace(), tmp_path / "one" / "run")
    assert folder == tmp_path / "one" / "run"
    assert profiled.seen["collector"] == "collector timing-only"
    assert profiled.seen["request"].runs_directory == tmp_path / "one"
