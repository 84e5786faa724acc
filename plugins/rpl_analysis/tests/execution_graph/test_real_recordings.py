"""The synthetic set with known edges, and what recorded graph launches and old traces give."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import sqlite3
from collections import Counter

import networkx as nx
import pytest

from rpl_analysis.execution_graph.build import execution_graph

pytest.importorskip("rpl_rocprofv3")


def _read(reader_name: str, paths):
    from rpl_rocprofv3.readers.catalog import CsvReader, RocpdReader, RpdReader

    reader = {"csv": CsvReader, "rocpd": RocpdReader, "rpd": RpdReader}[reader_name]()
    (inputs,) = reader.claim(paths)
    (trace,) = reader.read(inputs)
    return trace


def _csv_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.data
def test_the_true_edges_of_the_synthetic_set_and_no_others(rpl_shared_data, edges_of) -> None:
    folder = rpl_shared_data / "rocpd" / "synthetic-gfx942"
    expected = json.loads((folder / "expected.json").read_text())
    trace = _read("rocpd", [folder / "trace_results.db"])
    found = edges_of(trace)

    def label(row: int) -> str:
        own = int(found.nodes.row[row])
        if found.nodes.is_copy[row]:
            return f"c{own + 1}"  # the copies of this set are in the order of their ids
        return f"k{trace.dispatches.dispatch_id[own]}"

    names = {row: label(row) for row in range(len(found.nodes))}
    found.name = lambda row: names.get(row, f"sync {row}")
    true = {(u, v): why.partition("(")[0] for u, v, why in expected["true_edges"]}
    assert found.between_lanes() == {edge for edge, why in true.items() if why != "stream"}
    assert found.of_kind("event") == {edge for edge, why in true.items() if why == "event"}
    assert found.between_work() == set(nx.transitive_reduction(nx.DiGraph(list(true))).edges)
    false = {tuple(edge) for edge in expected["false_edges_a_timestamp_heuristic_would_add"]}
    assert not false & {(u, v) for u, v, *_ in found.all()}
    graph = execution_graph(trace, 0, include_copies=True)
    assert {(edge.kind, edge.confidence) for edge in graph.edges} == {
        ("stream", "certain"),
        ("event", "certain"),
        ("host_sync", "certain"),
        ("host_order", "certain"),
    }


@pytest.mark.data
def test_the_path_of_the_synthetic_set_is_that_of_its_true_edges(rpl_shared_data) -> None:
    """Longest path over expected.json, with durations by plain sqlite3."""
    folder = rpl_shared_data / "rocpd" / "synthetic-gfx942"
    expected = json.loads((folder / "expected.json").read_text())
    with sqlite3.connect(f"file:{folder / 'trace_results.db'}?mode=ro", uri=True) as database:
        rows = [("k", *row) for row in database.execute("SELECT id, start, end FROM rocpd_kernel_dispatch")]
        rows += [("c", *row) for row in database.execute("SELECT id, start, end FROM rocpd_memory_copy")]
    database.close()
    duration = {f"{kind}{number}": end - start for kind, number, start, end in rows}
    oracle = nx.DiGraph([(u, v) for u, v, _ in expected["true_edges"]])
    length: dict[str, int] = {}
    for node in nx.topological_sort(oracle):
        length[node] = duration[node] + max((length[u] for u in oracle.predecessors(node)), default=0)
    makespan = max(row[3] for row in rows) - min(row[2] for row in rows)
    trace = _read("rocpd", [folder / "trace_results.db"])
    graph = execution_graph(trace, 0, include_copies=True)
    assert (graph.critical_path_ns, graph.makespan_ns) == (max(length.values()), makespan)


@pytest.mark.data
def test_graph_launches_are_recognised_in_a_csv_set(rpl_shared_data) -> None:
    folder = rpl_shared_data / "rocpd" / "llama-gfx1151-csv"
    paths = [folder / "decode_kernel_trace.csv", folder / "decode_hip_api_trace.csv"]
    launched, called = ([row["Correlation_Id"] for row in _csv_rows(path)] for path in paths)
    trace = _read("csv", paths)
    graph = execution_graph(trace, 0, include_copies=True)
    counts = Counter()
    for edge in graph.edges:
        counts[edge.kind] += edge.count
    # Four launches of 24 kernels each (the set's README): 23 links inside each.
    assert counts["graph_launch"] == 4 * 23
    assert graph.sync_info == "api_names"
    assert graph.bounds.certain_only_ns < graph.critical_path_ns <= graph.makespan_ns
    assert graph.unresolved.submissions == sum(number not in set(called) for number in launched)


@pytest.mark.data
def test_two_ranks_of_an_old_trace_never_wait_for_each_other(rpl_shared_data, tmp_path) -> None:
    paths = []
    for rank in (0, 1):
        paths.append(tmp_path / f"trace_{rank}.rpd")
        packed = rpl_shared_data / "rocpd" / "vllm-mi300x-8gpu-rpd" / f"trace_{rank}.rpd.gz"
        with gzip.open(packed) as source, paths[-1].open("wb") as target:
            shutil.copyfileobj(source, target)
    together = execution_graph(_read("rpd", paths), 0, include_copies=True)
    alone = [execution_graph(_read("rpd", [path]), 0, include_copies=True) for path in paths]
    assert len(together.processes) == 2
    assert sorted(path.critical_path_ns for path in together.processes) == sorted(
        graph.critical_path_ns for graph in alone
    )
    assert together.critical_path_ns == max(graph.critical_path_ns for graph in alone)


@pytest.mark.data
def test_idle_time_in_a_blocking_copy_is_named_and_probably_a_copy(
    rpl_shared_data, rpl_cli, tmp_path
) -> None:
    """A gfx942 recording with HIP calls and without copies: 12.2 of 15.1 ms idle are in ``hipMemcpy``."""
    packed = rpl_shared_data / "timing" / "batched-gemm-bmm21_results.db.gz"
    path = tmp_path / "bmm_results.db"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    shown = rpl_cli("analyze", path, "-o", tmp_path / "out").assert_ok().stdout
    (machine,) = json.loads((tmp_path / "out" / "dag.json").read_text())["clock_domains"]
    idle_ns, by_call = _idle_by_sql(path)
    assert machine["idle_ns"] == idle_ns == 15_118_558
    assert machine["idle"]["copying_ns"] == by_call["hipMemcpy"] == 12_221_709
    runtime = {name: ns for name, ns in by_call.items() if name.startswith("hip")}
    named = {call["name"]: call["idle_ns"] for call in machine["idle_calls"]}
    assert {name: ns for name, ns in named.items() if name} == runtime
    assert named[None] == idle_ns - sum(runtime.values())
    text = " ".join(shown.split())
    assert "probably copying (copies were not recorded) 64.5%" in text
    assert "the host was in: hipMemcpy 80.8%" in text
    assert "Take out synchronisations" not in text


def _idle_by_sql(path) -> tuple[int, dict[str, int]]:
    """Gaps between kernels, and what of them lies in each call that no other call of the thread is around."""
    base = sqlite3.connect(path)
    calls = base.execute(
        "SELECT s.string, r.start, r.end FROM rocpd_region r JOIN rocpd_string s ON s.id = r.name_id"
        " WHERE NOT EXISTS (SELECT 1 FROM rocpd_region o WHERE o.tid = r.tid AND o.id <> r.id"
        " AND o.start <= r.start AND o.end >= r.end)"
    ).fetchall()
    assert base.execute("SELECT count(DISTINCT tid) FROM rocpd_region").fetchone() == (1,)
    assert base.execute("SELECT count(*) FROM rocpd_memory_copy").fetchone() == (0,)
    idle, by_call, reached = 0, Counter(), None
    for begin, end in base.execute("SELECT start, end FROM rocpd_kernel_dispatch ORDER BY start"):
        if reached is not None and begin > reached:
            idle += begin - reached
            for name, call_begin, call_end in calls:
                by_call[name] += max(0, min(call_end, begin) - max(call_begin, reached))
        reached = max(end, reached or end)
    base.close()
    return idle, {name: ns for name, ns in by_call.items() if ns}
