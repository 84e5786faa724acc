"""What the text report says about the execution graph."""

from __future__ import annotations

import pytest

from rpl_analysis.contracts.dag import DagDocument
from rpl_analysis.documents import dag_document
from rpl_analysis.execution_graph.build import execution_graph
from rpl_report.text import path_section
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
            "at no cost of that the application would be 1.123x as fast"
        ),
        "  GPU time: kernels 11.0%, idle 89.0% (host 84.1%, launch 4.9%)",
        "  of the idle time the host was in: no call 99.4%, hipLaunchKernel 0.6%",
        "",
        "what if faster by   1.25x    1.5x      2x    free",
        "K                  1.022x  1.038x  1.058x  1.123x",
    ]


def test_gaps_of_unknown_cause_are_named_so(program) -> None:
    for i in range(10):
        program.launch("K", 100 * i, 100 * i + 10, stream=1)
    text = _text(program, with_calls=False)
    assert "idle 89.0% (cause not recorded 89.0%)" in text
    assert "at most 1.123x as fast (no API calls recorded: every gap stays as it was)" in text


def test_all_streams_count_in_what_the_gpu_did(program) -> None:
    """The lane of the last kernel is idle for 90 of 100 us, the GPU for 20."""
    program.launch("long", 0, 70, stream=1)
    program.copy("MEMORY_COPY_HOST_TO_DEVICE", 40, 80, stream=3)
    program.launch("last", 90, 100, stream=2, at_us=85)
    text = _text(program)
    assert "GPU time: kernels 80.0%, copies alone 10.0%, idle 10.0%" in text


def test_unknown_order_of_streams_gives_a_bracket(program) -> None:
    program.launch("A", 0, 100, stream=1)
    program.launch("B", 200, 300, stream=2)
    text = _text(program, with_calls=False)
    assert "path between 100 us (certain dependencies only) and 200 us (under any order of streams)" in text
    assert "1.000x to 1.500x as fast (no API calls recorded: which of the 2 streams waited" in text


def test_gains_rest_on_the_order_in_which_several_threads_submit(program) -> None:
    """A thread that comes back earlier may submit before another: which one would is in no recording."""
    for i in range(4):
        program.launch("K", 100 * i, 100 * i + 50, stream=1, at_us=100 * i - 5, thread=i % 2)
    assert "  gains hold while the 2 host threads submit in the same order" in _text(program).splitlines()


def test_without_calls_nobody_knows_how_many_threads_submitted(program) -> None:
    for stream in (1, 2):
        program.launch("K", 100 * stream, 100 * stream + 50, stream=stream)
    said = "  gains hold while the host submits in the same order, whatever its threads"
    assert said in _text(program, with_calls=False).splitlines()


def test_copies_are_named_where_they_dominate(program) -> None:
    program.copy("MEMORY_COPY_HOST_TO_DEVICE", 0, 75, stream=1)
    program.launch("gemm", 75, 100, stream=1)
    text = _text(program)
    assert "75.0% of it in memory copy host to device; at no cost of that the" in text
    assert "application would be 4.000x as fast" in text
    assert "(from 3x on, gemm dominates the critical path)" in text


def test_bounds_are_shown_where_they_differ(program) -> None:
    program.launch("g1", 0, 10, stream=1, function="hipGraphLaunch")
    program.launch("g2", 10, 30, stream=1, same_call=True)
    assert "  path between 20 us (certain dependencies only) and 30 us (with guesses)" in _text(program)


def test_the_shift_of_dominance_names_the_next_kernel(program) -> None:
    program.launch("A", 0, 100, stream=1)
    program.launch("B", 100, 150, stream=1)
    assert "(from 2x on, B dominates the critical path)" in _text(program)


def test_names_cannot_control_the_terminal(program) -> None:
    program.launch("K\x1b[31m", 0, 10, stream=1)
    assert "\x1b" not in _text(program)


@pytest.mark.parametrize(
    ("number", "first", "last"),
    [
        (1, "1 wait for an event of an unknown stream gave", "1 neighbour of a stream began"),
        (2, "2 waits for events of an unknown stream gave", "2 neighbours of a stream began"),
    ],
)
def test_doubts_of_the_page_have_the_number_of_their_noun(program, number, first, last) -> None:
    from rpl_report.html.path_view import _doubts

    program.launch("K", 0, 10, stream=1)
    document = dag_document(execution_graph(program.trace(), 0, include_copies=True))
    dag = DagDocument.model_validate(document)
    every = dict.fromkeys(type(dag.unresolved).model_fields, number)
    own = dict.fromkeys(("inconsistent_edges", "chain_overlaps", "submission_disagreements"), number)
    told = list(
        _doubts(dag.model_copy(update={**own, "unresolved": dag.unresolved.model_copy(update=every)}))
    )
    assert (len(told), told[0][: len(first)], told[-1][: len(last)]) == (8, first, last)


def test_without_a_graph_the_reason_is_given() -> None:
    assert _text(RecordedProgram()) == "critical path  unknown: no dispatch with usable times was recorded"
