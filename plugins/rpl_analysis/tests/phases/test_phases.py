"""Ranges of roctx: which kernels they launched, their share, and what is left with ``--range``."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing

import pytest

HEAD = '"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"'
KERNELS = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",'
    '"Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count",'
    '"Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z",'
    '"Grid_Size_X","Grid_Size_Y","Grid_Size_Z"'
)


@pytest.fixture
def csv_set(tmp_path):
    """Three kernels that thread 7 launches at 10, 20 and 30 and that run much later."""
    kernels = [("gemm", 1, 100, 160), ("gemm", 2, 200, 230), ("softmax", 3, 300, 310)]
    calls = [("HIP_RUNTIME_API", "hipLaunchKernel", 7, i, 10 * i, 10 * i + 1) for i in (1, 2, 3)]
    marks = [
        ("MARKER_CORE_RANGE_API", "step", 7, 11, 5, 25),
        ("MARKER_CORE_RANGE_API", "step", 7, 12, 8, 12),  # inside: counted once
        ("MARKER_CORE_RANGE_API", "all", 7, 13, 0, 40),
        ("MARKER_CORE_RANGE_API", "other thread", 8, 14, 0, 400),
        ("MARKER_CORE_RANGE_API", "a mark", 7, 15, 9, 9),
        ("MARKER_CORE_API", "step", 7, 11, 0, 400),  # the call of a range, repeated by newer releases
    ]
    place = tmp_path / "set"
    place.mkdir()
    rows = [
        f'"KERNEL_DISPATCH","Agent 1",1,1,7,{i},1,"{name}",{i},{begin},{end},0,0,8,0,16,64,1,1,64,1,1'
        for name, i, begin, end in kernels
    ]
    (place / "1_kernel_trace.csv").write_text("\n".join((KERNELS, *rows)))
    for kind, found in (("hip", calls), ("marker", marks)):
        lines = [f'"{domain}","{name}",1,{thread},{i},{b},{e}' for domain, name, thread, i, b, e in found]
        (place / f"1_{kind}_api_trace.csv").write_text("\n".join((HEAD, *lines)))
    return place


def phases(rpl_cli, place, *words):
    document = rpl_cli("analyze", "--json", place, *words).assert_ok().json()
    return document["phases"], document


def test_a_kernel_belongs_to_the_ranges_that_its_launch_was_called_in(csv_set, rpl_cli):
    found, document = phases(rpl_cli, csv_set)
    assert document["runtime_ms"] == pytest.approx(100e-6)
    rows = {p["name"]: (p["ranges"], p["host_ns"], p["launches"], p["kernel_ns"]) for p in found["phases"]}
    assert rows == {
        "all": (1, 40, 3, 100),
        "step": (2, 20, 2, 90),
        "other thread": (1, 400, 0, 0),
    }
    step = next(p for p in found["phases"] if p["name"] == "step")
    assert (step["share"], step["dominant_kernel"], step["dominant_share"]) == (0.9, "gemm", 1.0)
    assert (found["by"], found["outside_ns"]) == ("launch", 0)
    assert "step" in rpl_cli("analyze", csv_set).assert_ok().stdout.partition("Phases")[2]


def test_without_calls_the_begin_of_a_kernel_places_it(csv_set, rpl_cli):
    (csv_set / "1_hip_api_trace.csv").unlink()
    found, _ = phases(rpl_cli, csv_set)
    assert found["by"] == "begin"
    assert {p["name"]: p["kernel_ns"] for p in found["phases"]} == {"other thread": 100, "all": 0, "step": 0}


def test_a_range_restricts_the_analysis(csv_set, rpl_cli, tmp_path):
    _, document = phases(rpl_cli, csv_set, "--range", "step")
    assert [(k["name"], k["launches"]) for k in document["kernels"]] == [("gemm", 2)]
    out = tmp_path / "out"
    said = rpl_cli("analyze", csv_set, "--range", "step", "-o", out).assert_ok().stderr
    assert "only the work that ranges called 'step' launched" in said
    assert rpl_cli("analyze", out, "--json").assert_ok().json()["launches"] == 2
    empty = rpl_cli("what-if", "gemm=2", "--run", csv_set, "--range", "other thread").assert_exit(69).stderr
    assert "no kernel was launched in the ranges called 'other thread'" in empty
    assert "there are 'step', 'all'" in rpl_cli("analyze", csv_set, "--range", "stp").assert_exit(69).stderr


def work_of(rpl_cli, place, *words):
    """What is exported and predicted: launches, recorded time, range."""
    rows = rpl_cli("export", "--format", "csv", place, *words).assert_ok().stdout.splitlines()[1:]
    answer = rpl_cli("what-if", "gemm=free", "--run", place, "--json", *words).assert_ok().json()
    return len(rows), answer["recorded_ns"], answer["range"]


def test_every_command_answers_for_the_range_that_was_asked_for_or_analysed(csv_set, rpl_cli, tmp_path):
    everything, step = (3, 210, None), (2, 130, "step")
    assert work_of(rpl_cli, csv_set, "--range", "step") == step
    run, other = tmp_path / "run", tmp_path / "other"
    rpl_cli("analyze", csv_set, "--range", "step", "-o", run).assert_ok()
    assert work_of(rpl_cli, run) == step
    assert work_of(rpl_cli, run, "--range", "") == everything
    assert "All 2 dispatches and copies" in rpl_cli("report", "--format", "html", run).assert_ok().stdout
    rpl_cli("analyze", csv_set, "-o", other).assert_ok()
    graph = "export", "--format", "dot", other
    assert "softmax" in rpl_cli(*graph).assert_ok().stdout
    assert "softmax" not in rpl_cli(*graph, "--range", "step").assert_ok().stdout
    said = rpl_cli("compare", run, other).assert_exit(64).stderr
    assert "the range 'step'" in said
    assert "--range ''" in said
    rpl_cli("analyze", other, "--range", "step").assert_ok()  # the documents say more than run.json
    judged = rpl_cli("compare", run, other, "--json").json()
    assert (judged["base"]["range"], [kernel["name"] for kernel in judged["kernels"]]) == ("step", ["gemm"])
    assert (
        "judges whole runs" in rpl_cli("compare", "--interleaved", "--range", "step").assert_exit(64).stderr
    )


def test_messages_of_a_rocpd_file(rpl_make_rocpd, rpl_cli):
    path = rpl_make_rocpd([("gemm", 100, 160), ("softmax", 200, 230)])
    with closing(sqlite3.connect(path)) as database, database:
        (guid,) = database.execute(
            "SELECT substr(name, 12) FROM sqlite_master WHERE name LIKE 'rocpd_event_%'"
        )
        table = {base: f'"rocpd_{base}{guid[0]}"' for base in ("string", "event", "region", "info_process")}
        known = database.execute(f"SELECT nid, id, guid FROM {table['info_process']}").fetchone()
        texts = ("MARKER_CORE_RANGE_API", "roctxThreadRangeA")
        for number, text in enumerate(texts):
            row = (900 + number, known[2], text)
            database.execute(f"INSERT INTO {table['string']} (id, guid, string) VALUES (?, ?, ?)", row)
        message = json.dumps({"message": "warm-up"})
        database.execute(
            f"INSERT INTO {table['event']} (id, guid, category_id, stack_id, parent_stack_id, correlation_id,"
            " extdata) VALUES (901, ?, 900, 901, 0, 0, ?)",
            (known[2], message),
        )
        database.execute(
            f"INSERT INTO {table['region']} (id, guid, nid, pid, tid, start, end, name_id, event_id)"
            " VALUES (901, ?, ?, ?, ?, 50, 170, 901, 901)",
            (known[2], known[0], known[1], known[1]),
        )
    found, _ = phases(rpl_cli, path)
    (one,) = found["phases"]
    assert (one["name"], one["kernel_ns"], one["dominant_kernel"]) == ("warm-up", 60, "gemm")
    assert found["outside_ns"] == 30


@pytest.mark.data
def test_ranges_of_a_real_recording_equal_plain_sql(rpl_shared_data, rpl_cli, tmp_path):
    packed = rpl_shared_data / "rocpd" / "rpd-raptor-gfx942" / "mytrace.rpd.gz"
    plain = tmp_path / "trace.rpd"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    with closing(sqlite3.connect(plain)) as database:
        expected = database.execute(
            "WITH r AS (SELECT a.start, a.end, a.tid FROM rocpd_api a"
            " JOIN rocpd_string s ON s.id = a.apiName_id"
            " JOIN rocpd_string t ON t.id = a.args_id WHERE s.string = 'UserMarker'"
            " AND t.string = 'aten::_scaled_mm') SELECT count(DISTINCT o.id), sum(o.end - o.start) FROM r"
            " JOIN rocpd_api l ON l.tid = r.tid AND l.start BETWEEN r.start AND r.end"
            " JOIN rocpd_api_ops x ON x.api_id = l.id JOIN rocpd_op o ON o.id = x.op_id"
            " JOIN rocpd_string k ON k.id = o.opType_id WHERE k.string = 'KernelExecution'"
        ).fetchone()
    found, _ = phases(rpl_cli, plain)
    one = next(p for p in found["phases"] if p["name"] == "aten::_scaled_mm")
    assert (one["launches"], one["kernel_ns"]) == expected == (256, 205_072_858)
    exported = rpl_cli("export", "--format", "perfetto", plain, "-o", tmp_path / "t.pftrace").assert_ok()
    assert exported.exit_code == 0
    assert b"ranges of thread" in (tmp_path / "t.pftrace").read_bytes()
