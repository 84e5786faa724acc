"""``sections.instruction_heat`` of ``profile.json``, and the file of a pass that it is made from.

Counts are exact sums over the emulated launches of a kernel. ``lanes`` adds up the active lanes of vector
instructions (``vector``), the rest has none of its own.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import FailFast, Field

from rpl_core.contracts.common import Part

Count = Annotated[int, Field(ge=0)]


class HeatPlace(Part):
    """One instruction; ``address`` is that in the code object, source and line those of the compiler."""

    address: Count
    opcode: str
    executed: Count
    lanes: Count | None  # null: it acts for the whole wave
    source: str | None = None
    line: int | None = None


class HeatLine(Part):
    """All instructions of one source line; inlined code counts where it was written."""

    source: str
    line: int
    executed: Count
    vector: Count
    lanes: Count


class KernelHeat(Part):
    """One kernel: lines and instructions by how often they ran, the most frequent first."""

    kernel: str
    symbol: str
    launches: Count
    waves: Count
    executed: Count
    vector: Count
    lanes: Count
    lines: Annotated[tuple[HeatLine, ...], FailFast()]
    lines_reason: str | None  # why there are no lines
    places: Annotated[tuple[HeatPlace, ...], FailFast()]
    places_left_out: Count


class InstructionHeat(Part):
    """Kernels by instructions that ran, the most first."""

    kernels: Annotated[tuple[KernelHeat, ...], FailFast()]


class HeatFile(Part):
    """``<pid>_instruction_heat.json`` of a pass."""

    format: Literal["rpl instruction heat 1"]
    kernels: Annotated[tuple[KernelHeat, ...], FailFast()]
