"""The text report of the demonstration read back: every table and sentence against the documents."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rpl_codeobject.kernel_names import source_name


@pytest.fixture(scope="module")
def documents(demo_run: Path) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text()) for path in demo_run.glob("*.json")}


@pytest.fixture
def text(rpl_cli: Any, demo_run: Path) -> str:
    return rpl_cli("report", demo_run, "--all").assert_ok().stdout


def _table(text: str, *first: str) -> list[dict[str, str]]:
    """Rows of the table with these columns; cells are two blanks apart, or told by their column's end."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if all(f" {word} " in f" {line} " for word in first))
    heads = re.split(r" {2,}", lines[start].strip())
    rows = []
    for line in lines[start + 1 :]:
        cells = re.split(r" {2,}", line.strip())
        if len(cells) != len(heads):
            break
        rows.append(dict(zip(heads, cells, strict=True)))
    assert rows, first
    return rows


def _number(text: str) -> float:
    return float(re.sub("[~≈≥,%x]|>=", "", text))


def _near(value: float, *, half: float = 0.0) -> Any:
    """To four digits, or to ``half`` of the last digit."""
    return pytest.approx(value, rel=5.01e-4, abs=half or 1e-12)


def test_time_and_place_of_each_kernel(text: str, documents: dict[str, Any]) -> None:
    kernels = {source_name(k["name"]): k for k in documents["profile"]["kernels"]}
    labels = {source_name(k["kernel"]): k for k in documents["analysis"]["kernels"]}
    rows = _table(text, "kernel", "share", "bottleneck")
    assert [row["kernel"] for row in rows] == sorted(kernels, key=lambda name: -kernels[name]["runtime_ms"])
    for row in rows:
        kernel, label = kernels[row["kernel"]], labels[row["kernel"]]
        assert _number(row["time ms"]) == _near(kernel["runtime_ms"])
        assert _number(row["share"]) == _near(100 * kernel["time_share"], half=0.0501)
        assert _number(row["occup."]) == _near(100 * kernel["occupancy"]["theoretical"], half=0.501)
        assert _number(row["crit."]) == _near(100 * kernel["criticality_weight"], half=0.0501)
        assert _number(row["GB/s"]) == _near(kernel["roofline"]["achieved_gbps"])
        assert row["bottleneck"] == f"{label['bottleneck']} ({label['confidence']})"


def test_resources_of_each_kernel(text: str, documents: dict[str, Any]) -> None:
    kernels = {source_name(k["name"]): k for k in documents["profile"]["kernels"]}
    rows = _table(text, "calls", "limiter", "FLOP/B")
    assert len(rows) == len(kernels)
    for row in rows:
        kernel = kernels[row["kernel"]]
        assert int(row["calls"]) == kernel["launches"]
        assert _number(row["median ms"]) == _near(kernel["median_ns"] / 1e6)
        assert row["limiter"] == kernel["occupancy"]["limiter"]
        own = kernel["resources"]
        assert [int(n) for n in row["VGPR/SGPR/LDS"].split("/")] == [
            own["vgpr_per_thread"],
            own["sgpr_per_wave"],
            own["lds_bytes"],
        ]
        roofline = kernel["roofline"]
        assert _number(row["FLOP/B"]) == _near(roofline["operational_intensity"])
        estimate = roofline["exactness_of"]["operational_intensity"] == "estimate"
        assert row["FLOP/B"].startswith("~") == estimate


def test_the_path_and_what_the_gpu_did(text: str, documents: dict[str, Any]) -> None:
    dag = documents["dag"]
    flat = " ".join(text.split())
    path, whole, share, name, faster = re.findall(
        r"critical path ([\d.]+) ms of ([\d.]+) ms makespan, ([\d.]+)% of it in (\S+); "
        r"at no cost of that the application would be ([\d.]+)x as fast",
        flat,
    )[0]
    assert float(path) == _near(dag["critical_path_ns"] / 1e6)
    assert float(whole) == _near(dag["makespan_ns"] / 1e6)
    assert float(share) == _near(100 * dag["fraction"], half=0.0501)
    assert name == source_name(dag["dominant_symbol"])
    assert float(faster) == _near(dag["application_ceiling"], half=0.000501)
    (machine,) = dag["clock_domains"]
    idle = machine["idle"]
    told = re.findall(
        r"GPU time: kernels ([\d.]+)%, copies alone ([\d.]+)%, idle ([\d.]+)% "
        r"\(host ([\d.]+)%, waits ([\d.]+)%, launch ([\d.]+)%\)",
        flat,
    )[0]
    wanted = ["kernel_ns", "copy_ns", "idle_ns"]
    parts = [machine[one] for one in wanted] + [idle[one] for one in ("host_ns", "sync_ns", "launch_ns")]
    assert [float(one) for one in told] == [
        pytest.approx(100 * ns / dag["makespan_ns"], abs=0.0501) for ns in parts
    ]
    (calls,) = re.findall(r"of the idle time the host was in: (.*?) what if", flat)
    shares = re.findall(r"([a-zA-Z ]+) ([\d.]+)%", calls)
    listed = [
        ("no call" if one["name"] is None else one["name"], one["share"]) for one in machine["idle_calls"]
    ]
    assert [(name.strip(), float(share)) for name, share in shares[:4]] == [
        (name, pytest.approx(100 * share, abs=0.0501)) for name, share in listed[:4]
    ]
    assert float(shares[4][1]) == pytest.approx(100 * sum(share for _, share in listed[4:]), abs=0.0501)


