"""How busy machines, GPUs and processes were, each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.analysis.execution_graph.idle_time import find_releases, sum_idle_time
from rpl_core.analysis.execution_graph.model import ClockDomain, DeviceLoad, ProcessPath
from rpl_core.analysis.execution_graph.numbering import number_keys

if TYPE_CHECKING:
    from rpl_core.analysis.execution_graph.domain import SolvedDomain
    from rpl_core.model.trace import Trace

__all__ = ["device_loads", "domain_load", "process_paths"]

#: dag.json lists that many devices and processes, those with most work first (chosen).
MOST_PARTS = 256


def domain_load(solved: SolvedDomain) -> ClockDomain:
    """All GPUs of one machine together.

    ``overlap_potential_ns`` = busy time - exec-only path: what running side by side could still hide if
    dependences were the only limit.
    """
    work = solved.domain.work
    busy, idle = sum_idle_time(work.begin_ns, work.end_ns, find_releases(solved.domain))
    length = solved.path.critical_path_ns
    return ClockDomain(
        node=solved.domain.machine,
        makespan_ns=solved.graph.makespan_ns,
        critical_path_ns=length,
        busy_ns=busy.busy_ns,
        idle_ns=busy.idle_ns,
        parallelism=busy.parallelism(length) or 0.0,
        total_ns=busy.total_ns,
        overlap_ns=busy.overlap_ns,
        overlap_potential_ns=busy.busy_ns - length,
        concurrency=busy.concurrency,
        idle=idle,
    )


def device_loads(trace: Trace, solved: SolvedDomain) -> list[DeviceLoad]:
    """One entry per GPU of the machine, by index."""
    work, releases = solved.domain.work, find_releases(solved.domain)
    agents, index = number_keys(work.agent)
    loads = []
    for i, agent in enumerate(agents.tolist()):
        rows = np.flatnonzero(index == i) if agents.size > 1 else np.arange(len(work))
        busy, idle = sum_idle_time(work.begin_ns[rows], work.end_ns[rows], releases, rows)
        loads.append(
            DeviceLoad(
                node=solved.domain.machine,
                agent=trace.agents[agent].index if agent >= 0 else None,
                nodes=int(rows.size),
                total_ns=busy.total_ns,
                busy_ns=busy.busy_ns,
                idle_ns=busy.idle_ns,
                concurrency=busy.concurrency,
                idle=idle,
            )
        )
    return loads


def process_paths(trace: Trace, solved: SolvedDomain) -> list[ProcessPath]:
    """One entry per process of the machine: processes never wait for each other in the graph."""
    work = solved.domain.work
    processes, index = number_keys(work.process)
    count = processes.size
    longest = np.zeros(count, dtype=np.int64)
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.zeros(count, dtype=np.int64)
    np.maximum.at(longest, index, solved.solution.head_ns[: len(work)])
    np.minimum.at(first, index, work.begin_ns)
    np.maximum.at(last, index, work.end_ns)
    nodes = np.bincount(index, minlength=count)
    return [
        ProcessPath(
            node=solved.domain.machine,
            process=trace.processes[number].pid,
            nodes=int(nodes[i]),
            critical_path_ns=int(longest[i]),
            makespan_ns=int(last[i] - first[i]),
        )
        for i, number in enumerate(processes.tolist())
    ]
