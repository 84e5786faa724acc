"""Which lanes the timeline shows, in which order, and what is said of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen
from rpl_report.timeline.model import TimelineLane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Queue, Stream
    from rpl_report.timeline.pieces import LanePieces
    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]

__all__ = ["MOST_LANES", "LaneChoice", "LaneIdentity", "choose_lanes", "describe_lanes", "identify_lane"]

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
