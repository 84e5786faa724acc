"""Recordings of another runtime: its reader's meanings give the same edges; without them a warning."""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.execution_graph.build import execution_graph
from rpl_analysis.execution_graph.results.findings import graph_diagnostics
from rpl_core.model.diagnostic import Severity
from rpl_core.model.recording import merge_traces
from rpl_core.model.trace import HostApi, Trace


@pytest.fixture
def cuda(program) -> Trace:
    """Two streams joined by an event, a host synchronisation, and a blocking copy, of another runtime."""
    program.launch("a", 1, 10, stream=1)
    program.record(0xE1, 1)
    program.wait(2, 0xE1)
    program.launch("b", 11, 20, stream=2)
    program.call("hipStreamSynchronize", stream=2, at_us=12, until_us=21)
    program.launch("c", 25, 30, stream=1)
    program.call("hipMemcpy", at_us=26, until_us=31)
    program.launch("d", 40, 50, stream=2)
    trace = program.trace()
    names = tuple(name.replace("hip", "cuda", 1) for name in trace.api_functions)
    return attrs.evolve(trace, api_functions=names, host_api=HostApi("CUDA"))


def test_meanings_give_the_edges_whatever_the_names(program, cuda, edges_of):
    assert edges_of(cuda).all() == edges_of(program).all()
    assert edges_of(cuda).of_kind("host_sync")
    assert edges_of(cuda).of_kind("event") == {("a", "b")}


def test_calls_without_a_meaning_are_said(cuda, edges_of):
    silent = attrs.evolve(cuda, api_meanings=())
    assert not edges_of(silent).of_kind("host_sync")
    first = graph_diagnostics(execution_graph(silent, 0, include_copies=True), silent)[0]
    assert (first.code, first.severity, first.count) == ("graph.unknown_calls", Severity.WARNING, 8)
    assert "cudaEventRecord" in first.fact
    assert first.remedy
    known = graph_diagnostics(execution_graph(cuda, 0, include_copies=True), cuda)
    assert "graph.unknown_calls" not in {finding.code for finding in known}


def test_an_untraced_api_is_called_by_its_name(program, cuda):
    untraced = attrs.evolve(
        program.trace(with_calls=False), host_api=HostApi("CUDA", trace_with="tool --api")
    )
    (first, *_) = graph_diagnostics(execution_graph(untraced, 0, include_copies=True), untraced)
    assert "the CUDA API was not traced" in first.cause
    assert first.remedy.endswith(", or tool --api")


def test_readers_that_disagree_about_a_name_keep_their_meanings(cuda, edges_of):
    silent = attrs.evolve(cuda, api_meanings=())
    merged = merge_traces([silent, cuda])
    assert edges_of(merged).of_kind("event") == {("a", "b")}
    assert merge_traces([silent, silent]).meanings() == silent.meanings()


def test_every_function_needs_its_meaning(cuda):
    with pytest.raises(ValueError, match="api_meanings"):
        attrs.evolve(cuda, api_meanings=cuda.api_meanings[1:])
