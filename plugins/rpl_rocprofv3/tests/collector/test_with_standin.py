"""The collector against the stand-in of the test kit, which keeps to the real tool's files and messages."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path

import attrs
import pytest

from rpl_core.errors import ApplicationError, BadDataError, MissingError, TimeLimitError
from rpl_testkit.rocprofv3_standin import install_standin

QUICK = ((signal.SIGINT, 0.3), (signal.SIGTERM, 0.3), (signal.SIGKILL, 10.0))


@pytest.fixture
def standin(recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RPL_ROCPROFV3", str(install_standin(tmp_path / "standin" / "bin")))
    monkeypatch.setenv("RPL_STANDIN_STATE", str(tmp_path / "state"))
    return recorder


def counter_pass(standin, *counters: str):
    (planned,) = standin.plan("true").passes
    options = ("--pmc", *counters, *planned.command[2:])
    return attrs.evolve(
        planned,
        name="pass_1",
        directory="artifacts/pass_1",
        command=(planned.command[0], *options),
        counters=counters,
    )


def count(path: Path, table: str) -> int:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        connection.close()


@pytest.mark.parametrize("rocm", ["7.0", "7.2", "7.13", "10.0"])
def test_a_database_with_dispatches_and_without_environment_is_recorded(
    standin, monkeypatch, rocm: str
) -> None:
    monkeypatch.setenv("RPL_STANDIN_ROCM", rocm)
    monkeypatch.setenv("MY_API_KEY", "topsecretvalue")
    outcome = standin.run("true")
    (name,) = outcome.files
    path = standin.run_directory / name
    assert count(path, "rocpd_kernel_dispatch") > 0
    assert b"topsecretvalue" not in path.read_bytes()
    assert f"(ROCm {rocm}.0)" in outcome.tool_version
    assert outcome.diagnostics == ()


def test_rocm_6_records_csv(standin, monkeypatch) -> None:
    monkeypatch.setenv("RPL_STANDIN_ROCM", "6.4")
    outcome = standin.run("true")
    assert any(name.endswith("_kernel_trace.csv") for name in outcome.files)
    assert all(name.endswith(".csv") for name in outcome.files)


def test_every_child_process_has_a_database_of_its_own(standin, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text('{"children": 2}')
    monkeypatch.setenv("RPL_STANDIN_SCENARIO", str(tmp_path / "scenario.json"))
    outcome = standin.run("true")
    assert len(set(outcome.files)) == 3
    assert all(count(standin.run_directory / name, "rocpd_info_process") == 1 for name in outcome.files)


@pytest.mark.parametrize("rocm", ["6.4", "7.2"])
def test_counters_are_recorded(standin, monkeypatch, rocm: str) -> None:
    monkeypatch.setenv("RPL_STANDIN_ROCM", rocm)
    outcome = standin.run_pass(counter_pass(standin, "SQ_WAVES", "SQ_INSTS_VALU"))
    assert outcome.files
    assert outcome.planned.counters == ("SQ_WAVES", "SQ_INSTS_VALU")


def test_too_many_counters_of_a_block_are_said_to_be_too_many(standin) -> None:
    names = [f"TCC_EA0_RDREQ_{size}_sum" for size in ("32B", "96B")]
    planned = counter_pass(
        standin, "TCC_HIT_sum", "TCC_MISS_sum", "TCC_EA0_RDREQ_sum", "TCC_EA0_WRREQ_sum", *names
    )
    with pytest.raises(MissingError, match=r"can't count .* in one pass"):
        standin.run_pass(planned)


def test_an_unavailable_counter_among_others_is_a_finding(standin, monkeypatch) -> None:
    monkeypatch.setenv("RPL_STANDIN_MISBEHAVE", "unavailable=SQ_INSTS_VALU")
    outcome = standin.run_pass(counter_pass(standin, "SQ_WAVES", "SQ_INSTS_VALU"))
    assert [one.code for one in outcome.diagnostics] == ["collect.counter_unavailable"]
    assert "SQ_INSTS_VALU" in outcome.diagnostics[0].fact


def test_unavailable_counters_alone_are_missing(standin, monkeypatch) -> None:
    monkeypatch.setenv("RPL_STANDIN_MISBEHAVE", "unavailable=SQ_INSTS_VALU")
    with pytest.raises(MissingError, match="unknown counter in pass pass_1: SQ_INSTS_VALU"):
        standin.run_pass(counter_pass(standin, "SQ_INSTS_VALU"))


@pytest.mark.parametrize("how", ["hang", "hang_hard"])
def test_a_hanging_profiler_is_ended_by_the_time_limit(standin, monkeypatch, how: str) -> None:
    monkeypatch.setattr("rpl_core.process.supervision.STOP_SEQUENCE", QUICK)
    (planned,) = standin.plan("true").passes
    monkeypatch.setenv("RPL_STANDIN_MISBEHAVE", how)
    with pytest.raises(TimeLimitError):
        standin.run_pass(attrs.evolve(planned, time_limit_s=2.0))


@pytest.mark.parametrize(
    ("how", "error", "text"),
    [
        ("abort", ApplicationError, "SIGABRT"),
        ("exit=3", ApplicationError, "status 3"),
        ("no_output", BadDataError, "wrote no file"),
        ("empty", BadDataError, "no kernel dispatch recorded"),
        ("disk_full", MissingError, "no space left"),
    ],
)
def test_a_misbehaving_profiler_is_understood(standin, monkeypatch, how: str, error, text: str) -> None:
    (planned,) = standin.plan("true").passes
    monkeypatch.setenv("RPL_STANDIN_MISBEHAVE", how)
    with pytest.raises(error, match=text):
        standin.run_pass(planned)


def test_the_second_of_three_runs_fails_and_the_others_stay(standin, monkeypatch) -> None:
    passes = standin.plan("true", runs=3).passes
    monkeypatch.setenv("RPL_STANDIN_MISBEHAVE", "exit=3:run=2")
    assert standin.run_pass(passes[0]).files
    with pytest.raises(ApplicationError):
        standin.run_pass(passes[1])
    assert standin.run_pass(passes[2]).files


def test_the_recommended_counters_of_the_mi300x_are_read_in_four_passes(standin) -> None:
    gfx942 = pytest.importorskip("rpl_gfx942.plugin", reason="the gfx942 device plugin is not installed")
    (model,) = [model for model in gfx942.rpl_device_models() if model.product == "AMD Instinct MI300X"]
    plan = standin.plan("true", runs=0, device=model, counters=model.counter_map.recommended)
    assert len(plan.passes) == 4
    read = [name for one in plan.passes for name in one.counters]
    assert sorted(read) == sorted(model.counter_map.recommended)
    for planned in plan.passes:
        assert standin.run_pass(planned).diagnostics == ()
