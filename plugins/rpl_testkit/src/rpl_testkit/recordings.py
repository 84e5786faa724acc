"""Small rocpd files for tests, with exactly the dispatches that a test is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_testkit.rocpd_writer import DispatchRow, RocpdContents


@frozen
class Launch:
    """One kernel execution. ``grid`` counts work-items; ``counters`` holds whole-GPU values."""

    kernel: str
    begin_ns: int
    end_ns: int
    stream: int = 0
    grid: tuple[int, int, int] = (64, 1, 1)
    workgroup: tuple[int, int, int] = (64, 1, 1)
    counters: Mapping[str, float] = attrs.field(factory=dict)


@frozen
class RocpdBuilder:
    """Writes rocpd files of a synthetic MI300X into ``folder``; they are stamped synthetic."""

    folder: Path

    def __call__(
        self,
        launches: Iterable[Launch | tuple[str, int, int]],
        *,
        name: str = "out_results.db",
        pid: int = 4242,
        schema_version: str = "3",
        command: str = "./app",
    ) -> Path:
        """Write one file and return its path. A tuple is (kernel, begin_ns, end_ns)."""
        from rpl_testkit.rocpd_writer import write_rocpd

        rows = [item if isinstance(item, Launch) else Launch(*item) for item in launches]
        path = self.folder / name
        write_rocpd(path, _contents(rows, name, pid, command), synthetic=True, schema_version=schema_version)
        return path


def _contents(launches: list[Launch], name: str, pid: int, command: str) -> RocpdContents:
    from rpl_testkit.rocpd_writer import (
        CodeObjectRow,
        CounterDefinitionRow,
        CounterRow,
        KernelRow,
        ProcessRow,
        QueueRow,
        RocpdContents,
        StreamRow,
        guid_from_seed,
    )
    from rpl_testkit.synthetic_recording.mi300x import GPU_AGENT, mi300x_agents

    kernels = {kernel: i for i, kernel in enumerate(dict.fromkeys(x.kernel for x in launches), 1)}
    counters = sorted({counter for launch in launches for counter in launch.counters})
    return RocpdContents(
        guid=guid_from_seed(f"{name}/{pid}"),
        process=ProcessRow(
            pid,
            command,
            begin_ns=min((x.begin_ns for x in launches), default=0),
            end_ns=max((x.end_ns for x in launches), default=0),
        ),
        agents=mi300x_agents(gpus=1),
        code_objects=(CodeObjectRow(1, GPU_AGENT, f"memory://{pid}"),),
        kernels=tuple(KernelRow(number, kernel, kernel) for kernel, number in kernels.items()),
        queues=(QueueRow(1, "Queue 1"),),
        streams=tuple(StreamRow(s, f"Stream {s}") for s in sorted({x.stream for x in launches} - {0})),
        dispatches=tuple(_dispatch(i, x, kernels[x.kernel], GPU_AGENT) for i, x in enumerate(launches, 1)),
        counters=tuple(
            CounterRow(i, counter, (float(value),))
            for i, launch in enumerate(launches, 1)
            for counter, value in sorted(launch.counters.items())
        ),
        counter_definitions=tuple(CounterDefinitionRow(c, GPU_AGENT, c.split("_")[0]) for c in counters),
    )


def _dispatch(number: int, launch: Launch, kernel_id: int, agent: int) -> DispatchRow:
    from rpl_testkit.rocpd_writer import DispatchRow

    return DispatchRow(
        dispatch_id=number,
        kernel_id=kernel_id,
        agent=agent,
        queue_id=1,
        stream_id=launch.stream,
        begin_ns=launch.begin_ns,
        end_ns=launch.end_ns,
        grid=launch.grid,
        workgroup=launch.workgroup,
    )
