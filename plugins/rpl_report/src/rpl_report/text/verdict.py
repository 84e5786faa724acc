"""The verdict on a terminal or in a log: at most ten lines of at most 80 columns, whole sentences only."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, TypeAlias

from rpl_core.text.safety import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rpl_report.verdict import Entry, Verdict

__all__ = ["verdict_text"]

_Part: TypeAlias = "tuple[int, str | None]"

LINES, WIDTH = 10, 80
_SHOWN = 3
#: What goes first where ten lines do not hold everything: (number of the entry, part), ``None``: all of it.
_GIVEN_UP: Sequence[_Part] = (
    (3, "why"),
    (2, "why"),
    (3, "step"),
    (2, "step"),
    (3, None),
    (1, "more"),
    (2, None),
    (1, "why"),
    (1, "brings"),
)
#: Where a sentence ends and another begins.
_SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z])")


def verdict_text(verdict: Verdict, width: int = WIDTH) -> str:
    """The first entries with the caution before and the basis behind them.

    What ten lines do not hold is left out by whole sentences, the last subject first: no sentence is cut.
    """
    width = min(width, WIDTH)
    before, behind = _filled(verdict.caution, width), _filled(verdict.basis, width)
    shown = [(number, entry) for number, entry in enumerate(verdict.entries[:_SHOWN], 1)]

    def lines(gone: set[_Part]) -> list[str]:
        told = [line for number, entry in shown for line in _lines(number, entry, gone, width)]
        return [*before, *told, *behind]

    gone: set[_Part] = set()
    for part in _GIVEN_UP:
        if len(lines(gone)) <= LINES:
            break
        gone.add(part)
    for part in reversed(_GIVEN_UP):  # what was given up before a larger part was may fit again
        if part in gone and len(lines(gone - {part})) <= LINES:
            gone.remove(part)
    return "\n".join(lines(gone))


def _lines(number: int, entry: Entry, gone: set[_Part], width: int) -> Iterator[str]:
    if (number, None) in gone:
        return
    said = [entry.head, *(getattr(entry, part) for part in ("brings", "why") if (number, part) not in gone)]
    step = entry.next_step() if (number, "step") not in gone else ""
    if (number, "more") in gone:
        step = _SENTENCE.split(step, maxsplit=1)[0]
    if entry.same_as:  # needs no line of its own
        said.append(step)
        step = ""
    kept = (number, "step") not in gone or not entry.step  # a command alone is all that there is to do
    command = f"Run: {entry.command}" if entry.command and kept else ""
    yield from _filled(" ".join(said), width, f"{number}. ")
    yield from _filled(step, width, "   ")
    yield from _filled(command, width, "   ")


def _filled(text: str, width: int, first: str = "") -> list[str]:
    """``text`` in lines, those behind the first as far in as ``first`` is long."""
    if not text:
        return []
    return textwrap.wrap(
        " ".join(printable(text).split()),
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=True,
        break_on_hyphens=False,
    )
