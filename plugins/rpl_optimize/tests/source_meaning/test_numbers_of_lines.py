"""Which number a compiler gives to each line, by the C standard's rule on `#line`, and that edits keep them.

ISO C 6.10.4: the line behind a directive has its number, each further one the next.
"""

from __future__ import annotations

import random

import pytest

from rpl_optimize.source_meaning.front_end import line_directive, shown_line

LINES = (
    "int a;",
    "",
    "#line 7",
    "  # line 100",
    '#\tline 3 "other.hip"',
    "// #lines",
    "#define line 5",
    "f(#line 9)",
)


def numbers(text: str, newline: str) -> list[int]:
    """Of each line, by going through them."""
    found, number = [], 1
    for line in text.split(newline):
        found.append(number)
        words = line.replace("#", " # ").split()
        number = int(words[2]) if words[:2] == ["#", "line"] else number + 1
    return found


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_each_line_has_the_number_that_compilers_show(newline):
    rng = random.Random(5)
    for _ in range(200):
        lines = [rng.choice(LINES) for _ in range(rng.randint(1, 12))]
        text = newline.join(lines)
        expected = numbers(text, newline)
        at = 0
        for line, number in zip(lines, expected, strict=True):
            for offset in {at, at + len(line)} if "line" not in line.split("(")[0] else {at}:
                assert shown_line(text.encode(), offset) == number, (text, offset)
            at += len(line) + len(newline)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_follows_an_edit_keeps_its_numbers(newline):
    rng = random.Random(6)
    for _ in range(200):
        head = [rng.choice(LINES[:5]) for _ in range(rng.randint(0, 4))]
        function = [f"int f() {{ // {n}" for n in range(rng.randint(0, 4))] + ["}"]
        tail = [rng.choice(LINES[:5]) for _ in range(rng.randint(1, 5))]
        before = newline.join([*head, *function, *tail])
        end = len(newline.join([*head, *function]))
        longer = [*function[:-1], *["more();"] * rng.randint(0, 5), "}"]
        kept = line_directive(before.encode(), end).decode()
        after = newline.join([*head, *longer]) + kept + before[end:]
        assert numbers(before, newline)[-len(tail) :] == numbers(after, newline)[-len(tail) :], (before, kept)
