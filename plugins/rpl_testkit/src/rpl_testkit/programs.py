"""A host program recorded call by call, as a ``Trace`` or a file: for tests of who waits for whom on the GPU.

Times are microseconds. Calls follow each other unless ``at_us`` says when; work has the times that a test
gives it. Stream ids are the profiler's, handles the program's pointers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.values import frozen
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
from rpl_testkit.traces import mi300x_agent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rpl_core.model.trace import ApiCalls, Copies, Dispatches, LaunchShapes, Trace

_FIRST_HANDLE = 0x55D0_C0A0_0000
#: When the programs' time 0 is: recorded times are never negative.
_EPOCH_NS = 10**12


def _ns(time_us: float) -> int:
    return _EPOCH_NS + round(time_us * 1000)


def stream_handle(stream: int) -> int:
    """The pointer of a stream: 0 for the null stream."""
    return 0 if stream == 0 else _FIRST_HANDLE + 0x1000 * stream


@frozen
class RecordedCall:
    """One HIP call; ``None`` for arguments that it does not have."""

    function: str
    begin_ns: int
    end_ns: int
    correlation_id: int
    stream: int | None = None  # handle
    event: int | None = None
    flags: int | None = None
    device: int | None = None
    thread: int = 1
    process: int = 0


@frozen
class RecordedWork:
    """One dispatch, or a copy where ``is_copy``; ``name`` is the kernel or the direction."""

    name: str
    begin_ns: int
    end_ns: int
    stream: int
    queue: int
    gpu: int
    process: int
    correlation_id: int
    is_copy: bool


@attrs.define
class RecordedProgram:
    """Collects calls and work; ``trace`` gives what a profiler would have recorded of them."""

    machines: tuple[str, ...] = ("node",)  # of each process
    gpus: int = 1
    calls: list[RecordedCall] = attrs.field(factory=list)
    work: list[RecordedWork] = attrs.field(factory=list)
    now_us: float = -100

    def call(
        self,
        function: str,
        *,
        stream: int | None = None,
        handle: int | None = None,
        event: int | None = None,
        flags: int | None = None,
        device: int | None = None,
        thread: int = 1,
        process: int = 0,
        at_us: float | None = None,
        until_us: float | None = None,
    ) -> int:
        """Record a call and return its correlation id. It returns at once unless ``until_us`` is given."""
        begin = self.now_us if at_us is None else at_us
        end = begin + 0.5 if until_us is None else until_us
        self.now_us = end + 0.5
        pointer = handle if handle is not None or stream is None else stream_handle(stream)
        self.calls.append(
            RecordedCall(
                function=function,
                begin_ns=_ns(begin),
                end_ns=_ns(end),
                correlation_id=len(self.calls) + 1,
                stream=pointer,
                event=event,
                flags=flags,
                device=device,
                thread=thread,
                process=process,
            )
        )
        return len(self.calls)

    def launch(
        self,
        name: str,
        begin_us: float,
        end_us: float,
        *,
        stream: int = 1,
        handle: int | None = None,
        queue: int = 1,
        gpu: int = 0,
        thread: int = 1,
        process: int = 0,
        at_us: float | None = None,
        until_us: float | None = None,
        function: str = "hipLaunchKernel",
        is_copy: bool = False,
        same_call: bool = False,
    ) -> None:
        """Record work and the call that submits it; ``same_call`` adds it to the call made last."""
        pointer = stream_handle(stream) if handle is None else handle
        if not same_call:
            self.call(
                function, handle=pointer, thread=thread, process=process, at_us=at_us, until_us=until_us
            )
        times = (_ns(begin_us), _ns(end_us))
        self.work.append(RecordedWork(name, *times, stream, queue, gpu, process, len(self.calls), is_copy))

    def copy(self, name: str, begin_us: float, end_us: float, **options: Any) -> None:
        """Record a copy by a copy engine, submitted by ``hipMemcpyAsync``."""
        self.launch(name, begin_us, end_us, function="hipMemcpyAsync", is_copy=True, **options)

    def record(self, event: int, stream: int, **options: int) -> None:
        """Record ``hipEventRecord``."""
        self.call("hipEventRecord", event=event, stream=stream, **options)

    def wait(self, stream: int, event: int, **options: int) -> None:
        """Record ``hipStreamWaitEvent``."""
        self.call("hipStreamWaitEvent", event=event, stream=stream, flags=0, **options)

    def trace(self, *, with_calls: bool = True, rows: Sequence[int] | None = None) -> Trace:
        """The recording; ``rows`` gives the work in another order of rows before it is put in time order."""
        from rpl_core.model.metric import Origin
        from rpl_core.model.trace import (
            Kernel,
            Process,
            Queue,
            Stream,
            Trace,
            TraceRole,
            TraceSource,
        )
        from rpl_rocprofv3.hip_api import HIP_API, hip_meanings

        work = [self.work[i] for i in rows] if rows is not None else self.work
        kernels = sorted({row.name for row in work if not row.is_copy})
        directions = sorted({row.name for row in work if row.is_copy})
        streams = sorted({(row.process, row.stream) for row in work})
        queues = sorted({(row.process, row.queue) for row in work if not row.is_copy})
        functions = sorted({call.function for call in self.calls})
        return Trace(
            source=TraceSource("test", "in memory", ()),
            role=TraceRole.TIMING,
            origin=Origin.SYNTHETIC,
            processes=tuple(Process(f"guid-{i}", 100 + i, name) for i, name in enumerate(self.machines)),
            agents=tuple(attrs.evolve(mi300x_agent(), index=2 + gpu) for gpu in range(self.gpus)),
            kernels=tuple(Kernel(name) for name in kernels),
            dispatches=_dispatches([row for row in work if not row.is_copy], kernels, streams, queues),
            shapes=_no_shapes(),
            streams=tuple(Stream(*pair) for pair in streams),
            queues=tuple(Queue(*pair) for pair in queues),
            copies=_copies([row for row in work if row.is_copy], directions, streams),
            copy_directions=tuple(directions),
            api_calls=_api_calls(self.calls, functions) if with_calls else None,
            host_api=HIP_API,
            api_functions=tuple(functions) if with_calls else (),
            api_meanings=hip_meanings(functions) if with_calls else (),
        )


def _dispatches(
    work: list[RecordedWork],
    kernels: list[str],
    streams: list[tuple[int, int]],
    queues: list[tuple[int, int]],
) -> Dispatches:
    import numpy as np

    from rpl_core.model.trace import Dispatches

    numbered = list(enumerate(work, 1))
    numbered.sort(key=lambda item: (item[1].begin_ns, item[1].end_ns, item[1].process, item[0]))
    rows = [row for _, row in numbered]
    return Dispatches(
        process=np.array([row.process for row in rows], dtype=np.int32),
        agent=np.array([row.gpu for row in rows], dtype=np.int32),
        kernel=np.array([kernels.index(row.name) for row in rows], dtype=np.int32),
        stream=np.array([streams.index((row.process, row.stream)) for row in rows], dtype=np.int32),
        queue=np.array([queues.index((row.process, row.queue)) for row in rows], dtype=np.int32),
        shape=np.full(len(rows), -1, dtype=np.int32),
        dispatch_id=np.array([number for number, _ in numbered], dtype=np.int64),
        correlation_id=np.array([row.correlation_id for row in rows], dtype=np.int64),
        begin_ns=np.array([row.begin_ns for row in rows], dtype=np.int64),
        end_ns=np.array([row.end_ns for row in rows], dtype=np.int64),
    )


def _copies(work: list[RecordedWork], directions: list[str], streams: list[tuple[int, int]]) -> Copies | None:
    import numpy as np

    from rpl_core.model.trace import Copies

    if not work:
        return None
    rows = sorted(work, key=lambda row: (row.begin_ns, row.end_ns, row.process))
    return Copies(
        process=np.array([row.process for row in rows], dtype=np.int32),
        source_agent=np.full(len(rows), -1, dtype=np.int32),
        destination_agent=np.array([row.gpu for row in rows], dtype=np.int32),
        stream=np.array([streams.index((row.process, row.stream)) for row in rows], dtype=np.int32),
        direction=np.array([directions.index(row.name) for row in rows], dtype=np.int32),
        size_bytes=np.full(len(rows), 4096, dtype=np.int64),
        correlation_id=np.array([row.correlation_id for row in rows], dtype=np.int64),
        begin_ns=np.array([row.begin_ns for row in rows], dtype=np.int64),
        end_ns=np.array([row.end_ns for row in rows], dtype=np.int64),
    )


def _api_calls(calls: list[RecordedCall], functions: list[str]) -> ApiCalls:
    import numpy as np

    from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED, ApiCalls

    rows = sorted(calls, key=lambda call: (call.begin_ns, call.process, call.correlation_id))
    none = int(NO_HANDLE)
    return ApiCalls(
        process=np.array([row.process for row in rows], dtype=np.int32),
        thread_id=np.array([row.thread for row in rows], dtype=np.int64),
        function=np.array([functions.index(row.function) for row in rows], dtype=np.int32),
        correlation_id=np.array([row.correlation_id for row in rows], dtype=np.int64),
        begin_ns=np.array([row.begin_ns for row in rows], dtype=np.int64),
        end_ns=np.array([row.end_ns for row in rows], dtype=np.int64),
        stream_handle=np.array([none if row.stream is None else row.stream for row in rows], dtype=np.uint64),
        event_handle=np.array([none if row.event is None else row.event for row in rows], dtype=np.uint64),
        flags=np.array([NOT_RECORDED if row.flags is None else row.flags for row in rows], dtype=np.int64),
        device=np.array([NOT_RECORDED if row.device is None else row.device for row in rows], dtype=np.int64),
    )


def _no_shapes() -> LaunchShapes:
    import numpy as np

    from rpl_core.model.trace import LaunchShapes

    return LaunchShapes(
        workgroup=np.zeros((0, 3), np.int64),
        grid=np.zeros((0, 3), np.int64),
        lds_bytes=np.zeros(0, np.int64),
        scratch_bytes=np.zeros(0, np.int64),
    )


# A played program as the database that rocprofv3 would have written of it.

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
