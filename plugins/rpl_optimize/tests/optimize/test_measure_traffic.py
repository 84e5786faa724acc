"""The gate on HBM traffic: what counts as growth, and that unknown traffic is never taken for no growth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rpl_core.errors import ApplicationError, InterruptedRunError, UsageError
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome, PlannedPass
from rpl_core.model.device import CounterMap, Formula, Quantity
from rpl_core.model.metric import Exactness
from rpl_core.model.trace import TraceRole
from rpl_optimize.contracts import GuardPart
from rpl_optimize.measurement.measure import MeasureTools, TrafficMeasurement, measure_traffic
from rpl_testkit.fixtures import Launch, RocpdBuilder
from rpl_testkit.traces import make_device

READ = Quantity("hbm_read_bytes", "B", (Formula("64 * RD", Exactness.EXACT, "test"),))
WRITE = Quantity("hbm_write_bytes", "B", (Formula("32 * WR", Exactness.EXACT, "test"),))
DEVICE = make_device(counter_map=CounterMap((READ, WRITE), recommended=("SQ_WAVES", "RD_sum", "WR")))

#: Kernel -> reads and writes of one launch, launches.
Traffic = dict[str, tuple[float, float, int]]
BASE: Traffic = {"k": (1000.0, 500.0, 2), "big": (10_000.0, 0.0, 1), "small": (10.0, 0.0, 1)}


class CountingCollector(Collector):
    """One counter pass; the command's first word chooses the traffic."""

    name = "counting"
    summary = "for tests"

    def __init__(self, traffic: dict[str, Traffic], drop: tuple[str, ...] = ()) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.error: BaseException | None = None
        self.renamed: dict[str, str] = {}  # counters of the candidate only
        self._traffic = traffic
        self._drop = drop

    def missing(self) -> None:
        return None

    def plan(self, request) -> CollectionPlan:
        assert request.runs == 0
        self.asked.append(request.counters)
        where = "artifacts/pass_1"
        planned = PlannedPass("pass_1", TraceRole.COUNTERS, where, request.command, request.counters)
        return CollectionPlan((planned,))

    def run(self, planned: PlannedPass, run_directory: Path, log) -> PassOutcome:
        if self.error is not None and planned.command[0] == "new":
            raise self.error
        place = run_directory / planned.directory
        place.mkdir(parents=True)
        path = RocpdBuilder(place)(self._launches(planned.command[0]))
        return PassOutcome(planned, 0, 0.1, files=(path.relative_to(run_directory).as_posix(),))

    def _launches(self, side: str) -> list[Launch]:
        rows, now = [], 1000
        for kernel, (reads, writes, launches) in self._traffic[side].items():
            for _ in range(launches):
                counters = {"RD_sum": reads, "WR": writes}
                kept = {name: value for name, value in counters.items() if name not in self._drop}
                if side == "new":
                    kept = {self.renamed.get(name, name): value for name, value in kept.items()}
                rows.append(Launch(kernel, now, now + 100, counters=kept))
                now += 200
        return rows


@pytest.fixture
def gate(rpl_host, tmp_path: Path) -> Callable[..., GuardPart]:
    def run(new: Traffic, *, base: Traffic = BASE, collector: Collector | None = None, device=DEVICE):
        collector = collector or CountingCollector({"base": base, "new": new})
        tools = MeasureTools(collector, rpl_host("rocprofv3"), print, print, print)
        request = TrafficMeasurement("k", ("base",), ("new",), tmp_path / "traffic", device)
        return measure_traffic(request, tools)

    return run


@pytest.mark.parametrize(
    ("change", "passed"),
    [
        ({}, True),
        ({"k": (1039.0, 500.0, 2)}, True),  # 64 * 1000 + 32 * 500 = 80 000 bytes, + 3.1 %
        ({"k": (1063.0, 500.0, 2)}, False),  # + 5.04 %
        ({"k": (500.0, 100.0, 2)}, True),
        ({"k": (1000.0, 500.0, 3)}, False),  # more launches move more
        ({"k": (1000.0, 700.0, 2)}, False),
        ({"big": (10_600.0, 0.0, 1)}, False),  # another kernel of weight pays for it
        ({"small": (30.0, 0.0, 1)}, True),  # under 5 % of all traffic: page walks outweigh it
    ],
)
def test_growth_over_5_percent_is_refused(gate, change: Traffic, passed: bool) -> None:
    found = gate({**BASE, **change})
    assert (found.guard, found.passed) == ("hbm-traffic", passed), found.reason
    assert "bytes to and from HBM" in found.reason


