"""Hints at divergent control flow. A thread trace has no execution mask: lanes are not observable in it."""

from __future__ import annotations

import numpy as np

from rpl_att.analysis.totals import Totals
from rpl_att.contract import AttBranch
from rpl_att.reading.code_table import CodeTable
from rpl_att.reduction.control_flow import FlowTotals

_SHOWN = 20


def branch_hints(code: CodeTable, totals: Totals, flow: FlowTotals) -> tuple[AttBranch, ...]:
    """Conditional branches that went both ways or not equally often in all waves, most executed first."""
    outcomes = flow.taken + flow.not_taken
    rows = [row for row in np.flatnonzero(outcomes[:-1]).tolist() if code.isa[row].startswith("s_cbranch")]
    chosen = [row for row in rows if _hint(row, code, flow) is not None]
    chosen.sort(key=lambda row: (-int(outcomes[row]), row))
    return tuple(_branch(row, code, flow) for row in chosen[:_SHOWN] if totals.hit[row])


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
