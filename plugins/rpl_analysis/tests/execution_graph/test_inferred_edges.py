"""Guesses from timestamps: only where nothing better is recorded, and never part of the reported path."""

from __future__ import annotations

import attrs

from rpl_analysis.execution_graph.build import execution_graph
from rpl_testkit.programs import RecordedProgram


def _late_node(program, ended_us=148):
    """Stream 2 runs every 20 us; once it begins late, at 150, after a long kernel of stream 1 ended."""
    for i in range(6):
        program.launch(f"x{i}", 20 * i, 20 * i + 10, stream=2)
    program.launch("long", 0, ended_us, stream=1)
    program.launch("late", 150, 160, stream=2)
    return program


def test_a_begin_that_its_own_stream_does_not_explain_gets_a_guess(program, edges_of) -> None:
    found = edges_of(_late_node(program).trace(with_calls=False))
    assert found.all() == [("long", "late", "inferred", "guess")]


def test_an_end_long_before_explains_nothing(program, edges_of) -> None:
    assert edges_of(_late_node(program, ended_us=140).trace(with_calls=False)).all() == []


def test_guesses_widen_the_bounds_and_leave_the_path_alone(program) -> None:
    graph = execution_graph(_late_node(program).trace(with_calls=False), 0, include_copies=True)
    assert graph.critical_path_ns == 148_000
    assert (graph.bounds.certain_only_ns, graph.bounds.all_edges_ns) == (148_000, 158_000)


def test_nothing_is_guessed_where_synchronisation_is_recorded(program, edges_of) -> None:
    assert edges_of(_late_node(program)).of_kind("inferred") == set()


def test_regular_gaps_are_explained_by_their_own_stream(program, edges_of) -> None:
    for i in range(6):
        program.launch(f"x{i}", 20 * i, 20 * i + 10, stream=2)
        program.launch(f"y{i}", 20 * i + 11, 20 * i + 19, stream=1)
    assert edges_of(program.trace(with_calls=False)).all() == []


def test_one_process_is_no_explanation_for_another(edges_of) -> None:
    program = _late_node(RecordedProgram(machines=("node", "node")))
    program.work = [attrs.evolve(work, process=1) if work.name == "long" else work for work in program.work]
    assert edges_of(program.trace(with_calls=False)).all() == []
