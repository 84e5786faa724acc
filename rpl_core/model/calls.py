"""What host API calls mean for the order of GPU work, in words that hold for every runtime.

Names of functions belong to a runtime, so the reader that knows it says what each of them means
(``Trace.api_meanings``); analyses look at the meaning only.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from rpl_core.values import frozen

__all__ = [
    "LEGACY_STREAM",
    "NON_BLOCKING",
    "NULL_STREAM",
    "THREAD_STREAM",
    "CallKind",
    "CallMeaning",
    "HostApi",
]

#: Stream handles that are no pointers: the null stream (the calling thread's own one for functions with
#: ``own_null``), the device's null stream by name, and the calling thread's own stream by name.
NULL_STREAM, LEGACY_STREAM, THREAD_STREAM = np.uint64(0), np.uint64(1), np.uint64(2)
#: Bit in the flags of a STREAM_CREATE call: the null stream and the new one don't wait for each other.
NON_BLOCKING = 1


class CallKind(IntEnum):
    """What a call does to the order of work; every runtime's calls are one of these."""

    UNKNOWN = -1  # the reader doesn't know the function
    OTHER = 0  # orders nothing: launches, queries, allocations
    RECORD = 1  # an event stands for the work submitted to the stream so far
    WAIT = 2  # later work of the stream waits for the event
    STREAM_SYNC = 3  # the host waits for a stream
    EVENT_SYNC = 4  # the host waits for an event
    DEVICE_SYNC = 5  # the host waits for the current device
    BLOCKING_COPY = 6  # waits for the GPU as a side effect
    FREE = 7  # waits for the GPU as a side effect
    STREAM_CREATE = 8
    STREAM_DESTROY = 9
    EVENT_RESET = 10  # the event's record is forgotten
    SET_DEVICE = 11  # chooses the calling thread's device
    BEGIN_CAPTURE = 12  # calls up to END_CAPTURE are recorded into a graph and order nothing
    END_CAPTURE = 13


@frozen
class CallMeaning:
    """What one function means. ``own_null``: stream 0 is the calling thread's own stream."""

    kind: CallKind
    own_null: bool = False
    launches_graph: bool = False  # one call submits many pieces of work, which may run side by side
    copies: bool = False  # moves data, whether it returns at once or not


@frozen
class HostApi:
    """The runtime that a program called, as messages name it."""

    name: str
    trace_with: str | None = None  # how a recording gets its calls: a tool and its options


#: Where readers leave the ranges that an application marked on its own time line, in ``Trace.extras``.
RANGES = "ranges"


@frozen
class HostRange:
    """``guid`` and ``pid`` name the process; ``thread_id`` is -1 for a range of the whole process."""

    name: str
    guid: str
    pid: int
    thread_id: int
    begin_ns: int
    end_ns: int


#: Where readers leave what is recorded of the launches of collectives, in ``Trace.extras``.
COLLECTIVES = "collectives"


@frozen
class CollectiveLaunch:
    """``guid`` and ``pid`` name the process, ``correlation_id`` is that of the dispatch.

    ``communicator`` names a group of ranks, alike on all of them and unlike any other; ``elements`` is how
    many of them the rank gives. ``operation`` is called as the library does.
    """

    guid: str
    pid: int
    correlation_id: int
    operation: str
    communicator: str | None
    elements: int | None
