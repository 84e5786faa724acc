"""Aligned tables, and numbers with their nouns."""

from __future__ import annotations

from collections.abc import Sequence

from rpl_core.text.safety import printable


def format_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> str:
    """Columns padded to their widest cell, two spaces apart, without trailing blanks.

    ``right`` names right-aligned columns.
    """
    cells = [[printable(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    lines = []
    for row in cells:
        padded = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def counted(number: float | None, one: str, several: str = "", shown: str = "") -> str:
    """A number of things with its noun, and its verb where there is one: "1 kernel has", "2 kernels have".

    ``shown`` is the number as it is to look, if not in plain digits; an unknown one is a dash.
    """
    digits = shown or ("-" if number is None else str(number))
    return f"{digits} {one if number == 1 else several or f'{one}s'}"
