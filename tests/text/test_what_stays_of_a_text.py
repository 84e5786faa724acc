"""Tables and lines read back: nothing is lost, nothing steers a terminal, and what can fit does.

Properties of drawn texts, each checked in plain Python: cells by the places where their columns begin, words
in their order, characters one by one by their Unicode category.
"""

from __future__ import annotations

import json
import random
import re
import unicodedata
from itertools import pairwise

import pytest

from rpl_core.text import (
    counted,
    encodable,
    format_table,
    harmless_json,
    printable,
    readable,
    shorten,
    wrap_lines,
)

WORDS = (
    "gemm",
    "a",
    "memory",
    "of-two",
    "vecCopy(double*)",
    "12,345",
    "≥",
    "bandwidth_bound",
    "to",
    "x" * 17,
)


def _sentence(rng: random.Random, most: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, most)))


def _table(rng: random.Random) -> tuple[list[str], list[list[str]], list[str]]:
    columns = [f"C{number}" for number in range(rng.randint(1, 5))]
    right = [name for name in columns if rng.random() < 0.4]
    rows = [
        [str(rng.randint(0, 10**6)) if name in right else _sentence(rng, 12) for name in columns]
        for _ in range(rng.randint(0, 6))
    ]
    return columns, rows, right


@pytest.mark.parametrize("seed", range(40))
def test_every_cell_stands_where_its_column_begins_or_ends(seed: int) -> None:
    columns, rows, right = _table(random.Random(seed))
    lines = format_table(columns, rows, right=right).split("\n")
    assert len(lines) == 1 + len(rows)
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    for line, row in zip(lines, (columns, *rows), strict=True):
        assert line == line.rstrip()
        at = 0
        for name, cell, width in zip(columns, row, widths, strict=True):
            blank = " " * (width - len(cell))
            expected = blank + cell if name in right else cell + blank
            assert line[at : at + width] == expected[: max(0, len(line) - at)]
            assert line[at + width : at + width + 2].strip() == ""
            at += width + 2


@pytest.mark.parametrize("seed", range(60))
def test_a_table_of_some_width_keeps_its_words_and_wraps_the_widest_texts_alone(seed: int) -> None:
    rng = random.Random(1000 + seed)
    columns, rows, right = _table(rng)
    width = rng.randint(20, 140)
    natural = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    texts = [i for i, name in enumerate(columns) if name not in right]
    shown = format_table(columns, rows, right=right, width=width)
    whole = sum(natural) + 2 * (len(columns) - 1)
    if whole <= width:
        assert shown == format_table(columns, rows, right=right)
        return
    # No word is longer than 17, and a column of text is never made narrower than 12.
    least = sum(min(n, 12) if i in texts else n for i, n in enumerate(natural)) + 2 * (len(columns) - 1)
    longest = max(map(len, shown.split("\n")))
    assert longest <= max(width, least)
    if least <= width:
        assert longest >= width - 17, "no narrower than it has to be"
    # One column: its words come back in their order, whatever lines they are on.
    if len(columns) == 1 and texts:
        joined = "".join(shown.split())
        assert joined == "".join("".join(row[0].split()) for row in (columns, *rows))
    for i, name in enumerate(columns):
        if name in right:
            for row in rows:
                assert row[i] in shown, "numbers are never broken"


