"""Lanes: what the runtime runs in order. One per stream; per hardware queue only where streams are unknown.

The null stream exists once per device, every other stream belongs to one device
(docs/reference/execution-graph.md, 2.1). Copies carry no queue, so where queues stand in they keep a lane per
stream beside the queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.graph.numbering import first_rows, is_constant, join_keys, number_keys
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Trace

    Int32Column = NDArray[np.int32]

__all__ = ["Lanes", "find_lanes", "lanes_are_queues"]


@frozen(eq=False)
class Lanes:
    """One entry per lane. ``stream`` and ``queue`` index the trace's tables, -1 where not recorded.

    ``agent`` is that of the lane's first node. ``is_null`` marks null streams.
    """

    process: Int32Column
    agent: Int32Column
    stream: Int32Column
    queue: Int32Column
    is_null: NDArray[np.bool_]
    by_queue: bool

    def __len__(self) -> int:
        return int(self.process.shape[0])


def lanes_are_queues(trace: Trace) -> bool:
    """Whether stream ids say nothing, so that hardware queues must stand in.

    True with ``--group-by-queue``, without stream ids, and when one stream covers several queues of a device
    (docs/reference/execution-graph.md, 2.1).
    """
    streams, queues = trace.dispatches.stream, trace.dispatches.queue
    if trace.grouped_by_queue or not np.any(streams >= 0):
        return True
    if bool(streams.min() != streams.max()) or bool(queues.min() == queues.max()):
        return False
    used = queues >= 0
    pairs, _ = number_keys(join_keys((trace.dispatches.agent[used], queues[used])))
    agents, _ = number_keys(trace.dispatches.agent[used])
    return pairs.size > agents.size


def find_lanes(
    trace: Trace,
    process: Int32Column,
    agent: Int32Column,
    stream: Int32Column,
    queue: Int32Column,
    *,
    by_queue: bool,
) -> tuple[Lanes, Int32Column]:
    """The lanes of nodes given as columns of shape (n,), and the lane number of each node."""
    columns = (process, agent, stream, queue)
    if process.size > 1 and all(is_constant(column) for column in columns):
        # All nodes are alike: so is their lane, which costs no memory per node.
        lanes, lane = find_lanes(trace, *(column[:1].copy() for column in columns), by_queue=by_queue)
        return lanes, np.broadcast_to(lane[0], process.shape)
    null = np.array([entry.id == 0 for entry in trace.streams] + [False])  # the last entry stands for -1
    if not by_queue:
        stream = _with_only_stream(process, agent, stream, queue)
    if by_queue:
        columns = (process, agent, queue, np.where(queue < 0, stream, NOT_RECORDED))
    else:
        shared = null[stream] | (stream < 0)
        columns = (process, np.where(shared, agent, NOT_RECORDED), stream, np.zeros_like(stream))
    keys, lane = number_keys(join_keys(columns))
    first = first_rows(lane, keys.size)
    lanes = Lanes(
        process=process[first],
        agent=agent[first],
        stream=np.where(queue[first] >= 0, NOT_RECORDED, stream[first]) if by_queue else stream[first],
        queue=queue[first] if by_queue else np.full(first.size, NOT_RECORDED, dtype=np.int32),
        is_null=np.zeros(first.size, dtype=np.bool_) if by_queue else null[stream[first]],
        by_queue=by_queue,
    )
    return lanes, lane


def _with_only_stream(
    process: Int32Column, agent: Int32Column, stream: Int32Column, queue: Int32Column
) -> Int32Column:
    """``stream`` with unrecorded entries filled where the node's hardware queue serves one stream only.

    Such a node (RPD lacks the launch of memory fills) runs in that queue's order. A lane of its own would
    have no dependency and hold on to its recorded time in every forecast.
    """
    unknown = (stream < 0) & (queue >= 0)
    known = stream >= 0
    if not unknown.any() or not known.any():
        return stream
    _, group = number_keys(join_keys((process, agent, queue)))
    lowest = np.full(int(group.max()) + 1, np.iinfo(np.int32).max, dtype=np.int32)
    highest = np.full(lowest.size, NOT_RECORDED, dtype=np.int32)
    np.minimum.at(lowest, group[known], stream[known])
    np.maximum.at(highest, group[known], stream[known])
    only = np.where(lowest == highest, highest, NOT_RECORDED).astype(np.int32)
    return np.where(unknown, only[group], stream)
