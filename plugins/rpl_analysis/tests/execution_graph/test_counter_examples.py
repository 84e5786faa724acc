"""The schedules of docs/reference/execution-graph.md, 4, on which other tools go wrong, as recordings.

Times in us.
"""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.execution_graph.build import execution_graph
from rpl_analysis.execution_graph.dependencies.all_edges import find_dependencies
from rpl_analysis.execution_graph.graph import work_nodes
from rpl_analysis.execution_graph.results.domain import machine_domains
from rpl_analysis.execution_graph.results.loads import host_timeline
from rpl_analysis.execution_graph.results.time_spent import IDLE_CAUSES, find_releases, idle_intervals
from rpl_core.model.trace import Trace
from rpl_testkit.programs import RecordedProgram

EVENT = 0xE1


def _graph(program: RecordedProgram, **options: bool):
    return execution_graph(program.trace(**options), 0, include_copies=True)


def _symbol(graph, name: str):
    return next(symbol for symbol in graph.symbols if symbol.name == name)


def _forecast(graph, name: str, speedup: float | None):
    forecast = next(forecast for forecast in graph.forecasts if forecast.name == name)
    return next(answer for answer in forecast.speedups if answer.speedup == speedup)


@pytest.fixture
def independent(program) -> RecordedProgram:
    for begin in (0, 100, 200):
        program.launch("L", begin, begin + 60, stream=1, queue=1)
        program.launch("B", begin + 62, begin + 98, stream=2, queue=2)
    return program


@pytest.mark.parametrize("with_calls", [True, False])
def test_independent_streams_get_no_edges_between_them(independent, with_calls) -> None:
    graph = _graph(independent, with_calls=with_calls)
    assert (graph.critical_path_ns, graph.dominant_symbol, graph.fraction) == (180_000, "L", 1.0)
    # Alone, all of B together may take 72 us longer.
    assert _symbol(graph, "B").min_slack_ns == 72_000
    assert _symbol(graph, "B").slack_ns == pytest.approx(72_000, rel=0.05)
    assert _symbol(graph, "B").slack_ns <= 72_000
    # Without B the path stays; only its late end (298 of 298 us, L ends at 260) goes.
    without = _forecast(graph, "B", None)
    gains = (38_000, None) if with_calls else (36_000, 108_000)
    assert without.critical_path_ns == 180_000
    assert (without.application_gain_ns, without.application_gain_at_most_ns) == gains
    assert graph.speedup_ceiling is None


def test_a_real_edge_counts_whatever_the_gap(program) -> None:
    program.launch("A", 0, 1000, stream=1, queue=1)
    program.record(EVENT, 1)
    program.wait(2, EVENT)
    program.launch("B", 1060, 2060, stream=2, queue=2)
    graph = _graph(program)
    assert graph.critical_path_ns == 2_000_000
    assert graph.breakdown.sync_wait_ns == 60_000


def test_the_recorded_edge_decides_and_not_the_nearest_end(program) -> None:
    program.launch("X", 0, 1000, stream=1)
    program.launch("Y", 980, 1001, stream=2)
    program.record(EVENT, 1)
    program.wait(3, EVENT)
    program.launch("B", 1002, 1102, stream=3)
    graph = _graph(program)
    assert graph.critical_path_ns == 1_100_000
    assert [segment.first_dispatch for segment in graph.segments] == [1, 3]


def test_overlap_on_one_queue_is_no_longer_than_the_makespan(program) -> None:
    program.launch("A", 0, 100, stream=0, queue=1)
    program.launch("B", 2, 100, stream=0, queue=1)
    program.launch("C", 0, 10, stream=0, queue=2)
    graph = _graph(program, with_calls=False)
    assert {edge.kind for edge in graph.edges} <= {"queue"}
    assert (graph.critical_path_ns, graph.makespan_ns, graph.chain_overlaps) == (100_000, 100_000, 1)


def test_gaps_limit_the_gain_as_executed(program) -> None:
    for i in range(10):
        program.launch("K", 100 * i, 100 * i + 10, stream=1, at_us=100 * i - 5)
    graph = _graph(program)
    assert (graph.critical_path_ns, graph.fraction, graph.speedup_ceiling) == (100_000, 1.0, None)
    best = _forecast(graph, "K", None)
    assert best.application_speedup == 910_000 / 810_000
    assert graph.makespan_ns == 910_000
    # Each launch call begins 5 us before its kernel: 85 of 90 us are the host's.
    assert attrs.astuple(graph.breakdown) == (100_000, 0, 9 * 5_000, 9 * 85_000, 0)
    assert attrs.astuple(graph.clock_domains[0].idle) == (9 * 85_000, 0, 9 * 5_000, 0, 0)


