"""What the text report says about the execution graph."""

from __future__ import annotations

import pytest

from rpl_analysis.contracts.dag import DagDocument
from rpl_analysis.documents.dag import dag_document
from rpl_analysis.execution_graph.build import execution_graph
from rpl_report.text.path import path_section
from rpl_testkit.programs import RecordedProgram


@pytest.fixture
def program() -> RecordedProgram:
    return RecordedProgram()


def _text(program: RecordedProgram, **options: bool) -> str:
    graph = execution_graph(program.trace(**options), 0, include_copies=True)
    return path_section(DagDocument.model_validate(dag_document(graph)))


def test_the_report_shows_the_path_the_makespan_and_the_gains(program) -> None:
    for i in range(10):
        program.launch("K", 100 * i, 100 * i + 10, stream=1, at_us=100 * i - 5)
    assert _text(program).splitlines() == [
        (
            "critical path  100 us of 910 us makespan, 100.0% of it in K; "
            "speed-up ceiling of that kernel unbounded (it is the whole path)"
        ),
        "  makespan: kernels 11.0%, launch gaps 4.9%, host 84.1%",
        "",
        "what if faster by   1.25x    1.5x      2x    free",
        "K                  1.022x  1.038x  1.058x  1.123x",
    ]


def test_gaps_of_unknown_cause_are_named_so(program) -> None:
    for i in range(10):
        program.launch("K", 100 * i, 100 * i + 10, stream=1)
    assert "gaps (launch and host) 89.0%" in _text(program, with_calls=False)


def test_bounds_are_shown_where_they_differ(program) -> None:
    program.launch("g1", 0, 10, stream=1, function="hipGraphLaunch")
    program.launch("g2", 10, 30, stream=1, same_call=True)
    assert "  between 20 us (certain edges only) and 30 us (with guesses)" in _text(program)


def test_the_shift_of_dominance_names_the_next_kernel(program) -> None:
    program.launch("A", 0, 100, stream=1)
    program.launch("B", 100, 150, stream=1)
    assert "(from 2.04x on, B dominates the critical path)" in _text(program)


def test_names_cannot_control_the_terminal(program) -> None:
    program.launch("K\x1b[31m", 0, 10, stream=1)
    assert "\x1b" not in _text(program)


def test_without_a_graph_the_reason_is_given() -> None:
    assert _text(RecordedProgram()) == "critical path  unknown: no dispatch with usable times was recorded"