@pytest.mark.parametrize("seed", range(60))
def test_the_widest_text_is_narrowed_first(seed: int) -> None:
    """Of two columns of single letters the places where the second begins tell the width of the first."""
    rng = random.Random(seed)
    first, second = rng.randint(12, 60), rng.randint(12, 60)
    rows = [[("a " * 40)[: first - 1] + "a", ("b " * 40)[: second - 1] + "b"]]
    width = rng.randint(26, first + second + 4)
    lines = format_table(["F", "S"], rows, width=width).split("\n")
    at = lines[0].index("S") - 2
    over = first + second + 2 - width
    assert at <= first
    rest = max(max(len(line) for line in lines[1:]) - at - 2, 0)
    if over <= 0:
        assert (at, rest) == (first, second)
    elif first > second:
        # The first gives until it is as wide as the second.
        assert at == max(first - over, second) or at < second
    elif second > first and over <= second - first:
        assert at == first
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("seed", range(80))
def test_lines_are_broken_at_blanks_and_hang_under_their_beginning(seed: int) -> None:
    rng = random.Random(seed)
    indent = " " * rng.choice((0, 0, 2, 5))
    label = rng.choice(("", "why       ", "kernel time  ", "a very long label that is none, indeed   "))
    line = indent + label + _sentence(rng, 25)
    width = rng.randint(30, 100)
    broken = wrap_lines(line, width).split("\n")
    assert " ".join(" ".join(broken).split()) == " ".join(line.split())
    if len(line) <= width:
        assert broken == [line]
        return
    for part in broken:
        assert len(part) <= width or len(part.split()) == 1
    assert broken[0].startswith(indent)
    begin = len(indent) + len(label)
    hanging = {len(part) - len(part.lstrip()) for part in broken[1:]}
    behind_label = label.strip() in ("why", "kernel time") and begin > len(indent) + 2 and begin <= width // 2
    longest = max(map(len, line[begin:].split()))
    expected = begin if behind_label and longest <= width - begin else len(indent) + 2
    if label.strip() in ("", "why", "kernel time"):
        assert hanging == {expected}
    # A line is broken only where the next word has no room.
    for part, following in pairwise(broken):
        assert len(part) + 1 + len(following.split()[0]) > width
    assert wrap_lines(f"{line}\n\n{line}", width).split("\n") == [*broken, "", *broken]


@pytest.mark.parametrize(
    ("number", "one", "several", "shown", "expected"),
    [
        (1, "kernel", "", "", "1 kernel"),
        (0, "kernel", "", "", "0 kernels"),
        (2, "kernel has", "kernels have", "", "2 kernels have"),
        (1, "kernel has", "kernels have", "", "1 kernel has"),
        (1.0, "launch", "launches", "", "1.0 launch"),
        (1.5, "launch", "launches", "", "1.5 launches"),
        (None, "wave", "", "", "- waves"),
        (1201, "dispatch", "dispatches", "1,201", "1,201 dispatches"),
        (-1, "cycle", "", "", "-1 cycles"),
    ],
)
def test_numbers_with_their_nouns(
    number: float | None, one: str, several: str, shown: str, expected: str
) -> None:
    assert counted(number, one, several, shown) == expected


def _everything() -> str:
    """Every character of the planes in use, surrogates too."""
    return "".join(
        map(chr, [*range(0x3000), *range(0xD800, 0xE010), *range(0xFE00, 0x10010), 0x1F600, 0xE0001])
    )


def test_no_control_character_is_left() -> None:
    """Of control, format and other characters of the categories C and of separators only a blank stays."""
    for character in _everything():
        shown = printable(character)
        steers = unicodedata.category(character)[0] == "C" or unicodedata.category(character) in (
            "Zl",
            "Zp",
            "Zs",
        )
        if character in " \n\t" or not steers:
            assert shown == character
        else:
            assert shown.isprintable()
            assert shown == character.encode("unicode_escape").decode()
    mixed = "a\x1b[31mb\u202ec\nd\te\x7f"
    assert printable(mixed) == "a\\x1b[31mb\\u202ec\nd\te\\x7f"


def test_json_keeps_its_value_and_loses_what_steers() -> None:
    text = re.sub("[\ud800-\udfff]", "", _everything())
    marks = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
    for ascii_only in (True, False):
        written = json.dumps({"a": text}, ensure_ascii=ascii_only)
        safe = harmless_json(written)
        assert json.loads(safe) == {"a": text}
        assert not marks.search(safe)


def test_broken_encoding_is_shown() -> None:
    assert encodable("plain") == "plain"
    assert encodable("grün ≥ \udcff!") == "grün ≥ \\udcff!"
    for character in _everything():
        encodable(character).encode("utf-8")


@pytest.mark.parametrize("seed", range(20))
def test_long_names_keep_both_ends(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 80)))
    width = rng.randint(1, 60)
    cut = shorten(text, width)
    if len(text) <= width:
        assert cut == text
        return
    assert len(cut) == width
    head, _, tail = cut.partition("…")
    assert text.startswith(head)
    assert text.endswith(tail)
    # Two thirds at the beginning.
    assert len(head) == (width - 1) * 2 // 3


def test_readable_is_one_line() -> None:
    assert readable("a\nb\tc\x1bd\udcffe") == "a\\nb\\tc\\x1bd\\udcffe"
    assert readable("a" * 50, 9) == "aaaaa…aaa"
    assert readable("ab\n", 4) == "ab\\n"
