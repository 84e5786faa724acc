"""What the functions of the HIP runtime mean for the order of GPU work
(docs/reference/execution-graph.md, 2).

The ``_spt`` variants, in which the stream 0 is the calling thread's own, mean the same as those without.
HIP's special stream handles and the flag of non-blocking streams are those of ``rpl_core.model.trace``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rpl_core.model.trace import CallKind, CallMeaning, HostApi

__all__ = ["HIP_API", "hip_meanings"]

HIP_API: Final = HostApi("HIP", trace_with="rocprofv3 with --hip-runtime-trace --memory-copy-trace")

_PREFIX = "hip"
#: What compilers insert, and interfaces beside HIP: the host is in them, what they order is not known.
_OTHER_INTERFACES = ("__hip", "hsa_", "nccl", "mscclLoad", "rocDec", "rocJpeg", "rocjpeg", "rocdec")
_PER_THREAD = "_spt"
_GRAPH_LAUNCH = "GraphLaunch"
_KINDS: Final = {
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
_KIND_OF_NAME: Final = {name: kind for kind, names in _KINDS.items() for name in names}
#: hipMemcpy, hipMemcpy2D, hipMemset, ...; those with "Async" in the name return at once.
_COPY_PREFIXES = ("hipMemcpy", "hipDrvMemcpy")
_BLOCKING_PREFIXES = (*_COPY_PREFIXES, "hipMemset")


def hip_meanings(functions: Sequence[str]) -> tuple[CallMeaning, ...]:
    """What each function means; UNKNOWN for names that are none of HIP's."""
    return tuple(
        CallMeaning(
            _kind(name),
            own_null=name.endswith(_PER_THREAD),
            launches_graph=_GRAPH_LAUNCH in name,
            copies=name.startswith(_COPY_PREFIXES),
        )
        for name in functions
    )


def _kind(function: str) -> CallKind:
    name = function.removesuffix(_PER_THREAD)
    if not name.startswith(_PREFIX):
        return CallKind.OTHER if name.startswith(_OTHER_INTERFACES) else CallKind.UNKNOWN
    if name.startswith(_BLOCKING_PREFIXES) and "Async" not in name:
        return CallKind.BLOCKING_COPY
    return _KIND_OF_NAME.get(name, CallKind.OTHER)
