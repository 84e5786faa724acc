"""The text report: few digits, a dash for the unknown, and the origin of doubtful figures beside them."""

from __future__ import annotations

import re

import pytest

from rpl_analysis.text import duration_ns, milliseconds, number, percent, unit_of
from rpl_core.interfaces.section import RenderRequest
from rpl_core.text import counted
from rpl_report.options import SHOWN_KERNELS
from rpl_report.text import TextRenderer
from rpl_testkit.fixtures import Launch


@pytest.fixture
def shown(rpl_make_rocpd, rpl_cli, rpl_host, tmp_path):
    """``shown(launches, path_first=True)``: the report of a recording with these launches."""

    def render(launches, *, path_first=False, words=(), width=100):
        from rpl_analysis.documents.load import load_documents

        out = tmp_path / "out"
        rpl_cli("analyze", rpl_make_rocpd(launches), "-o", out, *words).assert_ok()
        documents = load_documents(out, rpl_host("analysis").catalog.documents().contributions).by_name()
        return TextRenderer().render(RenderRequest(documents, path_first=path_first, width=width))

    return render


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (duration_ns(None), "-"),
        (duration_ns(0), "0 ns"),
        (duration_ns(999), "999 ns"),
        (duration_ns(1000), "1 us"),
        (duration_ns(1_234_567), "1.235 ms"),
        (duration_ns(5e9), "5 s"),
        (milliseconds(None), "-"),
        (milliseconds(0.0123456), "0.01235 ms"),
        (percent(None), "-"),
        (percent(0.4567), "45.7%"),
        (number(None), "-"),
        (number(0.16666), "0.1667"),
        (number(1234567.0), "1,234,567"),
        (milliseconds(56321.4), "56,321 ms"),
        (counted(1, "dispatch has", "dispatches have"), "1 dispatch has"),
        (counted(2, "kernel"), "2 kernels"),
        (unit_of(1216, "wave"), "waves"),
        (unit_of(1, "wave"), "wave"),
        (unit_of(2, "GB/s"), "GB/s"),
        (unit_of(0.5, None), ""),
    ],
)
def test_figures_have_few_digits_and_a_unit(text, value):
    assert text == value


def test_columns_are_aligned_and_lines_have_no_trailing_blanks(shown):
    lines = shown([Launch("a", 0, 1000), Launch("a_longer_name", 1000, 3_000_000)]).splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("kernel  "))
    starts = {line.index(word) for line, word in ((lines[header], "bottleneck"), (lines[header + 1], "un"))}
    assert len(starts) == 1
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("end_ns", "unit", "longest"),
    [(1_433_269_000_000, "ms", "1,433,269 ms"), (90_000, "us", "90 us"), (31_000, "us", "31 us")],
)
def test_a_screen_has_one_unit_of_time(shown, end_ns, unit, longest):
    """The header, the path, its bounds, the tables, gains and ranks: the largest figure decides."""
    text = shown([Launch("short", 0, 900), Launch("long", 30_000, end_ns, stream=1)])
    units = re.findall(r"\b[\d.,]*\d (ns|us|ms|s)\b", text)
    units += re.findall(r" (?:time|median) (ns|us|ms|s)\b", text)  # of a table, in its heading
    assert len(units) >= 8
    assert set(units) == {unit}
    assert longest in text


def test_many_kernels_are_cut_and_counted(shown):
    text = shown([(f"kernel_{i:02}", i * 1000, i * 1000 + 500) for i in range(SHOWN_KERNELS + 3)], width=200)
    rest = f"3 more kernels with {3 / (SHOWN_KERNELS + 3):.1%} of the time"
    assert f"({rest}: --all shows them, profile.json holds them)" in text
    (table,) = (block for block in text.split("\n\n") if "bottleneck" in block)
    rows = [line for line in table.splitlines() if line.startswith("kernel_")]
    assert len(rows) == SHOWN_KERNELS


def test_long_names_keep_both_ends(shown):
    name = "begin_" + "x" * 200 + "_end"
    text = shown([(name, 0, 1000)])
    assert name not in text
    assert "begin_" in text
    assert "_end" in text


def test_path_first_changes_the_order_only(shown):
    launches = [("a", 0, 1000), ("b", 1000, 3000)]
    usual, focused = shown(launches), shown(launches, path_first=True)
    first, second = (text.split("\n\n")[:2] for text in (usual, focused))
    assert first[0] == second[0]  # the verdict is the beginning of both
    assert first[1].startswith("device")
    assert second[1].startswith("critical path")
    assert sorted(usual.split("\n\n")) == sorted(focused.split("\n\n"))


def test_a_kernel_that_is_the_whole_run_leaves_nothing(shown):
    assert "at no cost of that the application would be nothing" in shown([("a", 0, 1000)], width=200)


def test_synthetic_origin_is_said(shown):
    assert "synthetic: not a measurement of hardware" in shown([("a", 0, 1000)])


def test_estimated_times_show_their_range(shown):
    launches = [Launch("a", 0, 1000, counters={"SQ_WAVES": 1.0})]
    assert "(estimate, " in shown(launches)
    assert "kernel time unknown: " in shown(launches, words=("--strict",))


