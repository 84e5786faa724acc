"""Counters that contradict each other, intervals, and sizes that no GPU has: none is exact, all is told."""

from __future__ import annotations

import csv
import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

from rpl_analysis.counters.formulas import evaluate_formula
from rpl_analysis.counters.quantities import KernelCounters
from rpl_core.model.device import Formula
from rpl_core.model.metric import Exactness

WRITES = Formula("64 * W64 + 32 * max0(W - W64)", Exactness.EXACT, "test")


def _evaluated(formula: Formula, **columns: list[float]):
    arrays = {name: np.array(values) for name, values in columns.items()}
    return evaluate_formula(formula, KernelCounters("k", len(next(iter(arrays.values()))), arrays), {})


def test_a_contradiction_in_one_launch_is_not_hidden_by_the_others() -> None:
    agreeing = _evaluated(WRITES, W=[10.0, 100.0], W64=[10.0, 50.0])
    assert (agreeing.exactness, agreeing.clamped) == (Exactness.EXACT, {})
    hidden = _evaluated(WRITES, W=[10.0, 100.0], W64=[11.0, 50.0])
    assert hidden.exactness is Exactness.ESTIMATE
    assert hidden.clamped == {"W - W64": 1}


def test_an_interval_whose_ends_are_the_wrong_way_round_is_no_exact_figure() -> None:
    formula = Formula("64 * A", Exactness.INTERVAL, "test", upper_expression="32 * B")
    assert _evaluated(formula, A=[1.0], B=[2.0]).exactness is Exactness.EXACT
    assert _evaluated(formula, A=[1.0], B=[3.0]).upper == 96.0
    crossed = _evaluated(formula, A=[2.0], B=[1.0])
    assert (crossed.exactness, crossed.upper, crossed.value) == (Exactness.ESTIMATE, None, 80.0)


def test_counters_of_which_a_third_one_shows_that_they_do_not_agree_give_an_estimate() -> None:
    waiting = Formula("WAIT / CYCLES", Exactness.EXACT, "test", consistent="max0(CYCLES - WAIT - ISSUE)")
    agreeing = _evaluated(waiting, WAIT=[60.0, 50.0], ISSUE=[40.0, 10.0], CYCLES=[100.0, 100.0])
    assert (agreeing.exactness, agreeing.value) == (Exactness.EXACT, 0.55)
    found = _evaluated(waiting, WAIT=[60.0, 50.0], ISSUE=[41.0, 10.0], CYCLES=[100.0, 100.0])
    assert (found.exactness, found.value) == (Exactness.ESTIMATE, 0.55)
    assert found.clamped == {"CYCLES - WAIT - ISSUE": 1}
    unknown = _evaluated(waiting, WAIT=[60.0], CYCLES=[100.0])
    assert unknown.exactness is Exactness.EXACT


@pytest.mark.data
def test_waits_of_more_than_a_wave_s_life_are_no_exact_share(rpl_shared_data, rpl_cli, tmp_path) -> None:
    """By csv: 2 of the 3 launches; figures that rest on them say so, and so does the label's confidence."""
    folder = rpl_shared_data / "counters_gfx942" / "path_MI300X_A1"
    with (folder / "pmc_perf.csv").open(newline="") as file:
        rows = [
            {k: float(v) for k, v in row.items() if k.startswith("SQ_WA")} for row in csv.DictReader(file)
        ]
    assert sum(r["SQ_WAIT_ANY"] + r["SQ_WAIT_INST_ANY"] > r["SQ_WAVE_CYCLES"] for r in rows) == 2
    rpl_cli("analyze", folder, "-o", tmp_path / "out").assert_ok()
    (found,) = json.loads((tmp_path / "out" / "analysis.json").read_text())["kernels"]
    (waits,) = (
        c for e in found["evidence"] for c in e["conditions"] if c["quantity"].startswith("dependency")
    )
    assert (waits["exactness"], found["confidence"]) == ("estimate", "medium")


@pytest.fixture
def workload(rpl_shared_data, tmp_path):
    def unpacked(name: str) -> Path:
        with tarfile.open(rpl_shared_data / "counters_new" / name) as archive:
            archive.extractall(tmp_path / "workload", filter="data")
        (table,) = (tmp_path / "workload").rglob("pmc_perf.csv")
        return table.parent

    return unpacked


