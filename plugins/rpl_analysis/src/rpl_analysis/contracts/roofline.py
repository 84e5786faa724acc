"""``roofline.json``, declared once: work and traffic of each kernel against the ceilings of the device.

The analyzer makes these values (the fact ``"roofline"`` is a ``RooflineResult``) and the document holds them
as they are. All figures of a kernel are per launch: work and traffic from counters, times from dispatch
timestamps. ``bound`` and ``position`` refer to data-sheet ceilings unless only measured ones are known; both
sets are kept apart. ``RooflinePart`` is the short form that ``profile.json`` carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from attrs import field

from rpl_analysis.contracts import INSIDE, OR_NULL, document_of, record
from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_core.model.metric import Exactness, Metric

FlopModelName = Literal["per_op", "valu_width"]


class Bound(str, Enum):
    """The side of the ridge: which of the two ceilings limits a kernel of this intensity."""

    MEMORY = "memory"
    COMPUTE = "compute"


class RooflineStatus(str, Enum):
    AVAILABLE = "available"
    NOT_COLLECTED = "not_collected"  # no counter pass was recorded
    UNAVAILABLE = "unavailable"  # counters exist, but nothing usable came of them


@record
class FlopModelsPart:
    """FLOPs per launch by both models; ``ratio`` is valu_width / per_op, null where per_op is zero."""

    per_op: float | None = None
    valu_width: float | None = None
    ratio: float | None = None


@record(kw_only=True)
class RooflinePart:
    """The roofline of a kernel in short. A null figure has its reason in ``reasons``.

    ``exactness`` is that of the operational intensity, or of the part of it that is known; that of every
    figure stands in ``exactness_of``, the upper ends of intervals in ``upper_of``. ``partial`` names the
    figures of which a part is unknown.
    """

    flops: float | None = None
    bytes: float | None = None
    operational_intensity: float | None = None
    achieved_gflops: float | None = None
    achieved_gbps: float | None = None
    bound: Bound | None = None
    position: float | None = None  # achieved / attainable at this intensity
    flop_model: FlopModelName | None = None
    models: FlopModelsPart | None = None
    exactness: Exactness | None = None
    exactness_of: Mapping[str, Exactness] = field(factory=dict)
    upper_of: Mapping[str, float] = field(factory=dict)
    partial: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(factory=dict)
    exceeds_ceiling: tuple[str, ...] = ()


@record
class ComputeCeilingDoc:
    data_type: str
    pipe: Pipe
    peak_gflops: float
    origin: CeilingOrigin
    source: str


@record
class MemoryCeilingDoc:
    level: str
    peak_gbps: float
    origin: CeilingOrigin
    source: str


@record
class CeilingsPart:
    """Ceilings of the data sheet, measured on a device of the user, and published by others."""

    compute: tuple[ComputeCeilingDoc, ...] = ()
    memory: tuple[MemoryCeilingDoc, ...] = ()


@record
class RoofPart:
    """Ceilings of one origin over a kernel and its shares of them (0..1, above 1 is flagged).

    What is not of the data sheet was measured on the user's device or, by ``origin``, published by others.
    """

    origin: CeilingOrigin | None = field(metadata=OR_NULL)
    peak_gflops: float | None
    peak_gbps: float | None
    ridge: float | None  # operations per byte
    compute_share: Metric
    memory_share: Metric
    position: Metric  # achieved / attainable at the kernel's intensity: the larger of its two shares


@record
class TypeWorkPart:
    """Operations per launch of one data type on one pipe, and their rate in 10^9 per second."""

    data_type: str
    pipe: Pipe
    operations: Metric
    gops: Metric
    floating: bool = field(default=True, metadata=INSIDE)


@record
class LevelPart:
    """Traffic per launch at one memory level: "hbm", "l2", "vl1d", "lds"."""

    level: str
    bytes: Metric
    operational_intensity: Metric
    achieved_gbps: Metric
    spec_gbps: float | None
    measured_gbps: float | None
    published_gbps: float | None = None  # by others, on a device of theirs


@record
class FlopModelMetrics:
    """Both FLOP models with their formulas; ``fallback`` says why the one asked for is not used."""

    per_op: Metric  # operations by type
    valu_width: Metric  # vector instructions times a documented width
    ratio: float | None
    fallback: str | None = None
    #: The model that all other figures use.
    selected: FlopModelName | None = field(default=None, metadata=INSIDE)


@record(kw_only=True)
class KernelRooflineDoc:
    """One kernel. ``launches`` counts per timing run, ``counter_launches`` those in the counter passes.

    ``dominant_type`` and ``dominant_pipe`` name the arithmetic that needs the most time at its ceiling. A
    data type that is absent from ``types`` has exactly no operations, or the device does not define it.
    ``corrections`` are estimates of the FLOPs per launch beside the count: ``active_lanes`` for divergence,
    ``packed`` for packed instructions (that one needs the kernel's code object).
    """

    name: str
    launches: float | None
    counter_launches: int
    time_ns: Metric
    flops: Metric  # of ``flop_model``
    flop_model: FlopModelName | None
    models: FlopModelMetrics
    bytes: Metric
    byte_source: str | None
    operational_intensity: Metric
    achieved_gflops: Metric
    achieved_gbps: Metric
    dominant_type: str | None
    dominant_pipe: Pipe | None
    bound: Bound | None
    bound_reason: str
    position: Metric
    spec: RoofPart
    measured: RoofPart
    types: tuple[TypeWorkPart, ...] = ()
    levels: tuple[LevelPart, ...] = ()
    caches: Mapping[str, Metric] = field(factory=dict)
    corrections: Mapping[str, Metric] = field(factory=dict)
    exceeds_ceiling: tuple[str, ...] = ()
    #: ``roof.compute_share`` without the work of idle lanes, where some are known to be idle.
    active_lane_share: Metric | None = field(default=None, metadata=INSIDE)

    @property
    def roof(self) -> RoofPart:
        """The data-sheet roof, or the benchmarked one where no data sheet gives a memory ceiling."""
        return self.spec if self.spec.peak_gbps is not None else self.measured


@record
class ApplicationRooflineDoc:
    """All kernels of one run together: sums per run, and the share of kernel time that has counters."""

    roofline: KernelRooflineDoc
    kernels: int
    kernels_with_counters: int
    time_share: float | None


@record(kw_only=True)
class RooflineResult:
    """``status`` tells whether there is a roofline; ``reason`` and ``how_to_collect`` if there is none."""

    status: RooflineStatus
    reason: str | None = None
    how_to_collect: str | None = None
    device: str | None = None
    requested_flop_model: str | None = None
    ceilings: CeilingsPart = CeilingsPart()
    kernels: tuple[KernelRooflineDoc, ...] = ()  # by time, then by name those without one
    application: ApplicationRooflineDoc | None = None


if TYPE_CHECKING:
    from rpl_core.contracts.common import Document

    class RooflineDocument(RooflineResult, Document):
        """``roofline.json`` as it is read back."""


def __getattr__(name: str) -> Any:
    if name == "RooflineDocument":
        return document_of(RooflineResult, name)
    raise AttributeError(name)
