"""Whether two texts of a function name the same things in the same order, for every set of declared changes.

The texts are put together from pieces: those that every edit may have, and one piece of each declared change
in the form before and after it. What is expected is which pieces differ.
"""

from __future__ import annotations

from itertools import combinations, product

import pytest

from rpl_optimize.interfaces.transformation import (
    DeclaredChange,
    LaunchBounds,
    LoopHints,
    ResizedArray,
    RestrictedParameter,
    StreamedStores,
    TunedConstants,
)
from rpl_optimize.source_meaning.judge import same_words

#: A change -> the piece of text that it writes, before and after.
PIECES: dict[type[DeclaredChange], tuple[DeclaredChange, bytes, bytes]] = {
    LaunchBounds: (
        LaunchBounds(256, 2),
        b"__global__ void k(float* p)",
        b"__global__ void __launch_bounds__(256, 2) k(float* p)",
    ),
    LoopHints: (
        LoopHints(),
        b"for (int i = 0; i < n; ++i) f(i);",
        b"for (int i = 0; i < n; ++i) f(i);",
    ),
    StreamedStores: (
        StreamedStores(2),
        b"p[g(i, 1)] = q[i] + 1.0f; r[i] = s;",
        b"__builtin_nontemporal_store(q[i] + 1.0f, &p[g(i, 1)]); __builtin_nontemporal_store(s, &r[i]);",
    ),
    ResizedArray: (ResizedArray("tile"), b"__shared__ float tile[8];", b"__shared__ float tile[9];"),
}
#: A pragma counts quotes, so a hint of it keeps the number of its quotes: another one takes its place.
HINTED = (b'_Pragma("unroll 4")', b'_Pragma("nounroll")')
LINES = b"\n  int n = 7;\n"


def _text(chosen: tuple[bool, ...]) -> bytes:
    """The function with each piece as it is before its change, or after it."""
    parts = [pair[1 + after] for pair, after in zip(PIECES.values(), chosen, strict=True)]
    hint = HINTED[chosen[list(PIECES).index(LoopHints)]]
    return parts[0] + b" {" + LINES + hint + LINES.join(parts[1:]) + b"}"


def _same(before: bytes, after: bytes, *declared: DeclaredChange) -> bool:
    """Both ways: the question is symmetric."""
    found = same_words(before, after, declared)
    assert same_words(after, before, declared) == found
    return found


@pytest.mark.parametrize("changed", list(product((False, True), repeat=len(PIECES))))
def test_what_is_not_declared_differs(changed: tuple[bool, ...]) -> None:
    before, after = _text((False,) * len(PIECES)), _text(changed)
    # An array that grows changes a number: the tree tells that, and no name.
    needed = {kind for kind, at in zip(PIECES, changed, strict=True) if at and kind is not ResizedArray}
    for count in range(len(PIECES) + 1):
        for kinds in combinations(PIECES, count):
            declared = [PIECES[kind][0] for kind in kinds]
            assert _same(before, after, *declared) == (needed <= set(kinds)), kinds


@pytest.mark.parametrize("change", [RestrictedParameter("p"), TunedConstants((("N", 4),))])
def test_changes_that_write_other_words_are_never_the_same(change: DeclaredChange) -> None:
    text = _text((False,) * len(PIECES))
    assert _same(text, text)
    assert not _same(text, text, change)
    assert not _same(text, text, LoopHints(), change)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (b"n = 7", b"n  =  7", True),
        (b"n = 7", b"n = (7)", True),  # the tree tells this, no word
        (b"n = 7", b"n = 8", True),
        (b"n = 7", b"m = 7", False),
        (b"int n", b"int  /**/ n", True),
        (b"int n", b"long n", False),
        (b"n = 7;\n", b"n = 7; ", False),
        (b"n = 7;\n", b"n = 7;\n\n", False),
        (b"n = 7", b"n = 7 \\", False),
        (b"n = 7", b"n = 7 #", False),
        (b"n = 7", b"n = 7 %:", False),
        (b"n = 7", b"n = 7 ??", False),
        (b"n = 7", b"n = 7 ''", False),
        (b"n = 7", b'n = 7 ""', False),
        (b"n = 7", "n = 7 é".encode(), False),
    ],
)
def test_words_lines_and_what_steers_the_preprocessor(old: bytes, new: bytes, same: bool) -> None:
    text = _text((False,) * len(PIECES))
    assert text.count(old) >= 1
    edited = text.replace(old, new, 1)
    assert _same(text, edited) == same
    everything = [change for change, *_ in PIECES.values()]
    assert _same(text, edited, *everything) == same


def test_hints_and_bounds_of_other_forms_are_words() -> None:
    text = _text((False,) * len(PIECES))
    hints, bounds = LoopHints(), LaunchBounds(256, 2)
    assert not _same(text, text.replace(b"unroll 4", b"GCC ivdep"), hints)
    bounded = text.replace(b" k(", b" __launch_bounds__(64) k(")
    assert _same(text, bounded, bounds)
    assert not _same(text, bounded, hints)
    assert not _same(text, bounded.replace(b"(64)", b"(N)"), bounds)
    stores = StreamedStores(1)
    call = b"__builtin_nontemporal_store(q[i] + 1.0f, &p[g(i, 1)]);"
    streamed = text.replace(b"p[g(i, 1)] = q[i] + 1.0f;", call)
    assert _same(text, streamed, stores)
    assert not _same(text, streamed.replace(b"&p[g(i, 1)]", b"&p[g(s, 1)]"), stores)
    # Value and target the other way round write something else.
    assert not _same(text, text.replace(b"r[i] = s;", b"__builtin_nontemporal_store(r[i], &s);"), stores)
    # One inside of another.
    inner = b"r[i] = (p[0] = s);"
    nested = b"__builtin_nontemporal_store((__builtin_nontemporal_store(s, &p[0])), &r[i]);"
    start = text.replace(b"r[i] = s;", inner)
    assert _same(start, text.replace(b"r[i] = s;", nested), stores)
    assert not _same(start, text.replace(b"r[i] = s;", nested))
