"""Host programs as data: what each thread calls, one step after the other, and the HIP functions by step.

Streams and events are numbered by the program; stream 0 is the legacy null stream of the thread's device,
and OWN_STREAM the thread's own default stream on it. They exist from the start, as every thread starts on
device 0. Other streams are of the device that was current when they were made. Times are ns.

What each function waits for, with the addresses of HIP's documents: docs/reference/execution-graph.md, 2.12.
"""

from __future__ import annotations

from typing import Final, Literal

from rpl_core.values import frozen

__all__ = [
    "FUNCTIONS",
    "NULL_ONLY",
    "OF_EVENT",
    "OF_STREAM",
    "OWN_STREAM",
    "POLLS",
    "WORK",
    "Costs",
    "HostThread",
    "Kind",
    "Step",
    "function_of",
]

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

#: Per kind of step the functions that mean it; a step takes the first unless it names another.
FUNCTIONS: Final = {
    "launch": ("hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel"),
    "graph": ("hipGraphLaunch",),
    "copy": ("hipMemcpyAsync",),
    "blocking_copy": ("hipMemcpy",),
    "memset": ("hipMemset",),
    "host_function": ("hipLaunchHostFunc", "hipStreamAddCallback"),
    "record": ("hipEventRecord", "hipEventRecordWithFlags"),
    "wait": ("hipStreamWaitEvent",),
    "sync_stream": ("hipStreamSynchronize",),
    "sync_event": ("hipEventSynchronize",),
    "sync_device": ("hipDeviceSynchronize", "hipCtxSynchronize"),
    "query_stream": ("hipStreamQuery",),
    "query_event": ("hipEventQuery",),
    "free": ("hipFree",),
    "set_device": ("hipSetDevice",),
    "create_stream": ("hipStreamCreateWithFlags", "hipStreamCreateWithPriority", "hipStreamCreate"),
    "destroy_stream": ("hipStreamDestroy",),
    "destroy_event": ("hipEventDestroy",),
}
_NAMES_STREAM: Final = (
    "launch",
    "graph",
    "copy",
    "host_function",
    "record",
    "wait",
    "sync_stream",
    "query_stream",
)
#: Steps with a stream argument.
OF_STREAM: Final = (*_NAMES_STREAM, "create_stream", "destroy_stream")
OF_EVENT: Final = ("record", "wait", "sync_event", "query_event", "destroy_event")
#: Functions without a stream argument that put work into the null stream.
NULL_ONLY: Final = ("blocking_copy", "memset")
WORK: Final = ("launch", "graph", "copy", *NULL_ONLY)
POLLS: Final = ("query_stream", "query_event")
_PER_THREAD: Final = "_spt"


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
    """What the machine adds: between two calls of a thread, from ready to begin of work, to come back.

    ``branch_ns``: between the begins of branches of a graph, one after the other.
    """

    between_calls_ns: int = 100
    begin_ns: int = 2_000
    return_ns: int = 1_000
    branch_ns: int = 0


def function_of(kind: str, which: int, *, per_thread: bool) -> str:
    """The name under which a call is recorded; ``per_thread``: its stream 0 is the thread's own."""
    names = FUNCTIONS[kind]
    if per_thread and kind in _NAMES_STREAM:
        return names[0] + _PER_THREAD
    return names[which % len(names)]
