"""Synthetic recordings of any size for the benchmarks, seeded, by rpl_testkit.rocpd_writer streamed.

``Program`` plays a host program that keeps a GPU busy on S streams; every eighth dispatch waits for another
stream through an event.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from rpl_testkit.rocpd_writer import (
    AgentRow,
    CodeObjectRow,
    DispatchRow,
    KernelRow,
    ProcessRow,
    QueueRow,
    RegionArgument,
    RegionRow,
    RocpdContents,
    StreamRow,
    guid_from_seed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BEGIN_NS = 10**14
KERNELS = 60
QUEUES = 4
WAIT_EVERY = 8
CATEGORY = "HIP_RUNTIME_API_EXT"
LAUNCH_ARGUMENTS = (
    RegionArgument("void const*", "function_address", "0x401000"),
    RegionArgument("dim3", "numBlocks", "{z=1, y=1, x=1024}"),
    RegionArgument("dim3", "dimBlocks", "{z=1, y=1, x=256}"),
    RegionArgument("void**", "args", "0x7ffd0000"),
    RegionArgument("unsigned long", "sharedMemBytes", "0"),
)


def contents(
    seed: str,
    *,
    kernels: int,
    queues: int,
    stream_ids: range,
    dispatches: Iterable[DispatchRow],
    regions: Iterable[RegionRow] = (),
) -> RocpdContents:
    """One process on one MI300X; dispatches and regions may be streams of rows."""
    return RocpdContents(
        guid=guid_from_seed(seed),
        process=ProcessRow(100, "./benchmark", BEGIN_NS - 10**9, BEGIN_NS + 10**15),
        agents=(
            AgentRow(index=0, kind="CPU", name="cpu", product_name="cpu"),
            AgentRow(index=1, kind="GPU", name="gfx942", product_name="MI300X", device_id=29857),
        ),
        kernels=tuple(KernelRow(k, f"kernel_{k}(float*)", f"_Z9kernel_{k}Pf") for k in range(1, kernels + 1)),
        dispatches=dispatches,
        regions=regions,
        code_objects=(CodeObjectRow(1, 1, "file://benchmark"),),
        queues=tuple(QueueRow(q, f"Queue {q - 1}") for q in range(1, queues + 1)),
        streams=tuple(StreamRow(s, f"Stream {s - 1}") for s in stream_ids),
        thread_ids=(100,),
    )


def stream_argument(stream: int) -> RegionArgument:
    return RegionArgument("ihipStream_t*", "stream", hex(0x55D0_C0A0_0000 + 0x1000 * stream))


class Program:
    """Calls and dispatches of the program, the same for each pass over them."""

    def __init__(self, dispatches: int, streams: int) -> None:
        self._dispatches = dispatches
        self._streams = streams

    def recording(self, name: str, *, with_calls: bool) -> RocpdContents:
        """Everything that the writer needs."""
        return contents(
            f"execution graph {name}",
            kernels=KERNELS,
            queues=QUEUES,
            stream_ids=range(1, self._streams + 1),
            dispatches=self.dispatches(),
            regions=self.calls() if with_calls else (),
        )

    def dispatches(self) -> Iterator[DispatchRow]:
        """Rows in order of submission."""
        yield from (row for row in self.play() if isinstance(row, DispatchRow))

    def calls(self) -> Iterator[RegionRow]:
        """Rows in order of begin."""
        yield from (row for row in self.play() if isinstance(row, RegionRow))

    def waits(self) -> Iterator[tuple[int, int]]:
        """Dispatch ids of the two ends of every wait: what was recorded last, and what waits for it."""
        last: dict[int, int] = {}
        for row in self.dispatches():
            number = row.dispatch_id - 1
            if self._streams > 1 and number % WAIT_EVERY == WAIT_EVERY - 1:
                other = self._awaited[number]
                if other in last:
                    yield last[other], row.dispatch_id
            last[row.stream_id] = row.dispatch_id

    def play(self) -> Iterator[DispatchRow | RegionRow]:
        """Calls and dispatches in order of submission."""
        rnd = random.Random(11)
        now, stack = BEGIN_NS, 0
        free = [now] * (self._streams + 1)
        self._awaited: dict[int, int] = {}
        for number in range(self._dispatches):
            stream = number % self._streams + 1
            earliest = free[stream] + rnd.randrange(500, 3_000)
            if self._streams > 1 and number % WAIT_EVERY == WAIT_EVERY - 1:
                other = rnd.randrange(1, self._streams) % self._streams + 1
                self._awaited[number] = other
                event = RegionArgument(
                    "ihipEvent_t*", "event", hex(0x55D0_C0B0_0000 + 0x40 * (number % 4096))
                )
                yield _call("hipEventRecord", stack + 1, now, event, stream_argument(other))
                yield _call("hipStreamWaitEvent", stack + 2, now + 700, stream_argument(stream), event)
                stack, now = stack + 2, now + 1_400
                earliest = max(earliest, free[other] + 2_000)
            stack += 1
            yield _call("hipLaunchKernel", stack, now, *LAUNCH_ARGUMENTS, stream_argument(stream))
            begin = max(earliest, now + 4_000)
            free[stream] = begin + rnd.randrange(2_000, 50_000)
            yield DispatchRow(
                dispatch_id=number + 1,
                kernel_id=rnd.randrange(KERNELS) % (number % KERNELS + 1) + 1,
                agent=1,
                queue_id=stream % QUEUES + 1,
                stream_id=stream,
                begin_ns=begin,
                end_ns=free[stream],
                grid=(65_536, 1, 1),
                workgroup=(256, 1, 1),
                stack_id=stack,
            )
            now += 2_500


def _call(name: str, stack: int, begin_ns: int, *arguments: RegionArgument) -> RegionRow:
    return RegionRow(name, CATEGORY, stack, begin_ns, begin_ns + 600, arguments)
