"""Names beside the points of the roofline plot, as far as they have room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.renderers.html.names import base_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_core.renderers.html.log_axes import Frame
    from rpl_core.renderers.html.roofline_points import Point

__all__ = ["PointLabel", "place_labels"]

_LETTER, _LINE = 6.2, 13.0


@attrs.frozen
class PointLabel:
    """Text at (x, y), beside the point of this level."""

    text: str
    level: str
    x: float
    y: float


def place_labels(points: Iterable[Point], frame: Frame) -> tuple[PointLabel, ...]:
    """Right of the point, or left of it at the edge; a label that would cover another one is left out."""
    found: list[PointLabel] = []
    for point in points:
        text = base_name(point.short)
        width = len(text) * _LETTER
        x = point.x + point.radius * (1.6 if point.shape == "edge" else 1) + 5
        if x + width > frame.x.end:
            x = point.x - point.radius - 5 - width
        label = PointLabel(text, point.level, x, point.y + 4)
        if not any(_cover(label, other) for other in found if other.level == label.level):
            found.append(label)
    return tuple(found)


def _cover(label: PointLabel, other: PointLabel) -> bool:
    beside = label.x > other.x + len(other.text) * _LETTER or other.x > label.x + len(label.text) * _LETTER
    return not beside and abs(label.y - other.y) < _LINE
