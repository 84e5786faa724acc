"""What the functions of CUDA mean for the order of GPU work.

Sources: CUDA Runtime API, "Stream synchronization behavior" and "API synchronization behavior", and the pages
of the functions (https://docs.nvidia.com/cuda/cuda-runtime-api/).
"""

from __future__ import annotations

import re

from rpl_core.model.trace import CallKind, CallMeaning, HostApi

CUDA = HostApi("CUDA", trace_with="nsys profile --trace=cuda")
#: The table that tells of a stream stands for its creation: the export names no stream beside that call.
STREAM_TABLE = "TARGET_INFO_CUDA_STREAM"
#: Behind the name of a copy whose both sides are on the device: the host does not wait for it.
ON_DEVICE = " (device to device)"

_VERSION = re.compile(r"_v\d+(?:_(ptds|ptsz))?$|_(ptds|ptsz)$")
_KINDS = {
    CallKind.RECORD: (
        "cudaEventRecord",
        "cudaEventRecordWithFlags",
        "cuEventRecord",
        "cuEventRecordWithFlags",
    ),
    CallKind.WAIT: ("cudaStreamWaitEvent", "cuStreamWaitEvent"),
    CallKind.STREAM_SYNC: ("cudaStreamSynchronize", "cuStreamSynchronize"),
    CallKind.EVENT_SYNC: ("cudaEventSynchronize", "cuEventSynchronize"),
    CallKind.DEVICE_SYNC: ("cudaDeviceSynchronize", "cudaThreadSynchronize", "cuCtxSynchronize"),
    CallKind.FREE: ("cudaFree", "cuMemFree", "cudaFreeHost", "cuMemFreeHost"),
    CallKind.BEGIN_CAPTURE: ("cudaStreamBeginCapture", "cuStreamBeginCapture"),
    CallKind.END_CAPTURE: ("cudaStreamEndCapture", "cuStreamEndCapture"),
    CallKind.STREAM_CREATE: (STREAM_TABLE,),
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}
_COPY = re.compile(r"(?:cudaMemcpy|cuMemcpy)(?!.*(?:Async|Batch))")


def plain_name(recorded: str) -> str:
    """``cudaMemcpyAsync`` for ``cudaMemcpyAsync_v3020``; with a null stream per thread the mark stays."""
    found = _VERSION.search(recorded)
    if found is None:
        return recorded
    per_thread = found[1] or found[2]
    return recorded[: found.start()] + (f"_{per_thread}" if per_thread else "")


def meaning(function: str) -> CallMeaning:
    """UNKNOWN for names that are none of CUDA's."""
    name = re.sub(r"_(?:ptds|ptsz)$", "", function)
    kind = _KIND_OF.get(name)
    if kind is None:
        kind = CallKind.UNKNOWN
        if _COPY.match(name) and not name.endswith(ON_DEVICE):
            kind = CallKind.BLOCKING_COPY
        elif name.startswith("cu"):
            kind = CallKind.OTHER
    return CallMeaning(kind, own_null=name != function, launches_graph="GraphLaunch" in name)
