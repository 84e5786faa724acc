"""Kernels without floating-point operations: points on an axis of bandwidth, beside the memory ceilings.

A roofline has no place for them: their intensity is 0, and a logarithmic axis has no 0.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from rpl_core.text.safety import shorten
from rpl_core.values import frozen
from rpl_report.html.figures import bytes_per_s
from rpl_report.html.roofline.log_axes import LogAxis, axis_over
from rpl_report.html.roofline.points import LABEL_LENGTH, LETTER, Point, PointLabel, figures_of
from rpl_report.html.roofline.roofs import level_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rpl_analysis.contracts.roofline import CeilingsPart, KernelRooflineDoc
    from rpl_report.html.kernel_identity import Colours, KernelNames

__all__ = ["BandwidthAxis", "BandwidthRoof", "bandwidth_axis"]

_LEFT, _RIGHT, WIDTH = 44.0, 756.0, 800.0
_TOP, _ROW, _LABEL_ROW, _AXIS_ROOM = 10.0, 24.0, 15.0, 40.0
_SMALLEST, _LARGEST = 5.0, 11.0


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
                radius=max(_SMALLEST, _LARGEST * sqrt(share)),
                exceeds=bool(kernel.exceeds_ceiling),
                lines=figures_of(kernel, level, share),
            )


def _label(point: Point) -> PointLabel:
    text = shorten(point.short, LABEL_LENGTH)
    before = point.x + point.radius + 5 + len(text) * LETTER > _RIGHT
    x = point.x - point.radius - 5 if before else point.x + point.radius + 5
    return PointLabel(text, point.level, x, point.y + 4, before)
