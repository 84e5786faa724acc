"""``profile.json``, declared once: times, stability, resources, occupancy, verdicts, per kernel and overall.

The documented minimum (schema_version, kernel, gpu, runtime_ms, stability, resources, occupancy,
roofline) validates on its own; everything else has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from attrs import field

from rpl_analysis.contracts import OR_EMPTY, OR_ZERO, Limited, document_of, record
from rpl_analysis.contracts.roofline import RooflinePart
from rpl_core.model.metric import Exactness

if TYPE_CHECKING:
    from rpl_core.contracts.common import Document

# ``ranks`` of ``profile.json``: GPUs and ranks of one run beside each other.


@record
class GpuTimePart:
    """One GPU between the begin of its first kernel or copy and the end of its last."""

    node: str
    agent: int | None
    product: str | None
    architecture: str | None
    launches: int
    kernel_ns: int  # sum of all dispatches
    busy_ns: int  # something runs, copies included
    makespan_ns: int
    concurrency: float | None  # durations / busy_ns: work at once on this GPU
    communication_ns: int  # a collective runs
    overlapped_ns: int  # a collective and another kernel run


@record
class RankTimePart:
    """What one process did on one GPU; ``rank`` counts by machine, GPU and process."""

    rank: int
    node: str
    process: int  # OS pid
    agent: int | None
    launches: int
    kernel_ns: int
    makespan_ns: int
    collective_ns: int
    wait_ns: int | None  # in collectives, for the slowest of the recorded ranks
    last_arrivals: int | None  # how often the others waited for this one


@record
class ImbalancedKernelPart:
    """Over all ranks; ``imbalance`` = max_ns / mean_ns - 1."""

    name: str
    mean_ns: float
    max_ns: int
    slowest_rank: int
    ranks: int  # that launched it
    imbalance: float


@record
class CollectiveSharePart:
    rank: int
    calls: int
    total_ns: int
    wait_ns: int | None
    last_arrivals: int | None


@record
class CollectivePart:
    """``exactness`` is that of the waits; ``wait_reason`` says why they are unknown."""

    name: str
    operation: str
    rule: str
    exactness: Exactness | None
    wait_reason: str | None
    shares: tuple[CollectiveSharePart, ...]


@record
class RanksPart:
    """Of the run with the median time. ``makespan_ns`` is null over machines whose clocks differ."""

    run: int
    runtime_ns: int
    makespan_ns: int | None
    gpus: tuple[GpuTimePart, ...]
    gpus_left_out: int = field(metadata=OR_ZERO)
    ranks: tuple[RankTimePart, ...]
    ranks_left_out: int = field(metadata=OR_ZERO)
    kernels: tuple[ImbalancedKernelPart, ...] = field(metadata=OR_EMPTY)
    collectives: tuple[CollectivePart, ...] = field(metadata=OR_EMPTY)


Axes = Annotated[tuple[int, ...], Limited(min_length=1, max_length=3)]
Fraction = Annotated[float, Limited(ge=0, le=1)]


class StabilityClass(str, Enum):
    """``stability`` cites its source: cv <= 0.05 stable, <= 0.10 moderate, else unstable."""

    STABLE = "stable"
    MODERATE = "moderate"
    UNSTABLE = "unstable"


@record
class StabilityPart:
    """Over runs. ``cv`` is null for one run."""

    runs: int | None = None
    mean_ms: float | None = None
    stddev_ms: float | None = None  # of the sample (n - 1)
    cv: float | None = None
    classification: StabilityClass | None = None


@record
class AddedTime:
    """``added``: mean of the runs with calls over the one without, less 1; negative where it took longer.

    ``added_range`` holds the least and the most of the single runs with calls; null for one run. The run
    without calls is a single one, so its own spread is in neither.
    """

    with_calls_ms: float
    without_calls_ms: float
    added: float
    added_range: tuple[float, float] | None


@record
class CallOverhead:
    """What recording API calls and copies added to the timing runs, by a run of the same command without.

    ``makespan`` is the time from the first begin to the last end of a dispatch: null where several machines
    took part.
    """

    runs_with_calls: int
    kernel_time: AddedTime
    makespan: AddedTime | None


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


@record(kw_only=True)
class KernelPart:
    """The dominant kernel. ``grid`` counts workgroups per axis, ``block`` work-items per workgroup."""

    name: str | None = None
    grid: Axes | None = None
    block: Axes | None = None
    grid_work_items: Axes | None = None
    shape_count: int | None = None  # distinct launch shapes under this name; the longest-running is shown
    reason: str | None = None


@record(kw_only=True)
class GpuPart:
    architecture: str | None = None
    product: str | None = None
    wave_size: int | None = None  # of the device; a kernel may have another: occupancy.wave_size
    compute_units: int | None = None
    theoretical_peak_flops: float | None = None  # FLOP/s: FP32, one FMA per lane (not packed), data sheet
    memory_bandwidth_gbps: float | None = None
    clock_mhz: float | None = None
    partition: str | None = None
    reason: str | None = None


@record(kw_only=True)
class ResourcesPart:
    """Allocated registers (granule included), LDS per workgroup, scratch per work-item."""

    vgpr_per_thread: int | None = None  # arch + accum: what limits occupancy
    arch_vgpr: int | None = None
    accum_vgpr: int | None = None
    sgpr_per_wave: int | None = None
    lds_bytes: int | None = None
    scratch_bytes: int | None = None


@record(kw_only=True)
class OccupancyPart:
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


@record(kw_only=True)
class CriticalPathPart:
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


@record(kw_only=True)
class KernelProfile:
    """One kernel of the application, with the same blocks as the whole."""

    name: str
    symbol: str | None = None  # the linker's name, where one is recorded that differs
    launches: float
    time_share: Fraction | None
    runtime_ms: float | None  # mean over runs of the kernel's summed dispatch time
    runtime_exactness: Exactness | None = None
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
    att: Mapping[str, Any] | None = None  # a section of the plugin for thread traces; null without it
    bottleneck: str | None = None
    headroom_fraction: Fraction | None = None


@record(kw_only=True)
class Profile:
    """The document that most readers start with."""

    kernel: KernelPart
    gpu: GpuPart
    runtime_ms: float | None
    runtime_source: str | None = None
    runtime_exactness: Exactness | None = None
    runtime_range_ms: tuple[float, float] | None = None
    runtime_reason: str | None = None
    stability: StabilityPart
    call_overhead: CallOverhead | None = None  # null where calls, or a run without them, were not recorded
    resources: ResourcesPart
    occupancy: OccupancyPart
    roofline: RooflinePart | None
    critical_path: CriticalPathPart | None = None
    att: Mapping[str, Any] | None = None  # a section of the plugin for thread traces; null without it
    bottleneck: str | None = None
    headroom_fraction: Fraction | None = None
    launches: float | None = None
    kernels: tuple[KernelProfile, ...] = ()
    ranks: RanksPart | None = None
    phases: PhasesPart | None = None  # null where the application marked no range
    range: str | None = None  # --range: only what these ranges launched is in the document; null: all work
    untimed_thread_traces: tuple[Mapping[str, Any], ...] = ()  # of kernels without a time in this document
    incomplete: str | None = None


if TYPE_CHECKING:

    class ProfileDocument(Profile, Document):
        """``profile.json`` as it is read back."""


def __getattr__(name: str) -> Any:
    if name == "ProfileDocument":
        return document_of(Profile, name)
    raise AttributeError(name)
