"""Nodes whose stream was not recorded follow their hardware queue where it serves one stream only."""

from __future__ import annotations

import attrs
import numpy as np

from rpl_analysis.execution_graph.build import execution_graph
from rpl_testkit.traces import TracedDispatch, make_trace


def graph_of(*rows, unknown):
    """The graph with the stream of row ``unknown`` erased."""
    trace = make_trace(rows)
    stream = trace.dispatches.stream.copy()
    stream[unknown] = -1
    dispatches = attrs.evolve(trace.dispatches, stream=np.asarray(stream, dtype=np.int32))
    return execution_graph(attrs.evolve(trace, dispatches=dispatches), 0, include_copies=True)


def test_only_stream_of_the_queue_takes_them_in():
    rows = [TracedDispatch("k", 0, 100), TracedDispatch("fill", 100, 110), TracedDispatch("k", 110, 200)]

    assert graph_of(*rows, unknown=1).critical_path_ns == 200


def test_queue_of_several_streams_does_not_decide():
    rows = [
        TracedDispatch("k", 0, 100, stream=1),
        TracedDispatch("fill", 100, 110, stream=1),
        TracedDispatch("k", 110, 200, stream=2),
    ]

    assert graph_of(*rows, unknown=1).critical_path_ns == 100
