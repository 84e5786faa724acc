"""What the runtime functions in these traces mean for the order of GPU work: HIP's and CUDA's.

CUDA: CUDA Runtime API, "API synchronization behavior" and "Stream synchronization behavior"
(https://docs.nvidia.com/cuda/cuda-runtime-api/). HIP is what the reader of rocprofv3 knows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_core.model.calls import CallKind, CallMeaning, HostApi
from rpl_rocprofv3.hip_api import hip_meanings

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CUDA_API", "HIP_API", "is_hip", "meanings"]

_TRACE_WITH = "torch.profiler with ProfilerActivity.CPU and ProfilerActivity.CUDA"
HIP_API = HostApi("HIP", trace_with=_TRACE_WITH)
CUDA_API = HostApi("CUDA", trace_with=_TRACE_WITH)

_KINDS = {
    CallKind.RECORD: ("cudaEventRecord", "cudaEventRecordWithFlags", "cuEventRecord"),
    CallKind.WAIT: ("cudaStreamWaitEvent", "cuStreamWaitEvent"),
    CallKind.STREAM_SYNC: ("cudaStreamSynchronize", "cuStreamSynchronize"),
    CallKind.EVENT_SYNC: ("cudaEventSynchronize", "cuEventSynchronize"),
    CallKind.DEVICE_SYNC: ("cudaDeviceSynchronize", "cudaThreadSynchronize", "cuCtxSynchronize"),
    CallKind.FREE: ("cudaFree", "cuMemFree", "cudaFreeHost", "cuMemFreeHost"),
    CallKind.BEGIN_CAPTURE: ("cudaStreamBeginCapture", "cuStreamBeginCapture"),
    CallKind.END_CAPTURE: ("cudaStreamEndCapture", "cuStreamEndCapture"),
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}
_VERSION = re.compile(r"(?:_v\d+)?(?:_pt[ds]s|_ptsz)?$")
_COPY = re.compile(r"cu(?:da)?Memcpy")


def is_hip(functions: Sequence[str]) -> bool:
    """Whether the calls are HIP's; there is no third runtime in these traces."""
    return any(name.startswith("hip") for name in functions)


def meanings(functions: Sequence[str]) -> tuple[CallMeaning, ...]:
    """One per function; UNKNOWN for names that are neither HIP's nor CUDA's."""
    known = hip_meanings(functions)
    return tuple(
        _of_cuda(name) if name.startswith("cu") else meaning
        for name, meaning in zip(functions, known, strict=True)
    )


def _of_cuda(recorded: str) -> CallMeaning:
    name = _VERSION.sub("", recorded)
    copies = _COPY.match(name) is not None
    kind = _KIND_OF.get(name, CallKind.OTHER)
    if copies and "Async" not in name:
        kind = CallKind.BLOCKING_COPY
    per_thread = recorded.endswith(("_ptds", "_ptsz"))
    return CallMeaning(kind, own_null=per_thread, launches_graph="GraphLaunch" in name, copies=copies)
