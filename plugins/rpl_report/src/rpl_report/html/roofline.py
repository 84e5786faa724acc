"""The roofline section: drawings that need no script, and the same figures as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING

from rpl_core.text import readable, shorten
from rpl_core.values import frozen
from rpl_report.documents import report_documents
from rpl_report.html import figures as q
from rpl_report.html.figures import (
    SHOWN_KERNELS,
    assign_colours,
    by_time,
    bytes_per_s,
    kernel_names,
    time_shares,
)
from rpl_report.html.roofs import (
    ComputeRoof,
    Frame,
    LogAxis,
    MemoryRoof,
    axis_over,
    compute_roofs,
    level_name,
    memory_roofs,
    pipe_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_analysis.contracts.roofline import CeilingsPart, KernelRooflineDoc, LevelPart, RooflineDocument
    from rpl_core.model.metric import Metric
    from rpl_report.html.figures import Colours, KernelNames

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
    # Most time first.
    order = {kernel.name: rank for rank, kernel in enumerate(by_time(profile))}
    kernels = sorted(roofline.kernels, key=lambda kernel: order.get(kernel.name, len(order)))
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
    reports = [report_documents(documents) for documents in sides]
    ranked = [kernel.name for side in reports for kernel in by_time(side.profile)]
    colours = assign_colours(ranked)
    views = tuple(
        roofline_view(side.profile, side.roofline, kernel_names((), shown), colours) for side in reports
    )
    return views, {name: f"c{colours.of(name)}" for name in ranked}


# Kernels on the roofline plot, one point per memory level and its name; without FLOPs on an axis of
# bandwidth.


_SMALLEST, _LARGEST = 5.0, 26.0
#: Width of a letter and height of a line, for names that must not cover each other.
LETTER, _LINE = 6.8, 14.0
#: Characters of a kernel's name beside its point (chosen).
LABEL_LENGTH = 32


@frozen
class PointContext:
    """What points need to know beside their kernels; ``shares`` of time by kernel name."""

    frame: Frame
    names: KernelNames
    colours: Colours
    shares: Mapping[str, float]


@frozen
class Point:
    """``name`` is as recorded; ``lines`` are the details, one figure each."""

    name: str
    short: str
    target: str | None
    level: str
    css: str
    shape: str  # "circle" for VALU, "square" for MFMA
    x: float
    y: float
    radius: float
    exceeds: bool
    lines: tuple[str, ...]


def points_of(kernels: Iterable[KernelRooflineDoc], context: PointContext) -> tuple[Point, ...]:
    """Large points first, so that small ones are drawn over them. Kernels without a place have none.

    Those without floating-point operations have an axis of their own (``bandwidth_axis``).
    """
    points = []
    for kernel in kernels:
        for level in kernel.levels:
            place = _drawn_point(kernel, level, context.frame)
            if place is not None:
                points.append(_point(kernel, level, place, context))
    return tuple(sorted(points, key=lambda point: -point.radius))


def _drawn_point(kernel: KernelRooflineDoc, level: LevelPart, frame: Frame) -> tuple[float, float] | None:
    """Intensity and rate to draw at."""
    intensity, gflops = level.operational_intensity.value, kernel.achieved_gflops.value
    if intensity is None or gflops is None:
        return None
    return (intensity, gflops) if frame.x.holds(intensity) and frame.y.holds(gflops) else None


def _point(
    kernel: KernelRooflineDoc, level: LevelPart, place: tuple[float, float], context: PointContext
) -> Point:
    share = context.shares.get(kernel.name, 0.0)
    intensity, gflops = place
    shape = "square" if kernel.dominant_pipe == "mfma" else "circle"
    return Point(
        name=kernel.name,
        short=context.names.short(kernel.name),
        target=context.names.of(kernel.name),
        level=level.level,
        css=f"c{context.colours.of(kernel.name)}",
        shape=shape,
        x=context.frame.x.place(intensity),
        y=context.frame.y.place(gflops),
        radius=max(_SMALLEST, _LARGEST * sqrt(share)),
        exceeds=bool(kernel.exceeds_ceiling),
        lines=figures_of(kernel, level, share),
    )


def _peaks(level: LevelPart) -> tuple[tuple[str, float | None], ...]:
    return (
        ("spec", level.spec_gbps),
        ("measured", level.measured_gbps),
        ("published", level.published_gbps),
    )


def figures_of(kernel: KernelRooflineDoc, level: LevelPart, share: float) -> tuple[str, ...]:
    """What a reader wants to know of a point, one figure per line."""
    intensity, gflops = level.operational_intensity.value, kernel.achieved_gflops.value
    rate = f"{q.flops(gflops)} at {q.plain(intensity)} FLOP/B ({level_name(level.level)})"
    lines = [rate if gflops else "no floating-point operations", f"{q.share(share)} of kernel time"]
    if kernel.dominant_type and kernel.dominant_pipe:
        lines.append(f"mostly {kernel.dominant_type} on {pipe_name(kernel.dominant_pipe)}")
    gbps = level.achieved_gbps.value
    if gbps is not None:
        of = [
            f"{q.share(gbps / peak)} of {origin} {q.bytes_per_s(peak)}"
            for origin, peak in _peaks(level)
            if peak
        ]
        lines.append(
            f"{level_name(level.level)} {q.bytes_per_s(gbps)}" + (f": {', '.join(of)}" if of else "")
        )
    if kernel.spec.compute_share.value is not None:
        lines.append(f"{q.share(kernel.spec.compute_share.value)} of the arithmetic ceiling")
    if kernel.position.value is not None:
        lines.append(f"{q.share(kernel.position.value)} of what this intensity allows")
    if kernel.bound:
        lines.append(f"under the {kernel.bound} roof")
    lines.append(f"intensity: {kernel.operational_intensity.exactness or 'unknown exactness'}")
    if kernel.exceeds_ceiling:
        lines.append(
            f"ABOVE A CEILING: {', '.join(kernel.exceeds_ceiling)}: check the ceiling or the counters"
        )
    return tuple(lines)


@frozen
class PointLabel:
    """Text beside the point of this level: from (x, y) on, or up to there where it is ``before``."""

    text: str
    level: str
    x: float
    y: float
    before: bool

    @property
    def extent(self) -> tuple[float, float]:
        """Left and right end, estimated from the number of letters."""
        width = len(self.text) * LETTER
        return (self.x - width, self.x) if self.before else (self.x, self.x + width)


def place_labels(points: Iterable[Point], frame: Frame) -> tuple[PointLabel, ...]:
    """Right of the point, or left of it at the edge; a label that would cover another one is left out."""
    labels: list[PointLabel] = []
    for point in points:
        text = shorten(point.short, LABEL_LENGTH)
        beside = point.radius + 5
        before = point.x + beside + len(text) * LETTER > frame.x.end
        x = point.x - beside if before else point.x + beside
        label = PointLabel(text, point.level, x, point.y + 4, before)
        if not any(_cover(label, other) for other in labels if other.level == label.level):
            labels.append(label)
    return tuple(labels)


def _cover(label: PointLabel, other: PointLabel) -> bool:
    left, right = label.extent
    other_left, other_right = other.extent
    return left < other_right and other_left < right and abs(label.y - other.y) < _LINE


_AXIS_LEFT, _AXIS_RIGHT, WIDTH = 44.0, 756.0, 800.0
_AXIS_TOP, _ROW, _LABEL_ROW, _AXIS_ROOM = 10.0, 24.0, 15.0, 40.0
_LEAST_RADIUS, _MOST_RADIUS = 5.0, 11.0


# A roofline has no place for kernels without floating-point operations: their intensity is 0, and a
# logarithmic axis has no 0. They stand on an axis of bandwidth, beside the memory ceilings.


@frozen
class BandwidthRoof:
    """A vertical line; ``before``: its label stands left of it."""

    label: str
    source: str
    origin: str
    level: str
    x: float
    label_y: float
    before: bool


@frozen
class BandwidthAxis:
    """``y`` is where the points begin, ``bottom`` where the axis is."""

    axis: LogAxis
    roofs: tuple[BandwidthRoof, ...]
    points: tuple[Point, ...]
    labels: tuple[PointLabel, ...]
    top: float
    bottom: float
    height: float
    width: float = WIDTH


def bandwidth_axis(
    kernels: Iterable[KernelRooflineDoc],
    ceilings: CeilingsPart,
    names: KernelNames,
    colours: Colours,
    shares: dict[str, float],
) -> BandwidthAxis | None:
    """A row per kernel that is known to do no floating-point operation; ``None`` where there is none."""
    idle = [kernel for kernel in kernels if kernel.achieved_gflops.value == 0 and kernel.levels]
    if not idle:
        return None
    rates = [level.achieved_gbps.value or 0.0 for kernel in idle for level in kernel.levels]
    peaks = [ceiling.peak_gbps for ceiling in ceilings.memory]
    axis = axis_over([*rates, *peaks], (1.0, 4.0), _AXIS_LEFT, _AXIS_RIGHT, giga=True)
    roofs = tuple(_roofs(ceilings, axis))
    top = _AXIS_TOP + _LABEL_ROW * max((len(roofs), 1))
    rows = [(kernel, top + _ROW * (number + 0.5)) for number, kernel in enumerate(idle)]
    points = tuple(point for kernel, y in rows for point in _points(kernel, y, axis, names, colours, shares))
    bottom = top + _ROW * len(idle)
    labels = tuple(_label(point) for point in points)
    return BandwidthAxis(axis, roofs, points, labels, top, bottom, bottom + _AXIS_ROOM)


def _roofs(ceilings: CeilingsPart, axis: LogAxis) -> Iterator[BandwidthRoof]:
    """One line per level and origin, slowest first, each label on a line of its own."""
    seen: set[tuple[str, str]] = set()
    for ceiling in sorted(ceilings.memory, key=lambda each: (each.peak_gbps, each.level)):
        if (ceiling.level, ceiling.origin) in seen or not axis.holds(ceiling.peak_gbps):
            continue
        seen.add((ceiling.level, ceiling.origin))
        label = f"{level_name(ceiling.level)} {bytes_per_s(ceiling.peak_gbps)}"
        x, y = axis.place(ceiling.peak_gbps), _AXIS_TOP + _LABEL_ROW * (len(seen) - 0.3)
        before = x + len(label) * LETTER + 6 > _AXIS_RIGHT
        yield BandwidthRoof(label, ceiling.source, ceiling.origin, ceiling.level, x, y, before)


def _points(
    kernel: KernelRooflineDoc,
    y: float,
    axis: LogAxis,
    names: KernelNames,
    colours: Colours,
    shares: dict[str, float],
) -> Iterator[Point]:
    for level in kernel.levels:
        gbps = level.achieved_gbps.value
        if gbps and axis.holds(gbps):
            share = shares.get(kernel.name, 0.0)
            yield Point(
                name=kernel.name,
                short=names.short(kernel.name),
                target=names.of(kernel.name),
                level=level.level,
                css=f"c{colours.of(kernel.name)}",
                shape="circle",
                x=axis.place(gbps),
                y=y,
                radius=max(_LEAST_RADIUS, _MOST_RADIUS * sqrt(share)),
                exceeds=bool(kernel.exceeds_ceiling),
                lines=figures_of(kernel, level, share),
            )


def _label(point: Point) -> PointLabel:
    text = shorten(point.short, LABEL_LENGTH)
    before = point.x + point.radius + 5 + len(text) * LETTER > _AXIS_RIGHT
    x = point.x - point.radius - 5 if before else point.x + point.radius + 5
    return PointLabel(text, point.level, x, point.y + 4, before)
