"""A played program as the database that rocprofv3 would have written of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_testkit.rocpd_writer import (
    AgentRow,
    CopyRow,
    DispatchRow,
    KernelRow,
    ProcessRow,
    QueueRow,
    RegionArgument,
    RegionRow,
    RocpdContents,
    StreamRow,
    guid_from_seed,
    write_rocpd,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rpl_testkit.programs import RecordedCall, RecordedProgram

__all__ = ["write_database"]

#: As ``RecordedProgram.trace`` numbers them.
_PID, _FIRST_GPU = 100, 2
_ONE = (1, 1, 1)


def write_database(path: Path, program: RecordedProgram) -> None:
    """Write the calls and work of a program of one process; copies are from the host."""
    kernels = sorted({work.name for work in program.work if not work.is_copy})
    launched = [work for work in program.work if not work.is_copy]
    contents = RocpdContents(
        guid=guid_from_seed(path.name),
        process=ProcessRow(_PID, "./simulated", 1, max(work.end_ns for work in program.work)),
        agents=(
            AgentRow(0, "CPU", "cpu", "CPU"),
            *(AgentRow(_FIRST_GPU + gpu, "GPU", "gfx942", "MI300X") for gpu in range(program.gpus)),
        ),
        kernels=tuple(KernelRow(i, name, name) for i, name in enumerate(kernels, 1)),
        dispatches=[
            DispatchRow(
                dispatch_id=number,
                kernel_id=1 + kernels.index(work.name),
                agent=_FIRST_GPU + work.gpu,
                queue_id=1 + work.queue,
                stream_id=work.stream,
                begin_ns=work.begin_ns,
                end_ns=work.end_ns,
                grid=_ONE,
                workgroup=_ONE,
                stack_id=work.correlation_id,
            )
            for number, work in enumerate(launched, 1)
        ],
        copies=[
            CopyRow(
                name=work.name,
                source_agent=0,
                destination_agent=_FIRST_GPU + work.gpu,
                size_bytes=4096,
                stream_id=work.stream,
                begin_ns=work.begin_ns,
                end_ns=work.end_ns,
                stack_id=work.correlation_id,
            )
            for work in program.work
            if work.is_copy
        ],
        regions=[
            RegionRow(
                name=call.function,
                category="HIP_RUNTIME_API_EXT",
                stack_id=call.correlation_id,
                begin_ns=call.begin_ns,
                end_ns=call.end_ns,
                arguments=tuple(_arguments(call)),
                tid=call.thread,
            )
            for call in program.calls
        ],
        queues=tuple(QueueRow(1 + n, f"Queue {n}") for n in sorted({work.queue for work in launched})),
        streams=tuple(StreamRow(n, f"Stream {n}") for n in sorted({work.stream for work in program.work})),
        thread_ids=tuple(sorted({call.thread for call in program.calls})),
    )
    write_rocpd(path, contents, synthetic=True)


def _arguments(call: RecordedCall) -> Iterator[RegionArgument]:
    """Names and types as the profiler records them (docs/reference/execution-graph.md, 2.9)."""
    if call.stream is not None:
        yield RegionArgument("ihipStream_t*", "stream", hex(call.stream))
    if call.event is not None:
        yield RegionArgument("ihipEvent_t*", "event", hex(call.event))
    if call.flags is not None:
        yield RegionArgument("unsigned int", "flags", str(call.flags))
    if call.device is not None:
        yield RegionArgument("int", "deviceId", str(call.device))
