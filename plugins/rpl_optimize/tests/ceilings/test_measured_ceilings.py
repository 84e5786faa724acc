"""Rates of kernels of known work, where they are kept, and what becomes a ceiling of the roofline."""

from __future__ import annotations

import json
import os

import attrs
import pytest

from rpl_core.errors import BadDataError
from rpl_core.model.metric import Origin
from rpl_core.model.recording import Recording
from rpl_gfx942.products import GFX942
from rpl_optimize.ceilings import (
    BENCHMARKS,
    KeptDevice,
    Sizes,
    benchmarks_for,
    ceilings_of,
    keep,
    rates_of,
    read_kept,
)
from rpl_optimize.plugin import KEPT_CEILINGS
from rpl_testkit.traces import make_trace

SIZES = Sizes(workgroups=10, iterations=3, mebibytes=2, launches=2)
MEMORY = ("ceiling_write", "ceiling_copy", "ceiling_read")


@pytest.fixture
def device():
    from rpl_amdgpu.models import device_models

    return next(one for one in device_models(GFX942) if one.name == "mi300x")


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    """Where the rates are kept."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "rpl" / KEPT_CEILINGS


def recording(durations, origin=Origin.MEASURED):
    """One after the other, in ns; the names as a profiler writes those that it demangled."""
    rows = [(f"{kernel}(x*)", i * 10**9, i * 10**9 + ns) for i, (kernel, ns) in enumerate(durations)]
    return Recording(traces=(make_trace(rows, origin=origin),))


def kept(device, rates, origin="measured"):
    return KeptDevice(
        product=device.product,
        architecture=device.architecture,
        compute_units=device.compute_units,
        origin=origin,
        date="2026-11-22",
        rpl_version="0.1.0",
        collector="test",
        sizes=attrs.asdict(SIZES),
        rates=rates,
    )


def chosen(device, *names):
    return tuple(one for one in benchmarks_for(device) if one.kernel in names)


def test_the_work_of_each_kernel_is_what_its_source_says():
    """By hand: 2 MiB buffers; 10 workgroups of 256 work-items (4 waves) with 3 iterations."""
    assert {one.kernel: one.work_of(SIZES) for one in BENCHMARKS} == {
        "ceiling_write": 2_097_152,
        "ceiling_copy": 4_194_304,
        "ceiling_read": 2_097_152,
        "ceiling_l2": 491_520,  # 2 560 work-items x 3 x 8 loads x 8 bytes
        "ceiling_lds": 491_520,
        "ceiling_fma_f16": 122_880,  # 2 560 work-items x 3 x 8 chains x 2
        "ceiling_fma_f32": 122_880,
        "ceiling_fma_f64": 122_880,
        "ceiling_pk_fma_f32": 245_760,
        "ceiling_mfma_f16": 7_864_320,  # 40 waves x 3 x 4 chains x 2 x 32 x 32 x 8
        "ceiling_mfma_bf16": 7_864_320,
        "ceiling_mfma_f32": 1_966_080,  # x 2 x 32 x 32 x 2
        "ceiling_mfma_f64": 983_040,  # x 2 x 16 x 16 x 4
        "ceiling_mfma_i8": 15_728_640,  # x 2 x 32 x 32 x 16
        "ceiling_mfma_f8": 15_728_640,
    }


def test_the_best_launch_is_kept_and_listed_as_measured(device, rpl_cli, path):
    durations = [
        *(("ceiling_write", ns) for ns in (600, 1000)),
        *(("ceiling_copy", ns) for ns in (1000, 1048)),
        *(("ceiling_lds", ns) for ns in (20, 30)),
        *(("ceiling_fma_f32", ns) for ns in (12, 10)),
    ]
    wanted = chosen(device, "ceiling_write", "ceiling_copy", "ceiling_lds", "ceiling_fma_f32")
    rates = {one.kernel: one for one in rates_of(recording(durations), wanted, SIZES, device)}
    assert (rates["ceiling_copy"].best, rates["ceiling_fma_f32"].best) == (4194.304, 12288.0)
    assert rates["ceiling_fma_f32"].slowest == 10240.0
    assert keep(device.name, kept(device, rates.values()), path)
    listed = rpl_cli("ceilings", "--device", "mi300x", "--json").assert_ok().json()["ceilings"]
    measured = {(one["ceiling"], one["pipe"]): one for one in listed if one["origin"] == "measured"}
    assert {key: one["rate"] for key, one in measured.items()} == {
        ("hbm", None): 4194.304,
        ("lds", None): 24576.0,
        ("F32", "valu"): 12288.0,
    }
    assert measured["hbm", None]["source"] == (
        "ceiling_copy, best of 2, slowest 4,002.2; rpl ceilings measure 0.1.0, 2026-11-22"
    )
    assert {one.origin.value for one in ceilings_of(device, path)} == {"measured"}
    assert ceilings_of(attrs.evolve(device, compute_units=38), path) == ()  # a partition
    other = rpl_cli("ceilings", "--device", "mi325x", "--json").assert_ok().json()["ceilings"]
    assert "measured" not in {one["origin"] for one in other}


def test_a_rate_above_the_peak_is_no_ceiling(device, rpl_cli, path):
    """A kernel that does nothing: 7 864 320 FLOPs in 4 ns, where the peak is 1 307 443 per ns."""
    rates = rates_of(recording([("ceiling_mfma_f16", 4)]), chosen(device, "ceiling_mfma_f16"), SIZES, device)
    assert rates[0].refused is not None
    keep(device.name, kept(device, rates), path)
    listed = rpl_cli("ceilings", "--device", "mi300x", "--json").assert_ok().json()["ceilings"]
    assert "measured" not in {one["origin"] for one in listed}


@pytest.mark.parametrize("origin", ["modelled", "synthetic"])
def test_what_was_not_measured_is_no_ceiling_and_replaces_none(origin, device, rpl_cli, path):
    rates = rates_of(recording([("ceiling_copy", 1000)]), chosen(device, "ceiling_copy"), SIZES, device)
    assert keep(device.name, kept(device, rates, origin), path)
    listed = rpl_cli("ceilings", "--device", "mi300x", "--json").assert_ok().json()["ceilings"]
    assert "measured" not in {one["origin"] for one in listed}
    keep(device.name, kept(device, rates), path)
    assert not keep(device.name, kept(device, rates, origin), path)
    assert json.loads(path.read_text())["devices"]["mi300x"]["origin"] == "measured"


def test_a_kernel_that_did_not_run_is_named_unless_the_gpu_lacks_it(device):
    wanted = chosen(device, "ceiling_write", "ceiling_mfma_i8")
    found = rates_of(recording([("ceiling_write", 600)]), wanted, SIZES, device)
    assert [one.kernel for one in found] == ["ceiling_write"]
    with pytest.raises(BadDataError, match="no launch of ceiling_copy, ceiling_read"):
        rates_of(recording([("ceiling_write", 600)]), chosen(device, *MEMORY), SIZES, device)


def test_a_damaged_file_costs_the_measured_ceilings_only(rpl_cli, path):
    path.parent.mkdir()
    path.write_text('{"schema_version": "1.0", "devices": {"mi300x": 1}}')
    listed = rpl_cli("ceilings", "--device", "mi300x", "--json").assert_ok()
    assert {one["origin"] for one in listed.json()["ceilings"]} == {"spec", "published"}
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BadDataError, match="no regular file"):  # and does not wait for a writer
        read_kept(path)


def test_without_a_device_nothing_is_built(rpl_cli):
    assert rpl_cli("ceilings", "measure").exit_code == 64


def test_without_a_home_nothing_is_measured(rpl_cli, monkeypatch):
    def no_home(_=None):
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr("pathlib.Path.home", no_home)
    assert "spec" in rpl_cli("ceilings", "--device", "mi300x").assert_ok().stdout
    assert "no home folder" in rpl_cli("ceilings", "measure", "--device", "mi300x").assert_exit(64).stderr
