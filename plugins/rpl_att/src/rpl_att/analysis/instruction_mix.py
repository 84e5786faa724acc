"""Executions and cycles by class of instruction."""

from __future__ import annotations

import numpy as np

from rpl_att.analysis.totals import Totals
from rpl_att.contract import AttClassCycles
from rpl_att.instruction_class import InstructionClass


def instruction_mix(totals: Totals) -> dict[str, AttClassCycles]:
    """One entry per class that was executed, in the fixed order of the classes."""
    hits = totals.hits
    found = {}
    for kind in InstructionClass:
        chosen = np.array([k is kind for k in totals.kinds], np.bool_)
        count = int(totals.hit[chosen].sum())
        if count:
            found[kind.value] = AttClassCycles(
                hits=count,
                share=count / hits,
                latency=int(totals.latency[chosen].sum()),
                stall=None if totals.stall is None else int(totals.stall[chosen].sum()),
                idle=None if totals.idle is None else int(totals.idle[chosen].sum()),
            )
    return found
