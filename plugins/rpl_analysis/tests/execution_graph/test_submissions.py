"""Which call submitted which work, when ids are sparse, missing or shared."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rpl_analysis.execution_graph.graph import join_keys, number_keys, places

EVENT = 0xE1


@pytest.mark.parametrize("step", [1, 10**12])
def test_ids_may_lie_close_or_far_apart(program, edges_of, step) -> None:
    program.launch("a", 0, 10, stream=1)
    program.record(EVENT, 1)
    program.launch("later", 10, 90, stream=1)
    program.wait(2, EVENT)
    program.launch("b", 20, 30, stream=2)
    program.calls = [attrs.evolve(c, correlation_id=c.correlation_id * step) for c in program.calls]
    program.work = [attrs.evolve(w, correlation_id=w.correlation_id * step) for w in program.work]
    found = edges_of(program)
    assert found.of_kind("event") == {("a", "b")}
    assert found.found.program.submissions.call.tolist() == [0, 2, 4]


@pytest.mark.parametrize("step", [1, 10**12])
def test_equal_ids_of_two_processes_are_different_calls(edges_of, step) -> None:
    from rpl_testkit.programs import RecordedProgram

    program = RecordedProgram(machines=("node", "node"))
    for process in (0, 1):
        program.launch(f"w{process}", 10 * process, 10 * process + 5, process=process)
    same = step
    program.calls = [attrs.evolve(c, correlation_id=same) for c in program.calls]
    program.work = [attrs.evolve(w, correlation_id=same) for w in program.work]
    assert edges_of(program).found.program.submissions.call.tolist() == [0, 1]


def test_work_that_began_in_another_order_than_submitted_is_counted(program, edges_of) -> None:
    program.launch("second", 20, 30, stream=1)
    program.launch("first", 0, 10, stream=1)
    assert edges_of(program).found.submission_disagreements == 1


def test_work_of_one_call_that_is_no_graph_launch_runs_in_order(program) -> None:
    from rpl_analysis.execution_graph.build import execution_graph

    program.launch("part 1", 0, 10, stream=1, function="hipMemcpyAsync")
    program.launch("part 2", 10, 20, stream=1, same_call=True)
    graph = execution_graph(program.trace(), 0, include_copies=True)
    assert [(edge.kind, edge.confidence) for edge in graph.edges] == [("stream", "certain")]


@pytest.mark.parametrize(
    ("queue", "confidence", "certain_ns"), [(1, "probable", 20_000), (2, "guess", 20_000)]
)
def test_order_inside_a_graph_launch_is_not_certain(program, queue, confidence, certain_ns) -> None:
    from rpl_analysis.execution_graph.build import execution_graph

    program.launch("other", 0, 5, stream=2)
    program.launch("g1", 0, 10, stream=1, queue=1, function="hipGraphLaunch")
    program.launch("g2", 10, 30, stream=1, queue=queue, same_call=True)
    graph = execution_graph(program.trace(), 0, include_copies=True)
    assert [(edge.kind, edge.confidence) for edge in graph.edges] == [("graph_launch", confidence)]
    # Of a launch, no more than its longest node is certain to be on the path.
    assert (graph.bounds.certain_only_ns, graph.critical_path_ns) == (certain_ns, 30_000)
    assert graph.path_confidence == 0.0


def test_work_after_a_graph_launch_waits_for_each_of_its_branches(program, edges_of) -> None:
    program.launch("long branch", 0, 90, stream=1, queue=1, function="hipGraphLaunch")
    program.launch("short branch", 5, 20, stream=1, queue=2, same_call=True)
    program.record(EVENT, 1)
    program.wait(2, EVENT)
    program.launch("after", 100, 110, stream=2, queue=2)
    assert edges_of(program).of_kind("event") == {("long branch", "after"), ("short branch", "after")}


def test_numbers_of_keys_follow_their_order() -> None:
    for keys in ([5, 3, 3, 9], [5 * 10**12, 3, 3, 9 * 10**12]):
        distinct, index = number_keys(np.array(keys))
        assert index.tolist() == [1, 0, 0, 2]
        assert distinct[index].tolist() == keys


def test_joined_keys_are_equal_where_all_columns_are() -> None:
    columns = [np.array([1, 1, 2, 2, 1]), np.array([7, 7, 7, 7, 7]), np.array([-1, 0, -1, -1, -1])]
    _, index = number_keys(join_keys(columns))
    assert index.tolist() == [0, 1, 2, 2, 0]


def test_places_of_unknown_keys_are_minus_one() -> None:
    assert places(np.array([4, 5, 99]), np.array([4, 6])).tolist() == [0, -1, -1]
    assert places(np.array([4]), np.array([], dtype=np.int64)).tolist() == [-1]
