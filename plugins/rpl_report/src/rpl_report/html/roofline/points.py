"""Kernels as points on the roofline plot, one per memory level, and their names beside them.

The area of a point is the share of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import TYPE_CHECKING

from rpl_core.text.safety import shorten
from rpl_core.values import frozen
from rpl_report.html import figures as q
from rpl_report.html.roofline.roofs import level_name, pipe_name

if TYPE_CHECKING:
    from rpl_analysis.contracts.roofline import KernelRooflineDoc, LevelPart
    from rpl_report.html.kernel_identity import Colours, KernelNames
    from rpl_report.html.roofline.log_axes import Frame

__all__ = [
    "LABEL_LENGTH",
    "LETTER",
    "Point",
    "PointContext",
    "PointLabel",
    "figures_of",
    "place_labels",
    "points_of",
]

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