def test_waiting_for_the_return_of_a_synchronisation_is_not_blamed_on_the_host(program) -> None:
    program.launch("A", 0, 10, stream=1)
    program.call("hipDeviceSynchronize", until_us=16)
    program.launch("B", 30, 40, stream=1, at_us=21)
    graph = _graph(program)
    # 6 us until the wait returned, 5 us until the next call, 9 us until it had an effect.
    assert attrs.astuple(graph.clock_domains[0].idle) == (5_000, 6_000, 9_000, 0, 0)
    assert attrs.astuple(graph.breakdown) == (20_000, 0, 9_000, 5_000, 6_000)


@pytest.mark.parametrize(
    ("begin", "until", "is_copy", "launch_ns", "unrecorded_ns"),
    [
        (1_020, 22, False, 999_000, 0),
        (2_022, 22, False, 1_000, 2_000_000),
        (2_022, 2_000, False, 2_001_000, 0),  # the launch loads code first
        (2_022, 2_040, True, 0, 2_001_000),  # the call that copies returns when it has copied
    ],
)
def test_what_starts_long_after_its_launch_waited_for_something_unrecorded(
    program, begin, until, is_copy, launch_ns, unrecorded_ns
) -> None:
    program.launch("A", 0, 10, stream=1)
    program.launch("B", begin, begin + 10, stream=1, at_us=21, until_us=until, is_copy=is_copy)
    idle = attrs.astuple(_graph(program).clock_domains[0].idle)
    assert idle == (11_000, 0, launch_ns, unrecorded_ns, 0)


def _idle_calls(graph) -> dict:
    return {call.name: call.idle_ns for call in graph.clock_domains[0].idle_calls}


def test_idle_time_is_named_by_the_call_that_the_host_was_in(program) -> None:
    program.launch("A", 0, 10, stream=1)
    program.call("hipDeviceSynchronize", until_us=16)
    program.launch("B", 30, 40, stream=1, at_us=21)
    (domain,) = _graph(program).clock_domains
    # 6 us until the wait returned; 5 us in no call; the launching call returns within the 9 us that are left.
    named = {call.name: call.idle_ns for call in domain.idle_calls}
    assert named["hipDeviceSynchronize"] == 6_000
    assert sum(named.values()) == domain.idle_ns == 20_000
    assert sum(call.share for call in domain.idle_calls) == pytest.approx(1)
    assert _graph(program, with_calls=False).clock_domains[0].idle_calls == ()


def test_a_blocking_copy_without_recorded_copies_is_probably_a_copy(program) -> None:
    program.launch("A", 0, 10, stream=1)
    program.call("hipMemcpy", until_us=16)
    program.launch("B", 30, 40, stream=1, at_us=21)
    graph = _graph(program)
    assert graph.clock_domains[0].idle.copying_ns == _idle_calls(graph)["hipMemcpy"] == 6_000
    assert graph.clock_domains[0].idle.sync_ns == 0


def test_a_wait_behind_an_asynchronous_copy_without_recorded_copies_is_probably_a_copy(program) -> None:
    program.launch("A", 0, 10, stream=1)
    program.call("hipMemcpyAsync", until_us=11)
    program.call("hipDeviceSynchronize", until_us=16)
    program.launch("B", 30, 40, stream=1, at_us=21)
    program.call("hipDeviceSynchronize", until_us=46)  # nothing was copied since
    program.launch("C", 60, 70, stream=1, at_us=51)
    idle = _graph(program).clock_domains[0].idle
    # Half a us lies between the first two calls.
    assert (idle.copying_ns, idle.sync_ns) == (5_500, 6_000)
    cut = _idle_intervals(program)
    assert [(cause, until - since) for cause, since, until in cut if since < 30_000] == [
        *(("copying", 1_000), ("host", 500), ("copying", 4_500), ("host", 5_000), ("launch", 9_000)),
    ]
    for number, cause in enumerate(IDLE_CAUSES):
        assert sum(end - begin for name, begin, end in cut if name == cause) == attrs.astuple(idle)[number]


