"""Constrained spaces are pruned: what comes out is what enumerating gives, and tight ones end soon."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpl_autotune.space_file as reading
from rpl_autotune.contracts import SpaceDescription
from rpl_autotune.space import ExpressionError, parse_expression
from rpl_autotune.space_file import space_of
from rpl_core.errors import BadDataError

TEN = [f"P{n}" for n in range(10)]
#: Constraints over ten parameters of eight values, and how many of 8^10 combinations they permit: by hand.
TIGHT = [
    ("+".join(TEN) + " == 13", 220),  # 3 to share among 10
    ("+".join(TEN) + " <= 13", 286),
    ("*".join(f"(2 ** {name})" for name in TEN) + " == 2 ** 13", 220),
    ("*".join(TEN) + " == 32 and " + "+".join(TEN) + " == 20", 90),
    ("P0*P9 + P1*P8 + P2*P7 + P3*P6 + P4*P5 <= 6", 11),
    ("+".join(f"{name} / 3" for name in TEN) + " <= 3.7", 11),
    ("max(" + ", ".join(TEN) + ") <= 1 or " + "+".join(TEN) + " == 11", 11),
    ("+".join(f"{n} * {name}" for n, name in enumerate(TEN, 1)) + " < 57", 2),
]


def described(parameters, constraints):
    return SpaceDescription(parameters=parameters, constraints=tuple(constraints))


@pytest.mark.parametrize(("constraint", "count"), TIGHT, ids=range(len(TIGHT)))
def test_tight_constraints_on_a_billion_combinations_end(constraint, count, monkeypatch):
    monkeypatch.setattr(reading, "_MOST_STEPS", 100_000)
    space = space_of(described(dict.fromkeys(TEN, tuple(range(1, 9))), [constraint]))
    assert len(space) == count


def test_constraints_between_the_first_and_the_last_parameter_come_early(monkeypatch):
    monkeypatch.setattr(reading, "_MOST_STEPS", 20_000)
    far = [f"P{n} == P{9 - n}" for n in range(5)]
    space = space_of(described(dict.fromkeys(TEN, tuple(range(1, 9))), [*far, "P0+P1+P2+P3+P4 == 7"]))
    assert len(space) == 15
    assert list(space.configurations) == sorted(space.configurations)


def test_what_can_not_be_pruned_ends_with_the_reason(monkeypatch):
    monkeypatch.setattr(reading, "_MOST_STEPS", 20_000)
    hidden = "floor(" + "*".join(f"({name} + 0.37)" for name in TEN) + ") % 9973 == 17"
    with pytest.raises(BadDataError, match="too many combinations"):
        space_of(described(dict.fromkeys(TEN, tuple(range(1, 9))), [hidden]))


NUMBER = st.sampled_from(["A", "B", "C", "2", "3", "0", "1.5"])
TERM = st.recursive(
    NUMBER,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%", "/", "**"]), inner).map(
            lambda three: f"({three[0]} {three[1]} {three[2]})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda three: f"{three[0]}({three[1]}, {three[2]})"
        ),
        inner.map(lambda one: f"(-{one})"),
        inner.map(lambda one: f"abs({one})"),
        st.tuples(inner, inner, inner).map(lambda three: f"({three[0]} if {three[1]} > 1 else {three[2]})"),
    ),
    max_leaves=5,
)
TEST = st.tuples(TERM, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), TERM).map(" ".join)
CONSTRAINT = st.recursive(
    st.one_of(TEST, TERM.map(lambda one: f"{one} in (1, 2, 4)"), TERM.map(lambda one: f"1 < {one} <= 6")),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(lambda three: f"({''.join(three)})"),
        inner.map(lambda one: f"(not {one})"),
    ),
    max_leaves=3,
)
CHOICES = {"A": (1, 2, 4, 3), "B": (-2, 0, 5), "C": (0.5, 1, 8)}


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(CONSTRAINT, min_size=1, max_size=3))
def test_pruning_leaves_out_what_is_forbidden_and_nothing_else(texts):
    expressions = [parse_expression(text, frozenset(CHOICES)) for text in texts]
    wanted = []
    for row in product(*CHOICES.values()):
        values = dict(zip(CHOICES, row, strict=True))
        try:
            if all(expression.value(values) for expression in expressions):
                wanted.append(row)
        except ExpressionError:
            return  # a configuration without an answer is an error, or forbidden by another constraint
    if len(wanted) < 2:
        with pytest.raises(BadDataError, match="permitted"):
            space_of(described(CHOICES, texts))
        return
    assert list(space_of(described(CHOICES, texts)).configurations) == wanted


def test_small_steps_stay_cheap():
    rising = [f"{a} <= {b}" for a, b in pairwise(TEN)]
    assert len(space_of(described(dict.fromkeys(TEN, (0, 1, 2)), rising))) == 66
