"""`rpl profile --pc-sampling` from start to end, against the stand-in profiler."""

from __future__ import annotations

import json
from collections import Counter

import pytest

PROFILE = ("profile", "--runs", "1", "--no-api", "--device", "MI300X")
RISK = "may freeze the hardware"


@pytest.fixture(autouse=True)
def _standin(rpl_standin_rocprofv3, monkeypatch):
    monkeypatch.delenv("RPL_ROCPROFV3", raising=False)
    monkeypatch.delenv("RPL_STANDIN_MISBEHAVE", raising=False)


def sampled(rpl_cli, run, *options):
    outcome = rpl_cli(*PROFILE, *options, "-o", run, "--json", "--", "true").assert_ok()
    return outcome, outcome.json()


def test_what_was_sampled_is_counted_and_shown(rpl_cli, tmp_path):
    run = tmp_path / "run"
    outcome, document = sampled(rpl_cli, run, "--pc-sampling", "stochastic")
    assert RISK in outcome.stderr
    assert outcome.stderr.index(RISK) < outcome.stderr.index("run_1")  # said before anything runs
    section = document["sections"]["pc_sampling"]
    (path,) = (run / "artifacts/pc_sampling").glob("*_results.json")
    (process,) = json.loads(path.read_text())["rocprofiler-sdk-tool"]
    names = {one["kernel_id"]: one["formatted_kernel_name"] for one in process["kernel_symbols"]}
    records = process["buffer_records"]
    kernel_of = {
        one["dispatch_info"]["dispatch_id"]: names[one["dispatch_info"]["kernel_id"]]
        for one in records["kernel_dispatch"]
    }
    samples = [entry["record"] for entry in records["pc_sample_stochastic"]]
    assert len(samples) > 1000
    by_kernel = Counter(kernel_of[one["dispatch_id"]] for one in samples)
    assert {kernel["kernel"]: kernel["samples"] for kernel in section["kernels"]} == by_kernel
    by_place = Counter(
        (kernel_of[one["dispatch_id"]], one["pc"]["code_object_offset"], one["wave_issued"])
        for one in samples
    )
    for kernel in section["kernels"]:
        assert (kernel["origin"], kernel["sampled_every"], kernel["sampled_unit"]) == (
            *("synthetic", 1048576),
            "cycles",
        )
        for place in kernel["places"]:
            for state, count in ((1, place["issued"]), (0, place["stalled"])):
                assert by_place[kernel["kernel"], place["offset"], state] == count
    assert document["runtime_ms"] > 0
    timed = json.loads((run / "run.json").read_text())["passes"]
    assert [entry["role"] for entry in timed] == ["timing", "thread_trace"]

    text = rpl_cli("report", run).assert_ok().stdout
    assert "PC samples" in text
    assert "waitcnt" in text
    page = rpl_cli("report", "--format", "html", run).assert_ok().stdout
    assert 'id="pc-samples"' in page
    assert "Source beside ISA" in page
    assert "s_waitcnt vmcnt(0)" in page
    explained = rpl_cli("explain", "stream_triad", "--run", run).assert_ok().stdout
    assert "Waves issued in" in explained
    assert "0x1018" in explained


def test_host_trap_gives_null_where_it_knows_nothing(rpl_cli, tmp_path):
    _, document = sampled(rpl_cli, tmp_path / "run", "--pc-sampling", "host-trap", "--pc-interval", "500")
    kernels = document["sections"]["pc_sampling"]["kernels"]
    assert {(kernel["stalls"], kernel["issued"], kernel["waves"]) for kernel in kernels} == {(None,) * 3}
    assert kernels[0]["sampled_unit"] == "us"
    assert kernels[0]["ticks"] < kernels[0]["samples"] / 100  # all compute units at one moment
    command = json.loads((tmp_path / "run/run.json").read_text())["passes"][1]["command"]
    assert command[command.index("--pc-sampling-unit") + 1] == "time"
    assert "--pc-sampling-beta-enabled" in command


@pytest.mark.parametrize("cycles", ["1000", "128", "4294967296"])
def test_an_interval_that_the_hardware_can_not_count_is_refused(rpl_cli, tmp_path, cycles):
    refused = rpl_cli(*PROFILE, "--pc-sampling", "stochastic", "--pc-interval", cycles, "--", "true")
    assert "a power of two from 256 to 2147483648" in refused.assert_exit(64).stderr


def test_without_a_profiler_nothing_is_sampled(rpl_cli):
    refused = rpl_cli("profile", "--no-rocprof", "--pc-sampling", "host-trap", "--", "true")
    assert "--pc-sampling needs a profiler" in refused.assert_exit(64).stderr


def test_a_dry_run_tells_the_risk_too(rpl_cli):
    told = rpl_cli(*PROFILE, "--dry-run", "--pc-sampling", "stochastic", "--", "true").assert_ok().stdout
    assert "stochastic, every 1048576 cycles" in told
    assert RISK in told


@pytest.mark.parametrize(
    ("options", "misbehave", "says"),
    [
        (("--pc-sampling", "stochastic"), "pc_unsupported", "offers no such PC sampling"),
        (("--pc-sampling", "stochastic", "--pc-interval", "2147483648"), "", "holds no sample"),
    ],
)
def test_what_goes_wrong_costs_the_samples_only(rpl_cli, tmp_path, monkeypatch, options, misbehave, says):
    monkeypatch.setenv("RPL_STANDIN_MISBEHAVE", misbehave)
    _, document = sampled(rpl_cli, tmp_path / "run", *options)
    lost = [d for d in document["diagnostics"] if d["code"] == "collect.no_pc_samples"]
    assert len(lost) == 1
    assert says in lost[0]["fact"]
    assert "pc_sampling" not in document["sections"]
    assert document["runtime_ms"] > 0


def test_devices_that_amd_does_not_list_are_refused_before_anything_runs():
    from rpl_core.errors import MissingError
    from rpl_pcsampling.collecting import SamplingRequest, require_support
    from rpl_pcsampling.samples import Method

    stochastic = SamplingRequest(Method.STOCHASTIC, 256)
    host_trap = SamplingRequest(Method.HOST_TRAP, 1)
    for architecture in (None, "gfx942", "gfx950", "gfx951"):
        require_support(stochastic, architecture)
        require_support(host_trap, architecture)
    require_support(host_trap, "gfx90a")
    for request, architecture in ((stochastic, "gfx90a"), (host_trap, "gfx908"), (stochastic, "gfx1100")):
        with pytest.raises(MissingError):
            require_support(request, architecture)


def test_a_secret_of_the_command_stays_in_no_file(rpl_cli, tmp_path):
    """The recording, its log and the report, each of which holds the command line."""
    secret, run = "s3cr3t-value", tmp_path / "run"
    command = ("sh", "-c", 'echo "$@"', "sh", f"--token={secret}", "--password", secret)
    rpl_cli(*PROFILE, "--pc-sampling", "stochastic", "-o", run, "--", *command).assert_ok()
    rpl_cli("report", run, "--format", "html", "-o", run / "page.html").assert_ok()
    files = [path for path in run.rglob("*") if path.is_file()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
    (samples,) = (run / "artifacts/pc_sampling").glob("*_results.json")
    (process,) = json.loads(samples.read_text())["rocprofiler-sdk-tool"]
    assert "*" * len(secret) in process["metadata"]["command"]