def test_gains_of_the_what_if_table(text: str, documents: dict[str, Any]) -> None:
    dag = documents["dag"]
    rows = _table(text, "what if faster by", "free")
    forecasts = {
        one["name"].replace("_", " ").lower() if one["kind"] == "copy" else source_name(one["name"]): one
        for one in dag["forecasts"]
    }
    for row in rows:
        for step in forecasts[row["what if faster by"]]["speedups"]:
            head = "free" if step["speedup"] is None else f"{step['speedup']:g}x"
            assert row[head].endswith("x")
            assert _number(row[head]) == pytest.approx(step["application_speedup"], abs=0.000501)
    shift, following = re.findall(r"from ([\d.]+)x on, (\S+) dominates", " ".join(text.split()))[0]
    assert float(shift) == pytest.approx(dag["dominance_shift_at"], abs=0.000501)
    later = next(one for one in dag["dominance"] if one["dominant_symbol"] != dag["dominant_symbol"])
    assert following == source_name(later["dominant_symbol"])


def test_the_verdict_names_shares_gains_and_labels(text: str, documents: dict[str, Any]) -> None:
    dag = documents["dag"]
    kernels = {source_name(k["name"]): k for k in documents["profile"]["kernels"]}
    forecasts = {source_name(f["name"]): f["speedups"] for f in dag["forecasts"] if f["kind"] == "kernel"}
    flat = " ".join(text.split())
    found = re.findall(
        r"(\d)\. (\S+): ([\d.]+)% of kernel time(?:, ([\d.]+)% of the critical path)?\. "
        r"In half its time the run takes ([\d.]+) ms less \(([\d.]+)%\)",
        flat,
    )
    assert [one[0] for one in found] == ["1", "2"]
    gains = []
    for _, name, share, of_path, less, part in found:
        kernel = kernels[name]
        (half,) = (step for step in forecasts[name] if step["speedup"] == 2)
        assert float(share) == pytest.approx(100 * kernel["time_share"], abs=0.0501)
        if of_path:
            assert float(of_path) == pytest.approx(100 * kernel["criticality_weight"], abs=0.0501)
        assert float(less) == _near(half["application_gain_ns"] / 1e6)
        assert float(part) == pytest.approx(
            100 * half["application_gain_ns"] / dag["makespan_ns"], abs=0.0501
        )
        gains.append(half["application_gain_ns"])
        label = kernel["bottleneck"].replace("_", " ")
        assert re.search(rf"{name}: .*?Why: {label}, (high|medium|low) confidence", flat)
    assert gains == sorted(gains, reverse=True)
    # Nothing brings more than what is said first.
    most = max(s["application_gain_ns"] for steps in forecasts.values() for s in steps if s["speedup"] == 2)
    assert gains[0] == most


def test_the_speed_of_light_of_the_first_kernel(text: str, documents: dict[str, Any]) -> None:
    kernel = max(documents["roofline"]["kernels"], key=lambda one: one["time_ns"]["value"] * one["launches"])
    assert f"{source_name(kernel['name'])}:\nunit " in text
    rows = {
        row[0]: row
        for row in re.findall(
            r"^(L2|vL1D|fabric/HBM) +(\S+%) +([#.]+) +(~?[\d,]+) GB/s +([\d,]+) GB/s(.*)$", text, re.M
        )
    }
    levels = {"vL1D": "vl1d", "L2": "l2", "fabric/HBM": "hbm"}
    for name, key in levels.items():
        _, share, bar, rate, ceiling, rest = rows[name]
        (level,) = (one for one in kernel["levels"] if one["level"] == key)
        part = level["achieved_gbps"]["value"] / level["spec_gbps"]
        assert _number(share) == pytest.approx(100 * part, abs=0.0501)
        assert len(bar) == 20
        assert bar == "#" * bar.count("#") + "." * bar.count(".")
        assert abs(bar.count("#") - 20 * part) <= 0.5
        assert _number(rate) == pytest.approx(level["achieved_gbps"]["value"], abs=0.501, rel=5e-4)
        assert _number(ceiling) == pytest.approx(level["spec_gbps"], abs=0.501, rel=5e-4)
        estimated = level["achieved_gbps"]["exactness"] == "estimate"
        assert rate.startswith("~") == share.startswith("~") == estimated
        hits = kernel["caches"].get(f"{key}_hit_rate")
        if hits and hits["value"] is not None:
            assert f"{100 * hits['value']:.1f}%" in rest
