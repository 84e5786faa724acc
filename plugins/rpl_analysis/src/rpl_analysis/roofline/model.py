"""What the roofline analyzer provides: the fact ``"roofline"``, a ``RooflineResult``.

Work and traffic are per launch, from counters; times are per launch, from dispatch timestamps. ``bound`` and
``position`` refer to data-sheet ceilings unless only measured ones are known; both sets are kept apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import attrs

from rpl_core.model.device import CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe
from rpl_core.model.metric import Metric
from rpl_core.values import frozen

__all__ = [
    "ApplicationRoofline",
    "Bound",
    "FlopModels",
    "KernelRoofline",
    "LevelTraffic",
    "Roof",
    "RooflineResult",
    "RooflineStatus",
    "WorkOfType",
]


class Bound(str, Enum):
    """The side of the ridge: which of the two ceilings limits a kernel of this intensity."""

    MEMORY = "memory"
    COMPUTE = "compute"


class RooflineStatus(str, Enum):
    AVAILABLE = "available"
    NOT_COLLECTED = "not_collected"  # no counter pass was recorded
    UNAVAILABLE = "unavailable"  # counters exist, but nothing usable came of them


@frozen
class FlopModels:
    """Both FLOP models side by side, per launch.

    ``per_op`` counts operations by type, ``valu_width`` is vector instructions times a documented width.
    ``ratio`` is valu_width / per_op, ``None`` where per_op is zero or one is unknown. ``selected`` is the
    model that all other figures use; ``fallback`` says why it is not the one asked for.
    """

    per_op: Metric
    valu_width: Metric
    ratio: float | None
    selected: str | None
    fallback: str | None = None


@frozen
class WorkOfType:
    """Operations of one data type on one pipe; ``gops`` are 10^9 operations per second."""

    data_type: str
    pipe: Pipe
    operations: Metric
    gops: Metric
    floating: bool = True


@frozen
class LevelTraffic:
    """Traffic at one memory level with its intensity and rate; peaks are ``None`` where unknown."""

    level: str
    bytes: Metric
    operational_intensity: Metric
    achieved_gbps: Metric
    spec_gbps: float | None
    measured_gbps: float | None
    published_gbps: float | None


@frozen
class Roof:
    """The two ceilings of one origin that bound a kernel, and how near it comes to them.

    ``ridge`` is in operations per byte. ``position`` is achieved / attainable at the kernel's intensity,
    which equals the larger of its two shares of a ceiling.
    """

    origin: CeilingOrigin
    compute: ComputeCeiling | None
    memory: MemoryCeiling | None
    ridge: float | None
    compute_share: Metric
    memory_share: Metric
    position: Metric


@frozen
class KernelRoofline:
    """One kernel on the roofline. ``flops`` is that of ``models.selected``.

    ``dominant`` is the data type and pipe that would need the most time at its data-sheet ceiling; ``None``
    when the kernel does no counted arithmetic. ``exceeds_ceiling`` names ceilings that it seems to exceed.
    ``corrections`` are FLOPs per launch as `flop_corrections` estimates them, ``active_lane_share`` is
    ``compute_utilization`` without the work of idle lanes where some are known to be idle.
    """

    name: str
    launches: float | None  # per timing run
    counter_launches: int
    time_ns: Metric  # mean per launch
    flops: Metric
    models: FlopModels
    bytes: Metric
    byte_source: str | None
    operational_intensity: Metric
    achieved_gflops: Metric
    achieved_gbps: Metric
    dominant: tuple[str, Pipe] | None
    spec: Roof
    measured: Roof
    bound: Bound | None
    bound_reason: str
    types: tuple[WorkOfType, ...]
    levels: tuple[LevelTraffic, ...]
    caches: Mapping[str, Metric]
    exceeds_ceiling: tuple[str, ...]
    corrections: Mapping[str, Metric]
    active_lane_share: Metric | None = None

    @property
    def roof(self) -> Roof:
        """The data-sheet roof, or the benchmarked one where no data sheet gives a memory ceiling."""
        return self.spec if self.spec.memory is not None else self.measured

    @property
    def position(self) -> Metric:
        """Achieved / attainable at the kernel's intensity."""
        return self.roof.position

    @property
    def hbm_utilization(self) -> Metric:
        """Share of the memory ceiling."""
        return self.roof.memory_share

    @property
    def compute_utilization(self) -> Metric:
        """Share of the arithmetic ceilings on the busier pipe."""
        return self.roof.compute_share


@frozen
class ApplicationRoofline:
    """All kernels of one run together; ``time_share`` is the part of kernel time that has counters."""

    roofline: KernelRoofline
    kernels: int
    kernels_with_counters: int
    time_share: float | None


@frozen
class RooflineResult:
    """``kernels`` is in the order of kernel times, then by name for those without a time."""

    status: RooflineStatus
    requested_model: str
    reason: str | None = None
    how_to_collect: str | None = None
    device: str | None = None
    compute_ceilings: tuple[ComputeCeiling, ...] = ()
    memory_ceilings: tuple[MemoryCeiling, ...] = ()
    kernels: Mapping[str, KernelRoofline] = attrs.field(factory=dict)
    application: ApplicationRoofline | None = None
