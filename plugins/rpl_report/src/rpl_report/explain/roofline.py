"""The roofline of one kernel in words and small tables, as ``rpl explain`` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.figures import number, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rpl_analysis.contracts.roofline import CeilingsPart, KernelRooflineDoc, RooflineDocument
    from rpl_core.contracts.common import MetricDoc

_LEVELS = {"hbm": "HBM/fabric", "l2": "L2", "vl1d": "vL1D", "lds": "LDS"}


def roofline_lines(document: RooflineDocument | None, kernel: str) -> Iterator[str]:
    """Lines about ``kernel``; one line with the reason where there is no roofline."""
    if document is None:
        yield "roofline    unknown: there is no roofline.json"
        return
    roofline = next((entry for entry in document.kernels if entry.name == kernel), None)
    if roofline is None or document.status != "available":
        yield f"roofline    {document.status.replace('_', ' ')}: {document.reason or 'no counters for it'}"
        return
    other = roofline.measured.origin or "measured"
    roof = "spec" if roofline.spec.peak_gbps is not None else other
    bound = roofline.bound or "undecided"
    yield f"roofline    {_figure(roofline.position, percent)} of what is attainable; bound: {bound}"
    yield f"{'':<12}{roofline.bound_reason} ({roof} ceilings)"
    if roof == "spec" and roofline.measured.position.value is not None:
        yield f"{'':<12}{_figure(roofline.measured.position, percent)} of the {other} ceilings"
    if roofline.exceeds_ceiling:
        yield f"{'':<12}ABOVE A CEILING, so not what it seems: {', '.join(roofline.exceeds_ceiling)}"
    yield from _work(roofline, document.ceilings)
    yield from _models(roofline)
    yield from _corrections(roofline)
    yield from _levels(roofline)
    for name, metric in roofline.caches.items():
        yield f"{'':<12}{name:<20}{_figure(metric, percent)}"
        yield from _how(metric)


def _work(roofline: KernelRooflineDoc, ceilings: CeilingsPart) -> Iterator[str]:
    peaks = {(c.data_type, c.pipe): c.peak_gflops for c in ceilings.compute if c.origin == "spec"}
    for work in roofline.types:
        dominant = (work.data_type, work.pipe) == (roofline.dominant_type, roofline.dominant_pipe)
        chosen = ", picks the roof" if dominant else ""
        title = f"{work.data_type} {work.pipe}"
        peak = peaks.get((work.data_type, work.pipe))
        known = work.gops.value is not None
        of_peak = f" of {number(peak)}" if known and peak is not None else ""
        unit = f"{of_peak} GOP/s" if known else ""
        yield f"{'':<12}{title:<20}{_figure(work.gops)}{unit}{chosen}"


def _corrections(roofline: KernelRooflineDoc) -> Iterator[str]:
    counted = [metric for metric in roofline.corrections.values() if metric.value is not None]
    if roofline.flops.value and any(metric.value != roofline.flops.value for metric in counted):
        for name, metric in roofline.corrections.items():
            yield f"{'':<12}{'FLOPs, ' + name:<20}{_figure(metric)}"
            yield from _how(metric)


def _models(roofline: KernelRooflineDoc) -> Iterator[str]:
    """The FLOPs of one launch as both models count them."""
    for name, metric in (("per_op", roofline.models.per_op), ("valu_width", roofline.models.valu_width)):
        used = ", used" if name == roofline.flop_model else ""
        yield f"{'':<12}{'FLOPs, ' + name:<20}{_figure(metric)}{used}"
    if roofline.models.fallback:
        yield f"{'':<14}{roofline.models.fallback}"


def _levels(roofline: KernelRooflineDoc) -> Iterator[str]:
    for level in roofline.levels:
        known = level.achieved_gbps.value is not None
        peak = f" of {number(level.spec_gbps)}" if known and level.spec_gbps is not None else ""
        unit = f"{peak} GB/s" if known else ""
        yield f"{'':<12}{_LEVELS.get(level.level, level.level):<20}{_figure(level.achieved_gbps)}{unit}"


def _figure(metric: MetricDoc, form: Callable[[float | None], str] = number) -> str:
    """The value with its exactness unless exact; the reason where it is unknown."""
    if metric.value is None:
        return f"unknown ({metric.reason})"
    if metric.upper is not None:
        return f"{form(metric.value)} to {form(metric.upper)}"
    return form(metric.value) + ("" if metric.exactness in ("exact", None) else f" ({metric.exactness})")


def _how(metric: MetricDoc) -> Iterator[str]:
    if metric.value is not None:
        source = f"  [{metric.source}]" if metric.source else ""
        yield from (f"{'':<14}{text}" for text in (f"= {metric.formula}{source}", metric.note) if text)
