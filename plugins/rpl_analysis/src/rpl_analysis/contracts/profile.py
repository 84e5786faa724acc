"""``profile.json``: times, stability, resources, occupancy and the verdicts, per kernel and overall.

The documented minimum (schema_version, kernel, gpu, runtime_ms, stability, resources, occupancy,
roofline) validates on its own; everything else has a default.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rpl_analysis.contracts.phases import PhasesPart
from rpl_analysis.contracts.ranks import RanksPart
from rpl_analysis.contracts.roofline import RooflinePart
from rpl_analysis.contracts.stability import CallOverhead, StabilityPart
from rpl_core.contracts.common import Document, ExactnessName, Part

Axes = Annotated[tuple[int, ...], Field(min_length=1, max_length=3)]
Fraction = Annotated[float, Field(ge=0, le=1)]


class KernelPart(Part):
    """The dominant kernel. ``grid`` counts workgroups per axis, ``block`` work-items per workgroup."""

    name: str | None = None
    grid: Axes | None = None
    block: Axes | None = None
    grid_work_items: Axes | None = None
    shape_count: int | None = None  # distinct launch shapes under this name; the longest-running is shown
    reason: str | None = None


class GpuPart(Part):
    architecture: str | None = None
    product: str | None = None
    wave_size: int | None = None  # of the device; a kernel may have another: occupancy.wave_size
    compute_units: int | None = None
    theoretical_peak_flops: float | None = None  # FLOP/s: FP32, one FMA per lane (not packed), data sheet
    memory_bandwidth_gbps: float | None = None
    clock_mhz: float | None = None
    partition: str | None = None
    reason: str | None = None


class ResourcesPart(Part):
    """Allocated registers (granule included), LDS per workgroup, scratch per work-item."""

    vgpr_per_thread: int | None = None  # arch + accum: what limits occupancy
    arch_vgpr: int | None = None
    accum_vgpr: int | None = None
    sgpr_per_wave: int | None = None
    lds_bytes: int | None = None
    scratch_bytes: int | None = None


class OccupancyPart(Part):
    """Theoretical upper bound from resources; it models no stalls.

    ``theoretical_range`` stands in where the wave size of the kernel is unknown; ``wave_size`` is null then.
    """

    theoretical: Fraction | None = None
    theoretical_range: tuple[Fraction, Fraction] | None = None
    threads_per_block: int | None = None
    wave_size: int | None = None
    waves_per_simd: int | None = None
    max_waves_per_simd: int | None = None
    limiter: str | None = None
    next_threshold: str | None = None
    mode: Literal["hardware", "llvm"] | None = None
    reason: str | None = None


class CriticalPathPart(Part):
    """``fraction`` is the dominant kernel's share of the path, ``speedup_ceiling`` 1 / (1 - fraction).

    ``application_ceiling``: the whole application if that kernel cost nothing, launches and waits kept;
    where the order of streams is unknown at least that, and ``application_ceiling_at_most`` at most.
    """

    critical_path_ns: int | None = None
    dominant_symbol: str | None = None
    fraction: Fraction | None = None
    speedup_ceiling: float | None = None
    application_ceiling: float | None = None
    application_ceiling_at_most: float | None = None
    dominant_work: str | None = None  # kernel or copy direction with the most time on the path
    confidence: str | None = None
    reason: str | None = None


class KernelProfile(Part):
    """One kernel of the application, with the same blocks as the whole."""

    name: str
    symbol: str | None = None  # the linker's name, where one is recorded that differs
    launches: float
    time_share: Fraction | None
    runtime_ms: float | None  # mean over runs of the kernel's summed dispatch time
    runtime_exactness: ExactnessName | None = None
    runtime_range_ms: tuple[float, float] | None = None
    runtime_reason: str | None = None
    mean_ns: float | None
    median_ns: float | None
    min_ns: int | None
    max_ns: int | None
    kernel: KernelPart
    stability: StabilityPart
    resources: ResourcesPart
    occupancy: OccupancyPart
    roofline: RooflinePart | None = None
    criticality_weight: Fraction | None = None
    slack_ns: int | None = None
    att: dict[str, Any] | None = None  # a section of the plugin for thread traces; null without it
    bottleneck: str | None = None
    headroom_fraction: Fraction | None = None


class ProfileDocument(Document):
    """The document that most readers start with."""

    kernel: KernelPart
    gpu: GpuPart
    runtime_ms: float | None
    runtime_source: str | None = None
    runtime_exactness: ExactnessName | None = None
    runtime_range_ms: tuple[float, float] | None = None
    runtime_reason: str | None = None
    stability: StabilityPart
    call_overhead: CallOverhead | None = None  # null where calls, or a run without them, were not recorded
    resources: ResourcesPart
    occupancy: OccupancyPart
    roofline: RooflinePart | None
    critical_path: CriticalPathPart | None = None
    att: dict[str, Any] | None = None  # a section of the plugin for thread traces; null without it
    bottleneck: str | None = None
    headroom_fraction: Fraction | None = None
    launches: float | None = None
    kernels: tuple[KernelProfile, ...] = ()
    ranks: RanksPart | None = None
    phases: PhasesPart | None = None  # null where the application marked no range
    range: str | None = None  # --range: only what these ranges launched is in the document; null: all work
    untimed_thread_traces: tuple[dict[str, Any], ...] = ()  # of kernels without a time in this document
    incomplete: str | None = None
