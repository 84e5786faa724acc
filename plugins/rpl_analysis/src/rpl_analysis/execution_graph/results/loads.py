"""How busy machines, GPUs and processes were, each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.contracts.graph import ClockDomainPart, DevicePart, ProcessPart
from rpl_analysis.critical_path.intervals import merge_intervals
from rpl_analysis.execution_graph.graph.numbering import number_keys
from rpl_analysis.execution_graph.results.time_spent import find_releases, sum_idle_time
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_analysis.contracts.graph import IdlePart
    from rpl_analysis.critical_path.intervals import BusyTime
    from rpl_analysis.execution_graph.graph.nodes import WorkNodes
    from rpl_analysis.execution_graph.results.domain import SolvedDomain
    from rpl_analysis.execution_graph.results.host_timeline import HostTimeline
    from rpl_analysis.execution_graph.results.time_spent import IdleTime
    from rpl_core.model.trace import Trace

__all__ = ["MachineLoad", "machine_load", "process_paths"]

#: dag.json lists that many devices and processes, those with most work first (chosen).
MOST_PARTS = 256


@frozen
class MachineLoad:
    """One machine: all its GPUs together, and each by index."""

    domain: ClockDomainPart
    devices: tuple[DevicePart, ...]


def machine_load(trace: Trace, solved: SolvedDomain, host: HostTimeline | None) -> MachineLoad:
    """Busy and idle time of the machine and of its GPUs."""
    work, releases = solved.domain.work, find_releases(solved.domain, host)
    spent = sum_idle_time(work.begin_ns, work.end_ns, releases)
    kernel_ns = _kernel_ns(work)
    agents, index = number_keys(work.agent)
    devices = []
    for i, agent in enumerate(agents.tolist()):
        times = spent.busy, spent.idle, kernel_ns
        if agents.size > 1:
            rows = np.flatnonzero(index == i)
            own = sum_idle_time(work.begin_ns[rows], work.end_ns[rows], releases, rows)
            times = own.busy, own.idle, _kernel_ns(work.pick(index == i))
        devices.append(_device_load(trace, solved, agent, int(np.count_nonzero(index == i)), *times))
    return MachineLoad(_domain_load(solved, spent, kernel_ns, devices), tuple(devices))


def _kernel_ns(work: WorkNodes) -> int | None:
    """Time in which a kernel ran; None where nothing but kernels did."""
    if not work.is_copy.any():
        return None
    kernels = ~work.is_copy
    ran = merge_intervals(work.begin_ns[kernels], work.end_ns[kernels])
    return int((ran.end_ns - ran.begin_ns).sum())


def _domain_load(
    solved: SolvedDomain,
    spent: IdleTime,
    kernel_ns: int | None,
    devices: Sequence[DevicePart],
) -> ClockDomainPart:
    """All GPUs of one machine together.

    Work at the same time counts within a GPU: that several GPUs work at once is no overlap.
    ``overlap_potential_ns`` = busy time - exec-only path: what running side by side could still hide if
    dependencies were the only limit.
    """
    busy, length = spent.busy, solved.path.critical_path_ns
    busy_of_each = sum(device.busy_ns for device in devices)
    return ClockDomainPart(
        node=solved.domain.machine,
        makespan_ns=solved.graph.makespan_ns,
        critical_path_ns=length,
        busy_ns=busy.busy_ns,
        **_busy_with(busy, kernel_ns),
        idle_ns=busy.idle_ns,
        parallelism=busy.parallelism(length) or 0.0,
        total_ns=busy.total_ns,
        overlap_ns=busy.total_ns - busy_of_each,
        overlap_potential_ns=busy.busy_ns - length,
        concurrency=busy.total_ns / busy_of_each if busy_of_each else None,
        idle=spent.idle,
        idle_calls=spent.calls,
    )


def _busy_with(busy: BusyTime, kernel_ns: int | None) -> dict[str, int]:
    kernel_ns = busy.busy_ns if kernel_ns is None else kernel_ns
    return {"kernel_ns": kernel_ns, "copy_ns": busy.busy_ns - kernel_ns}


def _device_load(
    trace: Trace,
    solved: SolvedDomain,
    agent: int,
    nodes: int,
    busy: BusyTime,
    idle: IdlePart,
    kernel_ns: int | None,
) -> DevicePart:
    return DevicePart(
        node=solved.domain.machine,
        agent=trace.agents[agent].index if agent >= 0 else None,
        nodes=nodes,
        total_ns=busy.total_ns,
        busy_ns=busy.busy_ns,
        **_busy_with(busy, kernel_ns),
        idle_ns=busy.idle_ns,
        concurrency=busy.concurrency,
        idle=idle,
    )


def process_paths(trace: Trace, solved: SolvedDomain) -> list[ProcessPart]:
    """One entry per process of the machine: processes never wait for each other in the graph."""
    work = solved.domain.work
    processes, index = number_keys(work.process)
    count = processes.size
    first, last = work.begin_ns[:1], np.array([work.end_ns.max()])
    nodes = np.array([len(work)])
    if count > 1:
        first = np.full(count, np.iinfo(np.int64).max)
        last = np.zeros(count, dtype=np.int64)
        np.minimum.at(first, index, work.begin_ns)
        np.maximum.at(last, index, work.end_ns)
        nodes = np.bincount(index, minlength=count)
    return [
        ProcessPart(
            node=solved.domain.machine,
            process=trace.processes[number].pid,
            nodes=int(nodes[i]),
            critical_path_ns=int(solved.process_path_ns[number]),
            makespan_ns=int(last[i] - first[i]),
        )
        for i, number in enumerate(processes.tolist())
    ]
