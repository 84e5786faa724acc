"""Times per kernel and per application with their spread over runs: the facts of the runtime analyzer.

``KERNEL_TIMES`` is a mapping from kernel name to ``KernelTime`` in descending order of ``total_ns``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rpl_analysis.contracts.stability import CallOverhead, StabilityClass, StabilityPart
from rpl_core.model.metric import Exactness, Metric
from rpl_core.values import frozen

#: kalowery/rocm-perf-lab @112862e5 docs/USER_GUIDE.md, section 5.
STABLE_CV = 0.05
MODERATE_CV = 0.10


@frozen
class KernelResources:
    """Allocated registers, LDS and scratch of a kernel; ``None`` where the recording lacks them."""

    arch_vgpr: int | None
    accum_vgpr: int | None
    sgpr: int | None
    lds_bytes: int | None  # static + dynamic, per workgroup
    scratch_bytes: int | None  # per work-item


@frozen
class KernelTime:
    """One kernel (by displayed name) over all timing runs.

    ``total_ns`` is the mean over runs of the kernel's summed dispatch time, ``mean_ns`` .. ``max_ns``
    describe single dispatches over all runs. ``exactness`` is ``estimate`` when only counter passes
    exist; then ``range_total_ns`` spans the passes. Geometry and resources are those of the dispatch
    shape with the largest share of the kernel's time; ``shape_count`` tells how many there are.
    """

    name: str
    launches: float  # mean per run
    total_ns: float
    share: float  # of the summed kernel time, 0..1
    mean_ns: float
    median_ns: float
    min_ns: int
    max_ns: int
    stability: StabilityPart
    workgroup: tuple[int, int, int] | None
    grid: tuple[int, int, int] | None  # work-items
    resources: KernelResources
    shape_count: int
    exactness: Exactness = Exactness.EXACT
    range_total_ns: tuple[float, float] | None = None


@frozen
class ApplicationTime:
    """``runtime`` is the mean over runs of the sum of (end - start) over all dispatches, in ms."""

    runtime: Metric
    runtime_source: str
    stability: StabilityPart | None
    launches: float
    run_totals_ms: tuple[float, ...]
    range_ms: tuple[float, float] | None = None  # over counter passes, for estimates
    call_overhead: CallOverhead | None = None  # null without calls, or without a run that lacks them


def classify_cv(cv: float) -> StabilityClass:
    """cv <= 0.05 stable, <= 0.10 moderate, otherwise unstable."""
    if cv <= STABLE_CV:
        return StabilityClass.STABLE
    return StabilityClass.MODERATE if cv <= MODERATE_CV else StabilityClass.UNSTABLE


def stability_of(times_ms: Sequence[float]) -> StabilityPart:
    """Stability of at least one time. A single run has a mean and nothing else."""
    count = len(times_ms)
    mean = math.fsum(times_ms) / count
    if count < 2:
        return StabilityPart(count, mean)
    variance = math.fsum((t - mean) ** 2 for t in times_ms) / (count - 1)
    stddev = math.sqrt(variance)
    if mean <= 0:
        return StabilityPart(count, mean, stddev)
    cv = stddev / mean
    return StabilityPart(count, mean, stddev, cv, classify_cv(cv))
