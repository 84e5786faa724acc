"""From a timing run to its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_report.timeline.bins import bin_levels
from rpl_report.timeline.kept import kept_nodes
from rpl_report.timeline.lanes import choose_lanes, describe_lanes
from rpl_report.timeline.model import PathLinks, Timeline
from rpl_report.timeline.pieces import LanePieces, lane_pieces
from rpl_report.timeline.range_lanes import timeline_ranges
from rpl_report.timeline.symbols import choose_symbols
from rpl_report.timeline.work import timed_work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Trace
    from rpl_report.timeline.lanes import LaneChoice
    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]

__all__ = ["timeline_of"]

#: Further changes of lane are not drawn (chosen for the size of the page: 20 bytes each).
_MOST_LINKS = 6_000


def timeline_of(trace: Trace, *, include_copies: bool = True) -> Timeline | None:
    """The timeline of ``trace``; ``None`` if it holds no dispatch with usable times."""
    work = timed_work(trace, include_copies=include_copies)
    if work is None:
        return None
    lanes, symbols = choose_lanes(work), choose_symbols(work)
    links, ends = _path_links(work, lanes)
    kept = kept_nodes(work, lanes, symbols, ends)
    pieces = lane_pieces(work, lanes.place)
    every = _every_node(work, lanes)
    span = int((every.end_ns).max(initial=0))
    shown = every.row.size
    levels = bin_levels(
        pieces,
        symbols.place[work.nodes.symbol[pieces.row]],
        _of_path(work, lanes),
        every,
        lanes.shown.size,
        span,
    )
    return Timeline(
        span_ns=span,
        nodes=len(work.nodes),
        lanes=describe_lanes(work, lanes, pieces),
        lanes_left_out=lanes.left_out,
        nodes_left_out=len(work.nodes) - shown,
        symbols=symbols.symbols,
        symbols_merged=symbols.merged,
        kept=kept,
        complete=len(kept) == shown,
        levels=levels,
        links=links,
        ranges=timeline_ranges(work, span),
        critical_path_ns=work.critical_path_ns,
        machines=len(work.machines),
    )


def _every_node(work: TimedWork, lanes: LaneChoice) -> LanePieces:
    rows = np.flatnonzero(lanes.place[work.nodes.lane] >= 0)
    return _intervals(work, lanes, rows)


def _of_path(work: TimedWork, lanes: LaneChoice) -> LanePieces:
    """Intervals of the path, which are disjoint by what a path is; those without duration show nothing."""
    rows = work.path_rows[lanes.place[work.nodes.lane[work.path_rows]] >= 0]
    intervals = _intervals(work, lanes, rows)
    return intervals.pick(intervals.begin_ns < intervals.end_ns)


def _intervals(work: TimedWork, lanes: LaneChoice, rows: Int64Column) -> LanePieces:
    begin = work.begin_ns()[rows]
    return LanePieces(
        lane=lanes.place[work.nodes.lane[rows]],
        row=rows,
        begin_ns=begin,
        end_ns=begin + work.nodes.duration_ns()[rows],
    )


def _path_links(work: TimedWork, lanes: LaneChoice) -> tuple[PathLinks, Int64Column]:
    """The links between shown lanes, and the nodes at their ends. Too many keep those between long runs."""
    rows, nodes = work.path_rows, work.nodes
    lane = lanes.place[nodes.lane[rows]]
    change = np.flatnonzero((lane[1:] != lane[:-1]) & (lane[1:] >= 0) & (lane[:-1] >= 0))
    found = change.size
    if found > _MOST_LINKS:
        change = np.sort(change[np.argsort(-_shorter_run(change, rows.size), kind="stable")[:_MOST_LINKS]])
    begin = work.begin_ns()
    source, target = rows[change], rows[change + 1]
    links = PathLinks(
        source_lane=lane[change].astype(np.uint16),
        target_lane=lane[change + 1].astype(np.uint16),
        source_end_ns=begin[source] + nodes.duration_ns()[source],
        target_begin_ns=begin[target],
        left_out=int(found - change.size),
    )
    return links, np.concatenate([source, target])


def _shorter_run(change: Int64Column, length: int) -> Int64Column:
    """Nodes of the shorter one of the two runs that each change lies between."""
    bounds = np.concatenate([[-1], change, [length - 1]])
    runs = np.diff(bounds)
    return np.minimum(runs[:-1], runs[1:])
