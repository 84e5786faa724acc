"""Tables that fit a width: they give way in their first column, then lose columns."""

from __future__ import annotations

from collections.abc import Sequence

from rpl_analysis.text.distinct import shorten_apart
from rpl_core.text import format_table, printable

__all__ = ["fit_table"]

_BETWEEN = 2
_LEAST_NAME = 20


def fit_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    right: Sequence[str] = (),
    droppable: Sequence[str] = (),
    longest_name: int | None = None,
) -> tuple[str, tuple[str, ...]]:
    """An aligned table of at most ``width`` characters, and the columns that it lost, in their order.

    The first column holds names, which are cut to ``longest_name`` characters and further down to 20, such
    that different names stay apart. If that does not do, the columns ``droppable`` go, one after the other.
    """
    kept = list(range(len(columns)))
    for dropped in (None, *droppable):
        if dropped is not None:
            kept.remove(next(i for i in reversed(kept) if columns[i] == dropped))
        room = width - sum(_width(columns, rows, i) + _BETWEEN for i in kept[1:])
        if room >= min(_LEAST_NAME, _width(columns, rows, 0)):
            break
    room = min(max(room, _LEAST_NAME), longest_name or room)
    short = shorten_apart((printable(row[0]) for row in rows), room)
    cells = [[short[printable(row[0])], *(row[i] for i in kept[1:])] for row in rows]
    table = format_table([columns[i] for i in kept], cells, right=right)
    return table, tuple(columns[i] for i in range(len(columns)) if i not in kept)


def _width(columns: Sequence[str], rows: Sequence[Sequence[str]], index: int) -> int:
    return max(len(printable(row[index])) for row in (columns, *rows))
