"""The page of ``rpl compare --html``: both sides, the answer, a row per item, both rooflines."""

from __future__ import annotations

import shlex
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rpl_compare.comparison.model import item_name
from rpl_compare.comparison.text import answer_lines, document_names
from rpl_core.errors import RplError
from rpl_core.text import counted, readable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import BaseModel

    from rpl_compare.comparison.compare import Comparison
    from rpl_compare.contract import (
        CompareDocument,
        HistoryDocument,
        HistoryItem,
        ItemPart,
        OneSidedKernel,
        SidePart,
        StepPart,
    )
    from rpl_core.model.recording import Recording
    from rpl_core.plugins.host import PluginHost
    from rpl_measure.side import Side

#: Rows of the table; the document holds all (chosen).
_MOST_ROWS = 60
_FACTS = ("Command", "Device", "Host", "Recorded", "Runs", "Origin", "Files")


@frozen
class ItemRow:
    """Figures as fractions and ns; ``css`` is the colour of a kernel."""

    name: str
    css: str | None
    item: ItemPart
    runs: Runs | None
    forest: Forest


def compare_page(
    comparison: Comparison,
    document: CompareDocument,
    recordings: Sequence[Recording],
    host: PluginHost,
    form: str,
) -> str:
    """The whole page. ``recordings`` of BASE and NEW are analysed for their rooflines."""
    from rpl_report.html.page import load_assets, page_environment

    names = document_names((*document.kernels, *document.only_base, *document.only_new), form)
    rooflines, colours, reason = _rooflines(recordings, host, names)
    answer, *reasons = answer_lines(document)
    rows = _rows(document, names, colours)
    facts = [_facts(comparison, part, of) for part, of in zip(_parts(document), recordings, strict=True)]
    return (
        page_environment("rpl_compare.html")
        .get_template("compare.html.j2")
        .render(
            assets=load_assets(),
            document=document,
            title=_title(document),
            answer=answer,
            reasons=[readable(line.strip(), 600) for line in reasons],
            facts=tuple(zip(_FACTS, *facts, strict=True)),
            rows=rows[:_MOST_ROWS],
            left_out=max(0, len(rows) - _MOST_ROWS),
            longest_ns=_longest_ns(rows, document),
            one_sided=_one_sided(document, names),
            rooflines=rooflines,
            reason=reason,
        )
    )


def _parts(document: CompareDocument) -> tuple[SidePart, SidePart]:
    return document.base, document.new


def _title(document: CompareDocument) -> str:
    """Both programs, or the devices where the recordings name no program."""
    called = [
        readable(side.command[0].rpartition("/")[2], 60) if side.command else "" for side in _parts(document)
    ]
    what = called[0] if called[0] == called[1] else f"{called[0] or 'BASE'} and {called[1] or 'NEW'}"
    return f"{what or 'BASE and NEW'} compared on {readable(document.new.device or 'an unknown device', 80)}"


def _facts(comparison: Comparison, part: SidePart, recording: Recording) -> tuple[str, ...]:
    side: Side = comparison.base if part.label == "base" else comparison.new
    manifest = side.manifests[0] if side.manifests else None
    version, collector = part.collector_version or "", part.collector or ""
    tool = version if version.startswith(collector) else f"{collector} {version}"
    recorded = f"{manifest.created_utc} by {tool}" if manifest else ", ".join(part.formats)
    hosts = sorted({p.hostname for trace in recording.traces for p in trace.processes if p.hostname})
    files = list(dict.fromkeys(artefact.path for artefact in part.provenance.artefacts))
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    runs = f"{part.runs}" + (
        f", {counted(part.processes, 'process', 'processes')} each" if part.processes > 1 else ""
    )
    found = (
        shlex.join(part.command) or "not recorded",
        part.device or "not recorded",
        ", ".join(hosts) or "not recorded",
        recorded,
        runs,
        part.origin if part.origin == "measured" else f"{part.origin}: not a measurement of hardware",
        f"{', '.join(files[:3])}{more}" if files else "-",
    )
    return tuple(readable(text, 300) for text in found)


def _rows(
    document: CompareDocument, names: dict[str, str], colours: Mapping[str, str]
) -> tuple[ItemRow, ...]:
    """What decides comes first, as in the text."""
    items = sorted((*document.application, *document.kernels), key=lambda item: not item.gated)
    limit = document.gate.fail_above
    scale = forest_scale((item for item in items if item.gated), limit)
    return tuple(
        ItemRow(
            name=item_name(item.kind, item.name, names),
            css=colours.get(item.name) if item.kind == "kernel" else None,
            item=item,
            runs=runs_of(item),
            forest=forest_of(item, scale, limit),
        )
        for item in items
    )


