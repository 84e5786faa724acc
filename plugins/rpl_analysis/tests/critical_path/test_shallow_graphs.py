"""Graphs in which no path takes many edges are solved by sweeps: the same numbers as step by step."""

from __future__ import annotations

from math import inf

import attrs
import numpy as np
import pytest

from rpl_analysis.critical_path.graph import build_graph
from rpl_analysis.critical_path.model import CrossEdges
from rpl_analysis.critical_path.solve import advance, solve
from rpl_analysis.critical_path.weights import weigh
from rpl_analysis.critical_path.whatif import Scenario, what_if

_ROWS, _LANES, _SYMBOLS = 600, 6, 5


def layered(depth, seed):
    """A graph whose lane waits for lanes of lower layers, ``depth`` edges deep, and symbols of its rows."""
    rng = np.random.default_rng(seed)
    lane = rng.integers(0, _LANES, _ROWS)
    begin = np.cumsum(rng.integers(5, 40, _ROWS))
    end = begin + rng.integers(0, 120, _ROWS)
    for own in range(_LANES):  # in a lane nothing overlaps
        rows = np.flatnonzero(lane == own)
        end[rows[:-1]] = np.minimum(end[rows[:-1]], begin[rows[1:]])
    source, target = np.meshgrid(np.arange(_ROWS), np.arange(_ROWS))
    layer = np.minimum(lane, depth)
    may = (layer[source] < layer[target]) & (end[source] <= begin[target]) & (source > target - 60)
    source, target = source[may], target[may]
    some = rng.random(source.size) < 0.05
    lag = rng.integers(0, 30, some.sum())
    edges = CrossEdges(source=source[some], target=target[some], lag_ns=lag)
    return build_graph(lane, begin, end, edges), rng.integers(0, _SYMBOLS, _ROWS)


def step_by_step(graph):
    return attrs.evolve(graph, contraction=attrs.evolve(graph.contraction, sweeps=None))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("weighting", ["exec_only", "as_executed"])
def test_sweeps_give_what_steps_give(depth, seed, weighting):
    graph, symbol = layered(depth, seed)
    assert graph.contraction.sweeps.count == depth
    weights = weigh(graph, weighting)
    scenarios = [Scenario(s, by) for s in range(_SYMBOLS) for by in (0.5, 1.25, inf)]
    found, expected = (
        (
            advance(g.contraction, weights.total_ns, weights.edge_lag_ns).offset,
            solve(g, weights),
            what_if(g, weights, symbol, scenarios),
        )
        for g in (graph, step_by_step(graph))
    )
    assert expected[0].any()
    assert np.array_equal(found[0], expected[0])
    for name in ("head_ns", "tail_ns", "slack_ns"):
        assert np.array_equal(getattr(found[1], name), getattr(expected[1], name))
    assert found[2] == expected[2]


def test_deeper_graphs_are_solved_step_by_step():
    graph, _ = layered(3, 1)
    assert graph.edges.size
    assert graph.contraction.sweeps is None
