"""Where the cycles are: static instructions, and lines of source through the chains of inlined calls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rpl_att.analysis.totals import Totals
from rpl_att.contract import AttInstruction, AttSourceLine
from rpl_att.reading.code_table import CodeTable
from rpl_att.reading.snapshots import INLINE

#: Entries in the documents; `rpl att show` has all of them (chosen).
SHOWN = 40

Counts = NDArray[np.int64]


def cost(totals: Totals) -> Counts:
    """Cycles by row: latency + idle, or latency alone where idle is unknown."""
    return totals.latency if totals.idle is None else totals.latency + totals.idle


def own_cost(totals: Totals) -> Counts:
    """Cycles by row without those in which waves started up."""
    return cost(totals) if totals.idle is None else cost(totals) - totals.startup


def frames(source: str) -> tuple[str, ...]:
    """The frames of a source entry, innermost first; empty without debug information."""
    return tuple(part.strip() for part in source.split(INLINE) if part.strip())


def instruction(code: CodeTable, totals: Totals, row: int) -> AttInstruction:
    idle = None if totals.idle is None else int(totals.idle[row])
    latency = int(totals.latency[row])
    return AttInstruction(
        line=int(code.line[row]),
        code_object=int(code.code_object[row]),
        vaddr=int(code.vaddr[row]),
        isa=code.isa[row],
        source=code.source[row] or None,
        kind=totals.kinds[row].value,
        hits=int(totals.hit[row]),
        latency=latency,
        stall=None if totals.stall is None else int(totals.stall[row]),
        idle=idle,
        share=totals.fraction(None if idle is None else latency + idle),
    )


def hot_instructions(code: CodeTable, totals: Totals, limit: int = SHOWN) -> tuple[AttInstruction, ...]:
    """Executed rows by descending cycles, then by line; the start-up of waves is no instruction's cost."""
    cycles = own_cost(totals)
    order = np.lexsort((code.line, -cycles))
    rows = [int(row) for row in order if totals.hit[row] > 0]
    return tuple(instruction(code, totals, row) for row in rows[:limit])


def hot_lines(code: CodeTable, totals: Totals, limit: int | None = SHOWN) -> tuple[AttSourceLine, ...]:
    """Source lines by descending cycles; a row counts for its innermost frame only, so nothing doubles.

    The start-up of waves is no line's cost, as in ``hot_instructions``.
    """
    cycles = own_cost(totals)
    by_line: dict[str, list[int]] = {}
    for row in np.flatnonzero(totals.hit).tolist():
        chain = frames(code.source[row])
        if chain:
            by_line.setdefault(chain[0], []).append(row)
    order = sorted(by_line, key=lambda name: (-int(cycles[by_line[name]].sum()), name))
    return tuple(_source_line(name, by_line[name], code, totals) for name in order[:limit])


def _source_line(name: str, rows: list[int], code: CodeTable, totals: Totals) -> AttSourceLine:
    latency = int(totals.latency[rows].sum())
    idle = None if totals.idle is None else int(totals.idle[rows].sum())
    callers = {INLINE.join(frames(code.source[row])[1:]) for row in rows}
    return AttSourceLine(
        source=name,
        instructions=len(rows),
        hits=int(totals.hit[rows].sum()),
        latency=latency,
        stall=None if totals.stall is None else int(totals.stall[rows].sum()),
        idle=idle,
        share=totals.fraction(None if idle is None else latency + idle),
        callers=tuple(sorted(caller for caller in callers if caller)),
    )
