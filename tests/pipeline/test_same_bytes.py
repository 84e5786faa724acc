"""The same input gives the same bytes: twice, from another folder, by `analyze` as by `profile`."""

from __future__ import annotations

import shutil

import pytest


def documents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.json") if path.name != "run.json"}


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "app"
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


@pytest.mark.data
@pytest.mark.parametrize(
    "place",
    [
        "rocpd/synthetic-gfx942",
        "rocpd/flydsl-gfx1250-v3",
        "rocpd/vllm-mi300x-8gpu-rpd",
        "rocpd/hipkittens-mi325x-csv",
        "rocpd/wave-mi350x-csv",
        "counters_gfx942/path_MI300X_A1",
        "counters_gfx942/vcopy_MI300X_A1_rocpd",
    ],
)
def test_recording_analysed_twice_and_from_elsewhere(place, rpl_shared_data, rpl_cli, tmp_path, monkeypatch):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    rpl_cli("analyze", rpl_shared_data / place, "-o", first).assert_ok()
    rpl_cli.process("analyze", rpl_shared_data / place, "-o", second, env={"PYTHONHASHSEED": "7"}).assert_ok()
    shutil.copytree(rpl_shared_data / place, tmp_path / "elsewhere" / "copy")
    monkeypatch.chdir(tmp_path / "elsewhere")
    rpl_cli("analyze", "copy", "-o", third).assert_ok()
    assert documents(first) == documents(second)
    assert documents(first) == documents(third)


def test_no_document_names_a_place_of_this_machine(rpl_make_rocpd, rpl_cli, tmp_path):
    recording = rpl_make_rocpd([("kernel", 0, 1000), ("kernel", 2000, 2000)])
    rpl_cli("analyze", recording, "-o", tmp_path / "out").assert_ok()
    for content in documents(tmp_path / "out").values():
        assert str(tmp_path).encode() not in content


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--device", "mi300a"),
        ("--roofline", "--flop-model", "valu_width", "--memory-bandwidth-gbps", "4000"),
        ("--device", "gfx942", "--clock-mhz", "1500", "--occupancy-mode", "llvm", "--strict"),
    ],
)
def test_analyze_gives_the_documents_that_profile_wrote(
    options, program, rpl_standin_rocprofv3, rpl_cli, tmp_path
):
    run = tmp_path / "run"
    rpl_cli("profile", "--runs", "2", *options, "-o", run, program).assert_ok()
    written = documents(run)
    rpl_cli("analyze", run).assert_ok()
    assert documents(run) == written
    moved = tmp_path / "moved"
    run.rename(moved)
    rpl_cli("analyze", moved, "-o", tmp_path / "again").assert_ok()
    assert documents(tmp_path / "again") == written


def test_option_of_a_later_analysis_wins_over_the_recorded_one(
    program, rpl_standin_rocprofv3, rpl_cli, tmp_path
):
    run = tmp_path / "run"
    rpl_cli("profile", "--runs", "1", "--memory-bandwidth-gbps", "4000", "-o", run, program).assert_ok()
    document = rpl_cli("analyze", "--json", "--memory-bandwidth-gbps", "1000", run).assert_ok().json()
    assert document["gpu"]["memory_bandwidth_gbps"] == 1000


def test_from_a_run_directory_copies_nothing_and_changes_nothing(
    program, rpl_standin_rocprofv3, rpl_cli, tmp_path
):
    run = tmp_path / "run"
    rpl_cli("profile", "--runs", "1", "--device", "gfx942", "-o", run, program).assert_ok()
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    rpl_cli("profile", "--from", run, "-o", tmp_path / "out").assert_ok()
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    assert documents(tmp_path / "out") == documents(run)
