"""``rpl compare --html``: both sides, the answer, every run, the interval, and both rooflines on one page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

pytestmark = pytest.mark.usefixtures("synthetic_counts")


class _Nesting(HTMLParser):
    """Raises where elements do not nest; collects the text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        if tag not in {"meta", "link", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        pass

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data) -> None:
        self.text += data


def _text(page) -> str:
    parser = _Nesting()
    parser.feed(page.read_text(encoding="utf-8"))
    assert parser.open == []
    return parser.text


def test_sides_runs_interval_and_answer_are_on_the_page(make_runs, steady, rpl_cli, tmp_path) -> None:
    base = make_runs("base", steady(100_000, 10, **{"<b>other": 50_000}), command=("./old & co",))
    new = make_runs("new", steady(106_000, 9, **{"<b>other": 50_000}), command=("./new",))
    page = tmp_path / "page.html"
    document = rpl_cli("compare", base, new, "--html", page, "--json").assert_exit(1).json()
    text, source = _text(page), page.read_text(encoding="utf-8")
    assert "old & co and new compared on" in text
    assert f"{100 * document['kernels'][0]['confidence']:.4g} % confidence" in text
    assert "&lt;b&gt;other" in source
    assert "<b>other" not in source
    assert f"REGRESSION (limit 3 %; worst change {100 * document['gate']['worst_change']:+.2f}%)" in text
    (row,) = re.findall(
        r'<tr><th scope="row" class="name"><span class="named">(?:<span[^>]*></span>)?k<.*?</tr>',
        source,
        re.S,
    )
    assert row.count('class="base"') == 10
    assert row.count('class="new"') == 9
    found = next(item for item in document["kernels"] if item["name"] == "k")
    assert f"{100 * (found['ratio_low'] - 1):+.2f} % to {100 * (found['ratio_high'] - 1):+.2f} %" in row
    # The interval lies right of the allowed slow-down, and the change inside of it.
    low, high = map(float, re.findall(r'interval" d="M([\d.]+) 17H([\d.]+)"', row)[0])
    (limit,) = map(float, re.findall(r'limit" d="M([\d.]+) ', row))
    (change,) = map(float, re.findall(r'interval" d="M([\d.]+) 9V', row))
    assert limit < low < change < high
    assert "script" not in source.partition("</style>")[2]


@pytest.mark.data
def test_both_rooflines_of_real_recordings_are_drawn(rpl_shared_data, rpl_cli, tmp_path) -> None:
    folder, page = rpl_shared_data / "counters_gfx942", tmp_path / "page.html"
    sides = (folder / "path_MI300X_A1", folder / "kernel_MI300X_A1")
    said = rpl_cli("compare", *sides, "--html", page).assert_exit(75).stdout
    assert "next: rpl compare --interleaved --base COMMAND_OF_BASE --new COMMAND_OF_NEW --pairs 30" in said
    assert "application: kernel time" in said.partition("CANNOT TELL")[2]
    _text(page)
    plots = page.read_text(encoding="utf-8").split('<svg viewBox="0 0 800')[1:]
    # A copy does no floating-point operations. Its points are at 16.79 MB in 14.87 us and in 25.44 us.
    rates = [re.findall(r'aria-label="vecCopy: [^"]*HBM ([\d.]+) ([GT]B/s)', plot) for plot in plots]
    assert [rate for each in rates for rate in each] == [("1.13", "TB/s"), ("660.1", "GB/s")]
