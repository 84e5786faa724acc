"""The HIP functions that programs of the simulator call, by kind of step.

What each of them waits for, with the addresses of HIP's documents: docs/reference/execution-graph.md, 2.12.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FUNCTIONS", "NULL_ONLY", "OF_EVENT", "OF_STREAM", "POLLS", "WORK", "function_of"]

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


def function_of(kind: str, which: int, *, per_thread: bool) -> str:
    """The name under which a call is recorded; ``per_thread``: its stream 0 is the thread's own."""
    names = FUNCTIONS[kind]
    if per_thread and kind in _NAMES_STREAM:
        return names[0] + _PER_THREAD
    return names[which % len(names)]
