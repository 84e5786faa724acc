"""``sections.pc_sampling`` of ``profile.json``: PC samples by kernel, source line and instruction.

A share is that of all samples of the kernel; ``share_low`` and ``share_high`` are the ends of its interval,
and ``too_few`` says that the interval is wider than the share. What the method does not tell is null:
host-trap samples know nothing of issue, stalls and waves.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import FailFast, Field

from rpl_core.contracts.common import MetricDoc, OriginName, Part

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Sampled(Part):
    """Samples of something. ``issued + stalled`` may be less than ``samples`` where the state is unknown.

    ``lanes`` and ``waves`` are means over the samples: active lanes of the sampled wave, waves on its compute
    unit.
    """

    samples: Count
    share: Share
    share_low: Share
    share_high: Share
    too_few: bool
    issued: Count | None
    stalled: Count | None
    stalls: dict[str, Count] | None  # by reason, the most frequent first
    lanes: float | None
    waves: float | None


class TracedInstruction(Part):
    """The same instruction in the thread trace of the kernel: executions and cycles of the traced waves."""

    share: float | None
    hits: Count
    latency: Count
    stall: Count | None


class SampledPlace(Sampled):
    """One instruction. ``offset`` is that in the code object; null in recordings that tell it by its text.

    ``executed`` and ``executed_lanes`` are counts of the emulator (modelled), ``trace`` is measured.
    """

    instruction: str | None  # null: the profiler could not decode it
    source: str | None
    code_object: Count | None
    offset: Count | None
    executed: Count | None = None
    executed_lanes: Count | None = None
    trace: TracedInstruction | None = None


class SampledLine(Sampled):
    """One line of source, by the innermost frame of inlined code. ``instructions`` were sampled."""

    source: str
    instructions: Count
    executed: Count | None = None


class StallShare(Part):
    """Samples of the kernel whose wave did not issue for one reason."""

    reason: str
    samples: Count
    share: Share
    share_low: Share
    share_high: Share
    too_few: bool


class SampledKernel(Part):
    """One kernel. Shares of lines and instructions are null-free, but see ``status`` before using them."""

    kernel: str | None
    kernel_reason: str | None = None  # why it is null
    method: Literal["stochastic", "host_trap"]
    position: Literal["offset", "text"]
    origin: OriginName
    sampled_every: Count | None  # null: the recording does not say
    sampled_unit: Literal["cycles", "us"] | None
    status: Literal["available", "too_few_samples"]
    reason: str | None = None
    samples: Count
    dispatches: Count
    ticks: Count  # moments at which it was sampled
    undecoded: Count  # samples at instructions that the profiler could not decode
    issued: Count | None
    stalled: Count | None
    issue_share: StallShare | None
    stalls: tuple[StallShare, ...] | None  # the most frequent first
    instruction_types: dict[str, Count] | None  # of issued ones
    lanes: float | None
    waves: float | None
    lines: Annotated[tuple[SampledLine, ...], FailFast()]
    lines_reason: str | None = None
    places: Annotated[tuple[SampledPlace, ...], FailFast()]
    places_left_out: Count
    counters: dict[str, MetricDoc] = Field(default_factory=dict)  # what counters say of the same
    unavailable: dict[str, str] = Field(default_factory=dict)


class PcSampling(Part):
    """Kernels by samples, the most first. ``interval`` names the method of all intervals."""

    confidence: float
    interval: str
    kernels: Annotated[tuple[SampledKernel, ...], FailFast()]