def _idle_intervals(program) -> list[tuple[str, int, int]]:
    """Cause, begin and end from the begin of the first work on."""
    trace = program.trace()
    nodes = work_nodes(trace, include_copies=True)
    dependencies = find_dependencies(trace, nodes)
    (domain,) = machine_domains(trace, nodes, dependencies)
    releases = find_releases(domain, host_timeline(trace, domain, dependencies))
    found = idle_intervals(nodes.begin_ns, nodes.end_ns, releases)
    begin, end = (column - nodes.begin_ns[0] for column in (found.begin_ns, found.end_ns))
    return [(IDLE_CAUSES[c], b, e) for c, b, e in zip(found.cause, begin.tolist(), end.tolist(), strict=True)]


def test_a_wait_for_what_had_ended_long_before_makes_no_wait_of_the_time_before_it(program) -> None:
    program.launch("A", 0, 10, stream=1)
    program.launch("S", 0, 5, stream=2)
    program.call("hipStreamSynchronize", stream=1, until_us=11)
    program.call("hipDeviceSynchronize", at_us=900, until_us=901)
    program.launch("B", 910, 920, stream=1, at_us=905)
    idle = _graph(program).clock_domains[0].idle
    assert attrs.astuple(idle) == (893_000, 2_000, 5_000, 0, 0)


def test_an_event_that_was_over_before_the_launch_held_nothing_back(program) -> None:
    program.launch("A", 0, 10, stream=1)
    program.record(7, stream=1)
    program.wait(2, event=7)
    program.launch("B", 24, 30, stream=2, at_us=20)
    assert attrs.astuple(_graph(program).clock_domains[0].idle) == (10_000, 0, 4_000, 0, 0)


def test_where_copies_are_recorded_waiting_for_them_is_no_guess(program) -> None:
    program.launch("A", 0, 10, stream=1)
    program.copy("HOST_TO_DEVICE", 11, 14, stream=1)
    program.call("hipMemcpy", until_us=16)
    program.launch("B", 30, 40, stream=1, at_us=21)
    graph = _graph(program)
    assert graph.clock_domains[0].idle.copying_ns == 0
    assert _idle_calls(graph)["hipMemcpy"] > 0


def test_without_api_calls_the_gaps_are_not_blamed_on_the_host(program) -> None:
    for i in range(10):
        program.launch("K", 100 * i, 100 * i + 10, stream=1)
    graph = _graph(program, with_calls=False)
    assert (graph.breakdown.launch_gap_ns, graph.breakdown.host_gap_ns) == (810_000, 0)
    assert not graph.gaps_attributed
    assert graph.clock_domains[0].idle.unattributed_ns == 810_000


def test_a_join_keeps_the_other_branch(program) -> None:
    program.launch("A", 0, 100, stream=1)
    program.record(EVENT, 1)
    program.launch("B", 0, 90, stream=2)
    program.wait(2, EVENT)
    program.launch("C", 100, 110, stream=2)
    graph = _graph(program)
    a = _symbol(graph, "A")
    assert a.speedup_ceiling == pytest.approx(11)
    assert a.path_ceiling == pytest.approx(1.1)
    assert a.application_ceiling == graph.application_ceiling == pytest.approx(1.1)
    assert graph.dominance[-1].dominant_symbol == "B"
    assert graph.dominance_shift_at == pytest.approx(100 / 90, abs=1e-3)
    (near,) = graph.near_paths
    assert (near.through, near.length_ns, near.slack_ns) == ("B", 100_000, 10_000)
    assert [(share.name, share.on_path_ns) for share in near.shares] == [("B", 90_000), ("C", 10_000)]


def test_every_process_counts() -> None:
    program = RecordedProgram(machines=("node", "node"))
    program.launch("short", 0, 10, process=0)
    program.launch("long", 5, 105, process=1)
    graph = _graph(program)
    assert graph.critical_path_ns == 100_000
    assert [(path.process, path.critical_path_ns) for path in graph.processes] == [
        (101, 100_000),
        (100, 10_000),
    ]


def test_machines_are_never_joined_nor_compared() -> None:
    program = RecordedProgram(machines=("a", "b"))
    program.launch("on a", 0, 10, stream=1, process=0)
    program.launch("on b", 1_000_000, 1_000_020, stream=1, process=1)
    graph = _graph(program)
    machines = [(domain.node, domain.makespan_ns) for domain in graph.clock_domains]
    assert machines == [
        ("a", 10_000),
        ("b", 20_000),
    ]
    assert graph.makespan_ns == 20_000


