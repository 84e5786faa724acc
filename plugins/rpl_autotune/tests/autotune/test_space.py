"""Space files: what they may say, and what comes of it."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpl_autotune.space import ExpressionError, parse_expression
from rpl_autotune.space_file import read_space
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
        ({"parameters": {"A": [1, 10**400]}}, r"parameters.A.1: a number that has 1329 bits"),
        ([{"A": 1}, {"A": 10**400}], r"1.A: a number that has 1329 bits"),
        ({"parameters": {"A": [1, float("inf")]}}, r"parameters.A.1: a number that is not finite"),
        ({"parameters": {"A": [1, 2]}, "features": {"f": "A * " + "9" * 400}}, "too large"),
        ({"parameters": {"A": [1, 2]}, "features": {"f": "9" * 400}}, "too large"),
    ],
)
def test_mistakes_are_named(space, content, says, monkeypatch):
    monkeypatch.setattr("rpl_autotune.space_file.MOST_CONFIGURATIONS", 1000)
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


T1 = {
    "General": {"FormatVersion": 1},
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "BX", "Type": "int", "Values": "[1, 2] + list(range(32, 129, 32))", "Default": 32},
            {
                "Name": "TILE",
                "Type": "uint",
                "Values": "[2**i for i in range(0, 4) if i != 2]",
                "Default": [2],
            },
            {"Name": "PAD", "Type": "bool", "Values": "[true, false]", "Default": False},
            {"Name": "SCALE", "Type": "float", "Values": "[1, 0.5]", "Default": 1},
            {"Name": "ORDER", "Type": "string", "Values": "['row', \"column\"]", "Default": "row"},
        ],
        "Conditions": [
            {"Parameters": ["BX", "TILE"], "Expression": "BX * TILE <= 256 && (BX > 2 || TILE == 1)"},
            {"Parameters": ["PAD", "BX"], "Expression": "not PAD or BX % 64 != 0"},
        ],
    },
    "KernelSpecification": {"Language": "CUDA", "KernelName": "k", "KernelFile": "k.cu"},
}


def changed(place, **values):
    content = json.loads(json.dumps(T1))
    content["ConfigurationSpace"]["TuningParameters"][place].update(values)
    return content


def test_t1_is_read(space):
    found = space(T1)
    assert found.parameters == ("BX", "TILE", "PAD", "SCALE", "ORDER")
    wanted = [
        row
        for row in product((1, 2, 32, 64, 96, 128), (1, 2, 8), (True, False), (1.0, 0.5), ("row", "column"))
        if row[0] * row[1] <= 256 and (row[0] > 2 or row[1] == 1) and not (row[2] and row[0] % 64 == 0)
    ]
    assert list(found.configurations) == wanted
    assert found.values(found.default) == {"BX": 32, "TILE": 2, "PAD": False, "SCALE": 1.0, "ORDER": "row"}
    assert space(changed(0, Default=1)).default == 0  # forbidden with TILE=2: nothing to compare with is said


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"ConfigurationSpace": []}, "no list TuningParameters"),
        (changed(0, Values="__import__('os').system('true')"), r"\[0\].Values.*calls|makes no list"),
        (changed(0, Values="[x for x in (1).__class__.__mro__]"), r"\[0\].Values"),
        (changed(0, Values="list(range(10**9))"), "more than 10000 values"),
        (changed(0, Values="[9**9**9**9]"), "no value"),
        (changed(0, Values="[1, 10**400]"), r"\[0\].Values"),
        (changed(0, Values="[1, y]"), "uses 'y'"),
        (changed(0, Values="[1,"), "is no list"),
        (changed(0, Values="[]"), "no values"),
        (changed(0, Values="['a']"), "no int"),
        (changed(0, Type="half"), "Type is none of"),
        (changed(0, Name="a b"), "a b"),
        (changed(1, Name="BX"), "a second time"),
    ],
)
def test_mistakes_in_t1_are_named(space, content, says):
    with pytest.raises(BadDataError, match=says):
        space(content)
