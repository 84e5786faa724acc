"""The device against NVIDIA's own calculator, the reader against its public schema, and what comes of it."""

from __future__ import annotations

import csv
import importlib.metadata
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from nsight_writer import Session, program

from rpl_codeobject.occupancy import AllocatedRegisters, LaunchShape, NoOccupancy, theoretical_occupancy
from rpl_core.errors import BadDataError
from rpl_core.interfaces.reader import InputSet
from rpl_core.model.trace import NO_HANDLE, Agent, CallKind
from rpl_sm90.cuda_api import meaning, plain_name
from rpl_sm90.products import H100, H200, RESERVED_SHARED_BYTES, SM90, detected
from rpl_sm90.reader import NsightReader
from rpl_testkit.contracts import assert_device_model, assert_reader

MEASURED = Path(__file__).with_name("occupancy_h100.csv")
AMD = ("rpl-rocprofv3", "rpl-amdgpu", "rpl-att", "rpl-gfx942")


@pytest.fixture
def export(tmp_path):
    return program().write(tmp_path / "report.sqlite")


def read(path):
    reader = NsightReader()
    (inputs,) = reader.claim([path])
    (trace,) = reader.read(inputs)
    return trace


@pytest.mark.parametrize("device", [H100, H200], ids=lambda device: device.name)
def test_the_devices_keep_the_contract(device):
    assert_device_model(device)


@pytest.mark.parametrize(
    ("product", "units", "name"),
    [
        ("NVIDIA H100 80GB HBM3", 132, "h100"),
        ("NVIDIA H200", 132, "h200"),
        ("NVIDIA H100 PCIe", 114, None),
        ("NVIDIA H100 NVL", 132, None),
        ("NVIDIA GH200 480GB", 132, None),
    ],
)
def test_products_are_told_by_name_and_size(product, units, name):
    agent = Agent("node", 0, "GPU", architecture="sm_90", product=product, compute_units=units)
    found = detected((agent,))
    assert (found and found.name) == name


