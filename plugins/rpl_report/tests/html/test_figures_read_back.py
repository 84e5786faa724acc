"""Figures of the page read back as a reader does, and compared with the documents that they are about.

A text such as "1.627 ms" is read as a number with its unit by this file's own table of units, and may be off
from its value by half of the fourth digit. Pictures are read by their scales: a point's place between two
marks tells its value.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rpl_codeobject.kernel_names import source_name
from rpl_report.html import figures

THIN = "\N{NARROW NO-BREAK SPACE}"
PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
TIMES_NS = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1.0}
_FIGURE = re.compile(rf"(-?[\d{THIN}]+(?:\.\d+)?(?:e[+-]\d+)?) ?(\S*)")


def read(text: str) -> tuple[float, str]:
    """The value in ns, B, FLOP, ... or 1, and the unit without its prefix."""
    match = _FIGURE.fullmatch(text)
    assert match, text
    value, unit = float(match[1].replace(THIN, "")), match[2]
    if unit in TIMES_NS:
        return value * TIMES_NS[unit], "ns"
    if unit == "%":
        return value / 100, "%"
    for base in ("FLOP/s", "FLOP", "OP/s", "B/s", "B"):
        if unit.endswith(base) and unit.removesuffix(base) in PREFIXES:
            return value * PREFIXES[unit.removesuffix(base)], base
    return value, unit


def shows(text: str, value: float | None, unit: str = "") -> bool:
    """Whether a reader of ``text`` learns ``value``: four digits of it, of a share a tenth of a percent."""
    if value is None:
        return text in ("-", "unknown", "")
    found, found_unit = read(text)
    return found_unit == unit and abs(found - value) <= 5.01e-4 * (1 if unit == "%" else abs(value))


def _magnitudes(rng: random.Random) -> Iterable[float]:
    for power in range(-4, 14):
        for _ in range(6):
            yield round(rng.uniform(1, 10) * 10.0**power, 6)
        yield 10.0**power
        yield 9.9996 * 10.0**power


def test_times_rates_shares_and_counts_can_be_read_back() -> None:
    rng = random.Random(1)
    for value in _magnitudes(rng):
        assert shows(figures.duration(value), value, "ns"), value
        number = float(figures.duration(value).split(" ")[0].replace(THIN, ""))
        assert number < 1000.5 or value >= 1e12
        assert shows(figures.flops(value), value * 1e9, "FLOP/s"), value
        assert shows(figures.bytes_per_s(value), value * 1e9, "B/s"), value
        three_digits = not 1e-3 <= value < 1e7
        assert read(figures.plain(value)) == (pytest.approx(value, rel=5e-3 if three_digits else 5e-4), "")
        for longest in (value, 3.7 * value, 900 * value):
            unit = figures.table_unit(longest)
            assert shows(f"{figures.table_time(value, longest)} {unit}", value, "ns"), (value, longest)
            assert longest / TIMES_NS[unit] >= 10 or unit == "ns"
            assert longest / TIMES_NS[unit] < 10_000 or unit == "ms"
    for small in (1e-6, 9.4e-5, 0.02, 999.0):
        # With a prefix the figure is at least 1 of its unit.
        assert read(figures.flops(small))[0] == pytest.approx(small * 1e9, rel=5e-4)
    for share in (0.0, 0.0004, 0.0006, 0.1234, 0.5, 0.99949, 1.0, 1.013):
        assert shows(figures.share(share), share, "%")
        assert abs(float(figures.share(share, 0).split()[0]) - 100 * share) <= 0.5
    for number in (0, 7, 999, 1000, 1_234_567, 0.5, 1234.5):
        shown = figures.count(number)
        assert float(shown.replace(THIN, "")) == number
        assert all(len(part) == 3 for part in shown.partition(".")[0].split(THIN)[1:])
    for speedup in (1.0, 1.006, 1.4287, 9.99, 10.4, 123.4):
        shown = figures.factor(speedup)
        assert shown.endswith("×")
        assert float(shown[:-1]) == pytest.approx(speedup, abs=0.005 if speedup < 10 else 0.5)
    assert figures.factor(None) == "∞"
    nothing = (
        figures.duration,
        figures.flops,
        figures.bytes_per_s,
        figures.plain,
        figures.share,
        figures.count,
    )
    assert {one(None) for one in nothing} == {"-"} == {figures.table_time(None, 5.0)}


@pytest.fixture(scope="module")
def documents(demo_run: Path) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text()) for path in demo_run.glob("*.json")}


@pytest.fixture(scope="module")
def root(demo_report: Path, parsed: Any) -> Any:
    return parsed(demo_report)


def _rows(table: Any) -> list[list[str]]:
    (body,) = table.find_all("tbody")
    return [
        [cell.text.strip() for cell in row.children if cell.tag in ("td", "th")]
        for row in body.find_all("tr")
    ]


def _heads(table: Any) -> list[str]:
    return [head.text.strip() for head in table.find_all("thead")[0].find_all("th")]


def _details(root: Any) -> dict[str, Any]:
    """Kernel -> its part of the page."""
    parts = root.by_id("evidence").find_all("details", cls="kernel")
    return {part.find_all("code")[0].text: part for part in parts}


def test_facts_of_each_kernel_are_those_of_its_profile(root: Any, documents: dict[str, Any]) -> None:
    parts = _details(root)
    symbols = {one["name"]: one for one in documents["dag"]["symbols"] if one["kind"] == "kernel"}
    assert set(parts) == {kernel["name"] for kernel in documents["profile"]["kernels"]}
    for kernel in documents["profile"]["kernels"]:
        pairs = parts[kernel["name"]].find_all("dl", cls="pairs")[0].children
        facts = {pair.find_all("dt")[0].text: pair.find_all("dd")[0].text for pair in pairs}
        time, launches = re.fullmatch(r"(.*) \(exact\), (.*) dispatch(?:es)?", facts["Time per run"]).groups()  # type: ignore[union-attr]
        assert shows(time, 1e6 * kernel["runtime_ms"], "ns")
        assert shows(launches, kernel["launches"])
        median, least, most = re.fullmatch(r"median (.*), (.*) to (.*)", facts["One dispatch"]).groups()  # type: ignore[union-attr]
        for text, field in ((median, "median_ns"), (least, "min_ns"), (most, "max_ns")):
            assert shows(text, kernel[field], "ns"), field
        shape, resources = kernel["kernel"], kernel["resources"]
        grid, block = (" × ".join(str(n) for n in shape[name]) for name in ("grid", "block"))
        assert facts["Launch"].startswith(f"{grid} workgroups of {block}")
        assert ("shapes" in facts["Launch"]) == (shape["shape_count"] > 1)
        registers = [resources[name] for name in ("arch_vgpr", "accum_vgpr", "sgpr_per_wave")]
        assert [int(n) for n in re.findall(r"\d+", facts["Registers"])] == registers
        assert facts["LDS"] == f"{resources['lds_bytes']} B per workgroup"
        assert facts["Scratch"] == f"{resources['scratch_bytes']} B per work-item"
        occupancy = kernel["occupancy"]
        assert facts["Occupancy"].startswith(
            f"{100 * occupancy['theoretical']:.0f} %: {occupancy['waves_per_simd']} of "
            f"{occupancy['max_waves_per_simd']} waves per SIMD"
        )
        assert ("one more wave at" in facts["Occupancy"]) == bool(occupancy["next_threshold"])
        symbol = symbols[kernel["name"]]
        on_path, of = facts["On the critical path"].split(", ")
        assert shows(on_path, symbol["on_path_ns"], "ns")
        assert [int(n) for n in re.findall(r"\d+", of)] == [symbol["critical_nodes"], symbol["nodes"]]
        least, median = re.fullmatch(r"(.*) least, (.*) median", facts["Slack of one dispatch"]).groups()  # type: ignore[union-attr]
        assert shows(least, symbol["min_slack_ns"], "ns")
        assert shows(median, symbol["median_slack_ns"], "ns")
        assert ("May slow down by" in facts) == (symbol["slack_ns"] is not None)
        if symbol["slack_ns"] is not None:
            assert shows(facts["May slow down by"].split(" in all")[0], symbol["slack_ns"], "ns")


_UNITS = {
    "B": ("B", 1),
    "FLOP": ("FLOP", 1),
    "GB/s": ("B/s", 1e9),
    "GFLOP/s": ("FLOP/s", 1e9),
    "GOP/s": ("OP/s", 1e9),
}


def test_metrics_of_each_kernel_are_those_of_its_roofline(root: Any, documents: dict[str, Any]) -> None:
    parts, checked = _details(root), 0
    levels = {"hbm": "HBM", "l2": "L2", "vl1d": "vL1D", "lds": "LDS"}
    for kernel in documents["roofline"]["kernels"]:
        (table,) = (t for t in parts[kernel["name"]].find_all("table") if _heads(t)[0] == "Per launch")
        expected = {
            "FLOPs per launch": kernel["flops"],
            "FLOPs, per-op model": kernel["models"]["per_op"],
            "FLOPs, VALU-width model": kernel["models"]["valu_width"],
            "Share of the arithmetic ceiling (spec)": kernel["spec"]["compute_share"],
            "Share of the memory ceiling (spec)": kernel["spec"]["memory_share"],
        }
        expected |= {f"FLOPs, {name.replace('_', ' ')}": one for name, one in kernel["corrections"].items()}
        expected |= {name.replace("_", " "): one for name, one in kernel["caches"].items()}
        for level in kernel["levels"]:
            expected[f"{levels[level['level']]} traffic"] = level["bytes"]
            expected[f"{levels[level['level']]} rate"] = level["achieved_gbps"]
        rows = {row[0]: row[1:] for row in _rows(table)}
        assert set(expected) <= set(rows)
        for name, metric in expected.items():
            value, exactness, origin, how = rows[name]
            assert exactness == (metric["exactness"] or "-").replace("_", " ")
            assert origin == (metric["origin"] or "-")
            if metric["value"] is None:
                assert (value, how) == ("unknown", metric["reason"])
                continue
            unit, scale = _UNITS.get(metric["unit"], ("%", 1))
            ends = value.split(" to ")
            wanted = [metric["value"]] + ([metric["upper"]] if metric["upper"] is not None else [])
            assert len(ends) == len(wanted)
            assert all(shows(text, scale * end, unit) for text, end in zip(ends, wanted, strict=True)), name
            checked += 1
        types = {f"{work['data_type']} on": work["gops"]["value"] for work in kernel["types"]}
        for start, value in types.items():
            assert any(
                shows(row[0], 1e9 * value, "OP/s") for name, row in rows.items() if name.startswith(start)
            )
    assert checked > 60


def test_conditions_of_each_rule_are_those_of_the_analysis(root: Any, documents: dict[str, Any]) -> None:
    parts = _details(root)
    for kernel in documents["analysis"]["kernels"]:
        tables = [t for t in parts[kernel["kernel"]].find_all("table") if _heads(t)[0] == "Quantity"]
        rules = kernel["evidence"] + kernel["near_misses"]
        assert len(tables) == len(rules)
        for table, rule in zip(tables, rules, strict=True):
            for row, condition in zip(_rows(table), rule["conditions"], strict=True):
                name, value, test, holds, exactness, source = row
                assert name.startswith(condition["quantity"])
                comparison, threshold = test.split(" ")
                assert comparison == condition["comparison"].replace(">=", "≥")
                assert shows(threshold, condition["threshold"])
                ends = value.split(" to ")
                assert shows(ends[0], condition["value"])
                assert len(ends) == 1 + (condition["value"] is not None and condition["upper"] is not None)
                assert holds == {True: "yes", False: "no", None: "unknown"}[condition["holds"]]
                assert exactness == (condition["exactness"] or "-").replace("_", " ")
                assert source == condition["source"]


def test_tables_of_the_path_are_those_of_the_graph(root: Any, documents: dict[str, Any]) -> None:
    dag = documents["dag"]
    path = root.by_id("path")
    tables = {_heads(table)[0]: table for table in path.find_all("table")}

    def cells(first: str) -> list[dict[str, str]]:
        heads = _heads(tables[first])
        return [dict(zip(heads, row, strict=True)) for row in _rows(tables[first])]

    def time(row: dict[str, str], head: str) -> tuple[str, str]:
        """The cell under a header that may tell the unit, else that of the makespan."""
        unit = figures.table_unit(dag["makespan_ns"])
        (key,) = (key for key in row if key.partition(",")[0] == head)
        return f"{row[key]} {key.partition(', ')[2] or unit}", "ns"

    on_path = {(e["kind"], e["confidence"]): e["count"] for e in dag["path_edges"]}
    for row, edge in zip(cells("Dependency"), dag["edges"], strict=True):
        counts = edge["count"], on_path.get((edge["kind"], edge["confidence"]), 0)
        assert (int(row["All"]), int(row["On the path"])) == counts
        assert row["Confidence"] == edge["confidence"]
    for row, device in zip(cells("GPU"), dag["devices"], strict=True):
        idle = device["idle"]
        for head, ns in (
            ("Busy", device["busy_ns"]),
            ("Idle", device["idle_ns"]),
            ("by host", idle["host_ns"]),
            ("by sync", idle["sync_ns"]),
            ("by launch", idle["launch_ns"]),
            ("unknown", idle["unattributed_ns"]),
        ):
            assert shows(time(row, head)[0], ns, "ns"), head
        assert float(row["At once"]) == pytest.approx(device["total_ns"] / device["busy_ns"], rel=1e-3)
    for row, near in zip(cells("Through"), dag["near_paths"], strict=True):
        assert row["Through"] == source_name(near["through"])
        assert shows(time(row, "Length")[0], near["length_ns"], "ns")
        assert shows(time(row, "Slack")[0], near["slack_ns"], "ns")
        shares = [float(text) for text in re.findall(r"([\d.]+) %", row["Mostly"])]
        longest = sorted(
            (100 * one["on_path_ns"] / near["length_ns"] for one in near["shares"]), reverse=True
        )
        assert shares == pytest.approx(longest[: len(shares)], abs=0.051)
        assert len(shares) == min(3, len(longest))
    for row, edge in zip(cells("First"), dag["symbol_edges"], strict=True):
        assert (row["First"], row["Then"]) == tuple(source_name(edge[end]) for end in ("source", "target"))
        assert int(row["Times"]) == edge["count"]
        assert shows(time(row, "Gaps in all")[0], edge["gap_ns"], "ns")


def test_gains_of_the_what_if_table_are_those_of_the_forecasts(root: Any, documents: dict[str, Any]) -> None:
    dag = documents["dag"]
    (table,) = root.by_id("what-if").find_all("table", cls="forecasts")
    unit = _heads(table)[1].partition(", ")[2]
    heads = _heads(table)[2:-1]
    ceilings = {symbol["name"]: symbol for symbol in dag["symbols"]}
    for row, forecast in zip(_rows(table), dag["forecasts"], strict=True):
        for head, cell, step in zip(heads, row[2:-1], forecast["speedups"], strict=True):
            assert head == ("free" if step["speedup"] is None else f"{step['speedup']:.2f}×")
            gain, _, whole = re.sub(r"\s*\n\s*", "|", cell).partition("|")
            if not whole:
                gain, whole = re.fullmatch(r"(\d[\d.\u202f]*?)(\d\.\d\d×)", cell).groups()  # type: ignore[union-attr]
            assert shows(f"{gain} {unit}", step["application_gain_ns"], "ns")
            assert float(whole[:-1]) == pytest.approx(step["application_speedup"], abs=0.005)
        symbol = ceilings[forecast["name"]]
        text = row[-1]
        assert f"1/(1 − share) {figures.factor(symbol['speedup_ceiling'])}" in text


def test_points_stand_where_the_marks_of_their_axes_put_them(root: Any, documents: dict[str, Any]) -> None:
    """Both axes are logarithmic: two labelled marks tell the place of every value."""
    plot = root.by_id("roofline").find_all("svg", cls="plot")[0]
    (axis,) = plot.find_all("g", cls="axis")
    texts = [text for text in axis.find_all("text") if "title" not in (text.attributes.get("class") or "")]
    across = [(_tick(t.text), float(t.attributes["x"])) for t in texts if t.attributes.get("class") is None]
    upward = [
        (_tick(t.text), float(t.attributes["y"]) - 4) for t in texts if t.attributes.get("class") == "y"
    ]
    kernels = {k["name"]: k for k in documents["roofline"]["kernels"]}
    share = {k["name"]: k["time_share"] for k in documents["profile"]["kernels"]}
    seen = 0
    for link in plot.find_all("g", cls="points")[0].find_all("a"):
        level = next(c.removeprefix("at-") for c in link.attributes["class"].split() if c.startswith("at-"))
        label = link.attributes["aria-label"]
        (name,) = (name for name in kernels if label.startswith(f"{source_name(name)}:"))
        (part,) = (one for one in kernels[name]["levels"] if one["level"] == level)
        (mark,) = [each for each in link.children if each.tag in ("circle", "rect")]
        where = {key: float(value) for key, value in mark.attributes.items() if key != "class"}
        if mark.tag == "circle":
            x, y, area = where["cx"], where["cy"], math.pi * where["r"] ** 2
        else:
            x, y = where["x"] + where["width"] / 2, where["y"] + where["height"] / 2
            area = where["width"] * where["height"]
        assert (mark.tag == "rect") == (kernels[name]["dominant_pipe"] == "mfma")
        assert _value(across, x) == pytest.approx(part["operational_intensity"]["value"], rel=2e-3)
        assert _value(upward, y) == pytest.approx(1e9 * kernels[name]["achieved_gflops"]["value"], rel=5e-3)
        # Areas are shares of time, of one of 26 units of radius; small ones stay visible.
        assert area == pytest.approx(math.pi * max(25.0, 26**2 * share[name]), rel=6e-3)
        assert f"{100 * share[name]:.1f} % of kernel time" in label
        spec = part["spec_gbps"]
        if spec:
            assert f"{100 * part['achieved_gbps']['value'] / spec:.1f} % of spec" in label
        seen += 1
    assert seen > 10


def test_kernels_without_operations_stand_at_their_bandwidth(root: Any, documents: dict[str, Any]) -> None:
    plot = root.by_id("roofline").find_all("svg", cls="plot")[1]
    texts = plot.find_all("g", cls="axis")[0].find_all("text")
    marks = [(_tick(t.text.removesuffix("B/s")), float(t.attributes["x"])) for t in texts[:-1]]
    idle = {k["name"]: k for k in documents["roofline"]["kernels"] if k["achieved_gflops"]["value"] == 0}
    links = plot.find_all("g", cls="points")[0].find_all("a")
    assert len(links) == sum(
        bool(one["achieved_gbps"]["value"]) for k in idle.values() for one in k["levels"]
    )
    for link in links:
        (level,) = (c.removeprefix("at-") for c in link.attributes["class"].split() if c.startswith("at-"))
        (name,) = (name for name in idle if link.attributes["aria-label"].startswith(f"{source_name(name)}:"))
        (part,) = (one for one in idle[name]["levels"] if one["level"] == level)
        (mark,) = (each for each in link.children if each.tag == "circle")
        assert _value(marks, float(mark.attributes["cx"])) == pytest.approx(
            1e9 * part["achieved_gbps"]["value"], rel=5e-3
        )


def _tick(text: str) -> float:
    match = re.fullmatch(r"([\d.]+) ?([kMGTP]?)", text.strip())
    assert match, text
    return float(match[1]) * PREFIXES[match[2]]


def _value(marks: list[tuple[float, float]], place: float) -> float:
    (first, at), (last, end) = marks[0], marks[-1]
    decades = math.log10(last / first) * (place - at) / (end - at)
    return first * 10.0**decades
