"""Ranges that the application marked as lanes, one per thread and nesting: those inside others lie below."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.phases.report import ranges_by_name
from rpl_core.values import frozen
from rpl_report.timeline.model import RangeLane, TimelineRanges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from rpl_analysis.phases.report import Place
    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]

__all__ = ["NestedRanges", "nested_ranges", "split_overlaps", "timeline_ranges"]

#: Further lanes and ranges are left out, the shortest first (chosen: 18 bytes each, 14 rows of the page).
_MOST_LANES = 14
_MOST_RANGES = 8_000


@frozen(eq=False)
class NestedRanges:
    """Disjoint ranges, ascending by begin. ``thread`` is -1 where they are those of the process."""

    process: int  # index into the trace's
    machine: int  # index into the machines of the work
    thread: int
    depth: int
    begin_ns: Int64Column
    end_ns: Int64Column
    name: Int64Column  # in the order of the mapping that they were taken from

    def label(self) -> str:
        """Such as "ranges of thread 7 (inside 1)"."""
        label = f"ranges of {f'thread {self.thread}' if self.thread >= 0 else 'the process'}"
        return label if self.depth == 0 else f"{label} (inside {self.depth})"


def nested_ranges(work: TimedWork, ranges: Mapping[str, Sequence[Place]]) -> Iterator[NestedRanges]:
    """By process, thread and depth; times as recorded."""
    lanes: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for number, places in enumerate(ranges.values()):
        for process, thread, begin, end in places:
            lanes.setdefault((process, thread), []).append((begin, -end, number))
    for (process, thread), rows in sorted(lanes.items()):
        begin, end, name = np.array(sorted(rows), np.int64).T
        node = work.trace.processes[process].node
        several = len(work.machines) > 1
        if several and node not in work.machines:
            continue  # nothing ran on the GPUs of this machine
        machine = work.machines.index(node) if several else 0
        for depth, part in enumerate(split_overlaps(begin, -end)):
            yield NestedRanges(process, machine, thread, depth, begin[part], -end[part], name[part])


def timeline_ranges(work: TimedWork, span_ns: int) -> TimelineRanges:
    """What lies at least in part between the first begin and the last end on the GPU."""
    named = ranges_by_name(work.trace)
    lanes = list(nested_ranges(work, named))
    shown = lanes[:_MOST_LANES]
    sizes = [len(lane.name) for lane in shown]
    empty = [np.empty(0, np.int64)]
    origin = np.repeat([work.origin_ns[lane.machine] for lane in shown] or empty, sizes)
    begin = np.concatenate([*empty, *(lane.begin_ns for lane in shown)]) - origin
    duration = np.concatenate([*empty, *(lane.end_ns for lane in shown)]) - origin - begin
    name = np.concatenate([*empty, *(lane.name for lane in shown)])
    visible = np.flatnonzero((begin < span_ns) & (begin + duration > 0))
    longest = visible[np.argsort(-duration[visible], kind="stable")[:_MOST_RANGES]]
    kept = np.sort(longest)
    used, place = np.unique(name[kept], return_inverse=True)
    names = list(named)
    return TimelineRanges(
        lanes=tuple(_described(work, lane) for lane in shown),
        lanes_left_out=len(lanes) - len(shown),
        names=tuple(names[number] for number in used.tolist()),
        lane=np.repeat(np.arange(len(shown)), sizes)[kept].astype(np.uint16),
        name=place.reshape(-1).astype(np.uint16),
        begin_ns=begin[kept],
        duration_ns=duration[kept],
        left_out=int(visible.size - kept.size),
    )


def _described(work: TimedWork, lane: NestedRanges) -> RangeLane:
    process = work.trace.processes[lane.process]
    return RangeLane(machine=process.node, process=process.pid, label=lane.label())


def split_overlaps(begin_ns: Int64Column, end_ns: Int64Column) -> list[Int64Column]:
    """Indices of intervals (n,), ascending by begin, in as few groups as hold no overlap.

    An interval goes to the first group that is free, so that one overlap leaves all others where they were.
    """
    everything = np.arange(begin_ns.size)
    if not begin_ns.size:
        return []
    if bool((begin_ns[1:] >= end_ns[:-1]).all()):
        return [everything]
    group = np.zeros(begin_ns.size, dtype=np.int64)
    busy: list[tuple[int, int]] = []  # end of the interval that runs in a group, its number
    free: list[int] = []
    for i, (begin, end) in enumerate(zip(begin_ns.tolist(), end_ns.tolist(), strict=True)):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        number = heapq.heappop(free) if free else len(busy)
        group[i] = number
        heapq.heappush(busy, (end, number))
    order = np.argsort(group, kind="stable")
    return [np.sort(part) for part in np.split(order, np.flatnonzero(np.diff(group[order])) + 1)]
