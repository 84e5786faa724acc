"""What the order of streams could be where the recording does not tell: figures that hold under any order.

Work whose order is unknown may wait for each other or not. What overlaps did not wait, so the longest sum of
intervals that do not overlap bounds every path, and of those of one symbol what it can cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.contracts.graph import UnresolvedPart
    from rpl_analysis.execution_graph.dependencies.all_edges import SyncInfo
    from rpl_analysis.execution_graph.graph.nodes import WorkNodes
    from rpl_analysis.execution_graph.results.domain import Domain

    Int64Column = NDArray[np.int64]

__all__ = ["GainRange", "LaneOrder", "gain_range", "longest_chain_ns", "order_is_known"]


@frozen
class LaneOrder:
    """``known``: every wait between lanes is recorded; ``certain``: no dependency of it is doubtful."""

    known: bool
    certain: bool


def order_is_known(domain: Domain, sync_info: SyncInfo, unresolved: UnresolvedPart) -> bool:
    """Whether every wait between the lanes of a process is in the recording; one lane waits for none."""
    used = distinct_values(domain.work.lane)
    process = domain.work.lanes.process[used]
    if distinct_values(process).size == process.size:
        return True
    told = sync_info in ("api_calls", "measured_events")
    return told and not unresolved.waits and not unresolved.syncs


def longest_chain_ns(domain: Domain) -> int:
    """The longest sum of intervals of one process of which no two overlap."""
    work = domain.work
    chains = []
    for process in distinct_values(work.process).tolist():
        own = work.process == process
        begin, end = work.begin_ns[own], work.end_ns[own]
        chains.append(_heaviest_chain_ns(begin, end, end - begin))
    return max(chains, default=0)


def _heaviest_chain_ns(begin_ns: Int64Column, end_ns: Int64Column, weight_ns: Int64Column) -> int:
    """Weighted interval scheduling, in the order of the ends."""
    order = np.argsort(end_ns, kind="stable")
    order = order[end_ns[order] > begin_ns[order]]
    begin, end, weight = begin_ns[order], end_ns[order], weight_ns[order]
    if bool((begin[1:] >= end[:-1]).all()):
        return int(weight.sum())
    ended_before = np.searchsorted(end, begin, side="right")
    best, longest = 0, [0]
    for added, before in zip(weight.tolist(), ended_before.tolist(), strict=True):
        with_it = longest[before] + added
        if with_it > best:
            best = with_it
        longest.append(best)
    return best


@frozen
class GainRange:
    """What a change saves the application, in ns: at least and at most, whatever waited for what.

    A graph that lacks dependencies may promise too much as well as too little: work that waited for another
    stream would not begin earlier than that stream lets it. So the least is what is left if nothing begins
    earlier than recorded, and the most what one chain of work that did not overlap can save; paths along
    certain dependencies are kept. As everywhere durations, launches, host time and waits stay as recorded.
    """

    least_ns: int
    most_ns: int


def gain_range(
    work: WorkNodes, saved_ns: Int64Column, recorded_ns: int, certain_path_ns: int | None
) -> GainRange:
    """The range where the order of lanes is unknown.

    ``saved_ns`` is what each work node gets shorter (negative: longer), ``recorded_ns`` the makespan and
    ``certain_path_ns`` the length of the exec-only path after the change, ``None`` where it rests on
    dependencies that are not certain.
    """
    changed = np.flatnonzero(saved_ns)
    if not changed.size:
        return GainRange(0, 0)
    first, last = int(work.begin_ns.min()), work.end_ns - saved_ns
    in_place = recorded_ns - (int(last.max()) - first)
    faster, slower = changed[saved_ns[changed] > 0], changed[saved_ns[changed] < 0]
    most = _most_in_a_chain(work, faster, saved_ns) if faster.size else min(in_place, 0)
    least = -_most_in_a_chain(work, slower, -saved_ns) if slower.size else max(in_place, 0)
    if certain_path_ns is not None:
        most = min(most, recorded_ns - certain_path_ns)
    return GainRange(least, max(least, most))


def _most_in_a_chain(work: WorkNodes, rows: Int64Column, weight_ns: Int64Column) -> int:
    """The largest sum of weights over rows of one process that do not overlap."""
    process = work.process[rows]
    chains = (rows[process == own] for own in distinct_values(process).tolist())
    return max(_heaviest_chain_ns(work.begin_ns[r], work.end_ns[r], weight_ns[r]) for r in chains)