def _longest_ns(rows: Sequence[ItemRow], document: CompareDocument) -> float:
    """The longest time that the page's tables show: it gives all of them their unit."""
    sides = [side.median_ns for row in rows for side in (row.item.base, row.item.new)]
    runs = [row.runs.last for row in rows if row.runs]
    alone = [kernel.median_ns for kernel in (*document.only_base, *document.only_new)]
    return max((ns for ns in (*sides, *runs, *alone) if ns is not None), default=0.0)


def _one_sided(
    document: CompareDocument, names: dict[str, str]
) -> tuple[tuple[str, tuple[tuple[str, OneSidedKernel], ...]], ...]:
    sides = (("BASE", document.only_base), ("NEW", document.only_new))
    return tuple(
        (side, tuple((names[k.name], k) for k in kernels[:_MOST_ROWS])) for side, kernels in sides if kernels
    )


def _rooflines(
    recordings: Sequence[Recording], host: PluginHost, names: Mapping[str, str]
) -> tuple[tuple[Any, ...], Mapping[str, str], str | None]:
    """A view per side, the colours of kernels, or why there are none."""
    from rpl_report.html.roofline import rooflines_of

    try:
        views, colours = rooflines_of([_documents(recording, host) for recording in recordings], names)
    except RplError as error:
        return (), {}, error.one_line()
    return views, colours, None


def _documents(recording: Recording, host: PluginHost) -> Mapping[str, BaseModel]:
    from rpl_core.pipeline import AnalysisRequest, analyse

    return analyse(recording, AnalysisRequest(), host).by_name()


# The page of ``rpl compare --history --html``: the metric over the entries, with its steps.

#: Plots on the page; the document holds all items (chosen).
_MOST_PLOTS = 40
#: The part of the drawing, 800 by 150, in which points lie.
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
            plots=[_plot(item, document, names) for item in items[:_MOST_PLOTS] if any(item.values_ns)],
            left_out=max(0, len(items) - _MOST_PLOTS),
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


# Drawings of one item: the times of all its runs on both sides, and its change with the interval.

#: Units of a drawing from end to end, with room for the marks at both.
_WIDTH, _MARGIN = 300.0, 8.0


@frozen
class Runs:
    """Places of the runs and the medians; both sides share the axis from ``first`` to ``last`` (ns)."""

    base: tuple[float, ...]
    new: tuple[float, ...]
    base_median: float | None
    new_median: float | None
    first: float
    last: float


@frozen
class Forest:
    """Places of the change, of its interval, of no change and of the allowed slow-down."""

    change: float | None
    low: float | None
    high: float | None
    zero: float
    limit: float


@frozen
class Scale:
    """From fractions of change to places; what lies outside is drawn at the end."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return _MARGIN + (inside - self.low) / (self.high - self.low) * (_WIDTH - 2 * _MARGIN)


def runs_of(item: ItemPart) -> Runs | None:
    """``None`` where no run has a time."""
    values = [*item.base.values_ns, *item.new.values_ns]
    if not values:
        return None
    first, last = min(values), max(values)
    scale = Scale(first, last if last > first else first + 1)

    def median(value: float | None) -> float | None:
        return None if value is None else scale(value)

    return Runs(
        tuple(map(scale, item.base.values_ns)),
        tuple(map(scale, item.new.values_ns)),
        median(item.base.median_ns),
        median(item.new.median_ns),
        first,
        last,
    )


def forest_scale(items: Iterable[ItemPart], limit: float) -> Scale:
    """One axis for all items, around no change, at least to twice the allowed slow-down."""
    known = [value for item in items for value in (item.ratio, item.ratio_low, item.ratio_high) if value]
    widest = max([2 * limit, *(abs(ratio - 1) for ratio in known)])
    return Scale(-widest, widest)


def forest_of(item: ItemPart, scale: Scale, limit: float) -> Forest:
    def place(ratio: float | None) -> float | None:
        return None if ratio is None else scale(ratio - 1)

    return Forest(place(item.ratio), place(item.ratio_low), place(item.ratio_high), scale(0), scale(limit))
