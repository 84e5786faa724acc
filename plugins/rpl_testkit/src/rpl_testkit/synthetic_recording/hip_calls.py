"""HIP API calls as the profiler records them: function, argument types, names and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rpl_testkit.rocpd_writer.rows import RegionArgument

if TYPE_CHECKING:
    from rpl_testkit.synthetic_recording.application_model import KernelModel

__all__ = [
    "HIP_CATEGORY",
    "create_stream_arguments",
    "event_handle",
    "event_record_arguments",
    "event_wait_arguments",
    "graph_launch_arguments",
    "launch_arguments",
    "malloc_arguments",
    "memcpy_arguments",
    "one_event",
    "one_stream",
    "stream_handle",
]

HIP_CATEGORY: Final = "HIP_RUNTIME_API_EXT"
_STREAM_TYPE = "ihipStream_t*"
_EVENT_TYPE = "ihipEvent_t*"


def stream_handle(stream: int) -> str:
    """Return the pointer text of a stream; the null stream is `0x0`."""
    return "0x0" if stream == 0 else hex(0x55D0_C0A0_0000 + 0x1000 * stream)


def event_handle(number: int) -> str:
    """Return the pointer text of the event made as number `number`."""
    return hex(0x55D0_C0B0_0000 + 0x40 * number)


def one_stream(stream: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipStreamSynchronize."""
    return (RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)),)


def one_event(event: str) -> tuple[RegionArgument, ...]:
    """Arguments of hipEventSynchronize."""
    return (RegionArgument(_EVENT_TYPE, "event", event),)


def create_stream_arguments(stream: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipStreamCreateWithFlags; flags 1 is hipStreamNonBlocking."""
    return (
        RegionArgument("ihipStream_t**", "stream", stream_handle(stream)),
        RegionArgument("unsigned int", "flags", "1"),
    )


def _dim3(x: int, y: int, z: int) -> str:
    return f"{{z={z}, y={y}, x={x}}}"


def launch_arguments(kernel: KernelModel, number: int, stream: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipLaunchKernel; numBlocks counts workgroups, unlike the recorded grid."""
    blocks = [-(-grid // group) for grid, group in zip(kernel.grid, kernel.workgroup, strict=True)]
    return (
        RegionArgument("void const*", "function_address", hex(0x40_1000 + 0x100 * number)),
        RegionArgument("dim3", "numBlocks", _dim3(*blocks)),
        RegionArgument("dim3", "dimBlocks", _dim3(*kernel.workgroup)),
        RegionArgument("void**", "args", "0x7ffd0000"),
        RegionArgument("unsigned long", "sharedMemBytes", str(kernel.dynamic_lds_bytes)),
        RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)),
    )


def graph_launch_arguments(stream: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipGraphLaunch."""
    return (
        RegionArgument("hipGraphExec*", "graphExec", "0x55d0c0c00000"),
        RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)),
    )


def memcpy_arguments(kind: str, size_bytes: int, stream: int | None) -> tuple[RegionArgument, ...]:
    """Arguments of hipMemcpyAsync, or of hipMemcpy without `stream`."""
    common = (
        RegionArgument("void*", "dst", "0x7f0000000000"),
        RegionArgument("void const*", "src", "0x7e0000000000"),
        RegionArgument("unsigned long", "sizeBytes", str(size_bytes)),
        RegionArgument("hipMemcpyKind", "kind", kind),
    )
    return (
        common if stream is None else (*common, RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)))
    )


def malloc_arguments(size_bytes: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipMalloc."""
    return (
        RegionArgument("void**", "ptr", "0x7ffd1000"),
        RegionArgument("unsigned long", "size", str(size_bytes)),
    )


def event_record_arguments(event: str, stream: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipEventRecord."""
    return (
        RegionArgument(_EVENT_TYPE, "event", event),
        RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)),
    )


def event_wait_arguments(stream: int, event: str) -> tuple[RegionArgument, ...]:
    """Arguments of hipStreamWaitEvent."""
    return (
        RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)),
        RegionArgument(_EVENT_TYPE, "event", event),
        RegionArgument("unsigned int", "flags", "0"),
    )
