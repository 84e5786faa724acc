"""Theoretical occupancy of a launch: waves per SIMD, limiter, next threshold.

The facts of an architecture, registers in use or as allocated and the launch's shape go in; an ``Occupancy``
or the reason for having none comes out.
"""

from __future__ import annotations

from rpl_analysis.occupancy.launch import AllocatedRegisters, LaunchShape, UsedRegisters
from rpl_analysis.occupancy.model import theoretical_occupancy
from rpl_analysis.occupancy.result import (
    Limiter,
    Mode,
    NoOccupancy,
    Occupancy,
    ResourceLimits,
    Threshold,
)

__all__ = [
    "AllocatedRegisters",
    "LaunchShape",
    "Limiter",
    "Mode",
    "NoOccupancy",
    "Occupancy",
    "ResourceLimits",
    "Threshold",
    "UsedRegisters",
    "theoretical_occupancy",
]
