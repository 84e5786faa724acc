"""Where the cycles are: instructions, lines of source through inlined calls, loops, branches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rpl_att.analysis.totals import Totals
from rpl_att.contract import AttBranch, AttInstruction, AttLoop, AttSourceLine
from rpl_att.instruction_class import InstructionClass
from rpl_att.reading.code_table import CodeTable
from rpl_att.reading.folder import INLINE
from rpl_att.reduction import FlowTotals
from rpl_core.values import frozen

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


# Control flow of a kernel: loops with iterations and cycles, and hints at divergence.
#
# Loops come from backward branches. With wave files the targets are those that waves really jumped to. With
# the code table alone they are computed from the branch's operand (target = address + 4 + 4 * simm16, gfx9
# to gfx12 ISA manuals: SOPP).

_OPERAND = re.compile(r"s_c?branch\S*\s+(-?\d+)\s*\Z")
_BRANCH_BYTES = 4
_SHOWN_HINTS = 20


@frozen
class _Range:
    """Rows [first, last] of one loop; ``iterations`` is ``None`` where only the code is known."""

    first: int
    last: int
    iterations: int | None


def loops(
    code: CodeTable, totals: Totals, edges: Mapping[tuple[int, int], int] | None
) -> tuple[AttLoop, ...]:
    """Loops in order of their first row, outer before inner. ``edges``: taken branches, by row."""
    back = _jumped(edges, code) if edges is not None else _static(code, totals)
    ranges = sorted(_by_header(back), key=lambda r: (r.first, -r.last))
    return tuple(_loop(one, ranges, code, totals) for one in ranges)


def _jumped(edges: Mapping[tuple[int, int], int], code: CodeTable) -> dict[tuple[int, int], int | None]:
    size = len(code)
    return {
        (source, target): count
        for (source, target), count in edges.items()
        if source < size and target <= source and code.code_object[source] == code.code_object[target]
    }


def _static(code: CodeTable, totals: Totals) -> dict[tuple[int, int], int | None]:
    if not code.has_addresses:
        return {}
    row_at = {}
    for row in range(len(code)):
        if not code.isa[row].startswith("; "):
            row_at[int(code.code_object[row]), int(code.vaddr[row])] = row
    edges: dict[tuple[int, int], int | None] = {}
    for row, kind in enumerate(totals.kinds):
        match = _OPERAND.match(code.isa[row]) if kind is InstructionClass.BRANCH else None
        if match is None or not totals.hit[row]:
            continue
        words = int(match[1])
        words -= 0x10000 if words > 0x7FFF else 0
        address = int(code.vaddr[row]) + _BRANCH_BYTES * (1 + words)
        target = row_at.get((int(code.code_object[row]), address))
        if target is not None and target <= row:
            edges[row, target] = None
    return edges


def _by_header(back: Mapping[tuple[int, int], int | None]) -> list[_Range]:
    """Backward branches to one row are one loop that ends at the last of them."""
    last: dict[int, int] = {}
    counts: Counter[int] = Counter()
    known = True
    for (source, target), count in back.items():
        last[target] = max(source, last.get(target, source))
        known = known and count is not None
        counts[target] += count or 0
    return [_Range(first, end, counts[first] if known else None) for first, end in last.items()]


def _loop(one: _Range, ranges: list[_Range], code: CodeTable, totals: Totals) -> AttLoop:
    rows = slice(one.first, one.last + 1)
    header_hits = int(totals.hit[one.first])
    latency = int(totals.latency[rows].sum())
    idle = None if totals.idle is None else int(totals.idle[rows].sum())
    kinds: Counter[str] = Counter()
    for row in range(one.first, one.last + 1):
        kinds[totals.kinds[row].value] += int(totals.hit[row])
    sources = [code.source[row] for row in range(one.first, one.last + 1) if code.source[row]]
    return AttLoop(
        first_line=int(code.line[one.first]),
        last_line=int(code.line[one.last]),
        source=sources[0] if sources else None,
        depth=sum(other.first <= one.first and one.last <= other.last for other in ranges),
        entries=None if one.iterations is None else header_hits - one.iterations,
        iterations=header_hits,
        latency=latency,
        stall=None if totals.stall is None else int(np.sum(totals.stall[rows])),
        idle=idle,
        share=totals.fraction(None if idle is None else latency + idle),
        kinds={name: count for name, count in sorted(kinds.items()) if count},
    )


def branch_hints(code: CodeTable, totals: Totals, flow: FlowTotals) -> tuple[AttBranch, ...]:
    """Conditional branches that went both ways or not equally often in all waves, most executed first.

    Only hints at divergence: a thread trace has no execution mask, so lanes are not observable in it.
    """
    outcomes = flow.taken + flow.not_taken
    rows = [row for row in np.flatnonzero(outcomes[:-1]).tolist() if code.isa[row].startswith("s_cbranch")]
    chosen = [row for row in rows if _hint(row, code, flow) is not None]
    chosen.sort(key=lambda row: (-int(outcomes[row]), row))
    return tuple(_branch(row, code, flow) for row in chosen[:_SHOWN_HINTS] if totals.hit[row])


def _branch(row: int, code: CodeTable, flow: FlowTotals) -> AttBranch:
    taken, not_taken = int(flow.taken[row]), int(flow.not_taken[row])
    return AttBranch(
        line=int(code.line[row]),
        isa=code.isa[row],
        source=code.source[row] or None,
        taken=taken,
        not_taken=not_taken,
        taken_fraction=taken / (taken + not_taken),
        fewest_per_wave=int(flow.fewest[row]),
        most_per_wave=int(flow.most[row]),
        hint=_hint(row, code, flow) or "",
    )


def _hint(row: int, code: CodeTable, flow: FlowTotals) -> str | None:
    if flow.fewest[row] != flow.most[row]:
        return "waves reach it differently often: paths or trip counts differ between waves"
    if "exec" in code.isa[row]:
        return "skips code when no lane is left: lanes may diverge before it; counters can tell"
    if flow.taken[row] and flow.not_taken[row]:
        return "goes both ways: a loop's end, or a choice that waves make differently"
    return None
