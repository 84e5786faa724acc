"""Small schedules with a known truth on which simpler models go wrong. Times in microseconds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rpl_analysis.critical_path import (
    Scenario,
    dominance_after,
    dominant_symbol,
    solve,
    sum_symbols,
    trace_path,
    weigh,
    what_if,
)


@pytest.fixture
def us(schedule):
    """A graph from rows in microseconds, with the default tolerance of one of them."""

    def build(rows, edges=()):
        return schedule([(c, b * 1000, e * 1000) for c, b, e in rows], edges).graph()

    return build


def _path(graph, weighting="exec_only"):
    return trace_path(graph, weigh(graph, weighting))


def test_independent_chains_get_no_edges_between_them(us) -> None:
    graph = us([(1, 0, 60), (1, 100, 160), (1, 200, 260), (2, 62, 98), (2, 162, 198), (2, 262, 298)])
    path = _path(graph)
    assert (path.critical_path_ns, path.rows.tolist()) == (180_000, [0, 1, 2])
    # All of B together could take 72 us longer.
    solution = solve(graph, weigh(graph, "exec_only"))
    assert solution.slack_ns.tolist() == [0, 0, 0, 72_000, 72_000, 72_000]
    symbol = np.array([0, 0, 0, 1, 1, 1])
    (faster_b,) = what_if(graph, weigh(graph, "exec_only"), symbol, [Scenario(1, math.inf)])
    assert faster_b.gain_ns == 0


def test_a_real_edge_counts_whatever_the_gap(us) -> None:
    graph = us([(1, 0, 1000), (2, 1060, 2060)], [(0, 1)])
    assert _path(graph).critical_path_ns == 2_000_000


def test_the_edge_decides_and_not_the_nearest_end(us) -> None:
    graph = us([(1, 0, 1000), (2, 980, 1001), (3, 1002, 1102)], [(0, 2)])
    path = _path(graph)
    assert (path.critical_path_ns, path.rows.tolist()) == (1_100_000, [0, 2])


def test_overlap_on_one_queue_never_makes_a_path_longer_than_the_makespan(us) -> None:
    graph = us([(1, 0, 100), (1, 1, 100)])
    assert _path(graph).critical_path_ns == 100_000 == graph.makespan_ns
    graph = us([(1, 0, 100), (1, 2, 100)])
    assert _path(graph).critical_path_ns == 100_000
    assert graph.overlapping_nodes == 1


def test_gaps_limit_the_gain_as_executed(us) -> None:
    # Ten launches of 10 us, 90 us apart: 910 us, of which a perfect kernel saves 100.
    graph = us([(1, 100 * i, 100 * i + 10) for i in range(10)])
    symbol = np.zeros(10, dtype=np.int32)
    assert _path(graph).critical_path_ns == 100_000
    (alone,) = what_if(graph, weigh(graph, "exec_only"), symbol, [Scenario(0, math.inf)])
    assert alone.application_speedup is None
    weights = weigh(graph, "as_executed")
    (real,) = what_if(graph, weights, symbol, [Scenario(0, math.inf)])
    assert real.application_speedup == 910_000 / 810_000
    path = trace_path(graph, weights)
    assert (path.execution_ns, path.waiting_ns) == (100_000, 810_000)


def test_a_join_caps_the_gain_below_the_static_ceiling(us) -> None:
    graph = us([(1, 0, 100), (2, 0, 90), (3, 100, 110)], [(0, 2), (1, 2)])
    weights, symbol = weigh(graph, "exec_only"), np.array([0, 1, 2])
    sums = sum_symbols(graph, solve(graph, weights), trace_path(graph, weights), symbol)
    assert sums.on_path_ns.tolist() == [100_000, 0, 10_000]
    assert sums.min_slack_ns.tolist() == [0, 10_000, 0]
    assert sums.static_ceiling()[0] == pytest.approx(11)
    (answer,) = what_if(graph, weights, symbol, [Scenario(0, math.inf)])
    assert answer.application_speedup == pytest.approx(1.1)


def test_another_symbol_dominates_once_the_first_is_fast_enough(us) -> None:
    graph = us([(1, 0, 100), (2, 0, 90), (3, 100, 110)], [(0, 2), (1, 2)])
    weights, symbol = weigh(graph, "exec_only"), np.array([0, 1, 2])
    now = dominant_symbol(graph, weights, symbol)
    assert now is not None
    assert (now.symbol, now.fraction) == (0, 100 / 110)
    after = dominance_after(graph, weights, symbol, 0, [1.1, 1.25, math.inf], None)
    assert [entry.symbol for entry in after if entry] == [0, 1, 1]


def test_two_processes_with_the_same_ids_are_two_chains(us) -> None:
    graph = us([(0, 0, 100), (1, 0, 80)])
    assert _path(graph).rows.tolist() == [0]


def test_tied_paths_are_told_apart_by_time_then_chain_then_id(us) -> None:
    graph = us([(2, 0, 50), (1, 0, 50), (3, 50, 60)], [(0, 2), (1, 2)])
    weights = weigh(graph, "exec_only")
    assert trace_path(graph, weights).rows.tolist() == [1, 2]
    sums = sum_symbols(graph, solve(graph, weights), trace_path(graph, weights), np.array([7, 7, -1]))
    # One of the two is on the path, both are critical; the third node has no symbol.
    assert (sums.symbol.tolist(), sums.nodes.tolist(), sums.nodes_on_path.tolist()) == ([7], [2], [1])
    assert (sums.on_path_ns.tolist(), sums.critical_ns.tolist()) == ([50_000], [100_000])
    assert sums.criticality().tolist() == [50 / 60]


@pytest.mark.parametrize(("source_chain", "first"), [(0, 0), (9, 1)])
def test_an_edge_and_a_chain_that_tie_are_told_apart_the_same_way(us, source_chain, first) -> None:
    # Row 2 follows row 1 in its chain and row 0 by an edge; both began and ended together.
    graph = us([(source_chain, 0, 50), (5, 0, 50), (5, 50, 60)], [(0, 2)])
    assert _path(graph).rows.tolist() == [first, 2]


@pytest.mark.parametrize(
    ("rows", "edges", "path"),
    [
        # Both predecessors of the last row reach 10: the one that began earlier is taken,
        ([(1, 0, 5), (1, 5, 10), (2, 2, 12), (1, 12, 20)], [(2, 3)], [2, 3]),
        ([(1, 1, 11), (2, 2, 12), (1, 12, 20)], [(1, 2)], [0, 2]),
        ([(1, 3, 13), (2, 2, 12), (1, 13, 20)], [(1, 2)], [1, 2]),
        # at equal begins that of the smaller chain, whether it comes along the chain or by an edge,
        ([(1, 0, 10), (2, 0, 10), (1, 10, 20)], [(1, 2)], [0, 2]),
        ([(1, 0, 10), (2, 0, 10), (2, 10, 20)], [(0, 2)], [0, 2]),
        # and of several edges the same.
        ([(1, 0, 10), (2, 0, 10), (3, 10, 20)], [(1, 2), (0, 2)], [0, 2]),
        ([(1, 2, 12), (2, 0, 10), (3, 12, 20)], [(0, 2), (1, 2)], [1, 2]),
        # Of several ends the same rule tells where the path ends.
        ([(1, 0, 10), (2, 0, 10)], [], [0]),
        ([(1, 5, 15), (2, 0, 10)], [], [1]),
    ],
)
def test_of_equally_long_paths_the_smallest_begin_and_chain_is_taken(us, rows, edges, path) -> None:
    """docs/reference/execution-graph.md, 3.2: the choice is fixed by (start, lane, id)."""
    assert _path(us(rows, edges)).rows.tolist() == path
