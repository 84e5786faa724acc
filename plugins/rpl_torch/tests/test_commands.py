"""From the file to what people read: every command that takes a recording takes these traces."""

from __future__ import annotations

import json

import pytest

from rpl_testkit.kineto_writer import KinetoTrace


def training(rank=None):
    """Two steps of one operator each; the host is late for the second."""
    trace = KinetoTrace(rank=rank, world_size=2, pid=100 + (rank or 0))
    for step in range(2):
        begin = 1000.0 * step
        trace.annotation(f"ProfilerStep#{step}", begin, 900.0)
        trace.frame("train.py(7): step", begin + 1.0, 800.0)
        trace.frame("nn.Module: Net_0", begin + 2.0, 700.0)
        operator = trace.operator(
            "aten::mm", begin + 10.0, 50.0, dims=[[64, 64], [64, 64]], types=["c10::BFloat16"] * 2
        )
        trace.kernel("gemm", begin + 20.0, begin + 30.0, 100.0, operator=operator)
        other = trace.operator("aten::add", begin + 200.0, 50.0, dims=[[64], [64]], types=["float"] * 2)
        trace.kernel("add", begin + 210.0, begin + 220.0, 20.0, operator=other)
    trace.copy("DtoH", 4096, 1300.0, 1310.0, 5.0, operator=other)
    return trace


@pytest.fixture
def path(tmp_path):
    return training().write(tmp_path / "trace.json.gz")


def test_analyze_says_what_decides_and_who_launched_it(path, rpl_cli, tmp_path):
    run = tmp_path / "run"
    profile = rpl_cli("analyze", path, "-o", run, "--json").assert_ok().json()
    torch, dag = profile["sections"]["torch"], json.loads((run / "dag.json").read_text())
    assert profile["provenance"]["origin"] == "synthetic"
    assert profile["runtime_ms"] == pytest.approx(0.24)
    assert torch["deciding"]["kernel"] == dag["dominant_symbol"] == "gemm"
    assert torch["deciding"] | {"kernel": ""} == {
        "kernel": "",
        "path_ns": 200_000,
        "operator": "aten::mm",
        "operator_ns": 200_000,
        "module": "Net_0",
        "line": "train.py(7): step",
        "dims": "[[64,64],[64,64]]",
    }
    assert torch["path_ns"] == dag["critical_path_ns"] == 245_000
    assert torch["idle_ns"] == dag["clock_domains"][0]["idle_ns"]
    (phases,) = [profile["phases"]]
    assert {p["name"]: p["kernel_ns"] for p in phases["phases"]} == {
        "ProfilerStep#0": 120_000,
        "ProfilerStep#1": 120_000,
    }
    assert profile["occupancy"]["theoretical"] is None


def test_reports_and_explanations_show_it(path, rpl_cli, tmp_path):
    run, page = tmp_path / "run", tmp_path / "report.html"
    text = rpl_cli("profile", "--from", path, "-o", run).assert_ok().stdout
    for said in ("PyTorch", "aten::mm", "Net_0", "train.py(7): step", "modelled from shapes, not counted"):
        assert said in text, said
    assert "aten::mm" in rpl_cli("report", run).assert_ok().stdout
    rpl_cli("report", run, "--format", "html", "-o", page).assert_ok()
    assert "aten::mm" in page.read_text()
    explained = rpl_cli("explain", "gemm", "--run", run).assert_ok().stdout
    assert "launched by operator" in explained
    assert "train.py(7): step" in explained


def test_what_if_and_exports_take_it(path, rpl_cli, tmp_path):
    found = rpl_cli("what-if", "gemm=2x", "--run", path, "--json").assert_ok().json()
    assert found["origin"] == "synthetic"
    for form in ("csv", "speedscope"):
        target = tmp_path / f"out.{form}"
        rpl_cli("export", path, "--format", form, "-o", target).assert_ok()
        assert b"gemm" in target.read_bytes()


def test_a_range_restricts_what_operators_cost(path, rpl_cli):
    torch = (
        rpl_cli("analyze", path, "--range", "ProfilerStep#1", "--json")
        .assert_ok()
        .json()["sections"]["torch"]
    )
    assert {o["name"]: o["launches"] for o in torch["operators"]} == {"aten::mm": 1, "aten::add": 2}


def test_ranks_of_a_folder_are_one_run(tmp_path, rpl_cli):
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in range(2):
        training(rank).write(folder / f"r{rank}.json")
    profile = rpl_cli("analyze", folder, "--json").assert_ok().json()
    assert [rank["rank"] for rank in profile["sections"]["torch"]["ranks"]] == [0, 1]
    assert profile["stability"]["runs"] == 1
    assert len(profile["ranks"]["ranks"]) == 2


def test_every_file_is_a_rank_of_a_job_and_a_damaged_one_costs_itself(tmp_path, rpl_cli):
    folder = tmp_path / "traces"
    folder.mkdir()
    whole = [training(rank).write(folder / f"r{rank}.json") for rank in range(3)]
    whole[2].write_bytes(whole[2].read_bytes()[:-200])
    job = rpl_cli("ranks", folder, "--json").assert_ok().json()["job"]
    assert [(rank["recording"], rank["process"]) for rank in job["by_rank"]] == [
        ("r0.json", 100),
        ("r1.json", 101),
    ]
    assert [one["recording"] for one in job["missing"]] == ["r2.json"]


def test_ranks_that_are_not_told_are_the_users_word(tmp_path, rpl_cli):
    folder = tmp_path / "traces"
    folder.mkdir()
    for number in range(2):
        trace = training(number)
        trace.rank = None
        trace.write(folder / f"{number}.json")
    profile = rpl_cli("analyze", folder, "--ranks", "--json").assert_ok().json()
    assert [rank["rank"] for rank in profile["sections"]["torch"]["ranks"]] == [None, None]
    told = rpl_cli("analyze", folder, "--json").assert_ok().json()
    assert any(d["code"] == "ingest.runs_assumed" and "--ranks" in d["remedy"] for d in told["diagnostics"])


def test_the_section_has_a_schema(rpl_cli):
    schema = rpl_cli("schema", "profile").assert_ok().json()
    assert "TorchPart" in json.dumps(schema)
