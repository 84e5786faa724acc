"""``rpl ceilings``: what an analysis uses, and who measured it."""

from __future__ import annotations

import csv
import json

import pytest

from rpl_core.cli.session import Session
from rpl_optimize.cli.ceilings import compiled_for


@pytest.mark.data
def test_a_benchmark_beside_the_recording_is_measured_and_others_are_published(rpl_shared_data, rpl_cli):
    folder = rpl_shared_data / "counters_gfx942" / "path_MI200"
    with (folder / "roofline.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    found = rpl_cli("ceilings", "--from", folder, "--device", "MI210", "--json").json()["ceilings"]
    measured = {(c["ceiling"], c["pipe"]): c["rate"] for c in found if c["origin"] == "measured"}
    columns = {("hbm", None): "HBMBw", ("lds", None): "LDSBw", ("F64", "mfma"): "MFMAF64Flops"}
    for ceiling, column in columns.items():
        assert measured[ceiling] == min(float(row[column]) for row in rows)
    published = next(c for c in found if c["origin"] == "published" and c["ceiling"] == "hbm")
    assert "device 0" in published["source"]
    assert [c["origin"] for c in found] == sorted((c["origin"] for c in found), key=_rank)


def _rank(origin: str) -> int:
    return ("spec", "measured", "published").index(origin)


@pytest.mark.data
def test_the_second_roof_says_whose_benchmark_it_is(rpl_shared_data, rpl_cli, tmp_path):
    for name, device, origin in (
        ("path_MI200", "MI210", "measured"),
        ("path_MI300X_A1", "MI300X", "published"),
    ):
        out = tmp_path / name
        folder = rpl_shared_data / "counters_gfx942" / name
        rpl_cli("analyze", folder, "--device", device, "-o", out).assert_ok()
        document = json.loads((out / "roofline.json").read_text())
        assert {kernel["measured"]["origin"] for kernel in document["kernels"]} == {origin}
        assert f"of the {origin} ceilings" in rpl_cli("explain", "--run", out).assert_ok().stdout


def test_without_a_device_one_line_says_what_to_name(rpl_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "neither a device nor a recording" in rpl_cli("ceilings").assert_exit(64).stderr


def test_without_a_device_those_of_the_latest_run_are_listed(rpl_cli, rpl_make_rocpd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recording = rpl_make_rocpd([("scale", 0, 1000)])
    rpl_cli("profile", "--from", recording, "--device", "MI300X").assert_ok()
    listed = rpl_cli("ceilings", "--json").assert_ok().json()
    assert listed["device"] == "mi300x"


def test_options_before_the_subcommand_are_refused_instead_of_ignored(rpl_cli):
    wrong = rpl_cli("ceilings", "--device", "MI300X", "measure").assert_exit(64)
    assert "behind `measure`" in wrong.stderr


@pytest.mark.parametrize("name", ["mi300x", "gfx942-emu"])
def test_kernels_are_compiled_for_the_code_that_a_device_runs(name):
    """No compiler knows the emulated device by its own name."""
    session = Session()
    device = next(one for one in session.host.catalog.devices() if one.name == name)
    assert compiled_for(session, device) == "gfx942"
