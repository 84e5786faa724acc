"""dag.json, dag_full.npz and the kernel-level graph of one small program."""

from __future__ import annotations

import io
import json
import math
import xml.etree.ElementTree as ET

import attrs
import networkx as nx
import numpy as np
import pytest

from rpl_analysis.contracts.dag import DagDocument
from rpl_analysis.documents import dag_document
from rpl_analysis.execution_graph.build import execution_graph, measure_path
from rpl_analysis.execution_graph.results.kernel_graph import kernel_graph, to_dot, to_graphml
from rpl_testkit.programs import RecordedProgram

EVENT = 0xE1


@pytest.fixture
def joined() -> RecordedProgram:
    program = RecordedProgram()
    program.launch("A", 0, 100, stream=1)
    program.record(EVENT, 1)
    program.launch("B", 0, 90, stream=2)
    program.wait(2, EVENT)
    program.launch("C", 100, 110, stream=2)
    program.call("hipStreamSynchronize", stream=2, until_us=112)
    program.launch("A", 130, 150, stream=1)
    return program


def _document(program: RecordedProgram):
    graph = execution_graph(program.trace(), 0, include_copies=True)
    return DagDocument.model_validate(dag_document(graph))


def test_the_document_holds_finite_numbers_only(joined) -> None:
    text = _document(joined).model_dump_json()
    assert "Infinity" not in text
    assert "NaN" not in text
    document = json.loads(text)
    assert document["forecasts"][0]["speedups"][-1]["speedup"] is None
    assert document["dominance"][-1]["speedup"] is None
    assert sum(document["breakdown"].values()) == document["makespan_ns"] == 150_000


def test_the_document_does_not_grow_with_the_trace() -> None:
    sizes = []
    for count in (2_000, 20_000):
        program = RecordedProgram()
        for i in range(count):
            program.launch(f"K{i % 5}", 10 * i, 10 * i + 5, stream=1 + i % 3)
        sizes.append(len(_document(program).model_dump_json()))
    assert sizes[1] < 1.1 * sizes[0]


def test_forecasts_are_ranked_by_their_gain_at_twice_the_speed(joined) -> None:
    forecasts = _document(joined).forecasts
    gains = [next(s.application_gain_ns for s in f.speedups if s.speedup == 2.0) for f in forecasts]
    assert gains == sorted(gains, reverse=True)
    assert forecasts[0].name == "A"


def test_full_columns_hold_every_node_and_edge(joined) -> None:
    trace = joined.trace()
    graph = execution_graph(trace, 0, include_copies=True, with_columns=True)
    arrays = graph.columns.arrays
    names = json.loads(bytes(arrays["names"]))
    assert arrays["kind"].tolist() == [0, 0, 0, 0, 2, 2]
    kernels = [names["symbols"][i] for i in arrays["symbol"][:4]]
    assert sorted(kernels) == ["A", "A", "B", "C"]
    by_kernel = {name: int(slack) for name, slack in zip(kernels, arrays["slack_ns"], strict=False)}
    assert by_kernel["B"] == 10_000
    kinds = {names["edge_kinds"][kind] for kind in arrays["edge_kind"]}
    assert kinds == {"event", "host_sync", "host_order"}
    on_path = arrays["end_ns"] - arrays["begin_ns"]
    assert int(on_path[arrays["on_path"]].sum()) == graph.critical_path_ns


def test_equal_graphs_give_equal_bytes(joined) -> None:
    one, two = (
        execution_graph(joined.trace(), 0, include_copies=True, with_columns=True).columns.to_npz()
        for _ in range(2)
    )
    assert one == two
    assert np.load(io.BytesIO(one))["slack_ns"].size == 6


def test_columns_are_kept_on_request_only(joined) -> None:
    assert execution_graph(joined.trace(), 0, include_copies=True).columns is None


def test_the_kernel_graph_has_symbols_with_their_figures_and_edges_with_counts(joined) -> None:
    graph = kernel_graph(_document(joined))
    assert set(graph) == {"A", "B", "C"}
    assert graph.nodes["A"]["total_ns"] == 120_000
    assert graph.nodes["B"]["min_slack_ns"] == 10_000
    assert graph.nodes["B"]["on_critical_path"] is False
    edges = {(u, v, data["kind"]): data["count"] for u, v, data in graph.edges(data=True)}
    assert edges == {
        ("A", "A", "stream"): 1,
        ("A", "C", "event"): 1,
        ("B", "C", "stream"): 1,
        ("C", "A", "host_sync"): 1,
    }


def test_graphml_reads_back_and_keeps_hostile_names() -> None:
    program = RecordedProgram()
    name = 'k<int>("&\\"quoted\\"")\x1b[31m\x00\x7f\x9b2J'
    program.launch(name, 0, 10)
    text = to_graphml(kernel_graph(_document(program)))
    ET.fromstring(text)
    (read,) = nx.parse_graphml(text).nodes
    assert read == 'k<int>("&\\"quoted\\"")\ufffd[31m\ufffd\ufffd\ufffd2J'


def test_dot_escapes_names_and_marks_the_critical_path(joined) -> None:
    joined.work = [
        attrs.evolve(work, name='quo"te\\' if work.name == "B" else work.name) for work in joined.work
    ]
    text = to_dot(kernel_graph(_document(joined)))
    assert text.startswith("digraph kernels {\n")
    assert 'label="quo\\"te\\\\\\n0.0 % of the critical path"]' in text
    assert text.count("style=bold") == 2
    assert text == to_dot(kernel_graph(_document(joined)))


def test_lengths_alone_equal_those_of_the_whole_analysis(joined) -> None:
    trace = joined.trace()
    lengths = measure_path(trace, include_copies=True)
    graph = execution_graph(trace, 0, include_copies=True)
    assert (lengths.critical_path_ns, lengths.makespan_ns) == (graph.critical_path_ns, graph.makespan_ns)
    assert lengths.sync_info == graph.sync_info == "api_calls"


def test_symbol_slack_is_what_the_symbol_can_take(joined) -> None:
    """B lies beside A with 10 us to spare."""
    graph = execution_graph(joined.trace(), 0, include_copies=True)
    b = next(symbol for symbol in graph.symbols if symbol.name == "B")
    assert 9_500 <= b.slack_ns <= 10_000
    assert math.isclose(graph.near_paths[0].length_ns, graph.critical_path_ns - 10_000)
