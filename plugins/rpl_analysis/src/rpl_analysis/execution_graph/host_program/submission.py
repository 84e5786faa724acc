"""Which API call submitted each node, and in which order the nodes of a process were submitted.

The link is the correlation id. Where a node's call was not recorded (a trace cut to a time window), its
place follows from the ids, which grow in call order within a process
(docs/reference/execution-graph.md, 2.10).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.segmented import running_max
from rpl_analysis.execution_graph.graph import BLOCK
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.host_program.calls import HostCalls

    Int64Column = NDArray[np.int64]

#: Ids count calls from 1; a larger one is no count (chosen; times a number of lanes it must fit 64 bits).
_LARGEST_ID = 2**40


@frozen(eq=False)
class Submissions:
    """Per node: ``call`` is the row of the submitting API call (-1 unknown), ``thread`` its thread number.

    ``place`` orders the nodes of one process and compares with ``call_place``; -1 where unknown. Nodes of one
    call (a graph launch) share a place.
    """

    call: Int64Column
    thread: NDArray[np.int32]
    place: Int64Column

    def unknown(self) -> int:
        """Nodes whose call was not recorded."""
        return int((self.call < 0).sum())


def call_place(rows: Int64Column) -> Int64Column:
    """The place of API calls in the order of ``Submissions.place``."""
    return rows * 2


def find_submissions(
    process: NDArray[np.int32], correlation_id: Int64Column, calls: HostCalls | None
) -> Submissions:
    """Match things of a process that carry a correlation id, shape (n,), with the calls.

    Without calls, correlation ids alone give the order.
    """
    if calls is None:
        return Submissions(
            call=np.broadcast_to(np.int64(NOT_RECORDED), process.shape),
            thread=np.broadcast_to(np.int32(NOT_RECORDED), process.shape),
            place=_small(correlation_id),
        )
    ids = _Ids(process, correlation_id)
    call = _match(ids, calls)
    place = call_place(call)
    missing = np.flatnonzero(call < 0)
    if missing.size:
        place[missing] = _places_by_correlation(ids.pick(missing), calls)
    thread = calls.thread[call]
    thread[missing] = NOT_RECORDED
    return Submissions(call=call, thread=thread, place=place)


def _small(correlation_id: Int64Column) -> Int64Column:
    """Ids that are damaged or random become ranks: keys of (lane, place) must fit 64 bits."""
    if not correlation_id.size or int(correlation_id.max()) < _LARGEST_ID:
        return correlation_id
    ranks: Int64Column = np.unique(correlation_id, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.where(correlation_id < 0, correlation_id, ranks)


@frozen(eq=False)
class _Ids:
    """Correlation ids, each of a process."""

    process: NDArray[np.int32]
    correlation_id: Int64Column

    def pick(self, which: Int64Column) -> _Ids:
        return _Ids(self.process[which], self.correlation_id[which])


def _match(ids: _Ids, calls: HostCalls) -> Int64Column:
    table = calls.table
    low, span = _span(table.correlation_id)
    processes = 1 + max(int(table.process.max()), int(ids.process.max(initial=0)))
    if span * processes > 4 * (ids.process.size + len(calls)) + 2**22:
        return _match_by_search(ids, calls)
    known = (table.correlation_id >= 0) & (table.process >= 0)
    rows = np.flatnonzero(known)[::-1]
    row_of = np.full(span * processes + 1, NOT_RECORDED, dtype=np.int64)
    # Of several calls with one id the first counts: its assignment comes last.
    row_of[table.process[rows] * span + (table.correlation_id[rows] - low)] = rows
    offset = ids.correlation_id - low
    inside = (offset >= 0) & (offset < span) & (ids.correlation_id >= 0) & (ids.process >= 0)
    return row_of[np.where(inside, ids.process * span + offset, row_of.size - 1)]


def _span(ids: Int64Column) -> tuple[int, int]:
    low = int(ids.min())
    return low, int(ids.max()) - low + 1


def _match_by_search(ids: _Ids, calls: HostCalls) -> Int64Column:
    table = calls.table
    order, known, wanted = _ranked(ids, calls)
    row = order[np.minimum(np.searchsorted(known, wanted), order.size - 1)]
    same = (table.process[row] == ids.process) & (table.correlation_id[row] == ids.correlation_id)
    return np.where(same & (ids.correlation_id >= 0), row, NOT_RECORDED)


def _places_by_correlation(ids: _Ids, calls: HostCalls) -> Int64Column:
    """Just after the last call of the process with a smaller id; -1 where there is none, or no id."""
    order, known, wanted = _ranked(ids, calls)
    index = np.searchsorted(known, wanted, side="right") - 1
    row = order[np.maximum(index, 0)]
    usable = (index >= 0) & (calls.table.process[row] == ids.process) & (ids.correlation_id >= 0)
    return np.where(usable, call_place(row) + 1, NOT_RECORDED)


def _ranked(ids: _Ids, calls: HostCalls) -> tuple[Int64Column, Int64Column, Int64Column]:
    """Calls in the order of (process, id, row); their keys in that order; and the keys of ``ids``."""
    table = calls.table
    order = np.lexsort((np.arange(len(calls)), table.correlation_id, table.process))
    distinct, rank = np.unique(
        np.concatenate([table.correlation_id, ids.correlation_id]), return_inverse=True
    )
    process = np.concatenate([table.process, ids.process]).astype(np.int64)
    key = (process + 1) * distinct.size + rank.reshape(-1)
    return order, key[: len(calls)][order], key[len(calls) :]


# Nodes by lane in order of submission, and who was submitted to a lane last before or first after a call.

_UINT16_VALUES = 65536


@attrs.frozen(eq=False, slots=False, kw_only=True)
class LaneOrder:
    """``node[i]`` in the order of (lane, submission, begin); ``in_start_order`` by (lane, begin).

    ``disagreements``: neighbours that began in another order than they were submitted. ``lane``, ``place``
    (of submission) and ``end_ns`` are per node. What only look-ups need is made when it is asked for.
    """

    node: Int64Column
    in_start_order: Int64Column
    lane: NDArray[np.int32]
    place: Int64Column
    end_ns: Int64Column
    span: int
    disagreements: int

    @cached_property
    def key(self) -> Int64Column:
        """Lane times ``span`` plus place of submission plus 1, which ascends along ``node``."""
        key: Int64Column = self.lane[self.node].astype(np.int64)
        key *= self.span
        key += self.place[self.node]
        key += 1
        return key

    @cached_property
    def rank(self) -> Int64Column:
        """Index of each node in ``node``."""
        rank = np.empty_like(self.node)
        rank[self.node] = np.arange(self.node.size)
        return rank

    @cached_property
    def last_to_end(self) -> Int64Column:
        """Entry i is the node that ends last among the lane's nodes up to i.

        That is ``node[i]`` unless nodes of the lane overlap.
        """
        return _last_to_end(self.node, self.end_ns[self.node], self.lane[self.node])

    def last_before(self, lane: NDArray[np.integer], place: Int64Column) -> Int64Column:
        """The node that ends last among those submitted to each lane before ``place``; -1 for none.

        Shape (q,); a lane of -1 gives -1.
        """
        key = lane * np.int64(self.span) + np.clip(place + 1, 0, self.span - 1)
        index = np.searchsorted(self.key, key, side="left") - 1
        return self._checked(self.last_to_end, index, lane)

    def first_after(self, lane: NDArray[np.integer], place: Int64Column) -> Int64Column:
        """The first node submitted to each lane after ``place``; -1 for none."""
        key = lane * np.int64(self.span) + np.clip(place + 1, 0, self.span - 1)
        return self._checked(self.node, np.searchsorted(self.key, key, side="right"), lane)

    def before(self, node: Int64Column) -> Int64Column:
        """The node that ends last among those submitted to the lane of each node before it; -1 for none."""
        return self._checked(self.last_to_end, self.rank[node] - 1, self.lane[node])

    def behind(self, node: Int64Column) -> Int64Column:
        """The next node submitted to the lane of each node; -1 for none."""
        return self._checked(self.node, self.rank[node] + 1, self.lane[node])

    def _checked(self, nodes: Int64Column, index: Int64Column, lane: NDArray[np.integer]) -> Int64Column:
        inside = (index >= 0) & (index < nodes.size) & (lane >= 0)
        index = np.where(inside, index, 0)
        if nodes.size:
            inside &= self.key[index] // self.span == lane
            return np.where(inside, nodes[index], -1)
        return np.full(index.size, -1, dtype=np.int64)


def order_lanes(
    lane: NDArray[np.int32], lanes: int, end_ns: Int64Column, submissions: Submissions
) -> LaneOrder:
    """Order the nodes of every lane, numbered below ``lanes``; nodes ascend by begin.

    A node of unknown submission follows those of its lane that began before it.
    """
    if lanes > 1:
        narrow = lane.astype(np.uint16) if lanes < _UINT16_VALUES else lane
        # Stable, so that this is start order inside a lane. numpy sorts 16 bits by radix.
        node = np.argsort(narrow, kind="stable")
    else:
        node = np.arange(lane.size)
    place = submissions.place
    if int(place.min(initial=0)) < 0:
        ordered = place[node]
        latest = running_max(ordered + 1, lane[node].astype(np.int64)) - 1
        place = np.empty_like(ordered)
        place[node] = np.where(ordered < 0, latest, ordered)
    order = LaneOrder(
        node=node,
        in_start_order=node,
        lane=lane,
        place=place,
        end_ns=end_ns,
        span=int(submissions.place.max(initial=-1)) + 3,
        disagreements=_descents(node, lane, place),
    )
    if not order.disagreements:
        return order
    return attrs.evolve(order, node=node[np.argsort(order.key, kind="stable")])


def _descents(node: Int64Column, lane: NDArray[np.int32], place: Int64Column) -> int:
    """Neighbours in a lane of which the later one to begin was submitted earlier."""
    descents = 0
    for first in range(1, node.size, BLOCK):
        own, before = node[first : first + BLOCK], node[first - 1 : first + BLOCK - 1][: node.size - first]
        descends = place[own] < place[before]
        if descends.any():
            descents += int((descends & (lane[own] == lane[before])).sum())
    return descents


def _last_to_end(node: Int64Column, end_ns: Int64Column, lane: NDArray[np.int32]) -> Int64Column:
    if bool(((end_ns[1:] >= end_ns[:-1]) | (lane[1:] != lane[:-1])).all()):
        return node
    # Ends relative to the first one stay small enough for the running maximum's keys.
    reached = running_max(end_ns - end_ns.min(), lane) + end_ns.min()
    is_last = end_ns >= reached
    return node[np.maximum.accumulate(np.where(is_last, np.arange(node.size), 0))]
