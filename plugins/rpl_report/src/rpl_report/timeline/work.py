"""Work nodes of a trace with their path and slack, one row each: what pictures and exports show.

The graph is solved again from the recording, with the very steps of the execution-graph analyzer, because
``dag.json`` keeps no row per dispatch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.execution_graph.dependencies.all_edges import find_dependencies
from rpl_analysis.execution_graph.graph.nodes import work_nodes
from rpl_analysis.execution_graph.graph.numbering import number_keys
from rpl_analysis.execution_graph.results.domain import machine_domains, solve_domain
from rpl_analysis.execution_graph.results.host_timeline import host_timeline
from rpl_analysis.execution_graph.results.time_spent import IdleIntervals, find_releases, idle_intervals
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.dependencies.all_edges import Dependencies
    from rpl_analysis.execution_graph.graph.nodes import WorkNodes
    from rpl_analysis.execution_graph.results.domain import SolvedDomain
    from rpl_core.model.trace import Trace

    Int32Column = NDArray[np.int32]
    Int64Column = NDArray[np.int64]

__all__ = ["GpuIdle", "TimedWork", "timed_work"]


@frozen(eq=False)
class GpuIdle:
    """When one GPU idled between its work, and why; ``agent`` indexes the trace's, -1 unknown.

    ``intervals.node`` are rows of the work that ended the idle time.
    """

    machine: int
    agent: int
    intervals: IdleIntervals


@frozen(eq=False, kw_only=True)
class TimedWork:
    """Columns of shape (n,) over ``nodes``, which ascend by begin.

    ``path_rows`` are the rows of the critical path in its order: that of the machine with the longest one.
    ``slack_ns`` is within the row's machine. ``machine`` indexes ``machines``; ``origin_ns`` holds the first
    begin on each, since clocks of different machines do not compare.
    """

    trace: Trace
    nodes: WorkNodes
    machines: tuple[str, ...]
    machine: Int32Column
    origin_ns: Int64Column
    slack_ns: Int64Column
    path_rows: Int64Column
    critical_path_ns: int
    idle: tuple[GpuIdle, ...] = ()  # by machine and GPU, where it was asked for

    def on_path(self) -> NDArray[np.bool_]:
        """Whether each row lies on the critical path."""
        marked = np.zeros(len(self.nodes), dtype=np.bool_)
        marked[self.path_rows] = True
        return marked

    def begin_ns(self) -> Int64Column:
        """Begin after the first begin on the row's machine."""
        return self.nodes.begin_ns - self.origin_ns[self.machine]


def timed_work(trace: Trace, *, include_copies: bool = True, with_idle: bool = False) -> TimedWork | None:
    """Solve ``trace``; ``None`` if it holds no dispatch with usable times."""
    nodes = work_nodes(trace, include_copies=include_copies)
    if not len(nodes):
        return None
    dependencies = find_dependencies(trace, nodes)
    domains = [solve_domain(part) for part in machine_domains(trace, nodes, dependencies)]
    longest = max(domains, key=lambda solved: solved.path.critical_path_ns)
    machine = np.zeros(len(nodes), dtype=np.int32)
    slack = np.zeros(len(nodes), dtype=np.int64)
    for number, solved in enumerate(domains):
        rows = solved.domain.work_rows
        machine[rows] = number
        slack[rows] = solved.slack_ns[: rows.size]
    return TimedWork(
        trace=trace,
        nodes=nodes,
        machines=tuple(solved.domain.machine for solved in domains),
        machine=machine,
        origin_ns=np.array([int(s.domain.work.begin_ns[0]) for s in domains], dtype=np.int64),
        slack_ns=slack,
        path_rows=_path_rows(longest),
        critical_path_ns=longest.path.critical_path_ns,
        idle=tuple(_idle(trace, domains, dependencies)) if with_idle else (),
    )


def _idle(trace: Trace, domains: list[SolvedDomain], dependencies: Dependencies) -> Iterator[GpuIdle]:
    """As ``devices`` of dag.json counts it."""
    for machine, solved in enumerate(domains):
        work = solved.domain.work
        releases = find_releases(solved.domain, host_timeline(trace, solved.domain, dependencies))
        agents, index = number_keys(work.agent)
        for number, agent in enumerate(agents.tolist()):
            rows = np.flatnonzero(index == number)
            found = idle_intervals(work.begin_ns[rows], work.end_ns[rows], releases, rows)
            own = attrs.evolve(found, node=solved.domain.work_rows[found.node])
            yield GpuIdle(machine, agent, own)


def _path_rows(solved: SolvedDomain) -> Int64Column:
    """Rows on the path without the host's part of it."""
    rows = solved.path.rows
    return solved.domain.work_rows[rows[rows < solved.domain.work_rows.size]]
