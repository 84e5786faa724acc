"""What sums of segments answer equals what solving every node does, and so does work in blocks."""

from __future__ import annotations

import math
import random
import sys

import attrs
import numpy as np
import pytest

from rpl_analysis.critical_path import (
    Scenario,
    dominance_after,
    scale_symbol,
    solve,
    sum_symbols,
    trace_path,
    weigh,
    what_if,
)
from rpl_analysis.critical_path import symbols as symbols_module
from rpl_analysis.critical_path import whatif as whatif_module
from rpl_analysis.critical_path.solve import solve_slack
from rpl_analysis.critical_path.symbols import sum_by
from rpl_analysis.critical_path.whatif import segment_sums

SPEEDUPS = (0.5, 1.0, 1.25, 3.7, math.inf)


@pytest.fixture
def loose_case(consistent_schedule):
    """A random graph without edges between chains, and a symbol per row."""

    def make(seed: int):
        rng = random.Random(seed)
        schedule = attrs.evolve(consistent_schedule(rng), edges=[])
        symbol = np.array([rng.randrange(-1, 4) for _ in schedule.rows])
        return schedule, schedule.graph(tolerance_ns=0), symbol

    return make


@pytest.mark.parametrize("with_edges", [False, True])
def test_slack_alone_equals_the_whole_solution(with_edges, loose_case) -> None:
    for seed in range(200):
        schedule, graph, _ = loose_case(seed)
        if with_edges:
            chains = [chain for chain, _, _ in schedule.rows]
            edges = [
                (u, v, 0)
                for u in range(len(chains))
                for v in range(len(chains))
                if chains[u] != chains[v] and schedule.rows[u][2] < schedule.rows[v][1]
            ]
            graph = attrs.evolve(schedule, edges=edges[:5]).graph(tolerance_ns=0)
        group = schedule.columns()[0]
        for weighting in ("exec_only", "as_executed"):
            weights = weigh(graph, weighting)
            whole, slack = solve(graph, weights), solve_slack(graph, weights, group, 6)
            assert slack.slack_ns.tolist() == whole.slack_ns.tolist()
            longest = [max(whole.head_ns[group == g].tolist(), default=0) for g in range(6)]
            assert slack.longest_ns.tolist() == longest


def test_rows_of_no_group_have_no_longest_path(loose_case) -> None:
    _, graph, _ = loose_case(3)
    group = np.full(graph.size, -1)
    assert solve_slack(graph, weigh(graph, "exec_only"), group, 2).longest_ns.tolist() == [0, 0]


@pytest.mark.parametrize("weighting", ["exec_only", "as_executed"])
def test_what_ifs_from_sums_equal_solving_the_changed_graph(weighting, loose_case) -> None:
    scenarios = [Scenario(k, s) for k in range(-1, 6) for s in SPEEDUPS]
    for seed in range(200):
        _, graph, symbol = loose_case(seed)
        weights = weigh(graph, weighting)
        sums = segment_sums(graph, weights.execution_ns, symbol)
        assert sums is not None
        for answer in what_if(graph, weights, symbol, scenarios, sums):
            if answer.scenario.symbol < 0:
                assert answer.gain_ns == 0
                continue
            changed = scale_symbol(graph, weights, symbol, answer.scenario.symbol, answer.scenario.speedup)
            assert answer.predicted_ns == solve(graph, changed).critical_path_ns


def test_dominance_from_sums_equals_that_of_the_changed_path(loose_case) -> None:
    for _, graph, symbol in map(loose_case, range(200)):
        weights = weigh(graph, "exec_only")
        sums = segment_sums(graph, weights.execution_ns, symbol)
        assert sums is not None
        for chosen in range(5):
            by_sums = dominance_after(graph, weights, symbol, chosen, SPEEDUPS, sums)
            assert by_sums == dominance_after(graph, weights, symbol, chosen, SPEEDUPS, None)


def test_too_many_segments_are_asked_node_by_node(loose_case, monkeypatch) -> None:
    _, graph, symbol = loose_case(1)
    weights = weigh(graph, "exec_only")
    scenarios = [Scenario(k, s) for k in range(4) for s in SPEEDUPS]
    by_sums = what_if(graph, weights, symbol, scenarios)
    monkeypatch.setattr("rpl_analysis.critical_path.whatif._MOST_CELLS", 0)
    assert segment_sums(graph, weights.execution_ns, symbol) is None
    assert what_if(graph, weights, symbol, scenarios) == by_sums
    assert whatif_module.segment_sums is segment_sums


@pytest.mark.parametrize("block", [1, 7])
def test_blocks_change_no_sum(block, loose_case, monkeypatch) -> None:
    for seed in range(50):
        _, graph, symbol = loose_case(seed)
        weights = weigh(graph, "exec_only")
        path, solution = trace_path(graph, weights), solve(graph, weights)
        whole = attrs.asdict(sum_symbols(graph, solution, path, symbol), recurse=False)
        with monkeypatch.context() as patched:
            patched.setattr(symbols_module, "_BLOCK", block)
            parts = attrs.asdict(sum_symbols(graph, solution, path, symbol), recurse=False)
        assert {k: np.asarray(v).tolist() for k, v in parts.items()} == {
            k: np.asarray(v).tolist() for k, v in whole.items()
        }


def test_blocks_of_edges_change_no_path(consistent_schedule, monkeypatch) -> None:
    graphs = [consistent_schedule(random.Random(seed)).graph(tolerance_ns=0) for seed in range(50)]
    whole = [solve(graph, weigh(graph, "exec_only")).head_ns.tolist() for graph in graphs]
    # The package exports a function of the module's name.
    monkeypatch.setattr(sys.modules["rpl_analysis.critical_path.solve"], "_BLOCK", 3)
    assert [solve(graph, weigh(graph, "exec_only")).head_ns.tolist() for graph in graphs] == whole


def test_sums_beyond_what_floats_hold_are_exact() -> None:
    values = np.array([2**60 + 1, 1, -5, 2**60 + 3])
    assert sum_by(np.array([0, 1, 1, 0]), values, 3).tolist() == [2**61 + 4, -4, 0]


def test_sums_go_on_from_block_to_block(monkeypatch) -> None:
    monkeypatch.setattr(symbols_module, "_BLOCK", 2)
    assert sum_by(np.array([0, 1, 1, 0, 1]), np.array([1, 2, 3, 4, 5]), 2).tolist() == [5, 10]
