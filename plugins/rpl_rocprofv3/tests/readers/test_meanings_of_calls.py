"""What functions of the HIP runtime do to the order of work, by HIP's API reference (ROCm documentation).

"Blocking" are those that return when the copy or the fill is over; each with ``Async`` in its name, and each
launch, returns at once.
"""

from __future__ import annotations

import pytest

from rpl_core.model.trace import CallKind, CallMeaning
from rpl_rocprofv3.hip_api import hip_meanings

BLOCKING_COPIES = (
    "hipMemcpy", "hipMemcpy2D", "hipMemcpy2DToArray", "hipMemcpy3D", "hipMemcpyAtoH", "hipMemcpyDtoD",
    "hipMemcpyDtoH", "hipMemcpyFromSymbol", "hipMemcpyHtoD", "hipMemcpyParam2D", "hipMemcpyPeer",
    "hipMemcpyToSymbol", "hipMemcpyWithStream", "hipDrvMemcpy2DUnaligned", "hipDrvMemcpy3D",
)  # fmt: skip
COPIES_AT_ONCE = (
    "hipMemcpyAsync", "hipMemcpy2DAsync", "hipMemcpy2DFromArrayAsync", "hipMemcpy3DAsync",
    "hipMemcpyDtoDAsync", "hipMemcpyDtoHAsync", "hipMemcpyHtoDAsync", "hipMemcpyPeerAsync",
    "hipMemcpyToSymbolAsync", "hipDrvMemcpy3DAsync",
)  # fmt: skip
BLOCKING_FILLS = ("hipMemset", "hipMemset2D", "hipMemset3D", "hipMemsetD8", "hipMemsetD16", "hipMemsetD32")
AT_ONCE = (
    "hipMemsetAsync", "hipMemset2DAsync", "hipMemsetD32Async", "hipLaunchKernel", "hipModuleLaunchKernel",
    "hipExtModuleLaunchKernel", "hipLaunchCooperativeKernel", "hipMalloc", "hipMallocAsync", "hipFreeAsync",
    "hipMallocManaged", "hipMemPrefetchAsync", "hipGetDevice", "hipGetLastError", "hipEventQuery",
    "hipStreamQuery", "hipEventElapsedTime", "hipGraphInstantiate", "hipStreamGetFlags", "hipHostMalloc",
)  # fmt: skip
ORDERING = {
    "hipEventRecord": CallKind.RECORD,
    "hipEventRecordWithFlags": CallKind.RECORD,
    "hipStreamWaitEvent": CallKind.WAIT,
    "hipStreamSynchronize": CallKind.STREAM_SYNC,
    "hipEventSynchronize": CallKind.EVENT_SYNC,
    "hipDeviceSynchronize": CallKind.DEVICE_SYNC,
    "hipCtxSynchronize": CallKind.DEVICE_SYNC,
    "hipFree": CallKind.FREE,
    "hipHostFree": CallKind.FREE,
    "hipStreamCreate": CallKind.STREAM_CREATE,
    "hipStreamCreateWithFlags": CallKind.STREAM_CREATE,
    "hipStreamCreateWithPriority": CallKind.STREAM_CREATE,
    "hipStreamDestroy": CallKind.STREAM_DESTROY,
    "hipEventCreate": CallKind.EVENT_RESET,
    "hipEventDestroy": CallKind.EVENT_RESET,
    "hipSetDevice": CallKind.SET_DEVICE,
    "hipStreamBeginCapture": CallKind.BEGIN_CAPTURE,
    "hipStreamEndCapture": CallKind.END_CAPTURE,
}
#: Whatever is no HIP function: of interfaces beside it, and of nobody that is known here.
BESIDE = ("__hipPushCallConfiguration", "hsa_queue_create", "ncclAllReduce", "rocDecCreateDecoder")
STRANGERS = ("cudaMemcpy", "MPI_Send", "memcpy", "myhipMemcpy", "")

EXPECTED = {
    **{name: CallMeaning(CallKind.BLOCKING_COPY, copies=True) for name in BLOCKING_COPIES},
    **{name: CallMeaning(CallKind.OTHER, copies=True) for name in COPIES_AT_ONCE},
    **{name: CallMeaning(CallKind.BLOCKING_COPY) for name in BLOCKING_FILLS},
    **{name: CallMeaning(CallKind.OTHER) for name in (*AT_ONCE, *BESIDE)},
    **{name: CallMeaning(kind) for name, kind in ORDERING.items()},
    **{name: CallMeaning(CallKind.UNKNOWN) for name in STRANGERS},
    "hipGraphLaunch": CallMeaning(CallKind.OTHER, launches_graph=True),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_call_means_what_the_reference_of_hip_says(name):
    assert hip_meanings([name]) == (EXPECTED[name],)


def test_many_calls_keep_their_order():
    assert hip_meanings(list(EXPECTED)) == tuple(EXPECTED.values())
    assert hip_meanings([]) == ()


@pytest.mark.parametrize(
    "name", ["hipMemcpy", "hipMemcpyAsync", "hipMemset", "hipLaunchKernel", "hipStreamSynchronize",
             "hipEventRecord", "hipStreamWaitEvent", "hipGraphLaunch", "hipStreamBeginCapture"],
)  # fmt: skip
def test_with_a_stream_of_its_own_for_each_thread_a_call_means_the_same(name):
    plain, (own,) = EXPECTED[name], hip_meanings([f"{name}_spt"])
    assert own.own_null
    assert (own.kind, own.copies, own.launches_graph) == (plain.kind, plain.copies, plain.launches_graph)
