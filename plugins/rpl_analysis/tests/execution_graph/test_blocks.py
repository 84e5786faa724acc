"""Work in blocks and columns of one value give the same graph as everything at once."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest

from rpl_analysis.execution_graph import graph
from rpl_analysis.execution_graph.build import execution_graph
from rpl_analysis.execution_graph.dependencies import graph_launches
from rpl_analysis.execution_graph.host_program import submission
from rpl_analysis.execution_graph.results import symbols, time_spent
from rpl_analysis.runtime import timing
from rpl_analysis.runtime.timing import representative_shapes
from rpl_testkit.traces import TracedDispatch, make_trace


def random_trace(seed: int, streams: int):
    """Streams of one process with gaps, overlaps and ties, and some launches of several kernels."""
    rng = random.Random(seed)
    rows, clock = [], [1000] * streams
    for _ in range(rng.randrange(2, 60)):
        stream = rng.randrange(streams)
        begin = max(0, clock[stream] + rng.choice([0, 5, 3000, -20]))
        clock[stream] = begin + rng.choice([0, 7, 500, 4000])
        grid = (64 * rng.randrange(1, 3), 1, 1)
        rows.append(
            TracedDispatch(f"k{rng.randrange(4)}", begin, clock[stream], stream=stream, queue=1, grid=grid)
        )
    trace = make_trace(rows)
    shared = np.maximum.accumulate(
        trace.dispatches.correlation_id - rng.randrange(2) * (np.arange(len(rows)) % 2)
    )
    return attrs.evolve(trace, dispatches=attrs.evolve(trace.dispatches, correlation_id=shared))


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("block", [1, 5])
def test_small_blocks_give_the_same_graph(streams, block, monkeypatch) -> None:
    traces = [random_trace(seed, streams) for seed in range(30)]

    def graphs():
        return [execution_graph(trace, 0, include_copies=True) for trace in traces]

    def kernels():
        names = [tuple(kernel.name for kernel in trace.kernels) for trace in traces]
        return [
            representative_shapes(trace, np.arange(len(own), dtype=np.int32), own)
            for trace, own in zip(traces, names, strict=True)
        ]

    whole = graphs(), kernels()
    for module in (graph_launches, submission, graph, time_spent):
        monkeypatch.setattr(module, "BLOCK", block)
    monkeypatch.setattr(symbols, "_BLOCK", block)
    monkeypatch.setattr(timing, "_BLOCK", block)
    assert (graphs(), kernels()) == whole


@pytest.mark.parametrize("streams", [1, 3])
def test_columns_of_one_value_by_construction_give_the_same_graph(streams) -> None:
    for seed in range(30):
        trace = random_trace(seed, streams)
        columns = {}
        for field in attrs.fields(type(trace.dispatches)):
            column = getattr(trace.dispatches, field.name)
            if len(set(column.tolist())) == 1:
                columns[field.name] = np.broadcast_to(column[0], column.shape)
        assert {"process", "agent"} <= set(columns)
        packed = attrs.evolve(trace, dispatches=attrs.evolve(trace.dispatches, **columns))
        assert execution_graph(packed, 0, include_copies=True) == execution_graph(
            trace, 0, include_copies=True
        )
