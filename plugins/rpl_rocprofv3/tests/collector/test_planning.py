"""The passes and their exact commands, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_core.errors import MissingError, UsageError
from rpl_core.model.device import CounterMap, DeviceModel
from rpl_core.model.trace import TraceRole
from rpl_rocprofv3.collector.passes import with_directory


def device(counter_map: CounterMap) -> DeviceModel:
    return DeviceModel(
        name="toy",
        architecture="gfx942",
        product="Toy",
        chip_ids=(1,),
        compute_units=1,
        xcd_count=1,
        simd_per_cu=4,
        wave_size=64,
        max_waves_per_simd=8,
        lds_bytes_per_cu=65536,
        clock_mhz=None,
        l2_bytes=None,
        llc_bytes=None,
        l2_channels=None,
        fp32_valu_width=None,
        compute_ceilings=(),
        memory_ceilings=(),
        counter_map=counter_map,
    )


TOY = device(
    CounterMap(
        quantities=(),
        recommended=(),
        block_limits={"SQ": 2, "TCC": 1},
        block_prefixes=(("SQ_", "SQ"), ("TCC_", "TCC")),
        dangerous=(("MALL_", "it can hang the GPU"),),
    )
)


def test_each_run_has_its_own_directory_and_process_names(recorder) -> None:
    plan = recorder.plan("true", "-x", runs=3, time_limit_s=9.0)
    assert [one.directory for one in plan.passes] == [f".rocpd_profile/run_{n}" for n in (1, 2, 3)]
    assert {one.role for one in plan.passes} == {TraceRole.TIMING}
    assert {one.time_limit_s for one in plan.passes} == {9.0}
    expected = "--kernel-trace --output-format rocpd -d {directory} -o run_%pid% -- true -x"
    assert {one.command for one in plan.passes} == {(str(recorder.executable), *expected.split())}


def test_dependencies_add_copies_and_the_hip_api(recorder) -> None:
    (planned,) = recorder.plan("true", trace_dependencies=True).passes
    assert planned.command[1:4] == ("--kernel-trace", "--memory-copy-trace", "--hip-runtime-trace")


def test_a_reference_run_comes_after_the_timing_runs_and_records_kernels_only(recorder) -> None:
    plan = recorder.plan("true", runs=2, trace_dependencies=True, reference_run=True)
    assert [one.role.value for one in plan.passes] == ["timing", "timing", "reference"]
    assert plan.passes[-1].directory == "artifacts/without_calls"
    expected = "--kernel-trace --output-format rocpd -d {directory} -o run_%pid% -- true"
    assert plan.passes[-1].command[1:] == tuple(expected.split())
    assert len(recorder.plan("true", runs=2, reference_run=True).passes) == 2


def test_rocm_6_is_asked_for_csv(recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VERSION", "    version: 0.6.0")
    (planned,) = recorder.plan("true").passes
    assert planned.command[2:4] == ("--output-format", "csv")


def test_counter_passes_hold_what_the_blocks_allow_and_trace_nothing(recorder) -> None:
    counters = ("SQ_A", "SQ_B", "SQ_C", "TCC_A_sum", "TCC_B_sum")
    timing, *passes = recorder.plan("true", device=TOY, counters=counters).passes
    assert timing.counters == ()
    assert [one.counters for one in passes] == [("SQ_A", "SQ_B", "TCC_A_sum"), ("SQ_C", "TCC_B_sum")]
    assert [one.directory for one in passes] == ["artifacts/pass_1", "artifacts/pass_2"]
    assert {one.role for one in passes} == {TraceRole.COUNTERS}
    expected = "--pmc SQ_C TCC_B_sum --output-format rocpd -d {directory} -o run_%pid% -- true"
    assert passes[1].command[1:] == tuple(expected.split())


def test_dangerous_counters_are_left_out_with_the_reason_unless_allowed(recorder) -> None:
    request = {"device": TOY, "counters": ("SQ_A", "MALL_X")}
    plan = recorder.plan("true", **request)
    assert [one.counters for one in plan.passes[1:]] == [("SQ_A",)]
    (finding,) = plan.diagnostics
    assert finding.code == "collect.counter_refused"
    assert "MALL_X" in finding.fact
    assert "it can hang the GPU" in finding.fact
    assert finding.remedy == "--allow-dangerous-counters collects it all the same"
    allowed = recorder.plan("true", allow_dangerous_counters=True, **request)
    assert "MALL_X" in {name for one in allowed.passes for name in one.counters}


def test_counters_without_a_device_are_refused(recorder) -> None:
    with pytest.raises(UsageError, match="need a device"):
        recorder.plan("true", counters=("SQ_WAVES",))


@pytest.mark.parametrize("name", ["--output-format", "", "SQ_A,SQ_B", "SQ A", "$(id)"])
def test_what_is_no_counter_name_never_reaches_the_command_line(recorder, name: str) -> None:
    with pytest.raises(UsageError, match="no name of a counter"):
        recorder.plan("true", device=TOY, counters=(name,))


def test_counter_passes_can_be_planned_alone(recorder) -> None:
    passes = recorder.plan("true", runs=0, device=TOY, counters=("SQ_A",)).passes
    assert [one.name for one in passes] == ["pass_1"]


@pytest.mark.parametrize("runs", [0, -1])
def test_nothing_to_run_is_refused(recorder, runs: int) -> None:
    with pytest.raises(UsageError, match="at least one run"):
        recorder.plan("true", runs=runs)


def test_an_application_that_is_not_there_is_noticed_before_anything_is_created(
    recorder, tmp_path: Path
) -> None:
    with pytest.raises(MissingError, match="no such file"):
        recorder.plan(str(tmp_path / "typo"))
    assert not recorder.run_directory.exists()


def test_an_application_that_is_not_executable_is_a_usage_error(recorder, tmp_path: Path) -> None:
    (tmp_path / "app").write_text("")
    with pytest.raises(UsageError, match="not an executable file"):
        recorder.plan(str(tmp_path / "app"))


def test_the_directory_is_filled_in_before_the_application_only() -> None:
    command = ("rocprofv3", "-d", "{directory}", "--", "app", "{directory}", "--", "x")
    assert with_directory(command, Path("/a b")) == (
        "rocprofv3",
        "-d",
        "/a b",
        "--",
        "app",
        "{directory}",
        "--",
        "x",
    )
