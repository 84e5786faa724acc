"""What a chain means when its intervals overlap, clash with the tolerance or share one instant."""

from __future__ import annotations

import random
from itertools import accumulate

import numpy as np
import pytest

from rpl_analysis.critical_path import CHAIN_REPAIR, build_graph, solve, trace_path, weigh
from rpl_analysis.critical_path.segmented import running_max


def _solved(graph) -> tuple[int, list[int]]:
    solution = solve(graph, weigh(graph, "exec_only"))
    return solution.critical_path_ns, solution.slack_ns.tolist()


def test_a_node_that_overlaps_its_chain_hangs_on_the_latest_one_that_had_ended(schedule) -> None:
    # C begins while B runs; A had ended: A, C (150) against A, B (190).
    graph = schedule([(0, 0, 100), (0, 100, 190), (0, 150, 200)]).graph(tolerance_ns=10)
    assert graph.overlapping_nodes == 1
    assert _solved(graph) == (190, [0, 0, 40])


def test_the_first_node_after_an_overlap_waits_for_all_of_it(schedule) -> None:
    # The long one (0..100) and the last of the overlap (50..60) both end before D begins.
    graph = schedule([(0, 0, 100), (0, 50, 60), (0, 110, 120)]).graph(tolerance_ns=10)
    assert _solved(graph) == (110, [0, 90, 0])
    path = trace_path(graph, weigh(graph, "exec_only"))
    assert (path.rows.tolist(), path.entered_by.tolist()) == ([0, 2], [-1, CHAIN_REPAIR])


def test_all_branches_of_a_graph_wait_for_all_of_the_one_before(schedule) -> None:
    # 20, 30 and 50 long, then 40 and 60 beside each other: the first two could take 20 and 30 longer.
    graph = schedule([(0, 0, 20), (0, 0, 30), (0, 0, 50), (0, 60, 100), (0, 60, 120)]).graph(tolerance_ns=10)
    assert _solved(graph) == (110, [30, 20, 0, 20, 0])


def test_overlap_within_the_tolerance_is_clipped_and_counted(schedule) -> None:
    graph = schedule([(0, 0, 1000), (0, 900, 2000)]).graph()
    assert (graph.overlapping_nodes, graph.clipped_ns) == (0, 100)
    assert _solved(graph) == (2000, [0, 0])
    # Without the clip the path would be 2100 ns long in a recording of 2000 ns.
    assert graph.makespan_ns == 2000


def test_a_node_inside_the_tail_of_its_predecessor_becomes_a_point(schedule) -> None:
    graph = schedule([(0, 0, 1000), (0, 600, 700), (0, 1000, 1500)]).graph()
    assert graph.clipped_ns == 100
    assert _solved(graph) == (1500, [0, 0, 0])


def test_equal_instants_keep_the_order_that_edges_ask_for(schedule) -> None:
    # Three points at 10 on three chains; the edges run against the chain numbers.
    rows = [(0, 10, 10), (1, 10, 10), (2, 10, 10), (2, 0, 10), (0, 10, 25)]
    graph = schedule(rows, [(2, 1), (1, 0)]).graph(tolerance_ns=0)
    assert graph.inconsistent_edges == 0
    assert _solved(graph) == (25, [0, 0, 0, 0, 0])


def test_a_cycle_of_points_is_cut_once_and_counted(schedule) -> None:
    rows = [(0, 5, 5), (1, 5, 5), (2, 0, 5), (0, 5, 9)]
    graph = schedule(rows, [(0, 1), (1, 0), (2, 1)]).graph(tolerance_ns=0)
    assert graph.inconsistent_edges == 1
    # 2 -> 1 stays, 1 -> 0 went: the order of equal points is that of their chains.
    assert _solved(graph) == (5, [1, 0, 0, 1])


def test_an_edge_back_in_time_is_dropped_and_counted(schedule) -> None:
    graph = schedule([(0, 0, 5000), (1, 3999, 6000), (2, 4000, 6000)], [(0, 1), (0, 2)]).graph()
    assert (graph.inconsistent_edges, graph.edges.size, graph.clipped_ns) == (1, 1, 1000)
    assert _solved(graph) == (6000, [0, 3999, 0])


def test_clipping_runs_on_through_chains_and_edges(schedule) -> None:
    # A sync that seems to return 400 ns before the kernel it waited for ended, then what follows it.
    rows = [(0, 0, 1000), (1, 600, 600), (1, 700, 750), (2, 800, 1800)]
    graph = schedule(rows, [(0, 1), (2, 3)]).graph()
    assert graph.inconsistent_edges == 0
    assert _solved(graph) == (1800, [0, 0, 0, 0])


