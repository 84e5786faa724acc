"""Longest paths, slack and what-ifs on random graphs, against networkx and against re-solving."""

from __future__ import annotations

import itertools
import math
import random

import networkx as nx
import numpy as np
import pytest

from rpl_analysis.critical_path import (
    CHAIN_REPAIR,
    PATH_BEGIN,
    Scenario,
    build_graph,
    scale_symbol,
    solve,
    sum_symbols,
    trace_path,
    weigh,
    what_if,
    what_if_by,
)


@pytest.mark.parametrize("batch", range(6))
def test_heads_tails_and_slack_equal_networkx(batch, consistent_schedule, longest_paths) -> None:
    for seed in range(250):
        schedule = consistent_schedule(random.Random(1000 * batch + seed))
        graph = schedule.graph(tolerance_ns=0)
        assert (graph.inconsistent_edges, graph.clipped_ns, graph.overlapping_nodes) == (0, 0, 0)
        solution = solve(graph, weigh(graph, "exec_only"))
        edges = [(u, v, 0) for u, v, _ in schedule.dependencies()]
        head, tail, slack = longest_paths([end - begin for _, begin, end in schedule.rows], edges)
        assert solution.head_ns.tolist() == head
        assert solution.tail_ns.tolist() == tail
        assert solution.slack_ns.tolist() == slack
        assert solution.critical_path_ns == max(head) <= graph.makespan_ns


@pytest.mark.parametrize("batch", range(3))
def test_as_executed_path_is_the_makespan_and_slack_equals_networkx(
    batch, consistent_schedule, longest_paths
) -> None:
    for seed in range(200):
        schedule = consistent_schedule(random.Random(7000 + 1000 * batch + seed))
        graph = schedule.graph(tolerance_ns=0)
        solution = solve(graph, weigh(graph, "as_executed"))
        weights, edges = _with_waits(schedule)
        head, tail, slack = longest_paths(weights, edges)
        ends = [end for _, _, end in schedule.rows]
        assert solution.critical_path_ns == graph.makespan_ns == max(head)
        assert (
            solution.head_ns.tolist() == head == [end - min(b for _, b, _ in schedule.rows) for end in ends]
        )
        assert solution.tail_ns.tolist() == tail
        assert solution.slack_ns.tolist() == slack