def test_synchronisation_on_one_machine_stays_there() -> None:
    program = RecordedProgram(machines=("a", "b"))
    for process in (0, 1):
        program.launch(f"first {process}", 0, 10, stream=1, process=process, thread=7, at_us=-20)
        program.call(
            "hipDeviceSynchronize", process=process, thread=7, at_us=-10 + process, until_us=12 + process
        )
        program.launch(f"second {process}", 30, 40, stream=2, process=process, thread=7, at_us=20 + process)
    graph = _graph(program)
    assert [domain.critical_path_ns for domain in graph.clock_domains] == [20_000, 20_000]
    assert graph.host_syncs == 4  # two synchronisations, two beginnings of threads


def test_copies_are_nodes_like_kernels(program) -> None:
    program.copy("HtoD", 0, 50, stream=1)
    program.launch("K", 50, 60, stream=1)
    graph = _graph(program)
    assert (graph.critical_path_ns, graph.breakdown.copy_ns) == (60_000, 50_000)
    without = execution_graph(program.trace(), 0, include_copies=False)
    assert without.critical_path_ns == 10_000


def test_the_bare_id_of_a_dispatch_identifies_nothing() -> None:
    """Ids restart in every process: the same ids in two processes are different nodes."""
    program = RecordedProgram(machines=("node", "node"))
    for process in (0, 1):
        program.launch("K", 100 * process, 100 * process + 10, process=process)
    trace = program.trace()
    ids = attrs.evolve(trace.dispatches, dispatch_id=trace.dispatches.dispatch_id * 0 + 1)
    graph = execution_graph(attrs.evolve(trace, dispatches=ids), 0, include_copies=True)
    assert graph.nodes == 2
    assert graph.critical_path_ns == 10_000


def test_a_graph_without_usable_work_says_so() -> None:
    program = RecordedProgram()
    trace: Trace = program.trace()
    graph = execution_graph(trace, 0, include_copies=True)
    assert graph.reason == "no dispatch with usable times was recorded"


@pytest.mark.parametrize("with_calls", [True, False])
def test_order_in_a_stream_holds_over_any_gap(program, with_calls) -> None:
    """A tool that cuts a stream at gaps above 1.5 ms lets the later kernel float to the beginning."""
    program.launch("A", 0, 100, stream=1)
    program.launch("B", 2_000_100, 2_000_200, stream=1)
    graph = _graph(program, with_calls=with_calls)
    assert (graph.critical_path_ns, graph.makespan_ns) == (200_000, 2_000_200_000)
    assert [(edge.kind, edge.confidence) for edge in graph.edges] == [("stream", "certain")]


def test_a_kernel_that_waits_for_two_streams_keeps_both(program) -> None:
    """Remembering only the last source of a wait loses the branch that decides."""
    program.launch("long", 0, 100, stream=1)
    program.record(EVENT, 1)
    program.launch("short", 0, 30, stream=2)
    program.record(EVENT + 1, 2)
    program.wait(3, EVENT)
    program.wait(3, EVENT + 1)
    program.launch("join", 110, 120, stream=3)
    graph = _graph(program)
    assert sum(edge.count for edge in graph.edges if edge.kind == "event") == 2
    assert graph.critical_path_ns == 110_000
    assert _symbol(graph, "short").min_slack_ns == 70_000


def test_every_branch_of_a_graph_launch_keeps_what_ran_before_and_after_it(program) -> None:
    """100 before the launch, 80 of its longest branch, 20 behind: a path of 200, in us."""
    program.launch("before", 0, 100, stream=1)
    program.record(EVENT, 1)
    program.wait(2, EVENT)
    program.launch("short", 105, 125, stream=2, queue=2, function="hipGraphLaunch")
    program.launch("long", 106, 186, stream=2, queue=3, same_call=True)
    program.launch("late", 130, 187, stream=2, queue=2, same_call=True)
    program.record(EVENT + 1, 2)
    program.wait(3, EVENT + 1)
    program.launch("after", 190, 210, stream=3)
    found = _graph(program)
    assert sum(edge.count for edge in found.edges if edge.kind == "event") == 2 + 2
    assert found.critical_path_ns == 200_000
    # Without the long branch: 100, 20 and 57 of the other, 20.
    assert _forecast(found, "long", None).critical_path_ns == 197_000
