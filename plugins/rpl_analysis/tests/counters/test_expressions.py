"""The formula language: the four operations and max0, nothing else, and never an infinity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpl_analysis.counters.formulas import parse_expression
from rpl_core.errors import BadDataError

_NUMBERS = st.integers(min_value=0, max_value=1000)
_ARITHMETIC = st.recursive(
    st.one_of(_NUMBERS.map(str), st.sampled_from(["A", "B", "C"])),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        inner.map(lambda text: f"(-{text})"),
        inner.map(lambda text: f"max0({text})"),
    ),
    max_leaves=12,
)


@given(_ARITHMETIC, st.fixed_dictionaries(dict.fromkeys("ABC", _NUMBERS)))
def test_value_is_that_of_python_arithmetic(text: str, values: dict[str, int]) -> None:
    evaluated = parse_expression(text).evaluate({name: float(v) for name, v in values.items()})
    try:
        expected = float(eval(text, {"max0": lambda x: max(0, x)}, dict(values)))
    except ZeroDivisionError:
        assert evaluated.value is None
        assert "is zero" in str(evaluated.reason)
    else:
        assert evaluated.value == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_names_are_sorted_and_without_the_function() -> None:
    assert parse_expression("128*B + max0(A - B)").names == ("A", "B")


def test_clamped_terms_are_told() -> None:
    evaluated = parse_expression("2 * max0(A - B) + C").evaluate({"A": 1, "B": 3, "C": 5})
    assert evaluated.value == 5
    assert evaluated.clamped == ("A - B",)


def test_division_by_zero_names_the_divisor() -> None:
    evaluated = parse_expression("A / (B - C)").evaluate({"A": 1, "B": 2, "C": 2})
    assert (evaluated.value, evaluated.reason) == (None, "B - C is zero")


def test_overflow_gives_a_reason_and_no_infinity() -> None:
    evaluated = parse_expression("A * A").evaluate({"A": 1e200})
    assert evaluated.value is None
    assert "overflows" in str(evaluated.reason)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "A.real",
        "A ** 9",
        "A // 2",
        "A % 2",
        "A if B else C",
        "A < B",
        "[A][0]",
        "lambda: 1",
        "max(A, B)",
        "max0(A, B)",
        "max0(x=A)",
        "max0(*A)",
        "'A'",
        "True",
        "1j",
        "1e999",
        "9" * 400,
        "A; B",
        "A = 1",
        "(A := 1)",
        "A +",
        "",
        "A\0",
        "(" * 300 + "A" + ")" * 300,
        "-" * 300 + "A",
        "A + " * 2000 + "A",
    ],
)
def test_anything_but_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(BadDataError):
        parse_expression(text)