def _with_waits(schedule) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Duration plus the time after the last dependency let the node begin, and edges with usable lags."""
    rows = schedule.rows
    edges = [(u, v, min(lag, rows[v][1] - rows[u][2])) for u, v, lag in schedule.dependencies()]
    first = min(begin for _, begin, _ in rows)
    allowed = [
        max((rows[u][2] + lag for u, v, lag in edges if v == row), default=first) for row in range(len(rows))
    ]
    return [rows[row][2] - allowed[row] for row in range(len(rows))], edges


@pytest.mark.parametrize("weighting", ["exec_only", "as_executed"])
def test_the_path_is_a_real_path_and_adds_up(weighting, consistent_schedule) -> None:
    for seed in range(200):
        schedule = consistent_schedule(random.Random(20_000 + seed))
        graph = schedule.graph(tolerance_ns=0)
        weights = weigh(graph, weighting)
        solution, path = solve(graph, weights), trace_path(graph, weights)
        rows = path.rows.tolist()
        assert path.execution_ns + path.waiting_ns == path.critical_path_ns == solution.critical_path_ns
        assert path.execution_ns == sum(schedule.rows[row][2] - schedule.rows[row][1] for row in rows)
        assert not solution.slack_ns[path.rows].any()
        edges = {(u, v) for u, v, _ in schedule.dependencies()}
        assert set(itertools.pairwise(rows)) <= edges
        for start, edge in zip(path.run_start.tolist()[1:], path.entered_by.tolist()[1:], strict=True):
            assert schedule.edges[edge][:2] == (rows[start - 1], rows[start])
        assert path.entered_by[0] == PATH_BEGIN


def test_wild_input_keeps_every_invariant(wild_schedule, longest_paths) -> None:
    for seed in range(600):
        schedule = wild_schedule(random.Random(40_000 + seed))
        graph = schedule.graph(tolerance_ns=random.Random(seed).choice([0, 1, 10, 1000]))
        edges = _edges_by_position(graph)
        assert nx.is_directed_acyclic_graph(nx.DiGraph(edges))
        assert all(graph.end_ns[u] <= graph.begin_ns[v] for u, v in edges)
        weights = weigh(graph, "exec_only")
        solution = solve(graph, weights)
        head, tail, slack = longest_paths(weights.total_ns.tolist(), [(u, v, 0) for u, v in edges])
        assert solution.head_ns[graph.order].tolist() == head
        assert solution.tail_ns[graph.order].tolist() == tail
        assert solution.slack_ns[graph.order].tolist() == slack
        assert solution.critical_path_ns <= graph.makespan_ns
        assert solve(graph, weigh(graph, "as_executed")).critical_path_ns == graph.makespan_ns
        assert set(trace_path(graph, weights).entered_by.tolist()) <= {
            PATH_BEGIN,
            CHAIN_REPAIR,
            *range(len(schedule.edges)),
        }


def _edges_by_position(graph) -> list[tuple[int, int]]:
    opens = set(graph.segment_start.tolist())
    links = [(p - 1, p) for p in range(graph.size) if p not in opens]
    return links + list(zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True))


def test_row_order_changes_nothing(consistent_schedule, wild_schedule) -> None:
    for seed in range(300):
        rng = random.Random(60_000 + seed)
        schedule = rng.choice([consistent_schedule, wild_schedule])(rng)
        count = len(schedule.rows)
        new_place = list(range(count))
        rng.shuffle(new_place)
        shuffled = type(schedule)(
            [row for _, row in sorted(zip(new_place, schedule.rows, strict=True))],
            rng.sample(
                [(new_place[u], new_place[v], lag) for u, v, lag in schedule.edges], len(schedule.edges)
            ),
        )
        place = np.array(new_place)
        identity = np.empty(count, dtype=np.int64)
        identity[place] = np.arange(count)
        one, other = schedule.graph(), shuffled.graph(identity=identity)
        assert one.inconsistent_edges == other.inconsistent_edges
        for weighting in ("exec_only", "as_executed"):
            weights, others = weigh(one, weighting), weigh(other, weighting)
            assert solve(one, weights).slack_ns.tolist() == solve(other, others).slack_ns[place].tolist()
            assert place[trace_path(one, weights).rows].tolist() == trace_path(other, others).rows.tolist()


@pytest.mark.parametrize("weighting", ["exec_only", "as_executed"])
def test_what_if_equals_solving_the_changed_graph_and_respects_its_bounds(
    weighting, consistent_schedule
) -> None:
    for seed in range(200):
        rng = random.Random(80_000 + seed)
        schedule = consistent_schedule(rng)
        graph = schedule.graph(tolerance_ns=0)
        symbol = np.array([rng.randrange(-1, 4) for _ in schedule.rows])
        weights = weigh(graph, weighting)
        path, solution = trace_path(graph, weights), solve(graph, weights)
        scenarios = [Scenario(k, s) for k in range(5) for s in (0.5, 1, 1.25, 2, 3.7, math.inf)]
        for answer in what_if(graph, weights, symbol, scenarios):
            k, speedup = answer.scenario.symbol, answer.scenario.speedup
            scaled = scale_symbol(graph, weights, symbol, k, speedup)
            assert answer.predicted_ns == solve(graph, scaled).critical_path_ns
            assert answer.recorded_ns == solution.critical_path_ns
            assert (answer.gain_ns >= 0) == (speedup >= 1 or answer.gain_ns == 0)
            # The old path is still there: 1 / (1 - f) for an infinite speed-up, Amdahl's bound below it.
            on_path = int(graph.to_rows(weights.execution_ns)[path.rows[symbol[path.rows] == k]].sum())
            if speedup >= 1:
                kept = on_path / speedup if speedup < math.inf else 0
                assert answer.predicted_ns >= answer.recorded_ns - on_path + kept - 1e-6
        sums = sum_symbols(graph, solution, path, symbol)
        for k, ceiling in zip(sums.symbol.tolist(), sums.static_ceiling(), strict=True):
            (infinite,) = what_if(graph, weights, symbol, [Scenario(k, math.inf)])
            if ceiling is not None and infinite.application_speedup is not None:
                assert infinite.application_speedup <= ceiling * (1 + 1e-12)


def test_growing_any_node_by_its_slack_is_free_and_by_more_is_not(consistent_schedule) -> None:
    for seed in range(60):
        schedule = consistent_schedule(random.Random(90_000 + seed))
        graph = schedule.graph(tolerance_ns=0)
        weights = weigh(graph, "exec_only")
        solution = solve(graph, weights)
        for position, row in enumerate(graph.order.tolist()):
            slack = int(solution.slack_ns[row])
            for extra, longer in ((slack, 0), (slack + 5, 5)):
                grown = weights.total_ns.copy()
                grown[position] += extra
                changed = type(weights)(
                    weighting="exec_only",
                    execution_ns=grown,
                    total_ns=grown,
                    edge_lag_ns=weights.edge_lag_ns,
                    recorded=False,
                )
                assert solve(graph, changed).critical_path_ns == solution.critical_path_ns + longer


def test_many_scenarios_need_several_batches(monkeypatch, consistent_schedule) -> None:
    schedule = consistent_schedule(random.Random(5))
    graph = schedule.graph(tolerance_ns=0)
    weights = weigh(graph, "exec_only")
    symbol = np.arange(len(schedule.rows)) % 3
    scenarios = [Scenario(k % 3, 1 + k / 7) for k in range(20)]
    whole = what_if(graph, weights, symbol, scenarios)
    monkeypatch.setattr("rpl_analysis.critical_path.whatif._MOST_GAINS", 1)
    assert what_if(graph, weights, symbol, scenarios) == whole
    executed = weigh(graph, "as_executed")
    together = what_if_by(graph, (executed, weights), symbol, scenarios)
    assert together == [what_if(graph, executed, symbol, scenarios), whole]


def test_order_of_chains_and_size_of_chain_numbers_do_not_matter(consistent_schedule) -> None:
    for seed in range(50):
        schedule = consistent_schedule(random.Random(95_000 + seed))
        chain, begin, end = schedule.columns()
        edges = schedule.cross_edges()
        plain = build_graph(chain, begin, end, edges)
        sparse = build_graph(chain * 1_000_003 - 7, begin + 10**18, end + 10**18, edges)
        for weighting in ("exec_only", "as_executed"):
            one, other = solve(plain, weigh(plain, weighting)), solve(sparse, weigh(sparse, weighting))
            assert one.slack_ns.tolist() == other.slack_ns.tolist()
