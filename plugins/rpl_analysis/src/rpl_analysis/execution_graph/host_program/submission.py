"""Which API call submitted each node, and in which order the nodes of a process were submitted.

The link is the correlation id. Where a node's call was not recorded (a trace cut to a time window), its
place follows from the ids, which grow in call order within a process
(docs/reference/execution-graph.md, 2.10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.host_program.calls import HostCalls

    Int64Column = NDArray[np.int64]

__all__ = ["Submissions", "call_place", "find_submissions"]

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
