"""Short forms of long names that stay apart: generated kernels often differ in their middle only."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from rpl_core.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["named_few", "shorten_apart"]

#: Names below this width have no room for a third piece.
_LEAST_WIDTH = 12
#: A piece begins up to so many characters before the difference, at the beginning of a word (chosen).
_WORD = 8


def shorten_apart(names: Iterable[str], width: int) -> dict[str, str]:
    """Every name cut to ``width`` characters, different names differently (from 12 on).

    Names whose ends look alike show the place where they differ in between:
    ``Cijk_Ali…MT64x64…_WG32_8_1`` and ``Cijk_Ali…MT96x64…_WG32_8_1``. Those that one place does not tell
    apart end in a number. The answer depends on the set of names alone, not on their order.
    """
    shown = {name: shorten(name, width) for name in names}
    if width < _LEAST_WIDTH:
        return shown
    often = Counter(shown.values())
    head, tail = _ends(width)
    same_ends: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, short in shown.items():
        if often[short] > 1:
            same_ends[name[:head], name[-tail:]].append(name)
    for group in same_ends.values():
        shown.update(_apart(group, width))
    return _numbered(shown, width)


def named_few(names: Sequence[str], *, most: int = 3, width: int = 80) -> str:
    """The first of several names in a sentence, short enough to be read and still different."""
    few = list(names[:most])
    short = shorten_apart(few, width)
    return "; ".join([*(short[name] for name in few), *(["..."] if len(names) > most else [])])


def _apart(group: Sequence[str], width: int) -> dict[str, str]:
    """Names that look alike, with the first difference shown; those that still do, with their next one."""
    waiting, shown = [list(group)], {}
    while waiting:
        names = waiting.pop()
        place = _first_difference(min(names), max(names))
        pieces: dict[str, list[str]] = defaultdict(list)
        for name in names:
            pieces[_around(name, place, width)].append(name)
        for short, same in pieces.items():
            if len(same) == 1 or len(pieces) == 1:
                shown.update(dict.fromkeys(same, short))
            else:
                waiting.append(same)
    return shown


def _first_difference(one: str, other: str) -> int:
    """Where two names part; the first and the last of several in order part where all of them do."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _numbered(shown: dict[str, str], width: int) -> dict[str, str]:
    """What reads alike all the same gets numbers, in the order of the full names."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in sorted(shown):
        alike[shown[name]].append(name)
    for short, names in alike.items():
        for number, name in enumerate(names if len(names) > 1 else (), 1):
            mark = f"#{number}"
            shown[name] = short[: width - len(mark)] + mark
    return shown


def _around(name: str, place: int, width: int) -> str:
    """``name`` as its beginning, what stands at ``place``, and its end; ``width`` characters."""
    head, tail = _ends(width)
    middle = width - 2 - head - tail
    begin = max(_word_begin(name, place, min(_WORD, middle // 2)), head)
    if begin + middle >= len(name) - tail:
        return f"{name[: width - 1 - (len(name) - begin)]}…{name[begin:]}" if begin else name
    return f"{name[:head]}…{name[begin : begin + middle]}…{name[-tail:]}"


def _ends(width: int) -> tuple[int, int]:
    """Characters of the first and of the last of three pieces."""
    return (width - 2) // 3, (width - 2) // 4


def _word_begin(name: str, place: int, nearest: int) -> int:
    """Where the word at ``place`` begins, if that is at most ``nearest`` characters before."""
    for begin in range(place, max(place - nearest, 0), -1):
        if not name[begin - 1].isalnum():
            return begin
    return max(place - 2, 0)
