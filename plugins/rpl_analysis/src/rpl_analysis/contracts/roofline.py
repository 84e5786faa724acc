"""``roofline.json``: work and traffic of each kernel against the ceilings of the device.

All figures of a kernel are per launch. ``RooflinePart`` is the short form that ``profile.json`` carries.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rpl_core.contracts.common import Document, ExactnessName, MetricDoc, Part

FlopModelName = Literal["per_op", "valu_width"]
BoundName = Literal["memory", "compute"]
CeilingOriginName = Literal["spec", "measured", "published"]
PipeName = Literal["valu", "valu_packed", "mfma"]


class FlopModelsPart(Part):
    """FLOPs per launch by both models; ``ratio`` is valu_width / per_op, null where per_op is zero."""

    per_op: float | None = None
    valu_width: float | None = None
    ratio: float | None = None


class RooflinePart(Part):
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
    bound: BoundName | None = None
    position: float | None = None  # achieved / attainable at this intensity
    flop_model: FlopModelName | None = None
    models: FlopModelsPart | None = None
    exactness: ExactnessName | None = None
    exactness_of: dict[str, ExactnessName] = Field(default_factory=dict)
    upper_of: dict[str, float] = Field(default_factory=dict)
    partial: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reasons: dict[str, str] = Field(default_factory=dict)
    exceeds_ceiling: tuple[str, ...] = ()


class ComputeCeilingDoc(Part):
    data_type: str
    pipe: PipeName
    peak_gflops: float
    origin: CeilingOriginName
    source: str


class MemoryCeilingDoc(Part):
    level: str
    peak_gbps: float
    origin: CeilingOriginName
    source: str


class CeilingsPart(Part):
    """Ceilings of the data sheet, measured on a device of the user, and published by others."""

    compute: tuple[ComputeCeilingDoc, ...] = ()
    memory: tuple[MemoryCeilingDoc, ...] = ()


class RoofPart(Part):
    """Ceilings of one origin over a kernel and its shares of them (0..1, above 1 is flagged).

    What is not of the data sheet was measured on the user's device or, by ``origin``, published by others.
    """

    origin: CeilingOriginName | None = None
    peak_gflops: float | None
    peak_gbps: float | None
    ridge: float | None  # operations per byte
    compute_share: MetricDoc
    memory_share: MetricDoc
    position: MetricDoc


class TypeWorkPart(Part):
    """Operations per launch of one data type on one pipe, and their rate in 10^9 per second."""

    data_type: str
    pipe: PipeName
    operations: MetricDoc
    gops: MetricDoc


class LevelPart(Part):
    """Traffic per launch at one memory level: "hbm", "l2", "vl1d", "lds"."""

    level: str
    bytes: MetricDoc
    operational_intensity: MetricDoc
    achieved_gbps: MetricDoc
    spec_gbps: float | None
    measured_gbps: float | None
    published_gbps: float | None = None  # by others, on a device of theirs


class FlopModelMetrics(Part):
    """Both FLOP models with their formulas; ``fallback`` says why the one asked for is not used."""

    per_op: MetricDoc
    valu_width: MetricDoc
    ratio: float | None
    fallback: str | None = None


class KernelRooflineDoc(Part):
    """One kernel. ``launches`` counts per timing run, ``counter_launches`` those in the counter passes.

    ``dominant_type`` and ``dominant_pipe`` name the arithmetic that needs the most time at its ceiling. A
    data type that is absent from ``types`` has exactly no operations, or the device does not define it.
    ``corrections`` are estimates of the FLOPs per launch beside the count: ``active_lanes`` for divergence,
    ``packed`` for packed instructions (that one needs the kernel's code object).
    """

    name: str
    launches: float | None
    counter_launches: int
    time_ns: MetricDoc
    flops: MetricDoc
    flop_model: FlopModelName | None
    models: FlopModelMetrics
    bytes: MetricDoc
    byte_source: str | None
    operational_intensity: MetricDoc
    achieved_gflops: MetricDoc
    achieved_gbps: MetricDoc
    dominant_type: str | None
    dominant_pipe: PipeName | None
    bound: BoundName | None
    bound_reason: str
    position: MetricDoc
    spec: RoofPart
    measured: RoofPart
    types: tuple[TypeWorkPart, ...] = ()
    levels: tuple[LevelPart, ...] = ()
    caches: dict[str, MetricDoc] = Field(default_factory=dict)
    corrections: dict[str, MetricDoc] = Field(default_factory=dict)
    exceeds_ceiling: tuple[str, ...] = ()


class ApplicationRooflineDoc(Part):
    """All kernels of one run together: sums per run, and the share of kernel time that has counters."""

    roofline: KernelRooflineDoc
    kernels: int
    kernels_with_counters: int
    time_share: float | None


class RooflineDocument(Document):
    """``status`` tells whether there is a roofline; ``reason`` and ``how_to_collect`` if there is none."""

    status: Literal["available", "not_collected", "unavailable"]
    reason: str | None = None
    how_to_collect: str | None = None
    device: str | None = None
    requested_flop_model: str | None = None
    ceilings: CeilingsPart = CeilingsPart()
    kernels: tuple[KernelRooflineDoc, ...] = ()
    application: ApplicationRooflineDoc | None = None
