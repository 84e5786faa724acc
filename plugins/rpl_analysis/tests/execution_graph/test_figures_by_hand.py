"""Figures of small graphs, computed by hand from the definitions of docs/reference/execution-graph.md, 3."""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.execution_graph.analyzer import why_no_graph
from rpl_analysis.execution_graph.build import execution_graph
from rpl_core.model.recording import Recording
from rpl_testkit.programs import RecordedProgram

EVENT = 0xE1


def _graph(program: RecordedProgram, **options: bool):
    return execution_graph(program.trace(**options), 0, include_copies=True)


def test_slack_and_parallelism_of_work_beside_the_path(program) -> None:
    program.launch("L", 0, 100, stream=1)
    for stream, end in ((2, 10), (3, 20), (4, 40)):
        program.launch("B", 0, end, stream=stream)
    graph = _graph(program)
    beside = next(symbol for symbol in graph.symbols if symbol.name == "B")
    # 100 - 40, 100 - 20, 100 - 10: the least and the (lower) median.
    assert (beside.min_slack_ns, beside.median_slack_ns, beside.critical_nodes) == (60_000, 80_000, 0)
    (machine,) = graph.clock_domains
    assert (machine.total_ns, machine.busy_ns, machine.parallelism) == (170_000, 100_000, 1.7)


def test_the_median_of_four_is_the_lower_one(program) -> None:
    program.launch("L", 0, 100, stream=1)
    for stream in (2, 3, 4, 5):
        program.launch("B", 0, 10 * stream, stream=stream)
    beside = next(symbol for symbol in _graph(program).symbols if symbol.name == "B")
    assert (beside.min_slack_ns, beside.median_slack_ns) == (50_000, 60_000)


@pytest.mark.parametrize("by_queue", [False, True])
def test_a_segment_names_its_first_and_last_dispatch_and_its_lane(program, by_queue) -> None:
    for i in range(3):
        program.launch("K", 10 * i, 10 * i + 10, stream=5, queue=7)
    trace = attrs.evolve(program.trace(), grouped_by_queue=by_queue)
    (segment,) = execution_graph(trace, 0, include_copies=True).segments
    assert (segment.first_dispatch, segment.last_dispatch) == (1, 3)
    assert (segment.stream, segment.queue) == ((None, 7) if by_queue else (5, None))


def test_edges_are_counted_without_those_that_hold_overlaps_together(program) -> None:
    program.launch("A", 0, 100, stream=1, queue=1)
    program.launch("B", 50, 150, stream=1, queue=1)
    program.launch("C", 200, 210, stream=1, queue=1)
    program.record(EVENT, 1)
    program.wait(2, EVENT)
    program.launch("D", 220, 230, stream=2, queue=2)
    counted = {(edge.kind, edge.confidence): edge.count for edge in _graph(program).edges}
    assert counted == {("stream", "certain"): 2, ("event", "certain"): 1}


def test_the_device_of_a_thread_is_the_one_that_it_chose_first_too(edges_of) -> None:
    program = RecordedProgram(gpus=2)
    program.call("hipSetDevice", device=1, thread=1)
    program.launch("on 1", 0, 10, stream=1, gpu=1, queue=1, thread=1)
    for i in range(3):
        program.launch(f"on 0, {i}", 3 * i, 3 * i + 1, stream=2, gpu=0, queue=2, thread=2)
    program.call("hipDeviceSynchronize", until_us=12, thread=1)
    program.launch("after", 30, 40, stream=3, gpu=1, queue=1, thread=1)
    in_stream = {("on 0, 0", "on 0, 1"), ("on 0, 1", "on 0, 2")}
    assert edges_of(program).between_work() == {("on 1", "after"), *in_stream}


def test_guesses_stay_inside_a_process_whichever_it_is(edges_of) -> None:
    program = RecordedProgram(machines=("node", "node"))
    for process, late in ((0, 1_000), (1, 2_000)):
        for i, begin in enumerate((0, 12, 24, late)):
            program.launch(f"own {process} {i}", begin, begin + 10, stream=1, process=process)
        program.launch(f"cause {process}", 5, late - 2, stream=2, process=process)
    found = edges_of(program.trace(with_calls=False))
    assert found.of_kind("inferred") == {("cause 0", "own 0 3"), ("cause 1", "own 1 3")}


def test_work_without_a_call_is_no_part_of_a_graph_launch(program) -> None:
    program.launch("a", 20, 30, stream=1, function="hipGraphLaunch")
    program.launch("b", 30, 40, stream=1, same_call=True)
    program.launch("z", 0, 10, stream=1)
    program.work = [attrs.evolve(w, correlation_id=0) if w.name == "z" else w for w in program.work]
    graph = _graph(program, with_calls=False)
    # With certain edges a launch counts no more than its longest node (2.6): z, and a or b.
    assert (graph.critical_path_ns, graph.bounds.certain_only_ns) == (30_000, 20_000)


def test_why_there_is_no_graph() -> None:
    assert why_no_graph(Recording((), process_ms=(1.5,))) == "only the process was timed: no GPU trace exists"
    assert why_no_graph(Recording(())) == "no kernel dispatch was recorded"
