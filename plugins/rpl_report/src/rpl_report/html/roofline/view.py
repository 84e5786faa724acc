"""The roofline section: drawings that need no script, and the same figures as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rpl_core.text.safety import readable
from rpl_core.values import frozen
from rpl_report.documents import report_documents
from rpl_report.html.kernel_identity import SHOWN_KERNELS, assign_colours, by_time, kernel_names, time_shares
from rpl_report.html.roofline.points import (
    BandwidthAxis,
    Point,
    PointContext,
    PointLabel,
    bandwidth_axis,
    place_labels,
    points_of,
)
from rpl_report.html.roofline.roofs import (
    ComputeRoof,
    Frame,
    MemoryRoof,
    axis_over,
    compute_roofs,
    level_name,
    memory_roofs,
    pipe_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel

    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_analysis.contracts.roofline import KernelRooflineDoc, RooflineDocument
    from rpl_core.model.metric import Metric
    from rpl_report.html.kernel_identity import Colours, KernelNames

#: As wide as a window of 800 pixels leaves room, so that text keeps its size there.
_WIDTH, _HEIGHT = 800.0, 500.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 590.0, 16.0, 452.0


@frozen
class LevelChoice:
    id: str
    name: str
    selected: bool


@frozen
class RooflineRow:
    """Figures of a kernel; shares of a ceiling are None where it or the figure is unknown."""

    target: str | None
    name: str
    css: str
    type: str
    intensity: float | None
    gflops: float | None
    gbps: float | None
    compute_share: float | None
    memory_share: float | None
    measured_memory_share: float | None
    bound: str
    exactness: str
    exceeds: str
    not_drawn: str | None  # why the kernel has no point on the drawing


@frozen
class RooflineView:
    status: str
    reason: str
    how_to_collect: str
    flop_model: str = ""
    frame: Frame | None = None
    memory: tuple[MemoryRoof, ...] = ()
    compute: tuple[ComputeRoof, ...] = ()
    points: tuple[Point, ...] = ()
    labels: tuple[PointLabel, ...] = ()
    levels: tuple[LevelChoice, ...] = ()
    rows: tuple[RooflineRow, ...] = ()
    left_out: int = 0
    has_extra: bool = False
    has_measured: bool = False
    bandwidth: BandwidthAxis | None = None


def roofline_view(
    profile: ProfileDocument, roofline: RooflineDocument, names: KernelNames, colours: Colours
) -> RooflineView:
    status = roofline.status.replace("_", " ")
    reason, advice = readable(roofline.reason or "", 400), readable(roofline.how_to_collect or "", 400)
    if roofline.status != "available":
        return RooflineView(status, reason, advice)
    kernels = _ranked(profile, roofline)
    shown = kernels[:SHOWN_KERNELS]
    frame = _frame(roofline, shown)
    shares = time_shares(profile)
    points = points_of(shown, PointContext(frame, names, colours, shares))
    bandwidth = bandwidth_axis(shown, roofline.ceilings, names, colours, shares)
    every = (*points, *(bandwidth.points if bandwidth else ()))
    drawn = {point.name for point in every if point.level == "hbm"}
    compute = compute_roofs(roofline.ceilings, _used(shown), frame)
    memory = memory_roofs(roofline.ceilings, compute, frame)
    roofs: list[ComputeRoof | MemoryRoof] = [*memory, *compute]
    levels = [level for level in ("hbm", "l2", "vl1d", "lds") if any(p.level == level for p in every)]
    return RooflineView(
        status=status,
        reason=reason,
        how_to_collect=advice,
        flop_model=roofline.requested_flop_model or "",
        frame=frame,
        memory=memory,
        compute=compute,
        points=points,
        labels=place_labels(points, frame),
        levels=tuple(LevelChoice(level, level_name(level), selected=level == levels[0]) for level in levels),
        rows=tuple(_row(kernel, names, colours, drawn=kernel.name in drawn) for kernel in shown),
        left_out=len(kernels) - len(shown),
        has_extra=not all(roof.shown for roof in roofs),
        bandwidth=bandwidth,
        has_measured=any(roof.origin != "spec" for roof in roofs),
    )


def _ranked(profile: ProfileDocument, roofline: RooflineDocument) -> list[KernelRooflineDoc]:
    """Most time first."""
    order = {kernel.name: rank for rank, kernel in enumerate(by_time(profile))}
    return sorted(roofline.kernels, key=lambda kernel: order.get(kernel.name, len(order)))


def _used(kernels: Iterable[KernelRooflineDoc]) -> set[tuple[str, str]]:
    """Arithmetic that occurs; packed instructions run on the VALU, so its higher ceiling is shown as well."""
    used = {
        (work.data_type, str(work.pipe))
        for kernel in kernels
        for work in kernel.types
        if work.operations.value
    }
    return used | {(data_type, "valu_packed") for data_type, pipe in used if pipe == "valu"}


def _frame(roofline: RooflineDocument, kernels: Iterable[KernelRooflineDoc]) -> Frame:
    """Axes over all kernels at all levels, and over the corner where memory meets arithmetic."""
    intensities, rates = [0.1], []
    for kernel in kernels:
        rates += _known(kernel.achieved_gflops)
        intensities += _known(kernel.operational_intensity)
        for level in kernel.levels:
            intensities += _known(level.operational_intensity)
    peaks = [ceiling.peak_gflops for ceiling in roofline.ceilings.compute] or [1000.0]
    slowest = min((ceiling.peak_gbps for ceiling in roofline.ceilings.memory), default=1000.0)
    top, bottom = max(peaks), max(min(peaks) / 1e4, 1e-9)
    from math import log10

    ridge = log10(max(top / slowest, 1e-6)) + 0.2
    return Frame(
        _WIDTH,
        _HEIGHT,
        axis_over(intensities, (-1.0, ridge), _LEFT, _RIGHT),
        axis_over(rates, (log10(bottom), log10(top) + 0.1), _BOTTOM, _TOP, giga=True),
    )


def _known(metric: Metric) -> list[float]:
    return [metric.value] if metric.value else []


def _row(kernel: KernelRooflineDoc, names: KernelNames, colours: Colours, *, drawn: bool) -> RooflineRow:
    pipe = f"{kernel.dominant_type} {pipe_name(kernel.dominant_pipe)}" if kernel.dominant_pipe else "-"
    return RooflineRow(
        target=names.of(kernel.name),
        name=names.short(kernel.name),
        css=f"c{colours.of(kernel.name)}",
        type=pipe,
        intensity=kernel.operational_intensity.value,
        gflops=kernel.achieved_gflops.value,
        gbps=kernel.achieved_gbps.value,
        compute_share=kernel.spec.compute_share.value,
        memory_share=kernel.spec.memory_share.value,
        measured_memory_share=kernel.measured.memory_share.value,
        bound=kernel.bound or f"unknown: {readable(kernel.bound_reason, 160)}",
        exactness=kernel.operational_intensity.exactness or "-",
        exceeds=readable(", ".join(kernel.exceeds_ceiling), 200),
        not_drawn=None if drawn else _why_not(kernel),
    )


def _why_not(kernel: KernelRooflineDoc) -> str:
    metric = kernel.operational_intensity
    if metric.value is None:
        return readable(metric.reason or "the operational intensity is unknown", 200)
    return "outside the axes"


def rooflines_of(
    sides: Sequence[Mapping[str, BaseModel]], shown: Mapping[str, str]
) -> tuple[tuple[RooflineView, ...], dict[str, str]]:
    """One view per set of documents, and the style class of each kernel's colour by its recorded name.

    ``shown`` says how kernels are called. Colours go to the kernels with most time on the first side.
    """
    found = [report_documents(documents) for documents in sides]
    ranked = [kernel.name for side in found for kernel in by_time(side.profile)]
    colours = assign_colours(ranked)
    views = tuple(
        roofline_view(side.profile, side.roofline, kernel_names((), shown), colours) for side in found
    )
    return views, {name: f"c{colours.of(name)}" for name in ranked}
