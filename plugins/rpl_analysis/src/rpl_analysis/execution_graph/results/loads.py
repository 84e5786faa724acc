"""How busy machines, GPUs and processes were, each on its own, and where the host was while a GPU idled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.contracts.dag import ClockDomainPart, DevicePart, ProcessPart
from rpl_analysis.critical_path.intervals import merge_intervals
from rpl_analysis.execution_graph.graph import number_keys
from rpl_analysis.execution_graph.results.time_spent import find_releases, sum_idle_time
from rpl_core.model.trace import CallKind, CallMeaning, distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rpl_analysis.contracts.dag import IdlePart
    from rpl_analysis.critical_path.intervals import BusyTime
    from rpl_analysis.execution_graph.dependencies.all_edges import Dependencies
    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.results.domain import Domain, SolvedDomain
    from rpl_analysis.execution_graph.results.time_spent import IdleTime
    from rpl_core.model.trace import Trace

    Int64Column = NDArray[np.int64]
    BoolColumn = NDArray[np.bool_]

# Which call the host was in while a GPU idled: the thread that submitted what ended the gap tells.
#
# Of calls inside of each other the outermost counts, since that is what the application called. A thread is
# copying while it is in a call that moves data, or while it waits behind one that returned at once
# (docs/reference/execution-graph.md, 3.4).

_WAITS = (CallKind.STREAM_SYNC, CallKind.EVENT_SYNC, CallKind.DEVICE_SYNC)


@frozen(eq=False)
class Pieces:
    """Parts of gaps that the host spent in a call: the gap's number, the call's function, begin and ns."""

    gap: Int64Column
    function: NDArray[np.int32]
    copies: BoolColumn
    waits: BoolColumn
    call_begin_ns: Int64Column
    ns: Int64Column


@frozen(eq=False)
class HostTimeline:
    """The outermost calls in order of (thread, begin); ``first[t]`` is the first of thread ``t``.

    ``thread`` and ``returned_ns`` are those of the call of each work node of the machine, -1 where it is not
    recorded. ``copies`` marks the calls in which unrecorded copies may have run; nothing where copies were
    recorded. ``waits``: synchronisations, and calls that waited as a side effect.
    """

    thread: NDArray[np.int32]
    returned_ns: Int64Column
    first: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column
    function: NDArray[np.int32]
    copies: BoolColumn
    waits: BoolColumn
    names: tuple[str, ...]

    def pieces(self, node: Int64Column, begin_ns: Int64Column, end_ns: Int64Column) -> Iterator[Pieces]:
        """The calls in each gap, for one thread after the other; ``node`` ended the gap."""
        thread = self.thread[node]
        for one in distinct_values(thread[thread >= 0]).tolist():
            gap = np.flatnonzero(thread == one)
            rows = slice(int(self.first[one]), int(self.first[one + 1]))
            begin, end = self.begin_ns[rows], self.end_ns[rows]
            low = np.searchsorted(end, begin_ns[gap], side="right")
            count = np.maximum(np.searchsorted(begin, end_ns[gap], side="left") - low, 0)
            gap = np.repeat(gap, count)
            call = np.repeat(low - np.cumsum(count) + count, count) + np.arange(gap.size)
            ns = np.minimum(end[call], end_ns[gap]) - np.maximum(begin[call], begin_ns[gap])
            yield Pieces(
                gap,
                self.function[rows][call],
                self.copies[rows][call],
                self.waits[rows][call],
                begin[call],
                ns,
            )


def host_timeline(trace: Trace, domain: Domain, dependencies: Dependencies) -> HostTimeline | None:
    """What the host did, as far as calls tell; ``None`` where none are recorded."""
    program = dependencies.program
    calls = program.calls
    if calls is None:
        return None
    table = calls.table
    order = np.lexsort((-table.end_ns, table.begin_ns, calls.thread))
    order = order[_outermost(calls, order)]
    first = np.searchsorted(calls.thread[order], np.arange(calls.threads + 1))
    without_copies = trace.copies is None or not len(trace.copies)
    copies = _copying(trace, calls, order) if without_copies else np.zeros(order.size, np.bool_)
    waits = np.isin(calls.kind, _WAITS)
    waits[dependencies.syncs.call[dependencies.syncs.call >= 0]] = True
    call = program.submissions.call[domain.work_rows]
    returned_ns = np.where(call >= 0, table.end_ns[call], np.int64(-1))
    return HostTimeline(
        returned_ns=returned_ns,
        thread=np.where(call >= 0, calls.thread[call], np.int32(-1)),
        first=first,
        begin_ns=table.begin_ns[order],
        end_ns=table.end_ns[order],
        function=table.function[order],
        copies=copies,
        waits=waits[order],
        names=trace.api_functions,
    )


def _outermost(calls: HostCalls, order: Int64Column) -> BoolColumn:
    """Of calls in order of (thread, begin): whether none of the same thread is around."""
    begin, end, thread = calls.table.begin_ns[order], calls.table.end_ns[order], calls.thread[order]
    outermost = np.ones(order.size, np.bool_)
    for rows in np.split(np.arange(order.size), np.flatnonzero(np.diff(thread)) + 1):
        if rows.size > 1:
            outermost[rows[1:]] = begin[rows[1:]] >= np.maximum.accumulate(end[rows])[:-1]
    return outermost


def _copying(trace: Trace, calls: HostCalls, order: Int64Column) -> BoolColumn:
    """Calls that move data, and waits with such a call of the same thread since the wait before."""
    meanings = (*trace.meanings(), CallMeaning(CallKind.UNKNOWN))
    moves = np.array([meaning.copies for meaning in meanings], np.bool_)[calls.table.function[order]]
    kind = calls.kind[order]
    returned = np.isin(kind, (*_WAITS, CallKind.BLOCKING_COPY))
    made = np.cumsum(moves & (kind != CallKind.BLOCKING_COPY))
    before = np.zeros(order.size, np.int64)
    rows = np.flatnonzero(returned)
    opens = np.flatnonzero(np.diff(calls.thread[order], prepend=-1))
    of_thread = opens[np.searchsorted(opens, rows, side="right") - 1]
    since = np.where(of_thread > 0, made[np.maximum(of_thread, 1) - 1], 0)
    before[rows] = since
    before[rows[1:]] = np.maximum(since[1:], made[rows[:-1]])
    return moves | (returned & (made > before))


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
