"""One run as numbers: sums per kernel over processes and machines, times of the application."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rpl_compare.comparison import CompareRequest, compare_pairs, compare_recordings, compare_unpaired
from rpl_compare.comparison.judging import EXIT_CODES, CompareRule, Method, Outcome, Verdict
from rpl_core.contracts.common import ArtefactDoc
from rpl_core.errors import DeviceMismatchError, NoVerdictError
from rpl_core.model.metric import Origin
from rpl_core.model.recording import Recording
from rpl_measure.samples import ItemKey, Kind, Statistic, observe, observe_process, samples_of
from rpl_measure.side import Loaded, check_comparable, make_side
from rpl_testkit.traces import TracedDispatch, make_trace, mi300x_agent

_UNKNOWN_GPU = "{} does not say which GPU it ran on, so equal devices can't be checked"
RUN = [("a", 0, 100), ("b", 100, 160), ("a", 200, 350)]


def side(label: str, *traces, **recording: object):
    loaded = Loaded(Recording(traces=traces, **recording))
    return make_side(label, loaded, Statistic.SUM, include_copies=False)


def measured(*rows, **more: object):
    return make_trace(*rows, origin=Origin.MEASURED, **more)


def test_times_of_a_run_by_hand() -> None:
    found = observe(make_trace(RUN), Statistic.SUM, include_copies=False)
    assert {name: k.time_ns for name, k in found.kernels.items()} == {"a": 250.0, "b": 60.0}
    assert (found.kernels["a"].launches, found.unnamed) == (2, 0)
    assert found.application[Kind.RUNTIME] == 310
    assert found.application[Kind.MAKESPAN] == 350
    assert found.application[Kind.CRITICAL_PATH] == 310


def test_the_median_stands_for_a_kernel_but_never_for_the_application() -> None:
    found = observe(make_trace([*RUN, ("a", 400, 520)]), Statistic.MEDIAN, include_copies=False)
    assert found.kernels["a"].time_ns == 120  # of 100 150 120
    assert found.application[Kind.RUNTIME] == 430


def test_machines_have_their_own_clocks() -> None:
    rows = [TracedDispatch("a", 0, 100), TracedDispatch("a", 10**12, 10**12 + 300, process=1)]
    trace = make_trace(rows, machines=("left", "right"))
    found = observe(trace, Statistic.SUM, include_copies=False)
    assert found.application[Kind.MAKESPAN] == 300  # never a difference of two clocks
    assert found.processes == 2
    assert found.kernels["a"].time_ns == 400


def test_unnamed_and_damaged_dispatches_are_counted_not_summed() -> None:
    trace = make_trace(RUN)
    rows = attrs.evolve(
        trace.dispatches,
        kernel=np.array([trace.dispatches.kernel[0], -1, trace.dispatches.kernel[2]], dtype=np.int32),
        end_ns=np.array([100, 160, 150], dtype=np.int64),
    )
    found = observe(attrs.evolve(trace, dispatches=rows), Statistic.SUM, include_copies=False)
    assert found.unnamed == 1
    assert found.kernels["a"].damaged == 1
    assert found.kernels["a"].time_ns == 100
    sample = samples_of([found])[ItemKey(Kind.KERNEL, "a")]
    assert sample.problem is not None
    assert "1 of its dispatches ends before the begin" in sample.problem


def test_shares_are_of_the_kernel_time() -> None:
    sample = samples_of([observe(make_trace(RUN), Statistic.SUM, include_copies=False)])
    assert sample[ItemKey(Kind.KERNEL, "a")].share == pytest.approx(250 / 310)


def test_counter_passes_alone_give_no_verdict() -> None:
    trace = make_trace([TracedDispatch("a", 0, 100, counters={"SQ_WAVES": 4.0})])
    with pytest.raises(NoVerdictError, match="BASE holds no kernel-trace run"):
        side("base", trace)


def test_a_profile_and_a_wall_clock_have_nothing_in_common() -> None:
    request = CompareRequest(CompareRule())
    traced, timed = Loaded(Recording((make_trace(RUN),))), Loaded(Recording((), process_ms=(5.0,)))
    with pytest.raises(NoVerdictError, match="no time of the same kind"):
        compare_recordings(traced, timed, request)
    assert observe_process(5.0).application == {Kind.PROCESS_TIME: 5e6}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"product": "AMD Instinct MI325X"}, "product"),
        ({"architecture": "gfx950"}, "architecture"),
        ({"compute_units": 38}, "compute units"),
        ({"compute_partition": "CPX"}, "compute partition"),
    ],
)
def test_other_gpus_and_partition_modes_are_refused(changes: dict, named: str) -> None:
    agent = attrs.evolve(mi300x_agent(), compute_partition="SPX")
    base = side("base", make_trace(RUN, agent=agent))
    new = side("new", make_trace(RUN, agent=attrs.evolve(agent, **changes)))
    with pytest.raises(DeviceMismatchError, match=named):
        check_comparable(base, new, allow_synthetic=False, forced=True)


def test_facts_that_one_side_lacks_are_no_difference() -> None:
    base = side("base", measured(RUN))
    new = side("new", measured(RUN, agent=attrs.evolve(mi300x_agent(), product=None, compute_units=None)))
    found = check_comparable(base, new, allow_synthetic=False, forced=False)
    assert (found.blocking, dict(found.incomparable)) == ((), {})


def test_a_side_that_does_not_name_its_gpu_is_told() -> None:
    base = side("base", measured(RUN))
    new = attrs.evolve(base, label="new", facts=tuple(attrs.evolve(fact, gpus=()) for fact in base.facts))
    for sides, nameless in (((base, new), "NEW"), ((new, base), "NEW"), ((base, base), None)):
        found = check_comparable(*sides, allow_synthetic=False, forced=False).diagnostics
        told = [one.fact for one in found if one.code == "compare.device_unknown"]
        assert told == ([] if nameless is None else [_UNKNOWN_GPU.format(nameless)])


@pytest.mark.parametrize(
    ("base", "new", "reasons"),
    [
        ((1, 1), (1, 1), ()),
        ((1, 2), (1, 1), ("the runs of BASE differ in processes (1, 2)",)),
        ((1, 1), (2, 2), ("BASE ran with 1 processes and NEW with 2",)),
    ],
)
def test_a_lost_process_would_look_like_a_gain(base, new, reasons) -> None:
    def with_processes(label: str, counts: tuple[int, ...]):
        one = side(label, *[measured(RUN) for _ in counts])
        runs = zip(one.runs, counts, strict=True)
        return attrs.evolve(one, runs=tuple(attrs.evolve(run, processes=count) for run, count in runs))

    sides = with_processes("base", base), with_processes("new", new)
    assert check_comparable(*sides, allow_synthetic=False, forced=False).blocking == reasons
    assert check_comparable(*sides, allow_synthetic=False, forced=True).blocking == ()


def test_pairs_share_alpha_over_their_looks() -> None:
    one = side("base", *[measured(RUN) for _ in range(10)])
    found = compare_pairs(
        one, attrs.evolve(one, label="new"), CompareRequest(CompareRule(alpha=0.02)), (5, 10)
    )
    assert found.method == Method(paired=True, alpha=0.01, looks=(5, 10))


def test_clocks_and_machines_are_told() -> None:
    base = side("base", make_trace(RUN))
    other = attrs.evolve(mi300x_agent("else"), clock_mhz=1900)
    new = side("new", make_trace(RUN, agent=other, machines=("else",)))
    codes = {d.code for d in check_comparable(base, new, allow_synthetic=False, forced=False).diagnostics}
    assert {"compare.clock_differs", "compare.machine_differs"} <= codes


@pytest.mark.parametrize(
    ("origin", "allowed", "blocked"),
    [
        (Origin.MEASURED, False, False),
        (Origin.SYNTHETIC, False, True),
        (Origin.SYNTHETIC, True, False),
        (Origin.MODELLED, False, True),
        (Origin.MODELLED, True, True),
    ],
)
def test_only_measured_data_pass_a_gate(origin: Origin, allowed: bool, blocked: bool) -> None:
    base = side("base", measured(RUN))
    new = side("new", make_trace(RUN, origin=origin))
    found = check_comparable(base, new, allow_synthetic=allowed, forced=True)
    assert bool(found.blocking) is blocked


def test_different_synchronisation_records_leave_the_critical_path_without_a_verdict() -> None:
    base = side("base", make_trace(RUN))
    new = side("new", make_trace(RUN))
    new = attrs.evolve(new, runs=tuple(attrs.evolve(run, sync_info="api_calls") for run in new.runs))
    found = check_comparable(base, new, allow_synthetic=False, forced=False)
    assert list(found.incomparable) == [ItemKey(Kind.CRITICAL_PATH, "critical_path")]


def test_a_makespan_with_calls_against_one_without_is_not_judged() -> None:
    """Recording calls takes time between kernels: of that no regression is made, and no pass (exit 75)."""
    base, new = (side(label, *[measured(RUN)] * 10) for label in ("base", "new"))
    new = attrs.evolve(new, facts=tuple(attrs.evolve(fact, api_traced=True) for fact in new.facts))
    request = CompareRequest(CompareRule())
    alike = compare_unpaired(base, attrs.evolve(new, facts=base.facts), request)
    assert alike.gate.outcome is Outcome.PASS
    mixed = compare_unpaired(base, new, request)
    (makespan,) = (item for item in mixed.items if item.key.kind is Kind.MAKESPAN)
    assert makespan.verdict is Verdict.INCONCLUSIVE
    assert makespan.evidence.shift is None
    assert EXIT_CODES[mixed.gate.outcome] == 75
    assert any("recorded API calls" in reason for reason in mixed.gate.reasons)
    (told,) = (d for d in mixed.diagnostics if "makespan" in d.fact)
    assert "--no-api" in (told.remedy or "")
    kernels = compare_unpaired(base, new, attrs.evolve(request, kernels=("",)))
    assert kernels.gate.outcome is Outcome.PASS


def test_files_that_every_run_of_a_machine_has_are_no_shared_recording() -> None:
    """A CSV set holds ``agent_info.csv``, which is the same bytes for all runs of one machine."""

    def recorded(label: str, *hashes: str):
        one = side(label, measured(RUN))
        files = tuple(
            ArtefactDoc(path=h, sha256=h, format="csv", role="timing", origin="measured") for h in hashes
        )
        return attrs.evolve(one, facts=(attrs.evolve(one.facts[0], artefacts=files),))

    def codes(base, new) -> set[str]:
        found = check_comparable(base, new, allow_synthetic=False, forced=False)
        return {diagnostic.code for diagnostic in found.diagnostics}

    base = recorded("base", "agents", "kernels of base")
    assert "compare.same_files" not in codes(base, recorded("new", "agents", "kernels of new"))
    assert "compare.same_files" in codes(base, recorded("new", "agents", "kernels of base"))
