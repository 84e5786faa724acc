"""``phases`` of ``profile.json``: the ranges that the application marked, and what they launched."""

from __future__ import annotations

from typing import Literal

from attrs import field

from rpl_analysis.contracts.record import OR_ZERO, record


@record
class PhasePart:
    """All ranges of one name; time of nested ones counts once. ``share`` is of all kernel time of the run."""

    name: str
    ranges: int
    host_ns: int  # that the ranges cover
    launches: int
    kernel_ns: int  # of the kernels that were launched inside
    share: float | None  # ranges of several names may nest, so shares may add up to more than 1
    dominant_kernel: str | None
    dominant_share: float | None  # of kernel_ns


@record
class PhasesPart:
    """Of the run with the median time. ``by``: the launching call places a kernel, or its begin."""

    run: int
    by: Literal["launch", "begin"]
    phases: tuple[PhasePart, ...]
    phases_left_out: int = field(metadata=OR_ZERO)
    outside_ns: int  # kernel time in none of the ranges
