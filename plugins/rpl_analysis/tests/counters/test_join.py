"""Counter passes become one table: joined by occurrence, compared, never added up."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rpl_analysis.counters.join import JoinRules, WaveCheck
from rpl_analysis.counters.join import join_counters as joined_by
from rpl_core.model.diagnostic import Severity
from rpl_testkit.traces import mi300x_agent


def join_counters(recording, same_pass=()):
    """Joined with what is known of a GPU whose kernels have waves of 64 lanes."""
    return joined_by(recording, JoinRules(same_pass, ("SQ_ACCUM_PREV",), WaveCheck("SQ_WAVES", (64,))))


def _codes(joined):
    return [diagnostic.code for diagnostic in joined.diagnostics]


def test_instances_of_a_dispatch_are_summed(counter_pass, with_instances, recording):
    rows = [(0, "TCC_HIT", 0, 3.0), (0, "TCC_HIT", 1, 4.0), (1, "TCC_HIT", 0, 10.0), (1, "TCC_HIT", 1, 0.0)]
    trace = with_instances(counter_pass({"TCC_HIT": 0}, {"TCC_HIT": 0}), rows)
    kernel = join_counters(recording(trace)).kernels["kernel"]
    assert kernel.columns["TCC_HIT"].tolist() == [7.0, 10.0]


def test_a_recorded_sum_displaces_the_rows_per_instance(counter_pass, with_instances, recording):
    rows = [(0, "A", 0, 3.0), (0, "A", 1, 4.0), (0, "A", -1, 7.0)]
    joined = join_counters(recording(with_instances(counter_pass({"A": 0}), rows)))
    assert joined.kernels["kernel"].columns["A"].tolist() == [7.0]


def test_the_same_counter_of_two_passes_is_not_added_up(counter_pass, recording):
    joined = join_counters(recording(counter_pass({"A": 5.0}), counter_pass({"A": 5.0})))
    kernel = joined.kernels["kernel"]
    assert kernel.launches == 1
    assert kernel.columns["A"].tolist() == [5.0]
    assert joined.diagnostics == ()


def test_passes_that_disagree_are_told_and_the_first_counts(counter_pass, recording):
    joined = join_counters(recording(counter_pass({"A": 100.0}), counter_pass({"A": 50.0})))
    assert joined.kernels["kernel"].columns["A"].tolist() == [100.0]
    assert _codes(joined) == ["counters.passes_disagree"]
    assert "50 %" in joined.diagnostics[0].fact


def test_a_scatter_of_four_percent_is_no_disagreement(counter_pass, recording):
    assert join_counters(recording(counter_pass({"A": 100.0}), counter_pass({"A": 96.0}))).diagnostics == ()


def test_the_fullest_pass_is_preferred(counter_pass, recording):
    joined = join_counters(recording(counter_pass({"A": 1.0}), counter_pass({"A": 1.02, "B": 1.0, "C": 1.0})))
    assert joined.kernels["kernel"].columns["A"].tolist() == [1.02]


def test_members_of_a_group_come_from_the_pass_that_holds_the_group(counter_pass, recording):
    lonely = counter_pass({"RDREQ_sum": 100.0, "X": 0.0, "Y": 0.0})
    together = counter_pass({"RDREQ_sum": 101.0, "BUBBLE_sum": 40.0})
    group = (("RDREQ", "BUBBLE"),)
    kernel = join_counters(recording(lonely, together), group).kernels["kernel"]
    assert kernel.sums(("RDREQ", "BUBBLE")).values == {"RDREQ": 101.0, "BUBBLE": 40.0}


def test_launches_join_by_occurrence_though_dispatch_ids_differ(counter_pass, recording):
    first = counter_pass(("a", {"A": 1.0}), ("b", {"A": 2.0}), ("a", {"A": 3.0}))
    second = counter_pass(("b", {"B": 20.0}), ("a", {"B": 10.0}), ("a", {"B": 30.0}))
    kernels = join_counters(recording(first, second)).kernels
    assert list(kernels) == ["a", "b"]
    assert kernels["a"].columns["A"].tolist() == [1.0, 3.0]
    assert kernels["a"].columns["B"].tolist() == [10.0, 30.0]
    assert kernels["b"].columns["B"].tolist() == [20.0]


def test_occurrences_follow_submission_order_not_start_order(counter_pass, recording):
    trace = counter_pass({"A": 1.0}, {"A": 2.0})
    swapped = attrs.evolve(trace.dispatches, dispatch_id=trace.dispatches.dispatch_id[::-1].copy())
    kernel = join_counters(recording(attrs.evolve(trace, dispatches=swapped))).kernels["kernel"]
    assert kernel.columns["A"].tolist() == [2.0, 1.0]


def test_processes_do_not_mix(counter_pass, recording):
    trace = counter_pass({"A": 1.0}, {"A": 2.0})
    two = attrs.evolve(
        trace,
        processes=(*trace.processes, attrs.evolve(trace.processes[0], guid="other")),
        dispatches=attrs.evolve(trace.dispatches, process=np.array([1, 0], dtype=np.int32)),
    )
    kernel = join_counters(recording(two, counter_pass({"B": 7.0}))).kernels["kernel"]
    assert kernel.columns["A"].tolist() == [2.0, 1.0]
    assert kernel.columns["B"][0] == 7.0
    assert np.isnan(kernel.columns["B"][1])


def test_another_geometry_in_a_later_pass_gives_nothing(counter_pass, recording):
    joined = join_counters(recording(counter_pass({"A": 1.0}), counter_pass({"B": 1.0}, grid=(512, 1, 1))))
    assert set(joined.kernels["kernel"].columns) == {"A"}
    assert _codes(joined) == ["counters.geometry_mismatch"]


def test_a_wave_count_that_is_wrong_is_reported_with_the_first_file_of_its_pass(counter_pass, recording):
    trace = counter_pass({"SQ_WAVES": 3072.0})
    trace = attrs.evolve(trace, source=attrs.evolve(trace.source, paths=("first", "second")))
    (diagnostic,) = join_counters(recording(trace)).diagnostics
    assert (diagnostic.where, diagnostic.count) == ("first", 1)


def test_summed_passes_are_unmasked_by_their_wave_count(counter_pass, recording):
    # 65536 work-items are 1024 waves; a build that adds three passes up reports 3072.
    joined = join_counters(recording(counter_pass({"SQ_WAVES": 3072.0, "A": 9.0}), counter_pass({"B": 1.0})))
    assert set(joined.kernels["kernel"].columns) == {"B"}
    assert _codes(joined) == ["counters.waves_mismatch"]
    assert joined.diagnostics[0].severity is Severity.ERROR


@pytest.mark.parametrize(("waves", "used"), [(1024, True), (1034, True), (1036, False), (1012, False)])
def test_waves_may_be_off_by_one_percent(counter_pass, recording, waves, used):
    columns = join_counters(recording(counter_pass({"SQ_WAVES": float(waves)}))).kernels["kernel"].columns
    assert ("SQ_WAVES" in columns) is used


def test_a_partial_workgroup_still_has_whole_waves(counter_pass, recording):
    # 3 workgroups of 100 work-items: two waves of 64 each.
    joined = join_counters(
        recording(counter_pass({"SQ_WAVES": 6.0}, workgroup=(100, 1, 1), grid=(300, 1, 1)))
    )
    assert joined.diagnostics == ()


@pytest.mark.parametrize("waves", [2048.0, 1024.0])
def test_a_gpu_of_wave32_may_run_wave64_kernels(counter_pass, recording, waves):
    trace = counter_pass({"SQ_WAVES": waves})
    agent = attrs.evolve(mi300x_agent(), wave_size=32)
    assert join_counters(recording(attrs.evolve(trace, agents=(agent,)))).diagnostics == ()


def test_waves_are_checked_only_where_the_counter_and_a_wave_size_are_known(counter_pass, recording):
    wrong = counter_pass({"WAVES": 5.0})
    agent = attrs.evolve(mi300x_agent(), wave_size=None)
    assert joined_by(recording(wrong)).diagnostics == ()
    assert _codes(joined_by(recording(wrong), JoinRules(waves=WaveCheck("WAVES")))) == [
        "counters.waves_mismatch"
    ]
    unsized = recording(attrs.evolve(wrong, agents=(agent,)))
    assert joined_by(unsized, JoinRules(waves=WaveCheck("WAVES"))).diagnostics == ()


def test_unknown_geometry_is_not_checked(counter_pass, recording):
    joined = join_counters(recording(counter_pass({"SQ_WAVES": 5.0}, grid=(-1, -1, -1))))
    assert joined.kernels["kernel"].columns["SQ_WAVES"].tolist() == [5.0]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_impossible_readings_are_left_out_and_counted(counter_pass, recording, value):
    joined = join_counters(recording(counter_pass({"A": value}, {"A": 2.0})))
    column = joined.kernels["kernel"].columns["A"]
    assert np.isnan(column[0])
    assert column[1] == 2.0
    assert [(d.code, d.count) for d in joined.diagnostics] == [("counters.invalid_value", 1)]


def test_a_sum_never_lacks_instances_silently(counter_pass, with_instances, recording):
    rows = [(0, "A", 0, 1.0), (0, "A", 1, 1.0), (1, "A", 0, 1.0)]
    joined = join_counters(recording(with_instances(counter_pass({"A": 0}, {"A": 0}), rows)))
    column = joined.kernels["kernel"].columns["A"]
    assert column[0] == 2.0
    assert np.isnan(column[1])
    assert _codes(joined) == ["counters.instances_incomplete"]


def test_gpus_may_differ_in_their_number_of_instances(counter_pass, with_instances, recording):
    rows = [(0, "A", 0, 1.0), (0, "A", 1, 1.0), (1, "A", 0, 5.0)]
    trace = with_instances(counter_pass({"A": 0}, {"A": 0}), rows)
    two_gpus = attrs.evolve(
        trace,
        agents=(*trace.agents, attrs.evolve(trace.agents[0], index=9)),
        dispatches=attrs.evolve(trace.dispatches, agent=np.array([0, 1], dtype=np.int32)),
    )
    joined = join_counters(recording(two_gpus))
    assert joined.kernels["kernel"].columns["A"].tolist() == [2.0, 5.0]
    assert joined.diagnostics == ()


def test_repeated_readings_are_not_added(counter_pass, with_instances, recording):
    rows = [(0, "A", 0, 5.0), (0, "A", 0, 5.0), (0, "A", 1, 1.0)]
    joined = join_counters(recording(with_instances(counter_pass({"A": 0}), rows)))
    assert joined.kernels["kernel"].columns["A"].tolist() == [6.0]
    assert _codes(joined) == ["counters.repeated_reading"]


def test_accumulators_that_differ_in_meaning_per_pass_are_left_out(counter_pass, recording):
    one, other = (
        counter_pass({"SQ_ACCUM_PREV_HIRES": 9.0}),
        counter_pass({"SQ_ACCUM_PREV_HIRES": 1.0, "A": 1.0}),
    )
    joined = join_counters(recording(one, other))
    assert set(joined.kernels["kernel"].columns) == {"A"}
    assert joined.diagnostics == ()


def test_the_sum_of_the_profiler_comes_before_rows_per_instance(counter_pass, recording):
    kernel = join_counters(recording(counter_pass({"A": 7.0, "A_sum": 8.0}))).kernels["kernel"]
    assert kernel.recorded_name("A") == "A_sum"
    assert kernel.sums(("A",)).values == {"A": 8.0}


def test_sums_span_only_launches_that_have_every_counter(counter_pass, recording):
    joined = join_counters(recording(counter_pass({"A": 1.0}, {"A": 2.0}), counter_pass({"B": 10.0})))
    sums = joined.kernels["kernel"].sums(("A", "B"))
    assert (sums.values, sums.launches) == ({"A": 1.0, "B": 10.0}, 1)


def test_the_order_of_counter_rows_does_not_matter(counter_pass, recording):
    trace = counter_pass(*({"A": float(i), "B": float(2 * i)} for i in range(8)))
    order = np.random.default_rng(7).permutation(len(trace.counters))
    shuffled = attrs.evolve(
        trace.counters,
        **{f: getattr(trace.counters, f)[order] for f in ("dispatch", "counter", "instance", "value")},
    )
    straight = join_counters(recording(trace)).kernels["kernel"].columns
    mixed = join_counters(recording(attrs.evolve(trace, counters=shuffled))).kernels["kernel"].columns
    assert {n: c.tolist() for n, c in straight.items()} == {n: c.tolist() for n, c in mixed.items()}


def test_dispatches_without_a_kernel_have_no_place(counter_pass, recording):
    trace = counter_pass({"A": 1.0}, {"A": 2.0})
    nameless = attrs.evolve(trace.dispatches, kernel=np.array([0, -1], dtype=np.int32))
    joined = join_counters(recording(attrs.evolve(trace, dispatches=nameless)))
    assert joined.kernels["kernel"].columns["A"].tolist() == [1.0]
    assert _codes(joined) == ["counters.unknown_kernel"]


def test_no_counter_pass_gives_an_empty_table(recording):
    assert join_counters(recording()).kernels == {}


def test_groups_that_took_turns_are_joined_launch_by_launch(counter_pass, recording):
    """A and B, then C and B, and so on; the last launch of the first group has no partner."""
    launches = [{"A": 1.0, "B": 5.0}, {"B": 7.0, "C": 2.0}, {"A": 3.0, "B": 6.0}, {"B": 8.0, "C": 4.0}]
    joined = join_counters(recording(counter_pass(*launches, {"A": 9.0, "B": 9.0})))
    kernel = joined.kernels["kernel"]
    assert kernel.in_turns
    sums = kernel.sums(("A", "B", "C"))
    assert (sums.launches, sums.values) == (2, {"A": 4.0, "B": 11.0, "C": 6.0})  # B of the first group alone
    assert _codes(joined) == ["counters.turns_joined"]


def test_readings_that_a_launch_lost_are_no_turns(counter_pass, recording):
    kernel = join_counters(recording(counter_pass({"A": 1.0, "B": 2.0}, {"A": 3.0}))).kernels["kernel"]
    assert not kernel.in_turns
    assert kernel.sums(("A", "B")).launches == 1


def test_passes_of_their_own_are_no_turns(counter_pass, recording):
    joined = join_counters(recording(counter_pass({"A": 1.0}), counter_pass({"B": 2.0})))
    assert not joined.kernels["kernel"].in_turns
