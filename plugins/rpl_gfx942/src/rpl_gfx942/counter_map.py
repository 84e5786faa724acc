"""The counter map of gfx942: all quantities, and how their counters may be collected."""

from __future__ import annotations

from rpl_core.model.device import CounterMap
from rpl_gfx942.byte_quantities import byte_quantities
from rpl_gfx942.counter_limits import (
    BLOCK_LIMITS,
    BLOCK_PREFIXES,
    DANGEROUS,
    RECOMMENDED,
    SAME_PASS,
)
from rpl_gfx942.flop_quantities import flop_quantities
from rpl_gfx942.utilization_quantities import utilization_quantities

__all__ = ["COUNTER_MAP"]

COUNTER_MAP = CounterMap(
    quantities=(*flop_quantities(), *byte_quantities(), *utilization_quantities()),
    recommended=RECOMMENDED,
    same_pass=SAME_PASS,
    block_limits=BLOCK_LIMITS,
    block_prefixes=BLOCK_PREFIXES,
    dangerous=DANGEROUS,
)