def test_only_the_counters_that_it_needs_are_collected_as_the_device_names_them(gate, tmp_path) -> None:
    collector = CountingCollector({"base": BASE, "new": BASE})
    assert gate(BASE, collector=collector).passed
    assert collector.asked == [("RD_sum", "WR")] * 2
    for side in ("base", "new"):
        manifest = json.loads((tmp_path / "traffic" / side / "run.json").read_text())
        assert manifest["state"] == "complete"
        assert manifest["command"] == [side]


@pytest.mark.parametrize("drop", [("RD_sum",), ("WR",), ("RD_sum", "WR")])
def test_half_of_the_traffic_is_unknown_traffic(gate, drop) -> None:
    collector = CountingCollector({"base": BASE, "new": BASE}, drop)
    found = gate(BASE, collector=collector)
    assert found.passed is None
    assert found.reason


def test_the_kernel_itself_counts_however_little_it_moves(gate) -> None:
    base = {"k": (10.0, 0.0, 1), "big": (10_000.0, 0.0, 1)}
    assert gate({**base, "k": (11.0, 0.0, 1)}, base=base).passed is False


def test_sides_that_were_counted_differently_are_not_compared(gate) -> None:
    formulas = (*READ.formulas, Formula("64 * RD2", Exactness.ESTIMATE, "test"))
    either = Quantity("hbm_read_bytes", "B", formulas)
    collector = CountingCollector({"base": BASE, "new": BASE})
    collector.renamed = {"RD_sum": "RD2"}
    device = make_device(counter_map=CounterMap((either, WRITE), recommended=()))
    found = gate(BASE, collector=collector, device=device)
    assert found.passed is None
    assert "different formulas" in found.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"device": None}, "no installed plugin knows"),
        ({"device": make_device()}, "no counters for HBM traffic"),
        ({"new": {"other": (1.0, 1.0, 1)}}, "unknown in the candidate"),
        ({"base": {"other": (1.0, 1.0, 1)}, "new": BASE}, "unknown in the baseline"),
    ],
)
def test_what_cannot_be_counted_is_no_answer(gate, changes, words: str) -> None:
    found = gate(**{"new": BASE, **changes})
    assert found.passed is None
    assert words in found.reason


@pytest.mark.parametrize("error", [ApplicationError("it died"), UsageError("counters need a profiler")])
def test_a_failing_counter_pass_is_no_answer(gate, error: Exception) -> None:
    """A crash under the profiler is no proof against the candidate."""
    collector = CountingCollector({"base": BASE, "new": BASE})
    collector.error = error
    found = gate(BASE, collector=collector)
    assert found.passed is None
    assert str(error) in found.reason


def test_an_interrupt_goes_on_up(gate) -> None:
    collector = CountingCollector({"base": BASE, "new": BASE})
    collector.error = KeyboardInterrupt()
    with pytest.raises(InterruptedRunError):
        gate(BASE, collector=collector)


def test_with_the_profilers_stand_in_and_the_real_device(rpl_host, rpl_standin_rocprofv3, tmp_path) -> None:
    host = rpl_host("rocprofv3", "gfx942")
    collector = next(c.value for c in host.catalog.collectors().contributions if c.value.name == "rocprofv3")
    device = next(d for d in host.catalog.devices() if d.architecture == "gfx942")
    app = tmp_path / "app"
    app.write_text("#!/bin/sh\nexit 0\n")
    app.chmod(0o755)
    tools = MeasureTools(collector, host, print, print, print)
    kernel = "stream_triad(float*, float const*, float const*, float, unsigned long)"
    command = (str(app),)
    request = TrafficMeasurement(kernel, command, command, tmp_path / "traffic", device)
    found = measure_traffic(request, tools)
    assert found.passed is True, found.reason
    assert "+0.0%" in found.reason
