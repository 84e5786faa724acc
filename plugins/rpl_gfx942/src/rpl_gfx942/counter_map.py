"""The counter map of gfx942: all quantities, and how their counters may be collected."""

from __future__ import annotations

from rpl_core.model.device import CounterMap, Pipe, TypedWork
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

#: Vector before matrix work, wide types first. XF32 has no counter of its own: it counts as F32.
_WORK = (
    *(TypedWork(f"valu_flops_{t.lower()}", t, Pipe.VALU) for t in ("F64", "F32", "F16")),
    *(TypedWork(f"mfma_flops_{t.lower()}", t, Pipe.MFMA) for t in ("F64", "F32", "F16", "BF16", "F8")),
    TypedWork("mfma_ops_i8", "I8", Pipe.MFMA, floating=False),
)

COUNTER_MAP = CounterMap(
    quantities=(*flop_quantities(), *byte_quantities(), *utilization_quantities()),
    recommended=RECOMMENDED,
    same_pass=SAME_PASS,
    block_limits=BLOCK_LIMITS,
    block_prefixes=BLOCK_PREFIXES,
    dangerous=DANGEROUS,
    work=_WORK,
    memory_bytes=("hbm_bytes", "tcc_bytes"),
)
