"""Space files: what they may say, and what comes of it."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpl_autotune.space.expressions import ExpressionError, parse_expression
from rpl_autotune.space.read import read_space
from rpl_core.errors import BadDataError, UsageError

NAMES = frozenset({"A", "B", "MODE"})


@pytest.fixture
def space(tmp_path):
    def read(content, default=None):
        path = tmp_path / "space.json"
        path.write_text(json.dumps(content))
        return read_space(path, default)

    return read


def test_a_list_is_the_documented_form(space):
    rows = [{"BLOCK_M": 64, "MODE": "fast"}, {"BLOCK_M": 128, "MODE": "slow"}]
    found = space(rows)
    assert found.parameters == ("BLOCK_M", "MODE")
    assert [found.values(n) for n in range(len(found))] == rows


def test_constraints_leave_what_they_permit(space):
    sizes = [1, 2, 4, 8, 16]
    found = space(
        {"parameters": {"A": sizes, "B": sizes, "C": [True, False]}, "constraints": ["A * B <= 32", "A >= B"]}
    )
    wanted = [(a, b, c) for a, b, c in product(sizes, sizes, (True, False)) if a * b <= 32 and a >= b]
    assert list(found.configurations) == wanted


def test_what_is_pruned_early_is_never_enumerated(space):
    """24 parameters of two values: 16 million combinations, of which the constraints leave 25."""
    names = [f"P{n}" for n in range(24)]
    rising = [f"{a} <= {b}" for a, b in pairwise(names)]
    assert len(space({"parameters": {name: [0, 1] for name in names}, "constraints": rising})) == 25


def test_the_default(space):
    content = {"parameters": {"A": [1, 2], "B": ["x", "y"]}, "default": {"A": 2, "B": "x"}}
    assert space(content).values(space(content).default) == {"A": 2, "B": "x"}
    assert space(content, {"A": "1", "B": "y"}).default == 1
    with pytest.raises(UsageError, match="--default"):
        space(content, {"A": "3", "B": "y"})
    with pytest.raises(UsageError, match="'B' is not so"):
        space(content, {"A": "1"})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"parameters": {"A": [1, 2]}, "configurations": [{"A": 1}]}, "either configurations or parameters"),
        ({"parameters": {"A": []}}, "has no values"),
        ({"parameters": {"A": [1]}}, "nothing to choose from"),
        ({"parameters": {"A": [1, 2]}, "constraints": ["A > 5"]}, "0 permitted"),
        ({"parameters": {"A": [0, 1]}, "constraints": ["1 / A > 0"]}, "no value for A=0"),
        ({"parameters": {"A b": [1, 2]}}, "space file"),
        ([{"A": 1}, {"B": 1}], "other parameters"),
        ({"parameters": {"A": [1, 2]}, "default": {"A": 3}}, "default"),
        ({"parameters": {"A": ["x", "y"]}, "features": {"f": "A"}}, "not a number"),
        ({"parameters": {f"P{n}": [0, 1] for n in range(30)}}, "1,000 permitted"),
    ],
)
def test_mistakes_are_named(space, content, says, monkeypatch):
    monkeypatch.setattr("rpl_autotune.space.read.MOST_CONFIGURATIONS", 1000)
    with pytest.raises(BadDataError, match=says):
        space(content)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A * B + 1", 13),
        ("-A // 5", -1),
        ("A % 3 == 0 and not B > 4", True),
        ("MODE in ['fast', 'x'] or A < 0", True),
        ("max(A, B) if MODE != 'fast' else min(A, B)", 3),
        ("1 < A < 5", True),
        ("2 ** A", 8),
        ("log2(B) + ceil(0.5)", 3.0),
    ],
)
def test_expressions(text, value):
    assert parse_expression(text, NAMES).value({"A": 3, "B": 4, "MODE": "fast"}) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "A.real",
        "MODE[0]",
        "[x for x in (1, 2)]",
        "(lambda: 1)()",
        "f'{A}'",
        "print(A)",
        "max(A, key=B)",
        "A := 3",
        "C + 1",
        "A if",
        "'x' * 10 ** 9 == A << 3",
        "(" * 300 + "A" + ")" * 300,
        "-" * 500 + "A",
    ],
)
def test_nothing_else_is_an_expression(text):
    with pytest.raises(ExpressionError):
        parse_expression(text, NAMES)


@pytest.mark.parametrize(
    "text", ["9 ** 64 ** 9", "MODE * 1000000000", "1 / 0", "1e308 * 10", "9 ** 99", "log2(0)"]
)
def test_no_value_is_an_error_and_costs_nothing(text):
    with pytest.raises(ExpressionError, match="no value"):
        parse_expression(text, NAMES).value({"A": 3, "B": 4, "MODE": "fast"})


@given(st.text(alphabet="AB+-*/()<>=!%., 0123456789abcdefinort'[]", max_size=40))
def test_any_text_is_an_expression_or_refused(text):
    with suppress(ExpressionError):
        parse_expression(text, NAMES).value({"A": 3, "B": 4, "MODE": "fast"})


def test_features_tell_powers_of_two_apart(space):
    found = space({"parameters": {"SIZE": [16, 48, 64, 80], "KIND": ["a", "b", "c"], "ONE": [7]}}).features
    assert "SIZE is 2^n" in found.coordinate_names
    assert "KIND=b" in found.coordinate_names
    assert not any(name.startswith("ONE") for name in found.coordinate_names)
    column = found.coordinates[::3, found.coordinate_names.index("SIZE is 2^n")]
    assert list(column) == [1, 0, 1, 0]
    assert found.coordinates.min() == 0
    assert found.coordinates.max() == 1


def test_given_features_are_learnt_from(space):
    sizes = [8, 16, 32]
    found = space({"parameters": {"X": sizes, "Y": sizes}, "features": {"threads": "X * Y"}}).features
    assert "threads" in found.coordinate_names
    assert "X*Y" in found.product_names
