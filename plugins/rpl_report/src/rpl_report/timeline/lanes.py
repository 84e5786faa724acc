"""Which lanes the timeline shows, of work and of ranges, and what is visible in each of overlapping nodes."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.segmented import running_max
from rpl_analysis.execution_graph.dependencies.all_edges import find_dependencies
from rpl_analysis.execution_graph.graph import number_keys, work_nodes
from rpl_analysis.execution_graph.results.domain import machine_domains, solve_domain
from rpl_analysis.execution_graph.results.loads import host_timeline
from rpl_analysis.execution_graph.results.time_spent import IdleIntervals, find_releases, idle_intervals
from rpl_analysis.phases import ranges_by_name
from rpl_core.values import frozen
from rpl_report.timeline import RangeLane, TimelineLane, TimelineRanges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.dependencies.all_edges import Dependencies
    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.results.domain import SolvedDomain
    from rpl_analysis.phases import Place
    from rpl_core.model.trace import Queue, Stream, Trace

    Int32Column = NDArray[np.int32]
    Int64Column = NDArray[np.int64]


@frozen(eq=False)
class GpuIdle:
    """When one GPU idled between its work, and why; ``agent`` indexes the trace's, -1 unknown.

    ``intervals.node`` are rows of the work that ended the idle time.
    """

    machine: int
    agent: int
    intervals: IdleIntervals


@frozen(eq=False, kw_only=True)
class TimedWork:
    """Columns of shape (n,) over ``nodes``, which ascend by begin.

    ``path_rows`` are the rows of the critical path in its order: that of the machine with the longest one.
    ``slack_ns`` is within the row's machine. ``machine`` indexes ``machines``; ``origin_ns`` holds the first
    begin on each, since clocks of different machines do not compare.
    """

    trace: Trace
    nodes: WorkNodes
    machines: tuple[str, ...]
    machine: Int32Column
    origin_ns: Int64Column
    slack_ns: Int64Column
    path_rows: Int64Column
    critical_path_ns: int
    idle: tuple[GpuIdle, ...] = ()  # by machine and GPU, where it was asked for

    def on_path(self) -> NDArray[np.bool_]:
        """Whether each row lies on the critical path."""
        marked = np.zeros(len(self.nodes), dtype=np.bool_)
        marked[self.path_rows] = True
        return marked

    def begin_ns(self) -> Int64Column:
        """Begin after the first begin on the row's machine."""
        return self.nodes.begin_ns - self.origin_ns[self.machine]


def timed_work(trace: Trace, *, include_copies: bool = True, with_idle: bool = False) -> TimedWork | None:
    """Solve ``trace``; ``None`` if it holds no dispatch with usable times."""
    nodes = work_nodes(trace, include_copies=include_copies)
    if not len(nodes):
        return None
    dependencies = find_dependencies(trace, nodes)
    domains = [solve_domain(part) for part in machine_domains(trace, nodes, dependencies)]
    longest = max(domains, key=lambda solved: solved.path.critical_path_ns)
    machine = np.zeros(len(nodes), dtype=np.int32)
    slack = np.zeros(len(nodes), dtype=np.int64)
    for number, solved in enumerate(domains):
        rows = solved.domain.work_rows
        machine[rows] = number
        slack[rows] = solved.slack_ns[: rows.size]
    return TimedWork(
        trace=trace,
        nodes=nodes,
        machines=tuple(solved.domain.machine for solved in domains),
        machine=machine,
        origin_ns=np.array([int(s.domain.work.begin_ns[0]) for s in domains], dtype=np.int64),
        slack_ns=slack,
        path_rows=_path_rows(longest),
        critical_path_ns=longest.path.critical_path_ns,
        idle=tuple(_idle(trace, domains, dependencies)) if with_idle else (),
    )


def _idle(trace: Trace, domains: list[SolvedDomain], dependencies: Dependencies) -> Iterator[GpuIdle]:
    """As ``devices`` of dag.json counts it."""
    for machine, solved in enumerate(domains):
        work = solved.domain.work
        releases = find_releases(solved.domain, host_timeline(trace, solved.domain, dependencies))
        agents, index = number_keys(work.agent)
        for number, agent in enumerate(agents.tolist()):
            rows = np.flatnonzero(index == number)
            intervals = idle_intervals(work.begin_ns[rows], work.end_ns[rows], releases, rows)
            of_lane = attrs.evolve(intervals, node=solved.domain.work_rows[intervals.node])
            yield GpuIdle(machine, agent, of_lane)


def _path_rows(solved: SolvedDomain) -> Int64Column:
    """Rows on the path without the host's part of it."""
    rows = solved.path.rows
    return solved.domain.work_rows[rows[rows < solved.domain.work_rows.size]]


#: More streams do not fit on a page (chosen); those with the most work are shown.
MOST_LANES = 48


@frozen(eq=False)
class LaneChoice:
    """``shown`` are lanes of the work nodes in display order; ``place[lane]`` is -1 for the others."""

    shown: Int64Column
    place: Int64Column

    @property
    def left_out(self) -> int:
        return int(self.place.size - self.shown.size)


@frozen
class LaneIdentity:
    """``process`` indexes the trace's; ``id`` is that of the stream, or of the queue where ``by_queue``."""

    process: int
    agent: int | None
    id: int | None
    name: str | None
    by_queue: bool

    def label(self) -> str:
        """Such as "GPU 2 · stream 1"."""
        gpu = "GPU unknown" if self.agent is None else f"GPU {self.agent}"
        if self.id is None:
            return f"{gpu} · no stream"
        return f"{gpu} · {'queue' if self.by_queue else 'stream'} {self.id}"


