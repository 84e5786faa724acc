"""``roofline.json`` and the roofline blocks of ``profile.json`` from the roofline fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.documents.parts import (
    ApplicationRooflineDoc,
    CeilingsPart,
    ComputeCeilingDoc,
    FlopModelMetrics,
    FlopModelsPart,
    KernelRooflineDoc,
    LevelPart,
    MemoryCeilingDoc,
    RooflineDocument,
    RooflinePart,
    RoofPart,
    TypeWorkPart,
)
from rpl_core.contracts import SCHEMA_VERSION
from rpl_core.documents import MetricDoc
from rpl_core.model.metric import Exactness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_analysis.roofline.model import KernelRoofline, Roof, RooflineResult
    from rpl_core.model.metric import Metric

__all__ = ["roofline_document", "roofline_parts"]


def roofline_document(result: RooflineResult | None) -> RooflineDocument:
    """The document; ``None`` stands for an analysis that did not run."""
    if result is None:
        return RooflineDocument(
            schema_version=SCHEMA_VERSION,
            status="unavailable",
            reason="the roofline analyzer did not run",
        )
    application = result.application
    return RooflineDocument(
        schema_version=SCHEMA_VERSION,
        status=result.status.value,
        reason=result.reason,
        how_to_collect=result.how_to_collect,
        device=result.device,
        requested_flop_model=result.requested_model,
        ceilings=_ceilings(result),
        kernels=tuple(_kernel(kernel) for kernel in result.kernels.values()),
        application=None
        if application is None
        else ApplicationRooflineDoc(
            roofline=_kernel(application.roofline),
            kernels=application.kernels,
            kernels_with_counters=application.kernels_with_counters,
            time_share=application.time_share,
        ),
    )


def roofline_parts(result: RooflineResult | None) -> Mapping[str, RooflinePart]:
    """The short form by kernel name; kernels of which neither FLOPs nor bytes are known are absent."""
    if result is None:
        return {}
    return {
        name: _part(kernel)
        for name, kernel in result.kernels.items()
        if kernel.flops.value is not None or kernel.bytes.value is not None
    }


def _part(kernel: KernelRoofline) -> RooflinePart:
    figures = {
        "flops": kernel.flops,
        "bytes": kernel.bytes,
        "operational_intensity": kernel.operational_intensity,
        "achieved_gflops": kernel.achieved_gflops,
        "achieved_gbps": kernel.achieved_gbps,
        "position": kernel.position,
    }
    reasons = {name: metric.reason or "unknown" for name, metric in figures.items() if metric.value is None}
    if kernel.bound is None:
        reasons["bound"] = kernel.bound_reason
    known = [m for m in (kernel.operational_intensity, kernel.bytes, kernel.flops) if m.value is not None]
    exactness = known[0].exactness
    return RooflinePart(
        **{name: metric.value for name, metric in figures.items()},
        bound=kernel.bound.value if kernel.bound else None,
        flop_model=kernel.models.selected,
        models=FlopModelsPart(
            per_op=kernel.models.per_op.value,
            valu_width=kernel.models.valu_width.value,
            ratio=kernel.models.ratio,
        ),
        exactness=exactness.value if exactness else None,
        exactness_of={name: metric.exactness.value for name, metric in figures.items() if metric.exactness},
        upper_of={name: metric.upper for name, metric in figures.items() if metric.upper is not None},
        partial=tuple(name for name, metric in figures.items() if metric.partial),
        missing=tuple(sorted({*kernel.flops.missing, *kernel.bytes.missing})),
        reasons=reasons,
        exceeds_ceiling=kernel.exceeds_ceiling,
    )


def _metric(metric: Metric) -> MetricDoc:
    return MetricDoc(
        value=metric.value,
        unit=metric.unit,
        exactness=metric.exactness.value if metric.exactness else None,
        origin=metric.origin.value if metric.origin else None,
        formula=metric.formula,
        counters=metric.counters,
        missing=metric.missing,
        upper=metric.upper,
        source=metric.source,
        reason=metric.reason,
        note=metric.note,
        partial=metric.partial,
    )


def _ceilings(result: RooflineResult) -> CeilingsPart:
    return CeilingsPart(
        compute=tuple(
            ComputeCeilingDoc(
                data_type=c.data_type,
                pipe=c.pipe.value,
                peak_gflops=c.peak_gflops,
                origin=c.origin.value,
                source=c.source,
            )
            for c in result.compute_ceilings
        ),
        memory=tuple(
            MemoryCeilingDoc(level=c.level, peak_gbps=c.peak_gbps, origin=c.origin.value, source=c.source)
            for c in result.memory_ceilings
        ),
    )


def _roof(roof: Roof) -> RoofPart:
    return RoofPart(
        origin=roof.origin.value,
        peak_gflops=roof.compute.peak_gflops if roof.compute else None,
        peak_gbps=roof.memory.peak_gbps if roof.memory else None,
        ridge=roof.ridge,
        compute_share=_metric(roof.compute_share),
        memory_share=_metric(roof.memory_share),
        position=_metric(roof.position),
    )


def _kernel(kernel: KernelRoofline) -> KernelRooflineDoc:
    models = kernel.models
    return KernelRooflineDoc(
        name=kernel.name,
        launches=kernel.launches,
        counter_launches=kernel.counter_launches,
        time_ns=_metric(kernel.time_ns),
        flops=_metric(kernel.flops),
        flop_model=models.selected,
        models=FlopModelMetrics(
            per_op=_metric(models.per_op),
            valu_width=_metric(models.valu_width),
            ratio=models.ratio,
            fallback=models.fallback,
        ),
        bytes=_metric(kernel.bytes),
        byte_source=kernel.byte_source,
        operational_intensity=_metric(kernel.operational_intensity),
        achieved_gflops=_metric(kernel.achieved_gflops),
        achieved_gbps=_metric(kernel.achieved_gbps),
        dominant_type=kernel.dominant[0] if kernel.dominant else None,
        dominant_pipe=kernel.dominant[1].value if kernel.dominant else None,
        bound=kernel.bound.value if kernel.bound else None,
        bound_reason=kernel.bound_reason,
        position=_metric(kernel.position),
        spec=_roof(kernel.spec),
        measured=_roof(kernel.measured),
        types=_types(kernel),
        levels=_levels(kernel),
        caches={name: _metric(metric) for name, metric in kernel.caches.items()},
        corrections={name: _metric(metric) for name, metric in kernel.corrections.items()},
        exceeds_ceiling=kernel.exceeds_ceiling,
    )


def _types(kernel: KernelRoofline) -> tuple[TypeWorkPart, ...]:
    return tuple(
        TypeWorkPart(
            data_type=work.data_type,
            pipe=work.pipe.value,
            operations=_metric(work.operations),
            gops=_metric(work.gops),
        )
        for work in kernel.types
        if work.operations.value != 0 or work.operations.exactness is not Exactness.EXACT
    )


def _levels(kernel: KernelRoofline) -> tuple[LevelPart, ...]:
    return tuple(
        LevelPart(
            level=level.level,
            bytes=_metric(level.bytes),
            operational_intensity=_metric(level.operational_intensity),
            achieved_gbps=_metric(level.achieved_gbps),
            spec_gbps=level.spec_gbps,
            measured_gbps=level.measured_gbps,
            published_gbps=level.published_gbps,
        )
        for level in kernel.levels
    )