_LONG = [("a_kernel_with_a_rather_" + "long_" * 30 + "name(float const*, int)", 0, 1000), ("b", 1000, 1500)]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_line_is_wider_than_asked(shown, width):
    text = shown(_LONG, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "under_occupied (low)" in text
    assert ("no room for" in text) == (width == 60)
    heads = [line.split() for line in text.splitlines() if line.startswith("kernel  ")]
    titles = [title for head in heads for title in head[1:] if title != "us"]  # the unit of time and median
    assert (len(heads), len(titles)) == (2 if width < 140 else 1, len(set(titles)))
    assert width == 60 or {"VGPR/SGPR/LDS", "median", "limiter"} < set(titles)


def test_a_wide_terminal_shows_every_column_that_holds_something(shown):
    header = next(line for line in shown(_LONG, width=200).splitlines() if line.startswith("kernel  "))
    assert header.split() == [
        *("kernel", "calls", "time", "us", "share", "median", "us", "occup.", "limiter"),
        *("VGPR/SGPR/LDS", "crit.", "bottleneck"),
    ]


def test_without_a_terminal_the_width_is_fixed(rpl_cli, tmp_path, monkeypatch):
    rpl_cli("demo", "--recorded", "--runs", "1", "-o", tmp_path / "run").assert_ok()
    usual = rpl_cli("report", tmp_path / "run").assert_ok().stdout
    monkeypatch.setenv("COLUMNS", "300")
    assert rpl_cli("report", tmp_path / "run").assert_ok().stdout == usual
    assert max(map(len, usual.splitlines())) <= 100
    rpl_cli("report", tmp_path / "run", "-o", tmp_path / "report.txt").assert_ok()
    assert (tmp_path / "report.txt").read_text() == usual


def test_on_a_terminal_its_width_counts(monkeypatch):
    import os
    import shutil
    import sys

    from rpl_core.cli.output import text_width

    monkeypatch.setattr(sys, "stdout", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(shutil, "get_terminal_size", lambda fallback: os.terminal_size((173, 50)))
    assert text_width() == 173
    monkeypatch.setattr(shutil, "get_terminal_size", lambda fallback: os.terminal_size((20, 50)))
    assert text_width() == 60


def test_columns_that_hold_nothing_are_folded_into_one_line_with_the_reason(shown):
    launches = [Launch("kernel_with_a_long_name_" + "x" * 40, 1000 * i, 1000 * i + 900) for i in range(3)]
    for width in (100, 200):
        text = shown(launches, width=width)
        header = next(line for line in text.splitlines() if line.startswith("kernel  "))
        assert "GB/s" not in header
        assert "limiter" in header
        assert "(no GB/s, FLOP/B: no counter pass was recorded)" in text


def test_one_of_anything_has_no_plural(shown):
    launches = [(f"kernel_{i:02}", i * 1000, i * 1000 + 500) for i in range(SHOWN_KERNELS + 1)]
    assert "(1 more kernel with " in shown(launches, width=200)


def test_one_counter_pass_gives_one_end_and_labels_stand_apart(shown):
    launches = [Launch("a", 0, 5201, counters={"SQ_WAVES": 1.0})]
    text = " ".join(shown(launches).split())
    assert "(estimate, 5.201 us over the counter passes)" in text
    assert "kernel time 5.201 us" in text


def test_every_label_of_the_head_stands_apart_from_its_figure(rpl_cli, tmp_path):
    """Also the longest: "process time28.96 ms" was one word."""
    words = ("profile", "--no-rocprof", "--runs", "1", "-o", tmp_path / "run", "--", "true")
    head = rpl_cli(*words).assert_ok().stdout.split("\n\n")[1].splitlines()
    assert [line for line in head if re.match(r"process time +[\d.,]+ (ms|us)  \[", line)]
    assert all(line[12] == " " and line[13] != " " for line in head)


@pytest.mark.parametrize(
    ("runs", "said"), [(1, "the only one"), (3, "of 3, the one with the median runtime")]
)
def test_no_heading_stands_twice_and_the_run_shown_is_one_of_several_only_where_there_are(
    rpl_cli, tmp_path, monkeypatch, runs, said
):
    monkeypatch.chdir(tmp_path)
    text = rpl_cli("demo", "--recorded", "--runs", str(runs), "-o", "run").assert_ok().stdout
    first_lines = [block.splitlines()[0] for block in re.split(r"\n{2,}", text) if block.strip()]
    titles = [line for line in first_lines if re.fullmatch(r"[A-Z][A-Za-z ]+", line)]
    assert titles
    assert len(set(titles)) == len(titles)
    rpl_cli("report", "--format", "html", "-o", "page.html", "run").assert_ok()
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page, re.DOTALL)
    assert len(headings) >= 5
    assert len(set(headings)) == len(headings)
    shown = re.search(r"Timing run shown</dt><dd>([^<]*)", page)[1]
    assert shown.endswith(said)
    assert "number 1 of 1" not in page
