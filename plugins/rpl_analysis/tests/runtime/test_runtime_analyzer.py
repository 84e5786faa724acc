"""Times of kernels and of the application on traces small enough to add up by hand."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rpl_analysis.facts import APPLICATION_TIME, KERNEL_TIMES
from rpl_analysis.options import STRICT
from rpl_analysis.runtime import RuntimeAnalyzer
from rpl_core.interfaces.analyzer import AnalysisContext
from rpl_core.interfaces.options import Options
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.metric import Exactness, Origin
from rpl_core.model.recording import Recording
from rpl_testkit.traces import TracedDispatch, make_trace


def analyse(*traces, strict=False, process_ms=()):
    recording = Recording(traces=tuple(traces), process_ms=process_ms)
    context = AnalysisContext(recording, None, Options({STRICT.name: strict}))
    return RuntimeAnalyzer().analyze(context)


def test_runtime_is_the_mean_over_runs_of_summed_dispatch_time():
    first = make_trace([("a", 0, 100), ("b", 50, 250)])  # overlap counts twice: 300 ns
    second = make_trace([("a", 0, 140), ("b", 150, 410)])  # 400 ns

    application = analyse(first, second).facts[APPLICATION_TIME]

    assert application.runtime.value == pytest.approx(350e-6)
    assert application.runtime.exactness is Exactness.EXACT
    assert application.run_totals_ms == (300e-6, 400e-6)
    assert application.launches == 2


def test_modelled_times_are_exact_in_no_way():
    facts = analyse(make_trace([("a", 0, 100)], origin=Origin.MODELLED)).facts
    application = facts[APPLICATION_TIME]
    assert application.runtime_source.startswith("modelled: ")
    assert application.runtime.exactness is Exactness.ESTIMATE
    assert facts[KERNEL_TIMES]["a"].exactness is Exactness.ESTIMATE


def test_kernel_figures_over_runs_are_hand_computed():
    first = make_trace([("a", 0, 10), ("a", 20, 40), ("b", 50, 80)])
    second = make_trace([("a", 0, 30), ("a", 40, 80), ("b", 90, 120)])

    times = analyse(first, second).facts[KERNEL_TIMES]

    a = times["a"]
    assert a.total_ns == 50.0  # (30 + 70) / 2
    assert (a.mean_ns, a.median_ns, a.min_ns, a.max_ns) == (25.0, 25.0, 10, 40)
    assert a.launches == 2
    assert a.share == pytest.approx(100 / 160)
    assert list(times) == ["a", "b"]


def test_same_name_in_several_processes_is_one_kernel():
    trace = make_trace(
        [TracedDispatch("k", 0, 10, process=0), TracedDispatch("k", 5, 25, process=1)], machines=("n0", "n1")
    )

    times = analyse(trace).facts[KERNEL_TIMES]

    assert times["k"].launches == 2
    assert times["k"].total_ns == 30.0


def test_representative_shape_is_the_one_with_most_time():
    trace = make_trace(
        [
            TracedDispatch("k", 0, 10, grid=(64, 1, 1), workgroup=(64, 1, 1)),
            TracedDispatch("k", 20, 30, grid=(64, 1, 1), workgroup=(64, 1, 1)),
            TracedDispatch("k", 40, 90, grid=(128, 2, 1), workgroup=(128, 1, 1)),
        ]
    )

    kernel = analyse(trace).facts[KERNEL_TIMES]["k"]

    assert kernel.grid == (128, 2, 1)
    assert kernel.workgroup == (128, 1, 1)
    assert kernel.shape_count == 2


def test_counter_passes_alone_give_an_estimate_with_its_range():
    passes = [make_trace([TracedDispatch("k", 0, ns, counters={"SQ_WAVES": 1.0})]) for ns in (100, 300, 200)]

    outcome = analyse(*passes)

    application = outcome.facts[APPLICATION_TIME]
    assert application.runtime.exactness is Exactness.ESTIMATE
    assert application.range_ms == (100e-6, 300e-6)
    assert application.runtime.value == pytest.approx(200e-6)
    assert "time.estimated" in [d.code for d in outcome.diagnostics]


def test_one_dispatch_with_several_pass_durations_takes_the_median_of_the_distinct_ones():
    trace = make_trace([TracedDispatch("k", 0, 100, counters={"A": 1, "B": 1, "C": 1})])
    durations = np.array([100, 900, 200], dtype=np.int64)
    trace = attrs.evolve(trace, counters=attrs.evolve(trace.counters, duration_ns=durations))

    kernel = analyse(trace).facts[KERNEL_TIMES]["k"]

    assert kernel.total_ns == 200.0
    assert kernel.range_total_ns == (100.0, 900.0)


def test_counters_without_pass_durations_leave_the_dispatch_times():
    trace = make_trace([TracedDispatch("k", 0, 100, counters={"A": 1})])
    nothing = np.array([-1], dtype=np.int64)
    trace = attrs.evolve(trace, counters=attrs.evolve(trace.counters, duration_ns=nothing))

    assert analyse(trace).facts[KERNEL_TIMES]["k"].range_total_ns == (100.0, 100.0)


def test_strict_refuses_the_estimate_and_says_why():
    trace = make_trace([TracedDispatch("k", 0, 100, counters={"SQ_WAVES": 1.0})])

    application = analyse(trace, strict=True).facts[APPLICATION_TIME]

    assert application.runtime.value is None
    assert "strict" in application.runtime.reason


def test_zero_durations_make_the_runtime_unknown_not_zero():
    outcome = analyse(make_trace([("k", 5, 5), ("k", 9, 9)]))

    assert outcome.facts[APPLICATION_TIME].runtime.value is None
    assert "zero" in outcome.facts[APPLICATION_TIME].runtime.reason
    assert [d.count for d in outcome.diagnostics if d.code == "dispatch.zero_duration"] == [2]


def test_negative_durations_are_left_out_and_counted():
    outcome = analyse(make_trace([("k", 10, 5), ("k", 20, 30)]))

    assert outcome.facts[KERNEL_TIMES]["k"].total_ns == 10.0
    assert [d.count for d in outcome.diagnostics if d.code == "dispatch.negative_duration"] == [1]


def test_damage_that_the_reader_named_is_not_named_again():
    named = Diagnostic("dispatch.zero_duration", "2 dispatches have a duration of zero", count=2)
    trace = attrs.evolve(make_trace([("k", 5, 5), ("k", 9, 9)]), diagnostics=(named,))

    assert "dispatch.zero_duration" not in [d.code for d in analyse(trace).diagnostics]


def test_an_outlier_is_named_with_its_figures():
    name = "void space::k<float>(float*, int)"
    outcome = analyse(make_trace([(name, 0, 10), (name, 20, 30), (name, 40, 90)]))

    outlier = next(d for d in outcome.diagnostics if d.code == "dispatch.outlier")
    assert outlier.fact.endswith("50 ns against a median of 10 ns in k")

    outcome = analyse(make_trace([(name, 0, 1217), (name, 2000, 3217), (name, 4000, 733_007_332)]))
    outlier = next(d for d in outcome.diagnostics if d.code == "dispatch.outlier")
    assert outlier.fact.endswith("733 ms against a median of 1.217 us in k")


def test_process_times_stand_in_only_without_any_trace():
    application = analyse(process_ms=(10.0, 12.0)).facts[APPLICATION_TIME]

    assert application.runtime.value == 11.0
    assert "whole process" in application.runtime_source


def test_durations_beyond_the_packed_sort_key_are_still_exact():
    long_ns = (1 << 41) + 7

    kernel = analyse(make_trace([("k", 0, long_ns), ("k", 0, 3)])).facts[KERNEL_TIMES]["k"]

    assert (kernel.min_ns, kernel.max_ns, kernel.total_ns) == (3, long_ns, long_ns + 3)
