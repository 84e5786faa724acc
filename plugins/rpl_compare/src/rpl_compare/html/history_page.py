"""The page of ``rpl compare --history --html``: the metric over the entries, with its steps."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rpl_compare.comparison.naming import item_name
from rpl_core.text import readable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_compare.contract import HistoryDocument, HistoryItem, StepPart

__all__ = ["history_page"]

#: Plots on the page; the document holds all items (chosen).
_SHOWN = 40
#: The drawing, and the part of it in which points lie.
_WIDTH, _HEIGHT = 800.0, 150.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 8.0, 792.0, 14.0, 136.0


@frozen
class Point:
    """One entry; ``text`` is what the pointer and a screen reader get."""

    x: float
    y: float
    text: str


@frozen
class Step:
    x: float
    before: float  # heights of both levels
    after: float
    part: StepPart
    slower: bool


@frozen
class Plot:
    """``lines`` join neighbouring entries that hold the item; ``limit`` is the height of the allowed time."""

    name: str
    item: HistoryItem
    points: tuple[Point, ...]
    lines: tuple[tuple[Point, Point], ...]
    steps: tuple[Step, ...]
    least: float
    most: float


def history_page(document: HistoryDocument, names: Mapping[str, str]) -> str:
    """``names`` says how kernels are called."""
    from rpl_report.html.page import load_assets, page_environment

    items = sorted((*document.application, *document.kernels), key=lambda item: not item.steps)
    times = [time for item in items for time in item.values_ns if time is not None]
    return (
        page_environment("rpl_compare.html")
        .get_template("history.html.j2")
        .render(
            assets=load_assets(),
            document=document,
            title=f"History of {len(document.entries)} entries",
            plots=[_plot(item, document, names) for item in items[:_SHOWN] if any(item.values_ns)],
            left_out=max(0, len(items) - _SHOWN),
            longest_ns=max(times, default=0.0),
        )
    )


def _plot(item: HistoryItem, document: HistoryDocument, names: Mapping[str, str]) -> Plot:
    times = [time for time in item.values_ns if time is not None]
    least, most = min(times), max(times)
    room = max(most - least, 0.02 * most)  # noise of less than 2 % shall not fill the picture
    low = (least + most - room) / 2

    def height(time: float) -> float:
        return _BOTTOM - (time - low) / room * (_BOTTOM - _TOP)

    def place(index: int) -> float:
        return _LEFT + (_RIGHT - _LEFT) * index / max(1, len(item.values_ns) - 1)

    known = [
        None if time is None else Point(place(i), height(time), "") for i, time in enumerate(item.values_ns)
    ]
    points = [
        Point(point.x, point.y, f"{readable(entry.name, 80)}: {time / times[0] - 1:+.2%} against the first")
        for point, entry, time in zip(known, document.entries, item.values_ns, strict=True)
        if point is not None and time is not None
    ]
    order = {entry.name: place(i) for i, entry in enumerate(document.entries)}
    return Plot(
        name=item_name(item.kind, item.name, names),
        item=item,
        points=tuple(points),
        lines=tuple((a, b) for a, b in pairwise(known) if a is not None and b is not None),
        steps=tuple(
            Step(order[step.entry], height(step.before_ns), height(step.after_ns), step, step.change > 0)
            for step in item.steps
        ),
        least=least,
        most=most,
    )
