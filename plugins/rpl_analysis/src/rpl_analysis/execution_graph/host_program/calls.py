"""The host API calls of a trace by what they mean for the order of GPU work.

The meaning of each function is the reader's. Calls that are recorded into a graph order nothing when made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.graph.numbering import join_keys, number_keys
from rpl_core.model.trace import NO_HANDLE, CallKind, CallMeaning
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import ApiCalls, Trace

    Int64Column = NDArray[np.int64]

__all__ = ["HostCalls", "host_calls"]


@frozen(eq=False)
class HostCalls:
    """The API calls of a trace, one entry per row of ``Trace.api_calls`` (ascending by begin).

    ``thread`` numbers (process, thread id) densely. ``kind`` is OTHER for calls made while their thread
    captured a graph. ``own_null`` marks functions whose stream 0 is the thread's own.
    """

    table: ApiCalls
    kind: NDArray[np.int8]
    thread: NDArray[np.int32]
    threads: int
    own_null: NDArray[np.bool_]
    is_graph_launch: NDArray[np.bool_]  # per function, not per call
    with_arguments: bool

    def __len__(self) -> int:
        return len(self.table)

    def rows(self, *kinds: CallKind) -> Int64Column:
        """Rows of the calls of these kinds, ascending."""
        chosen = self.kind == kinds[0]
        for kind in kinds[1:]:
            chosen |= self.kind == kind
        return np.flatnonzero(chosen)


def host_calls(trace: Trace) -> HostCalls | None:
    """The calls of ``trace``; None where the API was not traced."""
    table = trace.api_calls
    if table is None or not len(table):
        return None
    # The last one is for calls without a function (-1).
    meanings = (*trace.meanings(), CallMeaning(CallKind.UNKNOWN))
    kinds = np.array([meaning.kind for meaning in meanings], dtype=np.int8)
    own_null = np.array([meaning.own_null for meaning in meanings], dtype=np.bool_)
    threads, thread = number_keys(join_keys((table.thread_id, table.process)))
    kind = _without_captured(kinds[table.function], thread)
    return HostCalls(
        table=table,
        kind=kind,
        thread=thread,
        threads=threads.size,
        own_null=own_null[table.function],
        is_graph_launch=np.array([meaning.launches_graph for meaning in meanings], dtype=np.bool_),
        with_arguments=bool((table.stream_handle != NO_HANDLE).any()),
    )


def _without_captured(kind: NDArray[np.int8], thread: NDArray[np.int32]) -> NDArray[np.int8]:
    """``kind`` with the calls that a thread made during stream capture turned into OTHER."""
    begins = kind == CallKind.BEGIN_CAPTURE
    if not begins.any():
        return kind
    order = np.argsort(thread, kind="stable")
    step = begins[order].astype(np.int64) - (kind[order] == CallKind.END_CAPTURE)
    depth = np.cumsum(step)
    # A thread starts outside a capture, whatever the one before it left open.
    opens = np.ones(order.size, dtype=np.bool_)
    opens[1:] = thread[order][1:] != thread[order][:-1]
    start = np.flatnonzero(opens)
    depth -= np.repeat((depth - step)[start], np.diff(start, append=order.size))
    captured = np.zeros(kind.size, dtype=np.bool_)
    captured[order] = depth > 0
    return np.where(captured, np.int8(CallKind.OTHER), kind)
