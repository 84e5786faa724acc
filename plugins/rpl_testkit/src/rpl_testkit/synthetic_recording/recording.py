"""Turn an application into the contents of one rocpd file, as a profiler with given options would.

Knows which option records what; counter runs serialise the device and hold only the selected kernels
(docs/reference/formats.md, trap 10).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen
from rpl_testkit.rocpd_writer.rows import (
    CodeObjectRow,
    CounterRow,
    DispatchRow,
    KernelRow,
    NodeRow,
    ProcessRow,
    QueueRow,
    RocpdContents,
    StreamRow,
)
from rpl_testkit.rocpd_writer.writer import guid_from_seed
from rpl_testkit.synthetic_recording.application_model import Application, KernelModel
from rpl_testkit.synthetic_recording.counters import DispatchLoad, counter_definition, counter_row
from rpl_testkit.synthetic_recording.mi300x_agents import GPU_AGENT, mi300x_agents
from rpl_testkit.synthetic_recording.timeline import Timeline, play

if TYPE_CHECKING:
    from typing import Any

__all__ = ["Collection", "ProcessIdentity", "record"]


def _every_dispatch(_kernel_name: str, _occurrence: int) -> bool:
    return True


@frozen
class Collection:
    """What to record. `selects(kernel name, n-th launch from 1)` filters counter collection only.

    With counters and without `kernels`, dispatches come from the counter records: only selected ones.
    """

    kernels: bool = True
    copies: bool = True
    hip_api: bool = True
    allocations: bool = False
    counters: tuple[str, ...] = ()
    selects: Callable[[str, int], bool] = _every_dispatch


@frozen
class ProcessIdentity:
    """Who is recorded: ids and texts of the process row."""

    pid: int
    command: str
    ppid: int = 0
    hostname: str = "synthetic-node"
    extdata: Mapping[str, Any] = attrs.field(factory=dict)


def record(
    application: Application,
    process: ProcessIdentity,
    collection: Collection,
    *,
    seed: str | int,
    begin_ns: int = 5_000_000_000_000,
    gpu: int = 0,
    gpus: int = 1,
    duration_ns: Callable[[KernelModel], int] | None = None,
) -> RocpdContents:
    """Play `application` on GPU `gpu` of `gpus` and return what a profiler would have written about it.

    `duration_ns`: see `play`.
    """
    timeline = play(
        application,
        seed=seed,
        begin_ns=begin_ns + 40_000_000,
        gpu=gpu,
        serialised=bool(collection.counters),
        duration_ns=duration_ns,
    )
    agent = GPU_AGENT + gpu
    dispatches, counters = _dispatches_and_counters(application, timeline, collection)
    copies = timeline.copies if collection.copies else []
    used_streams = sorted(({row.stream_id for row in dispatches} | {row.stream_id for row in copies}) - {0})
    return RocpdContents(
        guid=guid_from_seed(f"{application.name}/{seed}/{process.pid}/{','.join(collection.counters)}"),
        node=NodeRow(node_id=2161002656, machine_id="8503827322599284411", hostname=process.hostname),
        process=ProcessRow(
            process.pid,
            process.command,
            begin_ns,
            timeline.end_ns + 20_000_000,
            process.ppid,
            process.extdata,
        ),
        agents=mi300x_agents(gpus),
        code_objects=(_code_object(agent, process.pid),),
        kernels=tuple(_kernel_row(kernel, i) for i, kernel in enumerate(application.kernels, 1)),
        queues=_named_queues(dispatches),
        streams=tuple(StreamRow(stream, f"Stream {k}") for k, stream in enumerate(used_streams)),
        dispatches=dispatches,
        copies=copies,
        regions=timeline.regions if collection.hip_api else (),
        allocations=timeline.allocations if collection.allocations else (),
        counters=counters,
        counter_definitions=tuple(counter_definition(name, agent) for name in collection.counters),
    )


def _named_queues(dispatches: list[DispatchRow]) -> tuple[QueueRow, ...]:
    first_use = dict.fromkeys(row.queue_id for row in dispatches)
    return tuple(QueueRow(queue, f"Queue {k}") for k, queue in enumerate(first_use))


def _dispatches_and_counters(
    application: Application, timeline: Timeline, collection: Collection
) -> tuple[list[DispatchRow], list[CounterRow]]:
    if not collection.counters:
        return (timeline.dispatches if collection.kernels else []), []
    selected: list[DispatchRow] = []
    counters: list[CounterRow] = []
    launches: Counter[str] = Counter()
    for row in timeline.dispatches:
        kernel = application.kernels[row.kernel_id - 1]
        launches[kernel.name] += 1
        if collection.selects(kernel.name, launches[kernel.name]):
            selected.append(row)
            load = DispatchLoad(kernel, row.end_ns - row.begin_ns, application.clock_mhz)
            counters += [counter_row(row.dispatch_id, name, load) for name in collection.counters]
    return (timeline.dispatches if collection.kernels else selected), counters


def _code_object(agent: int, pid: int) -> CodeObjectRow:
    return CodeObjectRow(
        code_object_id=1,
        agent=agent,
        uri=f"memory://{pid}#offset=0x1b959ab0&size=28688",
        load_base=0x7126_DE40_0000,
        load_bytes=32_768,
        extdata={"storage_type": 2, "memory_base": 0x1B95_9AB0, "memory_size": 28_688},
    )


def _kernel_row(kernel: KernelModel, number: int) -> KernelRow:
    return KernelRow(
        kernel_id=number,
        name=kernel.name,
        symbol=kernel.symbol,
        arch_vgpr=kernel.arch_vgpr,
        accum_vgpr=kernel.accum_vgpr,
        sgpr=kernel.sgpr,
        lds_bytes=kernel.lds_bytes,
        scratch_bytes=kernel.scratch_bytes,
        kernarg_bytes=kernel.kernarg_bytes,
        kernel_object=0x7126_DE40_0000 + 0x1000 * number,
    )
