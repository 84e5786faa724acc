"""Tables and lines that fit a width."""

from __future__ import annotations

import pytest

from rpl_analysis.text import fit_table
from rpl_core.text import wrap_lines

COLUMNS = ("name", "a", "bb", "label")
ROWS = [("begin_" + "x" * 60 + "_end", "1", "22", "some_label"), ("short", "10", "2", "other")]


def fitted(width):
    return fit_table(COLUMNS, ROWS, width, right=("a", "bb"), droppable=("bb", "a"))


def test_what_fits_is_left_alone():
    table, lost = fitted(200)
    assert ROWS[0][0] in table
    assert lost == ()


@pytest.mark.parametrize(("width", "lost"), [(45, ()), (40, ()), (36, ("bb",)), (34, ("a", "bb"))])
def test_names_give_way_first_then_columns_in_their_order(width, lost):
    table, gone = fitted(width)
    assert gone == lost
    assert max(map(len, table.splitlines())) <= width
    assert "…" in table
    assert "_end" in table
    assert "some_label" in table


def test_alignment_survives_a_dropped_column():
    table, _ = fitted(36)
    header, first, second = table.splitlines()
    assert header.index(" a") == first.index(" 1", 20) == second.index("10") - 0
    assert first.endswith("some_label")


def test_short_names_need_no_room_to_be_cut():
    assert fit_table(("n", "value"), [("k", "x" * 30)], 34, droppable=("value",))[1] == ()


def test_control_characters_count_as_they_are_shown():
    table, _ = fit_table(("n", "v"), [("\x1b" * 40, "1")], 30)
    assert max(map(len, table.splitlines())) <= 30
    assert "\x1b" not in table


def test_long_lines_are_broken_at_blanks_and_hang_further_in():
    text = wrap_lines("short\n  " + "word " * 30 + "\n\nx" + "y" * 200, 40)
    lines = text.split("\n")
    assert lines[0] == "short"
    assert lines[1].startswith("  word")
    assert lines[2].startswith("    word")
    assert [len(line) for line in lines if len(line) > 40] == [201]  # one word
    assert text.split().count("word") == 30
