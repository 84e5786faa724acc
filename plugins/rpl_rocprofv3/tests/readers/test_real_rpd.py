"""Real RPD databases, against plain sqlite3."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing

import pytest

pytestmark = pytest.mark.data

WORK = "('KernelExecution', 'Task', 'FillBuffer')"


@pytest.fixture(
    params=[
        "vllm-mi300x-8gpu-rpd/trace_0.rpd.gz",
        "rpd-raptor-gfx942/mytrace.rpd.gz",
        "rpd-matmul-gfx90a/matmul_result.rpd",
    ]
)
def recording(request, rpl_shared_data, tmp_path):
    """The recording, and a plain copy of it for SQL."""
    path = rpl_shared_data / "rocpd" / request.param
    plain = tmp_path / "plain.db"
    plain.write_bytes(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    return path, plain


def one(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchone()


def test_every_kernel_operation_is_a_dispatch_and_every_copy_a_copy(recording, read):
    path, plain = recording
    (trace,) = read(path)
    kind = "FROM rocpd_op o JOIN rocpd_string s ON s.id = o.opType_id WHERE s.string"
    assert (len(trace.dispatches), int(trace.dispatches.duration_ns().sum())) == one(
        plain, f"SELECT count(*), sum(o.end - o.start) {kind} IN {WORK}"
    )
    copies = trace.copies
    assert (len(copies), int((copies.end_ns - copies.begin_ns).sum())) == one(
        plain, f"SELECT count(*), sum(o.end - o.start) {kind} LIKE 'Copy%'"
    )


def test_grids_are_work_items_whatever_call_launched_the_kernel(recording, read):
    path, plain = recording
    (trace,) = read(path)
    shape = trace.dispatches.shape
    known = trace.shapes.grid[shape, 0] > 0
    total = int(trace.shapes.grid[shape][known].prod(axis=1).sum())
    assert (
        total
        == one(
            plain,
            "SELECT sum(k.gridX * k.gridY * k.gridZ * CASE n.string WHEN 'hipExtModuleLaunchKernel' THEN 1 "
            "ELSE k.workgroupX * k.workgroupY * k.workgroupZ END) FROM rocpd_op o "
            "JOIN rocpd_api_ops b ON b.op_id = o.id JOIN rocpd_kernelapi k ON k.api_ptr_id = b.api_id "
            "JOIN rocpd_api a ON a.id = b.api_id JOIN rocpd_string n ON n.id = a.apiName_id",
        )[0]
    )
    assert (
        int(known.sum())
        == one(
            plain,
            "SELECT count(*) FROM rocpd_op o JOIN rocpd_api_ops b ON b.op_id = o.id "
            "JOIN rocpd_kernelapi k ON k.api_ptr_id = b.api_id",
        )[0]
    )


def test_kernels_without_geometry_are_counted_not_invented(recording, read, codes):
    path, _ = recording
    (trace,) = read(path)
    unknown = int((trace.shapes.grid[trace.dispatches.shape, 0] < 0).sum())
    assert codes(trace).get("dispatch.no_geometry", 0) == unknown


def test_kernels_of_one_graph_launch_share_its_correlation_and_stream(rpl_shared_data, read):
    (trace,) = read(rpl_shared_data / "rocpd" / "vllm-mi300x-8gpu-rpd" / "trace_0.rpd.gz")
    calls = trace.api_calls
    launches = {
        int(c)
        for c, f in zip(calls.correlation_id, calls.function, strict=True)
        if trace.api_functions[f] == "hipGraphLaunch"
    }
    assert len(launches) == 4
    in_graph = [i for i, c in enumerate(trace.dispatches.correlation_id.tolist()) if c in launches]
    assert len(in_graph) > 2000
    assert {trace.streams[trace.dispatches.stream[i]].id for i in in_graph} == {0}


def test_unknown_facts_of_an_agent_are_none(recording, read):
    path, _ = recording
    (trace,) = read(path)
    (agent,) = trace.agents
    assert agent.architecture is None
    assert agent.compute_units is None
    assert trace.kernels[0].arch_vgpr is None
    assert trace.counters is None


def test_ranks_that_lived_at_the_same_time_become_one_trace(rpl_shared_data, read, tmp_path):
    folder = rpl_shared_data / "rocpd" / "vllm-mi300x-8gpu-rpd"
    (trace,) = read(folder)
    assert [p.guid for p in trace.processes] == ["trace_0.rpd.gz", "trace_1.rpd.gz"]
    assert len(trace.agents) == 2
    total = 0
    for rank in (0, 1):
        plain = tmp_path / f"{rank}.db"
        plain.write_bytes(gzip.decompress((folder / f"trace_{rank}.rpd.gz").read_bytes()))
        total += one(
            plain,
            "SELECT sum(o.end - o.start) FROM rocpd_op o JOIN rocpd_string s ON s.id = o.opType_id "
            f"WHERE s.string IN {WORK}",
        )[0]
    assert int(trace.dispatches.duration_ns().sum()) == total
