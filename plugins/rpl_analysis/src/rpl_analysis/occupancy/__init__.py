"""Theoretical occupancy of a launch: limits per architecture, waves per SIMD, limiter, next threshold.

A device's limits (``architecture_limits``), registers in use or as allocated and the launch's shape go in;
an ``Occupancy`` or the reason for having none comes out.
"""

from __future__ import annotations

from rpl_analysis.occupancy.launch import AllocatedRegisters, LaunchShape, UsedRegisters
from rpl_analysis.occupancy.limits import (
    ARCHITECTURES,
    ArchitectureLimits,
    RegisterFile,
    ScalarFile,
    architecture_limits,
)
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
    "ARCHITECTURES",
    "AllocatedRegisters",
    "ArchitectureLimits",
    "LaunchShape",
    "Limiter",
    "Mode",
    "NoOccupancy",
    "Occupancy",
    "RegisterFile",
    "ResourceLimits",
    "ScalarFile",
    "Threshold",
    "UsedRegisters",
    "architecture_limits",
    "theoretical_occupancy",
]
