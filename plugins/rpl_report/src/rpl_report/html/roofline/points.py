"""Kernels on the roofline plot, one point per memory level and its name; without FLOPs on an axis of
bandwidth.

The area of a point is the share of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import TYPE_CHECKING

from rpl_core.text.safety import shorten
from rpl_core.values import frozen
from rpl_report.html import figures as q
from rpl_report.html.figures import bytes_per_s
from rpl_report.html.roofline.roofs import LogAxis, axis_over, level_name, pipe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.roofline import CeilingsPart, KernelRooflineDoc, LevelPart
    from rpl_report.html.kernel_identity import Colours, KernelNames
    from rpl_report.html.roofline.roofs import Frame

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
            place = _place(kernel, level, context.frame)
            if place is not None:
                points.append(_point(kernel, level, place, context))
    return tuple(sorted(points, key=lambda point: -point.radius))


def _place(kernel: KernelRooflineDoc, level: LevelPart, frame: Frame) -> tuple[float, float] | None:
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


_LEFT, _RIGHT, WIDTH = 44.0, 756.0, 800.0
_TOP, _ROW, _LABEL_ROW, _AXIS_ROOM = 10.0, 24.0, 15.0, 40.0
#: Of a point in a row, which has less room.
_LARGEST_IN_ROW = 11.0


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
    axis = axis_over([*rates, *peaks], (1.0, 4.0), _LEFT, _RIGHT, giga=True)
    roofs = tuple(_roofs(ceilings, axis))
    top = _TOP + _LABEL_ROW * max((len(roofs), 1))
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
        x, y = axis.place(ceiling.peak_gbps), _TOP + _LABEL_ROW * (len(seen) - 0.3)
        before = x + len(label) * LETTER + 6 > _RIGHT
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
                radius=max(_SMALLEST, _LARGEST_IN_ROW * sqrt(share)),
                exceeds=bool(kernel.exceeds_ceiling),
                lines=figures_of(kernel, level, share),
            )


def _label(point: Point) -> PointLabel:
    text = shorten(point.short, LABEL_LENGTH)
    before = point.x + point.radius + 5 + len(text) * LETTER > _RIGHT
    x = point.x - point.radius - 5 if before else point.x + point.radius + 5
    return PointLabel(text, point.level, x, point.y + 4, before)
