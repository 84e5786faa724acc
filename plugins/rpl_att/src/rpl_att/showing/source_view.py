"""Cycles by line of source, with the text of the line where a copy of the file was kept."""

from __future__ import annotations

from rpl_att.analysis.hot_spots import hot_lines
from rpl_att.analysis.totals import totals_of
from rpl_att.contract import AttSourceLine
from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.snapshots import place_of, read_source, source_names
from rpl_att.showing.choose import Chosen
from rpl_core.errors import BadDataError
from rpl_core.text.safety import printable, shorten
from rpl_core.text.table import format_table

_COLUMNS = ("SHARE", "LATENCY", "STALL", "IDLE", "HITS", "LINE", "SOURCE")
_TEXT_WIDTH = 80


def source_lines(chosen: Chosen) -> tuple[AttSourceLine, ...]:
    """All executed lines by descending cycles. Raises ``BadDataError`` without debug information."""
    totals = totals_of(chosen.trace)
    assert totals is not None
    assert chosen.trace.code is not None
    hot = hot_lines(chosen.trace.code, totals, None)
    if not hot:
        raise BadDataError(
            f"the traced code in {chosen.folder} has no line information",
            next_step="build with -g and record again",
        )
    return hot


def source_text(chosen: Chosen, width: int | None = None) -> str:
    """The lines as a table, of at most ``width`` characters."""
    folder = TraceFolder.at(chosen.folder)
    try:
        names = source_names(folder)
    except BadDataError:
        names = {}  # a damaged index of copies costs the texts of lines, not their figures
    texts: dict[str, list[str] | None] = {}
    rows = []
    for line in source_lines(chosen):
        path, number = place_of(line.source)
        if path not in texts:
            texts[path] = read_source(folder, names, path)
        rows.append((*_figures(line), shorten(line.source, 60), _line_text(texts[path], number)))
    return format_table(_COLUMNS, rows, right=_COLUMNS[:-2], width=width)


def _line_text(lines: list[str] | None, number: int | None) -> str:
    if lines is None or number is None or not 0 < number <= len(lines):
        return ""
    return printable(shorten(lines[number - 1].strip(), _TEXT_WIDTH))


def _figures(line: AttSourceLine) -> tuple[str, ...]:
    return (
        "-" if line.share is None else f"{line.share:.1%}",
        f"{line.latency:,}",
        "-" if line.stall is None else f"{line.stall:,}",
        "-" if line.idle is None else f"{line.idle:,}",
        f"{line.hits:,}",
    )
