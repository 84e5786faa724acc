"""Aligned tables, lines that fit a width, and numbers with their nouns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from rpl_core.text.safety import printable

_BETWEEN = 2
#: Words of text columns are kept whole down to this width (chosen).
_LEAST_TEXT = 12
#: A label at the beginning of a line that its continuation hangs under, at most so long (chosen).
_LABEL = re.compile(r"\s*(?:\S+ ){0,3}\S* {2,}(?=\S)")
_LONGEST_LABEL = 28


def format_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    width: int | None = None,
) -> str:
    """Columns padded to their widest cell, two spaces apart, without trailing blanks.

    ``right`` names right-aligned columns. With a ``width`` the widest of the others are wrapped within their
    cells until all lines fit, as far as that is possible.
    """
    cells = [[printable(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    if width is not None:
        widths = _narrowed(widths, [i for i, title in enumerate(columns) if title not in right], width)
        cells = [list(part) for row in cells for part in _wrapped_cells(row, widths)]
    lines = []
    for row in cells:
        padded = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _narrowed(widths: Sequence[int], texts: Sequence[int], width: int) -> list[int]:
    """``widths`` with those of ``texts`` made smaller, the widest first, until they fit into ``width``."""
    narrowed = list(widths)
    over = sum(narrowed) + _BETWEEN * (len(narrowed) - 1) - width
    while over > 0:
        widest = max(texts, key=lambda i: narrowed[i], default=None)
        if widest is None or narrowed[widest] <= _LEAST_TEXT:
            break
        others = [narrowed[i] for i in texts if narrowed[i] < narrowed[widest]]
        step = min(over, narrowed[widest] - max((*others, _LEAST_TEXT)) or 1)
        narrowed[widest] -= step
        over -= step
    return narrowed


def _wrapped_cells(row: Sequence[str], widths: Sequence[int]) -> Iterable[tuple[str, ...]]:
    """One row in as many lines as its highest cell needs."""
    parts = [_cell_lines(cell, width) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, parts))):
        yield tuple(part[number] if number < len(part) else "" for part in parts)


def _cell_lines(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    lead = cell[: len(cell) - len(cell.lstrip())]
    hang = lead + "  " if len(lead) + _LEAST_TEXT < width else ""
    return textwrap.wrap(cell, width, subsequent_indent=hang, break_on_hyphens=False)


def wrap_lines(text: str, width: int) -> str:
    """``text`` with lines longer than ``width`` broken at blanks.

    They continue two characters further in, or below the text behind a label ("why    ...").
    """
    return "\n".join(part for line in text.split("\n") for part in _wrapped(line, width))


def _wrapped(line: str, width: int) -> Iterable[str]:
    if len(line) <= width:
        return (line,)
    label = _LABEL.match(line)
    indent = len(line) - len(line.lstrip()) + 2
    if label and indent < label.end() <= min(_LONGEST_LABEL, width // 2):
        longest = max(map(len, line[label.end() :].split()))
        indent = label.end() if longest <= width - label.end() else indent
    return textwrap.wrap(
        line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def counted(number: float | None, one: str, several: str = "", shown: str = "") -> str:
    """A number of things with its noun, and its verb where there is one: "1 kernel has", "2 kernels have".

    ``shown`` is the number as it is to look, if not in plain digits; an unknown one is a dash.
    """
    digits = shown or ("-" if number is None else str(number))
    return f"{digits} {one if number == 1 else several or f'{one}s'}"
