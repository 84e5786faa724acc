"""The timeline section: what the page's script draws from, and what stands there without a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text.safety import readable
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_report.html.figures import count, duration
from rpl_report.html.timeline_data import script_json, timeline_data
from rpl_report.html.timeline_drawing import Drawing, draw_timeline
from rpl_report.timeline.kept import LONGEST_OF_ALL, LONGEST_ON_PATH, LONGEST_PER_SYMBOL

if TYPE_CHECKING:
    from markupsafe import Markup

    from rpl_report.html.kernel_identity import Colours, KernelNames
    from rpl_report.timeline.model import RangeLane, Timeline, TimelineLane

__all__ = ["LaneRow", "LegendEntry", "TimelineView", "lane_label", "timeline_view"]

_LEGEND = 10
#: Heights of the plots in ``web/src/timeline``: the overview, then a row per lane and the axis.
_OVERVIEW, _AXIS, _ALL_LANES, _LOWEST_LANE, _HIGHEST_LANE = 76, 36, 620, 15, 40


@frozen
class LaneRow:
    label: str
    nodes: int
    busy: float
    on_path: float


@frozen
class LegendEntry:
    name: str
    css: str
    target: str | None


@frozen
class TimelineView:
    """``reason`` is set when there is nothing to show."""

    reason: str | None
    drawing: Drawing | None = None
    data: Markup | None = None
    lanes: tuple[LaneRow, ...] = ()
    legend: tuple[LegendEntry, ...] = ()
    visible: str = ""  # what stays individually visible
    notes: tuple[str, ...] = ()
    plots_height: int = 0  # kept free, so that nothing moves when the script draws


def timeline_view(
    timeline: Timeline | None, reason: str | None, names: KernelNames, colours: Colours
) -> TimelineView:
    if timeline is None:
        return TimelineView(reason=readable(reason or "this renderer was given documents alone", 400))
    labels = [lane_label(lane, timeline) for lane in timeline.lanes]
    range_labels = [_range_label(lane, timeline) for lane in timeline.ranges.lanes]
    return TimelineView(
        reason=None,
        drawing=draw_timeline(timeline, labels, range_labels, colours),
        data=script_json(timeline_data(timeline, labels, range_labels, names, colours)),
        lanes=tuple(_lane(lane, label, timeline) for lane, label in zip(timeline.lanes, labels, strict=True)),
        legend=_legend(timeline, names, colours),
        visible=_visible(timeline),
        notes=tuple(_notes(timeline)),
        plots_height=_plots_height(len(labels) + len(range_labels)),
    )


def _plots_height(lanes: int) -> int:
    lane = max(_LOWEST_LANE, min(_HIGHEST_LANE, _ALL_LANES // max(1, lanes)))
    return _OVERVIEW + lane * lanes + _AXIS


def lane_label(lane: TimelineLane, timeline: Timeline) -> str:
    """As short as it can be: process and machine only where there are several."""
    parts = []
    if timeline.machines > 1:
        parts.append(readable(lane.machine, 24))
    if len({(entry.machine, entry.process) for entry in timeline.lanes}) > 1:
        parts.append(f"pid {lane.process}")
    if lane.agent is not None:
        parts.append(f"GPU {lane.agent}")
    if lane.id is None:
        parts.append("no stream")
    else:
        parts.append(f"{'queue' if lane.by_queue else 'stream'} {lane.id}")
    return " · ".join(parts)


def _range_label(lane: RangeLane, timeline: Timeline) -> str:
    parts = [readable(lane.machine, 24)] if timeline.machines > 1 else []
    parts += [f"pid {lane.process}"] if len({each.process for each in timeline.ranges.lanes}) > 1 else []
    return " · ".join((*parts, lane.label))


def _lane(lane: TimelineLane, label: str, timeline: Timeline) -> LaneRow:
    span = max(timeline.span_ns, 1)
    path = max(timeline.critical_path_ns, 1)
    return LaneRow(label, lane.nodes, lane.busy_ns / span, min(1.0, lane.on_path_ns / path))


def _legend(timeline: Timeline, names: KernelNames, colours: Colours) -> tuple[LegendEntry, ...]:
    """Coloured symbols by total time, then copies and all others, if they occur."""
    entries: list[LegendEntry] = []
    kinds = set()
    for symbol in timeline.symbols:
        number = colours.of(symbol.name, symbol.kind)
        if number >= 8:
            kinds.add(number)
        elif len(entries) < _LEGEND:
            entries.append(LegendEntry(names.short(symbol.name), f"c{number}", names.of(symbol.name)))
    if 8 in kinds:
        entries.append(LegendEntry("copies", "c8", None))
    if 9 in kinds:
        entries.append(LegendEntry("other kernels", "c9", None))
    if len(timeline.ranges):
        entries.append(LegendEntry("ranges that the application marked", "range", None))
    return tuple(entries)


def _visible(timeline: Timeline) -> str:
    if timeline.complete:
        return (
            f"All {count(len(timeline.kept))} dispatches and copies of these lanes are individually visible "
            "when zoomed in."
        )
    shown, every = count(len(timeline.kept)), count(timeline.nodes)
    return (
        f"{shown} of {every} dispatches and copies are individually visible when zoomed in: the "
        f"{count(LONGEST_OF_ALL)} longest, the {count(LONGEST_ON_PATH)} longest on the critical path, the "
        f"{LONGEST_PER_SYMBOL} longest of each kernel, and those where the path changes lanes. All others "
        f"are counted and summed in bins of {duration(timeline.levels[0].width_ns)} per lane, which show how "
        "busy the lane is, with which kernel most, and how much of it is critical; zoomed in, bins are drawn "
        "lower than dispatches."
    )


def _notes(timeline: Timeline) -> list[str]:
    notes = []
    if timeline.lanes_left_out:
        left_out = count(timeline.nodes_left_out)
        nodes = counted(timeline.nodes_left_out, "dispatch or copy", "dispatches and copies", shown=left_out)
        lanes = counted(timeline.lanes_left_out, "lane", shown=count(timeline.lanes_left_out))
        notes.append(f"Not shown: {lanes} with the least work ({nodes}).")
    if timeline.machines > 1:
        notes.append(
            "Machines have clocks of their own: each begins at 0 here, and nothing compares between them."
        )
    if timeline.links.left_out:
        changes = counted(timeline.links.left_out, "more change", shown=count(timeline.links.left_out))
        notes.append(f"Not drawn: {changes} of lane of the critical path.")
    ranges = timeline.ranges
    if ranges.left_out or ranges.lanes_left_out:
        notes.append(
            f"Not shown: {counted(ranges.left_out, 'shorter range', shown=count(ranges.left_out))} and "
            f"{counted(ranges.lanes_left_out, 'row', shown=count(ranges.lanes_left_out))} of ranges."
        )
    if timeline.symbols_merged:
        notes.append(f"{count(timeline.symbols_merged)} kernels with the least time share one entry.")
    return notes
