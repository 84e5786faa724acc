"""Ranges of roctx in the timeline: rows of their own above the streams, drawn, hovered, spoken, harmless."""

from __future__ import annotations

import json

import pytest

HOSTILE = "</script><script>window.hacked=1</script>\u202e"
KERNELS = ("Kernel_Name", "Agent_Id", "Queue_Id", "Dispatch_Id", "Kernel_Id", "Correlation_Id")
TIMES = ("Start_Timestamp", "End_Timestamp")
MARKS = ("Domain", "Function", "Process_Id", "Thread_Id", "Correlation_Id")
RANGES = (
    ("step", 7, 900, 2500),  # begins before the first kernel
    (HOSTILE, 7, 1100, 1500),
    ("step", 7, 1600, 2000),
    ("other", 8, 2600, 9000),  # ends behind the last one
    ("later", 8, 9100, 9200),  # nothing runs on the GPU any more
)


@pytest.fixture
def marked_report(rpl_cli, tmp_path):
    place = tmp_path / "set"
    place.mkdir()
    kernels = [("gemm", 1, 1, i, 1, i, 1000 * i, 1000 * i + 900) for i in (1, 2, 3)]
    marks = [("MARKER_CORE_RANGE_API", name, 1, thread, 9, *times) for name, thread, *times in RANGES]
    for kind, columns, rows in (("kernel", KERNELS, kernels), ("marker_api", MARKS, marks)):
        lines = [",".join(f'"{cell}"' for cell in row) for row in ((*columns, *TIMES), *rows)]
        (place / f"1_{kind}_trace.csv").write_text("\n".join(lines))
    rpl_cli("analyze", place, "-o", tmp_path / "out").assert_ok()
    report = tmp_path / "report.html"
    rpl_cli("report", "--format", "html", "-o", report, tmp_path / "out").assert_ok()
    return report


def test_ranges_have_rows_of_their_own_in_data_and_drawing(marked_report, parsed):
    section = parsed(marked_report).by_id("timeline")
    ranges = json.loads(section.by_id("timeline-data").text)["ranges"]
    assert ranges["rows"] == ["ranges of thread 7", "ranges of thread 7 (inside 1)", "ranges of thread 8"]
    assert ranges["names"] == ["step", HOSTILE.replace("\u202e", "\\u202e"), "other"]
    drawing = section.by_id("timeline-static")
    boxes = drawing.find_all("rect", cls="range")
    assert len({box.attributes["y"] for box in boxes}) == 3
    titles = [title.text for title in drawing.find_all("title")][1:]
    assert [title.rpartition(": ")[2] for title in titles] == ["1.6 µs", "400 ns", "400 ns", "6.4 µs"]
    assert "ranges that the application marked" in section.text


@pytest.mark.browser
def test_ranges_are_hovered_and_spoken(page, marked_report):
    page.open(marked_report)
    page.evaluate("document.getElementById('timeline-plots').scrollIntoView({behavior: 'instant'})")
    page.settle()
    box = "document.querySelectorAll('#timeline-plots .u-over')[1].getBoundingClientRect()"
    left, top, width, height = page.evaluate(f"(r => [r.x, r.y, r.width, r.height])({box})")
    page.mouse("mouseMoved", left + width * 0.1, top + height * 0.375)  # 290 ns of 2900, second of four rows
    page.settle()
    hovered = page.evaluate("document.getElementById('tooltip').textContent")
    assert "window.hacked=1</script>\\u202e400 ns from 100 ns on" in hovered
    page.evaluate("document.getElementById('timeline-plots').focus()")
    page.press("ArrowUp", "ArrowUp", "n")
    spoken = page.evaluate("document.getElementById('timeline-spoken').textContent")
    assert spoken == "step, 400 ns from 600 ns on, ranges of thread 7 (inside 1)"
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.complaints == []
