"""Short forms of names that differ in their middle only."""

from __future__ import annotations

import random

import pytest

from rpl_analysis.text import fit_table, named_few, shorten_apart
from rpl_core.text import shorten

GEMMS = [
    f"Cijk_Alik_Bljk_F8HS_BH_BiasSH_UserArgs_MT{tile}_MI16x16x1_SN_LDSB1_{'x' * 40}_LPA{pad}_WG32_8_1_WGM32"
    for tile in ("256x224x128", "64x32x256", "64x16x512")
    for pad in (0, 8)
]


@pytest.mark.parametrize("width", [20, 24, 48, 64])
def test_names_that_differ_in_the_middle_stay_apart(width):
    assert len({shorten(name, width) for name in GEMMS}) < len(GEMMS)
    short = shorten_apart(GEMMS, width)
    assert len(set(short.values())) == len(GEMMS)
    assert {len(text) for text in short.values()} == {width}
    assert all(text.startswith("Cijk") for text in short.values())


def test_the_difference_is_shown_from_the_beginning_of_its_word():
    short = shorten_apart(GEMMS[::2], 48)
    assert ["MT256x224" in short[GEMMS[0]], "MT64x32" in short[GEMMS[2]]] == [True, True]


def test_two_differences_are_both_looked_at():
    names = [
        f"Cijk_{'a' * 40}_MT{tile}_{'b' * 40}_PA{pad}_{'c' * 40}" for tile, pad in ((1, 1), (1, 2), (2, 1))
    ]
    short = shorten_apart(names, 40)
    assert not any("#" in text for text in short.values())
    assert [piece in short[name] for name, piece in zip(names, ("PA1", "PA2", "MT2"), strict=True)] == [
        True
    ] * 3


def test_names_that_need_no_help_are_cut_as_ever():
    names = ["a" * 80, "b" * 80, "short", ""]
    assert shorten_apart(names, 30) == {name: shorten(name, 30) for name in names}


def test_order_does_not_matter():
    assert shorten_apart(GEMMS, 32) == shorten_apart(GEMMS[::-1], 32)


def test_random_names_of_few_letters_fit_and_stay_apart():
    rng = random.Random(5)
    for _ in range(300):
        width = rng.randint(1, 70)
        begin, end = "k" * rng.randint(0, 60), "e" * rng.randint(0, 60)
        names = {begin + "".join(rng.choices("ab_", k=rng.randint(0, 40))) + end for _ in range(12)}
        short = shorten_apart(names, width)
        assert set(short) == names
        assert all(len(text) <= width for text in short.values())
        if width >= 12:
            assert len(set(short.values())) == len(names)


def test_a_table_keeps_its_rows_apart():
    rows = [(name, "1") for name in GEMMS]
    table, _ = fit_table(("kernel", "n"), rows, 60, right=("n",), longest_name=40)
    lines = table.splitlines()
    assert len(set(lines)) == 1 + len(GEMMS)
    assert max(map(len, lines)) <= 40 + 2 + 1


def test_a_sentence_names_a_few_of_many():
    assert named_few(["a", "b"]) == "a; b"
    few = named_few(GEMMS)
    assert few.endswith("; ...")
    assert len(set(few.split("; "))) == 4
