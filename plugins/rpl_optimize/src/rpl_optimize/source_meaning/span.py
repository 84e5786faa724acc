"""Where an edit is: the one function that it lies in, before and after."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_optimize.source_meaning.functions import FUNCTIONS
from rpl_optimize.source_meaning.line_numbers import line_directive
from rpl_optimize.source_meaning.not_judged import NotJudgedError

if TYPE_CHECKING:
    from rpl_optimize.source_meaning.unit import OwnDeclaration, Unit

_LINE = re.compile(rb"\r?\n#line \d+")


@frozen
class Span:
    """Bytes of the function: ``[begin, end)`` of the original, ``[begin, new_end)`` of the edited text."""

    begin: int
    end: int
    new_end: int


def span_of(unit: Unit, before: bytes, after: bytes) -> Span | None:
    """The innermost function of ``before`` with everything that differs; ``None`` where that leaves it.

    A ``#line`` right behind the function that keeps the numbers of the lines that follow is no difference.
    """
    first = _common(before, after)
    functions = [one for one in unit.own if one.kind in FUNCTIONS and not one.inside]
    around = [one for one in functions if one.begin <= first <= one.end and not one.macro]
    for one in sorted(around, key=lambda one: one.end - one.begin):
        for kept in (line_directive(before, one.end), b""):
            rest = kept + before[one.end :]
            if after.endswith(rest) and len(after) - len(rest) > one.begin:
                return Span(one.begin, one.end, len(after) - len(rest))
    return None


def versions(unit: Unit, begin: int, end: int) -> list[OwnDeclaration]:
    """Declarations of exactly this extent: a function, or a template's pattern and its instances."""
    return [one for one in unit.own if one.kind in FUNCTIONS and (one.begin, one.end) == (begin, end)]


def strangers(unit: Unit, begin: int, end: int) -> list[OwnDeclaration]:
    """What else begins between these bytes and is not part of the function."""
    own = [one for one in unit.own if not one.inside and begin <= one.begin < end]
    return [one for one in own if (one.begin, one.end) != (begin, end) and not _encloses(one, begin, end)]


def _encloses(one: OwnDeclaration, begin: int, end: int) -> bool:
    """The template's own declaration, or a namespace that begins with it."""
    return one.begin <= begin and one.end >= end


def _common(before: bytes, after: bytes) -> int:
    """How many bytes are equal from the beginning."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[:middle] == after[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def require_span(unit: Unit, before: bytes, after: bytes) -> Span:
    """``NotJudgedError`` where the original has no such function."""
    span = span_of(unit, before, after)
    if span is None:
        raise NotJudgedError("what was changed lies in no single function of the source")
    return span
