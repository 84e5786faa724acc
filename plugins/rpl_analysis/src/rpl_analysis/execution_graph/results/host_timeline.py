"""Which call the host was in while a GPU idled: the thread that submitted what ended the gap tells.

Of calls inside of each other the outermost counts, since that is what the application called. A thread is
copying while it is in a call that moves data, or while it waits behind one that returned at once
(docs/reference/execution-graph.md, 3.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import CallKind, CallMeaning, distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.dependencies.all_edges import Dependencies
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.results.domain import Domain
    from rpl_core.model.trace import Trace

    Int64Column = NDArray[np.int64]
    BoolColumn = NDArray[np.bool_]

__all__ = ["HostTimeline", "Pieces", "host_timeline"]

_WAITS = (CallKind.STREAM_SYNC, CallKind.EVENT_SYNC, CallKind.DEVICE_SYNC)


@frozen(eq=False)
class Pieces:
    """Parts of gaps that the host spent in a call: the gap's number, the call's function, begin and ns."""

    gap: Int64Column
    function: NDArray[np.int32]
    copies: BoolColumn
    waits: BoolColumn
    call_begin_ns: Int64Column
    ns: Int64Column


@frozen(eq=False)
class HostTimeline:
    """The outermost calls in order of (thread, begin); ``first[t]`` is the first of thread ``t``.

    ``thread`` and ``returned_ns`` are those of the call of each work node of the machine, -1 where it is not
    recorded. ``copies`` marks the calls in which unrecorded copies may have run; nothing where copies were
    recorded. ``waits``: synchronisations, and calls that waited as a side effect.
    """

    thread: NDArray[np.int32]
    returned_ns: Int64Column
    first: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column
    function: NDArray[np.int32]
    copies: BoolColumn
    waits: BoolColumn
    names: tuple[str, ...]

    def pieces(self, node: Int64Column, begin_ns: Int64Column, end_ns: Int64Column) -> Iterator[Pieces]:
        """The calls in each gap, for one thread after the other; ``node`` ended the gap."""
        thread = self.thread[node]
        for one in distinct_values(thread[thread >= 0]).tolist():
            gap = np.flatnonzero(thread == one)
            rows = slice(int(self.first[one]), int(self.first[one + 1]))
            begin, end = self.begin_ns[rows], self.end_ns[rows]
            low = np.searchsorted(end, begin_ns[gap], side="right")
            count = np.maximum(np.searchsorted(begin, end_ns[gap], side="left") - low, 0)
            gap = np.repeat(gap, count)
            call = np.repeat(low - np.cumsum(count) + count, count) + np.arange(gap.size)
            ns = np.minimum(end[call], end_ns[gap]) - np.maximum(begin[call], begin_ns[gap])
            yield Pieces(
                gap,
                self.function[rows][call],
                self.copies[rows][call],
                self.waits[rows][call],
                begin[call],
                ns,
            )


def host_timeline(trace: Trace, domain: Domain, dependencies: Dependencies) -> HostTimeline | None:
    """What the host did, as far as calls tell; ``None`` where none are recorded."""
    program = dependencies.program
    calls = program.calls
    if calls is None:
        return None
    table = calls.table
    order = np.lexsort((-table.end_ns, table.begin_ns, calls.thread))
    order = order[_outermost(calls, order)]
    first = np.searchsorted(calls.thread[order], np.arange(calls.threads + 1))
    without_copies = trace.copies is None or not len(trace.copies)
    copies = _copying(trace, calls, order) if without_copies else np.zeros(order.size, np.bool_)
    waits = np.isin(calls.kind, _WAITS)
    waits[dependencies.syncs.call[dependencies.syncs.call >= 0]] = True
    call = program.submissions.call[domain.work_rows]
    returned_ns = np.where(call >= 0, table.end_ns[call], np.int64(-1))
    return HostTimeline(
        returned_ns=returned_ns,
        thread=np.where(call >= 0, calls.thread[call], np.int32(-1)),
        first=first,
        begin_ns=table.begin_ns[order],
        end_ns=table.end_ns[order],
        function=table.function[order],
        copies=copies,
        waits=waits[order],
        names=trace.api_functions,
    )


def _outermost(calls: HostCalls, order: Int64Column) -> BoolColumn:
    """Of calls in order of (thread, begin): whether none of the same thread is around."""
    begin, end, thread = calls.table.begin_ns[order], calls.table.end_ns[order], calls.thread[order]
    outermost = np.ones(order.size, np.bool_)
    for rows in np.split(np.arange(order.size), np.flatnonzero(np.diff(thread)) + 1):
        if rows.size > 1:
            outermost[rows[1:]] = begin[rows[1:]] >= np.maximum.accumulate(end[rows])[:-1]
    return outermost


def _copying(trace: Trace, calls: HostCalls, order: Int64Column) -> BoolColumn:
    """Calls that move data, and waits with such a call of the same thread since the wait before."""
    meanings = (*trace.meanings(), CallMeaning(CallKind.UNKNOWN))
    moves = np.array([meaning.copies for meaning in meanings], np.bool_)[calls.table.function[order]]
    kind = calls.kind[order]
    returned = np.isin(kind, (*_WAITS, CallKind.BLOCKING_COPY))
    made = np.cumsum(moves & (kind != CallKind.BLOCKING_COPY))
    before = np.zeros(order.size, np.int64)
    rows = np.flatnonzero(returned)
    opens = np.flatnonzero(np.diff(calls.thread[order], prepend=-1))
    of_thread = opens[np.searchsorted(opens, rows, side="right") - 1]
    since = np.where(of_thread > 0, made[np.maximum(of_thread, 1) - 1], 0)
    before[rows] = since
    before[rows[1:]] = np.maximum(since[1:], made[rows[:-1]])
    return moves | (returned & (made > before))
