"""Input that is no graph, degenerate graphs, and sizes that must not blow up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rpl_analysis.critical_path import (
    CrossEdges,
    Scenario,
    build_graph,
    dominant_symbol,
    solve,
    sum_symbols,
    trace_path,
    weigh,
    what_if,
)
from rpl_core.errors import BadDataError


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("chain", "begin", "end", "edges", "words"),
    [
        (ints(0), ints(0, 1), ints(1), None, "differ in length"),
        (ints(0, 0), ints(0, 9), ints(5, 8), None, "1 node ends before it begins, the first is row 1"),
        (ints(0, 0), ints(-(2**62), 0), ints(0, 2**61), None, "times span more than"),
        (ints(0), ints(0), ints(1), CrossEdges(source=ints(0), target=ints(1)), "rows 0 to 1"),
        (ints(0), ints(0), ints(1), CrossEdges(source=ints(-1), target=ints(0)), "rows -1 to 0"),
        (ints(0), ints(0), ints(1), CrossEdges(source=ints(0), target=ints()), "edge columns differ"),
        (
            ints(0, 1),
            ints(0, 2),
            ints(1, 3),
            CrossEdges(source=ints(0), target=ints(1), lag_ns=ints(-4)),
            "lag of -4 ns",
        ),
    ],
)
def test_bad_columns_are_refused_in_one_clear_line(chain, begin, end, edges, words) -> None:
    with pytest.raises(BadDataError, match=words):
        build_graph(chain, begin, end, edges)


@pytest.mark.parametrize("weighting", ["exec_only", "as_executed"])
def test_an_empty_graph_has_an_empty_path(weighting) -> None:
    graph = build_graph(ints(), ints(), ints())
    weights = weigh(graph, weighting)
    solution, path = solve(graph, weights), trace_path(graph, weights)
    assert (solution.critical_path_ns, path.rows.size, graph.makespan_ns) == (0, 0, 0)
    sums = sum_symbols(graph, solution, path, ints())
    assert (sums.symbol.size, sums.criticality()) == (0, None)
    assert what_if(graph, weights, ints(), [Scenario(0, 2.0)])[0].predicted_ns == 0
    assert dominant_symbol(graph, weights, ints()) is None


def test_nodes_without_duration_are_critical_and_divide_nothing() -> None:
    graph = build_graph(ints(0, 0, 1), ints(5, 5, 5), ints(5, 5, 5))
    weights = weigh(graph, "exec_only")
    solution, path = solve(graph, weights), trace_path(graph, weights)
    assert solution.slack_ns.tolist() == [0, 0, 0]
    sums = sum_symbols(graph, solution, path, ints(0, 0, 1))
    assert (sums.criticality(), sums.static_ceiling()) == (None, [None, None])
    assert dominant_symbol(graph, weights, ints(0, 0, 1)) is None


def test_no_scenarios_no_answers() -> None:
    graph = build_graph(ints(0), ints(0), ints(1))
    assert what_if(graph, weigh(graph, "exec_only"), ints(0), []) == []


@pytest.mark.parametrize("speedup", [0.0, -1.0, math.nan, 1e-30])
def test_impossible_speedups_are_refused(speedup) -> None:
    graph = build_graph(ints(0), ints(0), ints(2**40))
    with pytest.raises(BadDataError, match="speed-up"):
        what_if(graph, weigh(graph, "exec_only"), ints(0), [Scenario(0, speedup)])


def test_predictions_round_against_the_gain() -> None:
    graph = build_graph(ints(0, 0, 0), ints(0, 1, 2), ints(1, 2, 3))
    (answer,) = what_if(graph, weigh(graph, "exec_only"), ints(0, 0, 0), [Scenario(0, 2.0)])
    assert answer.predicted_ns == 3


def test_as_many_chains_as_nodes_and_all_of_them_overlapping() -> None:
    count = 200_000
    begin = np.arange(count, dtype=np.int64) * 10
    graph = build_graph(np.arange(count), begin, begin + 5000)
    assert solve(graph, weigh(graph, "exec_only")).critical_path_ns == 5000
    one_queue = build_graph(np.zeros(count, dtype=np.int32), begin, begin + 5000, tolerance_ns=0)
    solution = solve(one_queue, weigh(one_queue, "exec_only"))
    assert one_queue.overlapping_nodes == count - 1
    # One node follows another after 5000 ns: 400 rounds of 5000 ns fit, and the rest of the last.
    assert solution.critical_path_ns == 400 * 5000 <= one_queue.makespan_ns


def test_sums_across_chains_may_leave_int64() -> None:
    # 40 chains of 2**60 ns: their sum wraps around, no path does.
    chain = np.repeat(np.arange(40), 2)
    begin = np.tile(ints(0, 2**59), 40)
    graph = build_graph(
        chain, begin, np.tile(ints(2**59, 2**60), 40), CrossEdges(source=ints(0), target=ints(79))
    )
    solution = solve(graph, weigh(graph, "exec_only"))
    assert solution.critical_path_ns == 2**60
    assert not solution.slack_ns.any()
