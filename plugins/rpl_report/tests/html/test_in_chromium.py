"""The report in a headless Chromium: quiet, alone, usable by mouse and keyboard, in every mode."""

from __future__ import annotations

import struct
import tarfile
import zlib

import pytest

pytestmark = pytest.mark.browser


def _colours(png: bytes) -> set[bytes]:
    """Distinct pixels of an 8-bit RGB or RGBA PNG, filters ignored: enough to tell a blank picture."""
    at, data, depth = 8, b"", 3
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            assert body[8] == 8, "8 bits per channel"
            depth = {2: 3, 6: 4}[body[9]]
        if kind == b"IDAT":
            data += body
        at += 12 + size
    raw = zlib.decompress(data)
    return {raw[i : i + depth] for i in range(1, min(len(raw), 4_000_000) - depth, depth)}


def test_nothing_is_complained_about_and_nothing_is_fetched(page, demo_report):
    page.open(demo_report)
    assert page.complaints == []
    assert set(page.requests) <= {demo_report.resolve().as_uri(), "data:,"}
    assert page.evaluate("document.querySelectorAll('#timeline-plots canvas').length") == 2


def test_hostile_names_do_nothing(page, hostile_report):
    page.open(hostile_report)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.evaluate("document.querySelectorAll('a, button, [tabindex]').forEach(e => { e.focus(); e.blur() })")
    page.mouse("mouseMoved", 400, 500)
    page.settle()
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.complaints == []


def test_policy_stops_a_script_that_got_in_anyway(page, demo_report, tmp_path):
    broken = tmp_path / "broken.html"
    text = demo_report.read_text(encoding="utf-8")
    broken.write_text(text.replace("</main>", "<script>window.hacked=1</script></main>"), encoding="utf-8")
    page.open(broken)
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert any("Content Security Policy" in complaint for complaint in page.complaints)


def _column(page, number: int) -> list[str]:
    return page.evaluate(
        f"[...document.querySelectorAll('#kernel-table tbody tr')].map(r => r.cells[{number}].dataset.key)"
    )


def _click_head(page, number: int) -> None:
    page.evaluate(f"document.querySelectorAll('#kernel-table thead button')[{number}].click()")


def test_kernels_sort_by_time_criticality_slack_and_label(page, demo_report):
    page.open(demo_report)
    for column in (1, 3, 4):
        _click_head(page, column)
        first = [float(key) for key in _column(page, column) if key]
        _click_head(page, column)
        second = [float(key) for key in _column(page, column) if key]
        assert sorted(first) in (first, first[::-1])
        assert second == first[::-1] or len(set(first)) < len(first)
        assert {tuple(first), tuple(second)} == {tuple(sorted(first)), tuple(sorted(first, reverse=True))}
    _click_head(page, 5)
    assert _column(page, 5) == sorted(_column(page, 5))
    states = page.evaluate(
        "[...document.querySelectorAll('#kernel-table th[aria-sort]')].map(h => h.ariaSort)"
    )
    assert states == ["ascending"]


def test_kernels_are_found_by_name_and_label(page, demo_report):
    page.open(demo_report)
    page.evaluate(
        "(i => { i.value = 'gemm'; i.dispatchEvent(new Event('input')) })"
        "(document.getElementById('kernel-find'))"
    )
    shown = page.evaluate("[...document.querySelectorAll('#kernel-table tbody tr:not([hidden])')].length")
    assert shown == 1
    assert page.evaluate("document.getElementById('kernel-count').textContent") == "1 of 7 kernels"


def test_everything_interactive_is_reached_by_tab(page, demo_report):
    page.open(demo_report)
    reached = set()
    for _ in range(90):
        page.press("Tab")
        reached.add(
            page.evaluate("(e => e.id || e.closest('[id]')?.id || e.className)(document.activeElement)")
        )
    for wanted in ("timeline-plots", "timeline-only", "timeline-dim", "kernel-find", "kernel-table", "path"):
        assert wanted in reached, (wanted, reached)


def test_timeline_by_keyboard_speaks_the_selected_dispatch(page, demo_report):
    page.open(demo_report)
    page.evaluate("document.getElementById('timeline-plots').focus()")
    whole = page.evaluate("document.getElementById('timeline-range').textContent")
    page.press("+", "+", "ArrowRight")
    assert page.evaluate("document.getElementById('timeline-range').textContent") != whole
    page.press("n")
    spoken = page.evaluate("document.getElementById('timeline-spoken').textContent")
    assert "dispatch" in spoken
    assert "slack" in spoken or "critical path" in spoken
    page.press("n")
    assert page.evaluate("document.getElementById('timeline-spoken').textContent") != spoken
    page.press("Home")
    assert page.evaluate("document.getElementById('timeline-range').textContent") == whole
    assert page.complaints == []


def test_dragging_zooms_and_hovering_names_what_is_there(page, demo_report):
    page.open(demo_report)
    box = "document.querySelectorAll('#timeline-plots .u-over')[1].getBoundingClientRect()"
    page.evaluate("document.getElementById('timeline-plots').scrollIntoView({behavior: 'instant'})")
    page.settle()
    left, top, width, height = page.evaluate(f"(r => [r.x, r.y, r.width, r.height])({box})")
    page.mouse("mouseMoved", left + width * 0.1, top + height * 0.375)
    page.settle()
    assert "copy" in page.evaluate("document.getElementById('tooltip').textContent").lower()
    before = page.evaluate("document.getElementById('timeline-range').textContent")
    page.mouse("mousePressed", left + width * 0.3, top + 10, button="left", clickCount=1)
    page.mouse("mouseMoved", left + width * 0.5, top + 12, button="left", buttons=1)
    page.mouse("mouseReleased", left + width * 0.5, top + 12, button="left", clickCount=1)
    page.settle()
    assert page.evaluate("document.getElementById('timeline-range').textContent") != before


