"""Reasons not to unroll, each a small function: what it refuses, in which line, and why.

A guard passes only what it understood; what it can't see (a function of another file) it refuses.
"""

from __future__ import annotations

from rpl_llm_unroll.guards.registry import FACTOR_GUARDS, LOOP_GUARDS, factor_verdicts, loop_verdicts

__all__ = ["FACTOR_GUARDS", "LOOP_GUARDS", "factor_verdicts", "loop_verdicts"]
