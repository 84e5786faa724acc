"""Host programs as data: what each thread calls, one step after the other.

Streams and events are numbered by the program; stream 0 is the legacy null stream of the thread's device,
and OWN_STREAM the thread's own default stream on it. They exist from the start, as every thread starts on
device 0. Other streams are of the device that was current when they were made. Times are ns.
"""

from __future__ import annotations

from typing import Final, Literal

from rpl_core.values import frozen

__all__ = ["OWN_STREAM", "Costs", "HostThread", "Kind", "Step"]

OWN_STREAM: Final = -1

Kind = Literal[
    "launch",
    "graph",
    "copy",
    "blocking_copy",
    "memset",
    "host_function",
    "record",
    "wait",
    "sync_stream",
    "sync_event",
    "sync_device",
    "query_stream",
    "query_event",
    "free",
    "set_device",
    "create_stream",
    "destroy_stream",
    "destroy_event",
    # No calls, so that no recording shows them: the thread computes, tells others, waits until it is told.
    "think",
    "tell",
    "listen",
]


@frozen
class Step:
    """``before_ns`` and ``after_ns``: time inside the call until it takes effect, and from then on.

    ``duration_ns`` is that of the work, or of thinking; ``event`` is also the number of what is told. A graph
    has ``branches`` that run beside each other: kernels called ``name/number``, the first the longest.
    ``device`` is what a thread sets; it puts work only into streams of that one, as HIP demands.

    ``waits`` is what the recording doesn't say of calls that may wait or not: a copy of pageable memory, a
    memset of host memory, a free of memory, the destruction of a stream that drains it, a query that is
    repeated until it succeeds. ``which`` of the functions that mean the same is called; ``by_name``: the null
    stream is named by hipStreamLegacy or hipStreamPerThread.
    """

    kind: Kind
    stream: int = 0
    event: int = 0
    name: str = ""
    duration_ns: int = 0
    non_blocking: bool = False
    branches: int = 1
    device: int = 0
    waits: bool = False
    which: int = 0
    by_name: bool = False
    before_ns: int = 100
    after_ns: int = 100


HostThread = tuple[Step, ...]


@frozen
class Costs:
    """What the machine adds: between two calls of a thread, from ready to begin of work, to come back."""

    between_calls_ns: int = 100
    begin_ns: int = 2_000
    return_ns: int = 1_000
