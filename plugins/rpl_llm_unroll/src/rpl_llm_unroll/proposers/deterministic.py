"""Propose unrolling alone, without a language model (``deterministic``)."""

from __future__ import annotations

from rpl_llm_unroll.transformation import Unroll
from rpl_optimize.interfaces.proposer import InstalledTransformation
from rpl_optimize.transform.ranked import RankedProposer


class DeterministicProposer(RankedProposer):
    """Loops times factors in a fixed order, each screened by compiling it."""

    name = "deterministic"
    summary = "Unroll the loops of the heaviest kernel, screened by what they compile to."

    def __init__(self, unroll: Unroll | None = None) -> None:
        super().__init__((InstalledTransformation("llm-unroll", unroll or Unroll()),))
