"""Names beside the points of the roofline plot, as far as they have room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_report.html.names import base_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_report.html.log_axes import Frame
    from rpl_report.html.roofline_points import Point

__all__ = ["PointLabel", "place_labels"]

_LETTER, _LINE = 6.2, 13.0


@attrs.frozen
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
        width = len(self.text) * _LETTER
        return (self.x - width, self.x) if self.before else (self.x, self.x + width)


def place_labels(points: Iterable[Point], frame: Frame) -> tuple[PointLabel, ...]:
    """Right of the point, or left of it at the edge; a label that would cover another one is left out."""
    found: list[PointLabel] = []
    for point in points:
        text = base_name(point.short)
        beside = point.radius * (1.6 if point.shape == "edge" else 1) + 5
        before = point.x + beside + len(text) * _LETTER > frame.x.end
        x = point.x - beside if before else point.x + beside
        label = PointLabel(text, point.level, x, point.y + 4, before)
        if not any(_cover(label, other) for other in found if other.level == label.level):
            found.append(label)
    return tuple(found)


def _cover(label: PointLabel, other: PointLabel) -> bool:
    left, right = label.extent
    other_left, other_right = other.extent
    return left < other_right and other_left < right and abs(label.y - other.y) < _LINE
