"""Compute partitions of gfx942: which share of a product one logical GPU is.

A partition has whole XCDs (rocprofiler-compute ``mi_gpu_spec.yaml`` @1b1610fc). CUs, L2 channels and the
fair share of HBM bandwidth scale with them; Infinity Cache is shared by all partitions in NPS1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_gfx942.products import CU_PER_XCD

if TYPE_CHECKING:
    from rpl_core.model.trace import Agent
    from rpl_gfx942.products import Product

__all__ = ["Partition", "fits", "full_partition", "partition_of"]

#: Memory partitions that split HBM, and into how many parts.
_MEMORY_SPLITS = {"NPS1": 1, "NPS2": 2, "NPS4": 4, "NPS8": 8}


@frozen
class Partition:
    """A compute partition by mode, e.g. ``("CPX", 1)``; ``memory_parts`` is the n of NPSn if recorded."""

    mode: str
    xcd_count: int
    memory_parts: int = 1


def full_partition(product: Product) -> Partition | None:
    """The mode in which one logical GPU is the whole product; ``None`` where its XCDs are unknown."""
    return None if product.xcd_count is None else Partition("SPX", product.xcd_count)


def partition_of(product: Product, agent: Agent) -> Partition | None:
    """The partition that an agent describes: by mode, XCD count or CU count, which must not disagree.

    ``None`` when they do, or when the agent says nothing.
    """
    modes = [
        Partition(mode, xcds, _MEMORY_SPLITS.get((agent.memory_partition or "").upper(), 1))
        for mode, xcds in product.partitions
        if fits(mode, xcds, agent)
    ]
    recorded = (agent.compute_partition, agent.xcd_count, agent.compute_units)
    return modes[0] if len(modes) == 1 and any(recorded) else None


def fits(mode: str, xcd_count: int, agent: Agent) -> bool:
    """Whether everything that the agent states agrees with a partition of ``xcd_count`` XCDs."""
    stated_mode = (agent.compute_partition or mode).upper()
    stated_xcds = agent.xcd_count or xcd_count
    stated_units = agent.compute_units or xcd_count * CU_PER_XCD
    return (stated_mode, stated_xcds, stated_units) == (mode, xcd_count, xcd_count * CU_PER_XCD)