def test_drift_is_bounded_by_one_tolerance(schedule) -> None:
    # Each hop goes back in time by less than the tolerance; following them all would move D by 2.7 us.
    rows = [(0, 0, 9000), (1, 8100, 8100), (2, 7200, 7200), (3, 6300, 6400)]
    graph = schedule(rows, [(0, 1), (1, 2), (2, 3)]).graph()
    assert graph.inconsistent_edges == 2
    assert np.all(graph.begin_ns[1:] <= np.array([9100, 8200, 7300]))


def test_edges_implied_by_an_earlier_wait_are_left_out(schedule) -> None:
    rows = [(0, 0, 10), (0, 10, 20), (1, 20, 30), (1, 30, 40)]
    graph = schedule(rows, [(1, 2), (0, 3), (1, 3), (0, 2), (0, 1), (1, 2)]).graph(tolerance_ns=0)
    assert (graph.edges.size, graph.implied_edges) == (1, 5)
    assert _solved(graph) == (40, [0, 0, 0, 0])


def test_an_edge_with_a_lag_is_never_implied(schedule) -> None:
    rows = [(0, 0, 10), (0, 10, 20), (1, 20, 30), (1, 90, 100)]
    graph = schedule(rows, [(1, 2), (0, 3, 80)]).graph(tolerance_ns=0)
    assert graph.edges.size == 2
    weights = weigh(graph, "as_executed")
    path = trace_path(graph, weights)
    # Row 3 begins at once after 10 + 80; its own chain left it at 30.
    assert (path.rows.tolist(), path.wait_ns.tolist()) == ([0, 3], [0, 80])


def test_overlapping_chains_follow_the_rule_node_by_node(wild_schedule, longest_paths) -> None:
    for seed in range(500):
        rng = random.Random(seed)
        rows = sorted(wild_schedule(rng).rows)
        tolerance_ns = rng.choice([0, 1, 5, 300])
        table = np.array(rows, dtype=np.int64)
        graph = build_graph(table[:, 0], table[:, 1], table[:, 2], tolerance_ns=tolerance_ns)
        weights, edges = _by_the_rule(rows, tolerance_ns)
        head, _, slack = longest_paths(weights, edges)
        assert _solved(graph) == (max(head), slack)
        assert graph.clipped_ns == sum(end - begin for _, begin, end in rows) - sum(weights)


def _by_the_rule(rows: list[tuple[int, int, int]], tolerance_ns: int):
    """The documented chain rule in plain Python: clipped durations and dependencies."""
    weights, edges, first = [], [], 0
    while first < len(rows):
        size = sum(row[0] == rows[first][0] for row in rows)
        begins, ends, parents, block = [], [], {}, []
        for i, (_, begin, end) in enumerate(rows[first : first + size]):
            reached = max((row[2] for row in rows[first : first + i]), default=0)
            if reached <= begin + tolerance_ns:
                floor = reached
                followed = {u for v in block for u in parents[v]}
                parents[i] = {u for u in block if u not in followed or u == i - 1}
                block = [i]
            else:
                had_ended = [(ends[u], u) for u in range(i) if ends[u] <= max(begin, floor)]
                parents[i] = {max(had_ended)[1]} if had_ended else set()
                if not parents[i] & set(block):
                    parents[i] |= parents[block[0]]
                block.append(i)
            begins.append(max(begin, floor))
            ends.append(max(end, begins[-1]))
        weights += [end - begin for begin, end in zip(begins, ends, strict=True)]
        edges += [(first + u, first + v, 0) for v in parents for u in parents[v]]
        first += size
    return weights, edges


def test_identity_orders_rows_of_one_chain_with_equal_times() -> None:
    at_seven = np.array([7, 7, 7])
    chain = np.zeros(3, dtype=np.int32)
    assert build_graph(chain, at_seven, at_seven, identity=np.array([5, 3, 4])).order.tolist() == [1, 2, 0]
    assert build_graph(chain, at_seven, at_seven).order.tolist() == [0, 1, 2]
    assert build_graph(chain, at_seven, np.array([9, 8, 7]), tolerance_ns=0).order.tolist() == [2, 1, 0]


def test_running_max_survives_keys_that_do_not_fit() -> None:
    values = np.array([5, 2**61, 7, 3, 9, 1])
    assert running_max(values, np.array([0, 0, 1, 1, 2, 2])).tolist() == [5, 2**61, 7, 7, 9, 9]
    assert running_max(values, np.array([0, 0, 1, 1, 5, 5])).tolist() == [5, 2**61, 7, 7, 9, 9]


@pytest.mark.parametrize("most", [3, 600, 5000])
@pytest.mark.parametrize("first", [-1, 0])
def test_running_max_begins_anew_in_segments_of_any_length(most, first) -> None:
    rng = np.random.default_rng(most)
    lengths = rng.integers(0, most, 20)
    values = rng.integers(0, 1000, int(lengths.sum()))
    parts = np.split(values, np.cumsum(lengths)[:-1])
    expected = [highest for part in parts for highest in accumulate(part.tolist(), max)]
    assert running_max(values, np.repeat(np.arange(first, first + 20), lengths)).tolist() == expected