def choose_lanes(work: TimedWork) -> LaneChoice:
    """The lanes with the most work, by machine, process, GPU and stream; lanes of the path first of all."""
    nodes = work.nodes
    lanes = len(nodes.lanes)
    time = np.bincount(nodes.lane, weights=nodes.duration_ns(), minlength=lanes)
    path = work.path_rows
    on_path = np.bincount(nodes.lane[path], weights=nodes.duration_ns()[path], minlength=lanes)
    number = np.arange(lanes)
    shown = np.lexsort((number, -time, -on_path))[:MOST_LANES]
    machine = np.zeros(lanes, dtype=np.int64)
    machine[nodes.lane] = work.machine
    columns = nodes.lanes
    order = np.lexsort(
        (
            columns.queue[shown],
            columns.stream[shown],
            columns.agent[shown],
            columns.process[shown],
            machine[shown],
        )
    )
    shown = shown[order]
    place = np.full(lanes, -1, dtype=np.int64)
    place[shown] = np.arange(shown.size)
    return LaneChoice(shown, place)


def describe_lanes(work: TimedWork, choice: LaneChoice, pieces: LanePieces) -> tuple[TimelineLane, ...]:
    """One description per shown lane."""
    nodes, trace, lanes = work.nodes, work.trace, work.nodes.lanes
    count = np.bincount(nodes.lane, minlength=len(lanes))
    path = work.path_rows
    on_path = np.bincount(nodes.lane[path], weights=nodes.duration_ns()[path], minlength=len(lanes))
    busy = np.bincount(pieces.lane, weights=pieces.end_ns - pieces.begin_ns, minlength=choice.shown.size)
    first, last = pieces.extent(choice.shown.size)
    described = []
    for place, lane in enumerate(choice.shown.tolist()):
        identity = identify_lane(work, lane)
        process = trace.processes[identity.process]
        described.append(
            TimelineLane(
                machine=process.node,
                process=process.pid,
                agent=identity.agent,
                id=identity.id,
                name=identity.name,
                by_queue=identity.by_queue,
                nodes=int(count[lane]),
                busy_ns=int(busy[place]),
                on_path_ns=int(on_path[lane]),
                begin_ns=int(first[place]),
                end_ns=int(last[place]),
            )
        )
    return tuple(described)


def identify_lane(work: TimedWork, lane: int) -> LaneIdentity:
    """What the recording calls lane number ``lane`` of the work nodes."""
    trace, lanes = work.trace, work.nodes.lanes
    stream, queue, agent = int(lanes.stream[lane]), int(lanes.queue[lane]), int(lanes.agent[lane])
    entry = _entry(trace.queues, queue) if queue >= 0 else _entry(trace.streams, stream)
    return LaneIdentity(
        process=int(lanes.process[lane]),
        agent=trace.agents[agent].index if 0 <= agent < len(trace.agents) else None,
        id=entry.id if entry else None,
        name=entry.name if entry else None,
        by_queue=queue >= 0,
    )


def _entry(table: Sequence[Stream] | Sequence[Queue], index: int) -> Stream | Queue | None:
    return table[index] if 0 <= index < len(table) else None


@frozen(eq=False, kw_only=True)
class LanePieces:
    """Disjoint intervals by (lane, begin), one for each node that is not hidden behind earlier ones.

    ``lane`` is the place among the shown lanes, ``row`` the node.
    """

    lane: Int64Column
    row: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column

    def pick(self, which: NDArray[np.bool_]) -> LanePieces:
        """The pieces that a mask selects."""
        return LanePieces(
            lane=self.lane[which],
            row=self.row[which],
            begin_ns=self.begin_ns[which],
            end_ns=self.end_ns[which],
        )

    def extent(self, lanes: int) -> tuple[Int64Column, Int64Column]:
        """First begin and last end per lane, 0 where a lane shows nothing."""
        first, last = np.zeros(lanes, dtype=np.int64), np.zeros(lanes, dtype=np.int64)
        first[self.lane[::-1]] = self.begin_ns[::-1]
        last[self.lane] = self.end_ns
        return first, last


def lane_pieces(work: TimedWork, place: Int64Column) -> LanePieces:
    """The pieces of all lanes whose ``place`` is not negative. Nodes without duration have none."""
    nodes = work.nodes
    lane = place[nodes.lane]
    rows = np.argsort(lane, kind="stable")
    rows = rows[lane[rows] >= 0]
    lane = lane[rows]
    begin = work.begin_ns()[rows]
    end = begin + nodes.duration_ns()[rows]
    reached = np.zeros_like(end)
    if rows.size:
        reached[1:] = running_max(end, lane)[:-1]
        reached[1:][lane[1:] != lane[:-1]] = 0
    begin = np.maximum(begin, reached)
    pieces = LanePieces(lane=lane, row=rows, begin_ns=begin, end_ns=end)
    return pieces.pick(begin < end)


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
    shown_rows = np.sort(longest)
    used, place = np.unique(name[shown_rows], return_inverse=True)
    names = list(named)
    return TimelineRanges(
        lanes=tuple(_described(work, lane) for lane in shown),
        lanes_left_out=len(lanes) - len(shown),
        names=tuple(names[number] for number in used.tolist()),
        lane=np.repeat(np.arange(len(shown)), sizes)[shown_rows].astype(np.uint16),
        name=place.reshape(-1).astype(np.uint16),
        begin_ns=begin[shown_rows],
        duration_ns=duration[shown_rows],
        left_out=int(visible.size - shown_rows.size),
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