@pytest.mark.data
@pytest.mark.parametrize("name", ["fmla_MI300.tgz", "hg_workload_bmm2.tgz"])
def test_more_writes_of_64_bytes_than_writes_are_no_exact_bytes(name, workload, rpl_cli, tmp_path) -> None:
    """By csv: the kernels in which WRREQ_64B exceeds WRREQ in some launch, and in how many."""
    folder = workload(name)
    with (folder / "pmc_perf.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    impossible: dict[str, int] = {}
    for row in rows:
        if float(row["TCC_EA0_WRREQ_64B_sum"]) > float(row["TCC_EA0_WRREQ_sum"]):
            name_of_kernel = row["Kernel_Name"].removesuffix(" [clone .kd]").removesuffix(".kd")
            impossible[name_of_kernel] = impossible.get(name_of_kernel, 0) + 1
    assert impossible
    rpl_cli("analyze", "--device", "gfx942", folder, "-o", tmp_path / "out").assert_ok()
    document = json.loads((tmp_path / "out" / "roofline.json").read_text())
    exactness = {kernel["name"]: kernel["bytes"]["exactness"] for kernel in document["kernels"]}
    assert {exactness[kernel] for kernel in impossible} == {"estimate"}
    told = [d["fact"] for d in document["diagnostics"] if "WRREQ_64B is negative" in d["fact"]]
    for launches in set(impossible.values()):
        assert any(f"is negative in {launches} of " in fact for fact in told)


@pytest.mark.data
def test_a_size_that_no_gpu_has_warns_and_sets_no_ceiling(workload, rpl_cli, tmp_path) -> None:
    """The sysinfo of this recording states 80 CUs and one XCD; gfx942 has at most 38 in one."""
    outcome = rpl_cli("analyze", workload("fmla_MI300.tgz"), "-o", tmp_path / "out").assert_ok()
    assert "80 CUs in 1 XCD, but an XCD of gfx942 has at most 38" in outcome.stderr
    ceilings = json.loads((tmp_path / "out" / "roofline.json").read_text())["ceilings"]
    l2 = [c["peak_gbps"] for c in ceilings["memory"] if c["level"] == "l2"]
    # 16 channels of an XCD, 128 B each per clock: what one XCD had would be 4 times too low for 80 CUs.
    clock_mhz = 1420
    assert all(peak > 16 * 128 * clock_mhz / 1000 * 3.9 for peak in l2)


@pytest.mark.data
def test_an_interval_is_shown_as_one(rpl_shared_data, rpl_cli, tmp_path) -> None:
    """Without the sizes of requests the bytes of a copy lie between two ends, and so does its rate."""
    folder = tmp_path / "copy"
    shutil.copytree(
        rpl_shared_data / "counters_gfx942" / "path_MI300X_A1", folder, copy_function=shutil.copyfile
    )
    folder.chmod(0o755)
    with (folder / "pmc_perf.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    unsized = [name for name in rows[0] if "TCC_BUBBLE" not in name and "WRREQ_64B" not in name]
    with (folder / "pmc_perf.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, unsized, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    shown = rpl_cli("analyze", "--device", "gfx942", folder, "-o", tmp_path / "out").assert_ok().stdout
    (kernel,) = json.loads((tmp_path / "out" / "roofline.json").read_text())["kernels"]
    low, high = kernel["achieved_gbps"]["value"], kernel["achieved_gbps"]["upper"]
    assert kernel["achieved_gbps"]["exactness"] == "interval"
    assert f"{low:.4g} to {high:,.0f}" in shown
    assert "~565" not in shown
    short = json.loads((tmp_path / "out" / "profile.json").read_text())["roofline"]
    assert short["upper_of"]["achieved_gbps"] == high
    assert short["upper_of"]["bytes"] == kernel["bytes"]["upper"]
    explained = rpl_cli("explain", "vecCopy", "--run", tmp_path / "out").assert_ok().stdout
    assert f"{low:.4g} to {high:,.0f}" in explained
