"""The picture of a kernel: every unit with its rate, its share of the ceiling and how sure that is."""

from __future__ import annotations

import csv

import pytest


def _rows(text: str) -> dict[str, str]:
    """Lines of the picture by their unit."""
    lines = text.partition("Speed of light")[2].splitlines()
    units = ("compute units", "LDS", "vL1D", "L2", "fabric/HBM")
    return {unit: line for line in lines for unit in units if line.startswith(f"{unit} ")}


@pytest.mark.data
def test_a_recorded_copy_is_drawn_with_its_bytes_rates_and_hit_rates(rpl_shared_data, rpl_cli, tmp_path):
    folder = rpl_shared_data / "counters_gfx942" / "path_MI300X_A1"
    rpl_cli("analyze", folder, "--device", "MI300X", "-o", tmp_path / "out").assert_ok()
    with (folder / "pmc_perf.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))

    def total(name: str) -> float:
        return sum(float(value) for row in rows for key, value in row.items() if key == name)

    hits = total("TCC_HIT_sum") / (total("TCC_HIT_sum") + total("TCC_MISS_sum"))
    # Each launch moves 16.79 MB in 14.86 us.
    for drawn in (
        _rows(rpl_cli("report", tmp_path / "out").assert_ok().stdout),
        _rows(rpl_cli("explain", "--run", tmp_path / "out").assert_ok().stdout),
    ):
        assert f"{hits:.1%}" in drawn["L2"]
        assert drawn["fabric/HBM"].split() == [
            *("fabric/HBM", "21.2%", "####................", "1,130", "GB/s", "5,325", "GB/s", "16.79", "MB")
        ]
        assert "~" in drawn["vL1D"]
        assert "~" not in drawn["L2"]
        assert "0.0%" in drawn["compute units"]
        assert "LDS" not in drawn


def test_every_kernel_of_the_demo_can_be_asked_for(rpl_cli, tmp_path):
    rpl_cli("demo", "--runs", "1", "-o", tmp_path / "run").assert_ok()
    explained = rpl_cli("explain", "gemm", "--run", tmp_path / "run").assert_ok().stdout
    picture = explained.partition("Speed of light")[2]
    assert "F16 matrix" in picture
    assert "1,307,443 GOP/s" in picture
