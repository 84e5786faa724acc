"""Host API calls by what they mean for the order of GPU work.

Names are those of the HIP runtime (critical_path.md, section 5); the ``_spt`` variants, in which the stream
0 is the calling thread's own, mean the same. Calls that are recorded into a graph order nothing when made.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.execution_graph.numbering import join_keys, number_keys
from rpl_core.model.trace import NO_HANDLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import ApiCalls, Trace

    Int64Column = NDArray[np.int64]

__all__ = ["CallKind", "HostCalls", "host_calls", "kind_of"]


class CallKind(IntEnum):
    """``FREE`` and ``BLOCKING_COPY`` wait for the GPU as a side effect; ``EVENT_RESET`` forgets a record."""

    OTHER = 0
    RECORD = 1
    WAIT = 2
    STREAM_SYNC = 3
    EVENT_SYNC = 4
    DEVICE_SYNC = 5
    BLOCKING_COPY = 6
    FREE = 7
    STREAM_CREATE = 8
    STREAM_DESTROY = 9
    EVENT_RESET = 10
    SET_DEVICE = 11
    BEGIN_CAPTURE = 12
    END_CAPTURE = 13


_PER_THREAD = "_spt"
_GRAPH_LAUNCH = "GraphLaunch"
_KINDS = {
    CallKind.RECORD: ("hipEventRecord", "hipEventRecordWithFlags"),
    CallKind.WAIT: ("hipStreamWaitEvent",),
    CallKind.STREAM_SYNC: ("hipStreamSynchronize",),
    CallKind.EVENT_SYNC: ("hipEventSynchronize",),
    CallKind.DEVICE_SYNC: ("hipDeviceSynchronize", "hipCtxSynchronize"),
    CallKind.FREE: ("hipFree", "hipHostFree", "hipFreeHost", "hipFreeArray", "hipModuleUnload"),
    CallKind.STREAM_CREATE: (
        "hipStreamCreate",
        "hipStreamCreateWithFlags",
        "hipStreamCreateWithPriority",
        "hipExtStreamCreateWithCUMask",
    ),
    CallKind.STREAM_DESTROY: ("hipStreamDestroy",),
    CallKind.EVENT_RESET: ("hipEventCreate", "hipEventCreateWithFlags", "hipEventDestroy"),
    CallKind.SET_DEVICE: ("hipSetDevice",),
    CallKind.BEGIN_CAPTURE: ("hipStreamBeginCapture", "hipStreamBeginCaptureToGraph"),
    CallKind.END_CAPTURE: ("hipStreamEndCapture",),
}
_KIND_OF_NAME = {name: kind for kind, names in _KINDS.items() for name in names}
#: hipMemcpy, hipMemcpy2D, hipMemset, ...; those with "Async" in the name return at once.
_BLOCKING_PREFIXES = ("hipMemcpy", "hipMemset", "hipDrvMemcpy")


def kind_of(function: str) -> CallKind:
    """What ``function`` means for the order of GPU work."""
    name = function.removesuffix(_PER_THREAD)
    if name.startswith(_BLOCKING_PREFIXES) and "Async" not in name:
        return CallKind.BLOCKING_COPY
    return _KIND_OF_NAME.get(name, CallKind.OTHER)


@attrs.frozen(eq=False)
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
    kinds = np.array([kind_of(name) for name in trace.api_functions], dtype=np.int8)
    own_null = np.array([name.endswith(_PER_THREAD) for name in trace.api_functions])
    threads, thread = number_keys(join_keys((table.thread_id, table.process)))
    kind = _without_captured(kinds[table.function], thread)
    return HostCalls(
        table=table,
        kind=kind,
        thread=thread,
        threads=threads.size,
        own_null=own_null[table.function],
        is_graph_launch=np.array([_GRAPH_LAUNCH in name for name in trace.api_functions]),
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
