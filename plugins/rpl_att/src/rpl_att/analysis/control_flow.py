"""Control flow of a kernel: loops with iterations and cycles, and hints at divergence.

Loops come from backward branches. With wave files the targets are those that waves really jumped to. With
the code table alone they are computed from the branch's operand (target = address + 4 + 4 * simm16, gfx9 to
gfx12 ISA manuals: SOPP).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np

from rpl_att.analysis.totals import Totals
from rpl_att.contract import AttBranch, AttLoop
from rpl_att.instruction_class import InstructionClass
from rpl_att.reading.code_table import CodeTable
from rpl_att.reduction.control_flow import FlowTotals
from rpl_core.values import frozen

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