def test_points_of_the_roofline_show_details_on_focus(page, demo_report):
    page.open(demo_report)
    page.evaluate("document.querySelector('#roofline a.point.at-hbm').focus()")
    assert "FLOP/s" in page.evaluate("document.getElementById('tooltip').textContent")
    level = page.evaluate("getComputedStyle(document.querySelector('a.point.at-l2')).display")
    page.evaluate("document.getElementById('level-l2').click()")
    changed = page.evaluate("getComputedStyle(document.querySelector('a.point.at-l2')).display")
    assert (level, changed != "none") == ("none", True)


def test_a_link_to_a_kernel_opens_its_details(page, demo_report):
    page.open(demo_report)
    page.evaluate("document.querySelector('#kernel-table tbody a').click()")
    page.settle()
    assert page.evaluate("document.querySelector('details.kernel[open]') !== null")


def test_nothing_moves_after_the_first_picture(page, demo_report):
    page.open(demo_report)
    shift = page.evaluate(
        "new Promise(r => new PerformanceObserver(l => r(l.getEntries().reduce((s, e) => s + e.value, 0)))"
        ".observe({type: 'layout-shift', buffered: true}) || setTimeout(() => r(0), 300))"
    )
    assert shift < 0.01


def test_without_scripts_the_drawing_stands_there_instead(page, demo_report, tmp_path):
    page.open(demo_report, scripts=False)
    picture = page.screenshot(tmp_path / "plain.png", full=False)
    assert len(_colours(picture)) > 50
    page.send("Emulation.setScriptExecutionDisabled", value=False)
    assert page.evaluate("getComputedStyle(document.getElementById('timeline-static')).display") == "block"
    assert page.evaluate("getComputedStyle(document.getElementById('timeline-controls')).display") == "none"


def test_dark_light_and_printed_pages_differ_and_are_not_blank(page, demo_report, tmp_path):
    pictures = {}
    for mode in ("light", "dark"):
        page.open(demo_report, dark=mode == "dark")
        pictures[mode] = page.screenshot(tmp_path / f"{mode}.png", full=False)
        assert len(_colours(pictures[mode])) > 50, mode
    assert pictures["light"] != pictures["dark"]
    page.open(demo_report)
    printed = page.pdf(tmp_path / "report.pdf")
    assert printed.startswith(b"%PDF")
    assert len(printed) > 30_000
    page.media(media="print", dark=True)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.getElementById('timeline-plots')).display") == "none"
    page.media()


def test_a_narrow_window_scrolls_tables_and_not_the_page(page, demo_report):
    page.open(demo_report, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.resize(800, 900)
    wider = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    assert page.evaluate(wider) == 0


def test_a_table_whose_times_differ_by_powers_of_ten_fits_800_pixels(
    page, rpl_shared_data, rpl_cli, tmp_path
):
    folder = tmp_path / "fmla"
    with tarfile.open(rpl_shared_data / "counters_new" / "fmla_MI300.tgz") as packed:
        packed.extractall(folder, filter="data")
    (counters,) = folder.rglob("pmc_perf.csv")
    rpl_cli("analyze", counters.parent, "--device", "gfx942", "-o", tmp_path / "out").assert_ok()
    report = tmp_path / "report.html"
    rpl_cli("report", tmp_path / "out", "--format", "html", "-o", report).assert_ok()
    page.open(report, width=800)
    kernels = "document.getElementById('kernel-table').parentElement"
    assert page.evaluate(f"{kernels}.scrollWidth <= {kernels}.clientWidth")


def test_text_has_enough_contrast_in_both_modes(page, demo_report):
    script = """
    (() => {
      const light = c => { const v = c / 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 };
      const of = s => { const [r, g, b] = s.match(/[\\d.]+/g).map(Number);
        return .2126 * light(r) + .7152 * light(g) + .0722 * light(b) };
      const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        if (!/, 0\\)$|transparent/.test(c)) return c } return 'rgb(255,255,255)' };
      return [...document.querySelectorAll('h1,h2,h3,p,td,th,a,dd,dt,li,summary,span.soft,.badge')]
        .filter(e => e.offsetParent && e.textContent.trim()).map(e => {
          const a = of(getComputedStyle(e).color), b = of(ground(e));
          return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.outerHTML.slice(0, 80)] })
        .filter(([ratio]) => ratio < 4.5).slice(0, 5);
    })()
    """
    for dark in (False, True):
        page.open(demo_report, dark=dark)
        assert page.evaluate(script) == []


def test_both_ends_of_a_narrow_range_can_be_told_apart(page, demo_report):
    page.open(demo_report)
    page.evaluate("document.getElementById('timeline-plots').focus()")
    page.press(*["+"] * 14)
    begin, _, end = page.evaluate("document.getElementById('timeline-range').textContent").partition(" to ")
    assert begin != end.partition(":")[0]


def test_nothing_sticks_out_of_the_paper(page, demo_report):
    """718 CSS pixels are the width of A4 between margins of 1 cm; what is wider is cut off or shrunk."""
    page.open(demo_report, width=718)
    page.media(media="print")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.settle()
    assert page.evaluate("document.documentElement.scrollWidth") <= 718
    page.media()