def test_occupancy_is_that_of_the_calculator_on_an_h100():
    """1 350 combinations, asked of cuda_occupancy.h on an H100 with CUDA 13.0: blocks per SM."""
    with MEASURED.open() as file:
        rows = [list(map(int, row)) for row in csv.reader(line for line in file if not line.startswith("#"))]
    assert len(rows) == 1350
    wrong = []
    for registers, block, shared, blocks, _ in rows:
        allocated = AllocatedRegisters(arch_vgprs=-(-registers // 8) * 8, accum_vgprs=0, sgprs=None)
        shape = LaunchShape(workgroup_size=block, lds_bytes=shared + RESERVED_SHARED_BYTES, wave_size=32)
        found = theoretical_occupancy(SM90, allocated, shape)
        if (0 if isinstance(found, NoOccupancy) else found.workgroups_per_unit) != blocks:
            wrong.append((registers, block, shared, blocks))
    assert wrong == []


def test_the_reader_keeps_the_contract(export, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert_reader(NsightReader(), export, scratch)


def test_kernels_with_their_launches(export):
    trace = read(export)
    assert [trace.kernels[k].name for k in trace.dispatches.kernel] == [
        "saxpy(float*)",
        "gemm(half*)",
        "tail(float*)",
    ]
    assert trace.dispatches.duration_ns().tolist() == [2_000, 4_400, 500]
    assert [trace.streams[s].id for s in trace.dispatches.stream] == [13, 14, 13]
    gemm = trace.kernels[1]
    assert (gemm.arch_vgpr, gemm.accum_vgpr, gemm.static_lds_bytes) == (168, 0, 0)
    shape = trace.dispatches.shape[1]
    assert trace.shapes.grid[shape].tolist() == [384_000, 1, 1]
    assert trace.shapes.lds_bytes[shape] == 100_000 + RESERVED_SHARED_BYTES
    (agent,) = trace.agents
    assert (agent.architecture, agent.product, agent.clock_mhz) == ("sm_90", "NVIDIA H100 80GB HBM3", 1980)
    assert trace.processes[0].pid == 4242
    assert trace.processes[0].node.startswith("hopper, session ")


def test_copies_and_fills(tmp_path):
    session = program()
    session.fill(12_000, 12_100, 12_200)
    trace = read(session.write(tmp_path / "report.sqlite"))
    directions = [trace.copy_directions[d] for d in trace.copies.direction]
    assert directions == ["HtoD", "DtoH", "MEMSET"]
    assert trace.copies.source_agent.tolist() == [-1, 0, -1]
    assert trace.copies.destination_agent.tolist() == [0, -1, 0]
    assert {trace.streams[s].id for s in trace.copies.stream} == {
        0
    }  # the null stream, whatever CUDA calls it


def test_calls_name_streams_and_events(export):
    trace = read(export)
    calls = trace.api_calls
    by_name = {trace.api_functions[f]: i for i, f in enumerate(calls.function)}
    record, wait, sync = (
        by_name[n] for n in ("cudaEventRecord", "cudaStreamWaitEvent", "cudaStreamSynchronize")
    )
    assert calls.event_handle[record] == calls.event_handle[wait] != NO_HANDLE
    assert calls.stream_handle[wait] == calls.stream_handle[sync] != calls.stream_handle[record]
    assert calls.stream_handle[by_name["cudaMemcpy"]] == 0
    created = {
        h: f
        for h, f, k in zip(calls.stream_handle, calls.flags, calls.function, strict=True)
        if trace.api_functions[k] == "TARGET_INFO_CUDA_STREAM"
    }
    assert created == {calls.stream_handle[record]: 0, calls.stream_handle[sync]: 1}


@pytest.mark.parametrize(
    ("recorded", "name", "kind"),
    [
        ("cudaStreamSynchronize_v3020", "cudaStreamSynchronize", CallKind.STREAM_SYNC),
        ("cudaStreamSynchronize_ptsz_v7000", "cudaStreamSynchronize_ptsz", CallKind.STREAM_SYNC),
        ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync", CallKind.OTHER),
        ("cudaMemcpy2D_v3020", "cudaMemcpy2D", CallKind.BLOCKING_COPY),
        ("cuEventRecord", "cuEventRecord", CallKind.RECORD),
        ("cudaMemset_v3020", "cudaMemset", CallKind.OTHER),
        ("vkQueueSubmit", "vkQueueSubmit", CallKind.UNKNOWN),
    ],
)
def test_what_a_function_means(recorded, name, kind):
    assert plain_name(recorded) == name
    assert meaning(name).kind is kind


def test_a_copy_on_the_device_blocks_nobody(tmp_path):
    session = program()
    session.copy("cudaMemcpy_v3020", 12_000, 12_010, 12_100, 12_500, kind=8)
    trace = read(session.write(tmp_path / "report.sqlite"))
    (function,) = [f for f in trace.api_functions if f.endswith("(device to device)")]
    assert trace.meanings()[trace.api_functions.index(function)].kind is CallKind.OTHER


def test_older_exports_without_optional_tables(tmp_path):
    optional = ("TARGET_INFO_CUDA_STREAM", "TARGET_INFO_CUDA_CONTEXT_INFO", "CUPTI_ACTIVITY_KIND_MEMSET")
    trace = read(program().write(tmp_path / "report.sqlite", without=optional))
    assert len(trace.dispatches) == 3


def test_impossible_times_are_left_out_and_counted(tmp_path):
    session = program()
    session.kernel("lost()", 12_000, 0, 0)
    session.kernel("backwards()", 12_000, 900, 800)
    trace = read(session.write(tmp_path / "report.sqlite"))
    assert len(trace.dispatches) == 3
    (diagnostic,) = trace.diagnostics
    assert (diagnostic.code, diagnostic.count) == ("nsight.impossible_times", 2)


def test_an_export_without_cuda_is_refused_with_what_to_do(tmp_path, rpl_cli):
    path = Session().write(tmp_path / "report.sqlite", without=("CUPTI_ACTIVITY_KIND_KERNEL",))
    outcome = rpl_cli("analyze", path).assert_exit(65)
    assert "no CUDA kernels" in outcome.stderr
    assert "nsys profile --trace=cuda" in outcome.stderr


def test_what_computes_is_not_read(tmp_path):
    path = program().write(tmp_path / "report.sqlite")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY")
        database.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS SELECT hex(zeroblob(9)) AS start")
        database.execute("DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET")
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end AS (length(hex(zeroblob(9)))))"
        )
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (start) VALUES (1)")
    assert len(read(path).copies) == 0


def test_an_unfinished_export_is_refused(export):
    export.with_name(export.name + "-wal").write_bytes(b"x")
    with pytest.raises(BadDataError, match="not written to its end"):
        NsightReader().read(InputSet("nsight-systems", "", (export,)))


def test_rpl_analyses_it_without_any_package_for_amd(export, rpl_cli, tmp_path):
    """Runs with `rpl-analysis` and `rpl-report` alone beside this plugin."""
    alone = {"RPL_LOAD_PLUGINS": "rpl-core,rpl-codeobject,rpl-analysis,rpl-report,rpl-sm90"}
    run = tmp_path / "run"
    document = rpl_cli("analyze", export, "-o", run, "--json", env=alone).assert_ok().json()
    assert document["gpu"]["architecture"] == "sm_90"
    assert document["runtime_ms"] == pytest.approx(6_900e-6)
    kernels = {kernel["name"]: kernel for kernel in document["kernels"]}
    gemm = kernels["gemm(half*)"]["occupancy"]
    # 168 registers leave one block of twelve warps.
    assert (gemm["limiter"], gemm["waves_per_simd"], gemm["wave_size"]) == ("vgpr", 3, 32)
    dag = json.loads((run / "dag.json").read_text())
    edges = {(edge["kind"], edge["confidence"]) for edge in dag["edges"]}
    assert {("event", "certain"), ("host_sync", "certain"), ("stream", "certain")} <= edges
    assert dag["critical_path_ns"] == 8_100  # copy, saxpy, gemm behind the event, tail behind the host, copy
    roofline = json.loads((run / "roofline.json").read_text())
    assert (roofline["status"], roofline["reason"]) == ("not_collected", "no counter pass was recorded")
    assert "NVIDIA H100 SXM" in rpl_cli("report", run, env=alone).assert_ok().stdout
    assert "gemm(half*)" in rpl_cli("report", run, "--format", "html", env=alone).assert_ok().stdout
    faster = rpl_cli("what-if", "gemm=2", "--run", export, "--json", env=alone).assert_ok().json()
    assert faster["together"]["application_speedup"] == pytest.approx(1.306, abs=0.001)


def test_nothing_of_amd_is_needed():
    requires = importlib.metadata.requires("rpl-sm90") or []
    assert not [required for required in requires if required.startswith(AMD)]
