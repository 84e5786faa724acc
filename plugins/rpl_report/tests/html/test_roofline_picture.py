"""Geometry of the roofline plot: what is drawn lies where its figures put it."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from math import dist, log10

import pytest

from rpl_analysis.contracts.roofline import CeilingsPart, ComputeCeilingDoc, MemoryCeilingDoc
from rpl_codeobject.kernel_names import source_name
from rpl_report.html.roofs import Frame, LogAxis, axis_over, compute_roofs, memory_roofs

FRAME = Frame(1000, 540, LogAxis(-2, 4, 64, 772), LogAxis(0, 7, 492, 16, giga=True))


def _compute(data_type, pipe, peak, origin="spec"):
    return ComputeCeilingDoc(data_type=data_type, pipe=pipe, peak_gflops=peak, origin=origin, source="test")


def _memory(level, peak, origin="spec"):
    return MemoryCeilingDoc(level=level, peak_gbps=peak, origin=origin, source="test")


CEILINGS = CeilingsPart(
    compute=(
        _compute("F32", "valu", 81_715.2),
        _compute("F64", "valu", 81_715.2),
        _compute("F16", "mfma", 1_307_443.2),
        _compute("F8", "mfma", 2_614_886.4),
    ),
    memory=(_memory("hbm", 5324.8), _memory("hbm", 3910.6, "measured"), _memory("l2", 34_406.4)),
)


def test_memory_lines_have_slope_one_and_meet_arithmetic_at_the_ridge():
    compute = compute_roofs(CEILINGS, {("F32", "valu"), ("F16", "mfma")}, FRAME)
    hbm = memory_roofs(CEILINGS, compute, FRAME)[0]
    low, high = 10 ** _value(FRAME.x, hbm.x1), 10 ** _value(FRAME.x, hbm.x2)
    assert 10 ** _value(FRAME.y, hbm.y1) == pytest.approx(low * 5324.8)
    assert 10 ** _value(FRAME.y, hbm.y2) == pytest.approx(high * 5324.8)
    assert high == pytest.approx(1_307_443.2 / 5324.8), "the ridge of the highest arithmetic that is shown"
    f16 = next(roof for roof in compute if "F16" in roof.label)
    assert (f16.x1, f16.y) == pytest.approx((hbm.x2, hbm.y2))


def _value(axis: LogAxis, place: float) -> float:
    return axis.low + (place - axis.start) / (axis.end - axis.start) * (axis.high - axis.low)


def test_arithmetic_that_no_kernel_uses_is_extra():
    roofs = compute_roofs(CEILINGS, {("F32", "valu")}, FRAME)
    assert {roof.label.split(" ")[0]: roof.shown for roof in roofs} == {
        "F8": False,
        "F16": False,
        "F32": True,
    }


def test_without_any_arithmetic_all_of_it_is_shown():
    assert all(roof.shown for roof in compute_roofs(CEILINGS, set(), FRAME))


def test_equal_ceilings_share_one_line():
    roofs = compute_roofs(CEILINGS, {("F32", "valu"), ("F64", "valu")}, FRAME)
    assert [roof.label for roof in roofs if roof.shown] == ["F32/F64 VALU 81.72 TFLOP/s"]


def test_labels_of_ceilings_do_not_overlap():
    many = CeilingsPart(compute=tuple(_compute(f"T{i}", "mfma", 1e5 * (1 + i / 50)) for i in range(12)))
    roofs = compute_roofs(many, set(), FRAME)
    assert all(b.label_y - a.label_y >= 13 for a, b in pairwise(roofs))


def test_labels_of_memory_lines_that_lie_close_stand_apart_along_them():
    close = CeilingsPart(memory=tuple(_memory("hbm", peak, "measured") for peak in (3900.0, 4200.0, 4850.0)))
    places = [(roof.label_x, roof.label_y) for roof in memory_roofs(close, (), FRAME) if roof.label]
    assert len(places) == 3
    assert all(dist(one, other) > 95 for one, other in combinations(places, 2))


@pytest.mark.parametrize("values", [[1e-300, 1e300], [5e-324], [1e308], [0.0], [float("inf"), 1.0], []])
def test_axes_stay_finite_for_any_figures(values):
    axis = axis_over(values, (-1, 3), 64, 772)
    assert 1 <= axis.high - axis.low <= 14
    assert len(axis.ticks()) < 150


def test_points_of_the_demo_lie_where_their_figures_are(demo_run, demo_report, parsed):
    roofline = json.loads((demo_run / "roofline.json").read_text())
    plot = parsed(demo_report).by_id("roofline").find_all("svg", cls="plot")[0]
    drawn = {}
    for link in plot.find_all("a", cls="at-hbm"):
        for shape in link.find_all("circle"):
            name = (link.attributes["aria-label"] or "").split(":")[0]
            drawn[name] = (float(shape.attributes["cx"] or 0), float(shape.attributes["cy"] or 0))
    kernels = {source_name(k["name"]): k for k in roofline["kernels"]}
    origin = kernels["stencil_tile"]
    x0, y0 = drawn["stencil_tile"]
    frame = {"operational_intensity": set(), "achieved_gflops": set()}
    for name, (x, y) in drawn.items():
        for place, zero, figure in ((x, x0, "operational_intensity"), (y, y0, "achieved_gflops")):
            decades = log10(kernels[name][figure]["value"] / origin[figure]["value"])
            if decades:
                frame[figure].add(round((place - zero) / decades, 1))
    assert all(max(scale) - min(scale) < 1 for scale in frame.values()), "one scale per axis"
    assert min(frame["operational_intensity"]) > 0 > max(frame["achieved_gflops"]), "up is more"


def test_a_kernel_above_its_ceiling_is_flagged(report_of, parsed):
    from rpl_testkit.fixtures import Launch

    # 64 B per write request: 1e12 requests in 1 us are 64 PB/s.
    counters = {
        "TCC_EA0_WRREQ": 1e12,
        "TCC_EA0_WRREQ_64B": 1e12,
        "TCC_EA0_RDREQ": 0.0,
        "TCC_EA0_RDREQ_32B": 0.0,
        "TCC_BUBBLE": 0.0,
    }
    report = report_of([Launch("impossible", 1000, 2000, counters=counters)])
    assert "above a ceiling" in parsed(report).by_id("roofline").text
