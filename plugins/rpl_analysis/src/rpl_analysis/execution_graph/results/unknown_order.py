"""What the order of streams could be where the recording does not tell: figures that hold under any order.

Work whose order is unknown may wait for each other or not. What overlaps did not wait, so the longest sum of
intervals that do not overlap bounds every path, and of those of one symbol what it can cost.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.graph.numbering import BLOCK
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
        begin, end = (c if own.all() else c[own] for c in (work.begin_ns, work.end_ns))
        chains.append(_heaviest_chain_ns(begin, end, end - begin))
    return max(chains, default=0)


def _heaviest_chain_ns(begin_ns: Int64Column, end_ns: Int64Column, weight_ns: Int64Column) -> int:
    """Weighted interval scheduling; intervals ascend by begin."""
    some = end_ns > begin_ns
    if not some.all():
        begin_ns, end_ns, weight_ns = begin_ns[some], end_ns[some], weight_ns[some]
    # Cut where nothing runs on: of one interval take it, of two the heavier one.
    opens = np.ones(begin_ns.size, dtype=np.bool_)
    np.greater_equal(begin_ns[1:], np.maximum.accumulate(end_ns)[:-1], out=opens[1:])
    first = np.flatnonzero(opens)
    count = np.diff(first, append=begin_ns.size)
    pairs = first[count == 2]
    sure = int(weight_ns[first[count == 1]].sum())
    sure += int(np.maximum(weight_ns[pairs], weight_ns[pairs + 1]).sum())
    if not bool((count > 2).all()):
        rest = np.flatnonzero(np.repeat(count > 2, count))
        begin_ns, end_ns, weight_ns = begin_ns[rest], end_ns[rest], weight_ns[rest]
    return sure + _heaviest_of_overlapping_ns(begin_ns, end_ns, weight_ns)


def _heaviest_of_overlapping_ns(begin_ns: Int64Column, end_ns: Int64Column, weight_ns: Int64Column) -> int:
    order = np.argsort(end_ns, kind="stable")
    weight = weight_ns[order]
    ended_before = np.searchsorted(end_ns[order], begin_ns[order], side="right")
    best, longest = 0, array("q", [0])
    # In blocks, and kept in 64 bits: as Python numbers millions of intervals need five times their memory.
    for start in range(0, weight.size, BLOCK):
        block = slice(start, start + BLOCK)
        for added, before in zip(weight[block].tolist(), ended_before[block].tolist(), strict=True):
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
    work: WorkNodes, rows: Int64Column, saved_ns: Int64Column, recorded_ns: int, certain_path_ns: int | None
) -> GainRange:
    """The range where the order of lanes is unknown.

    Each work node of ``rows`` (ascending) gets ``saved_ns`` shorter (negative: longer). ``recorded_ns`` is
    the makespan, ``certain_path_ns`` the length of the exec-only path after the change, ``None`` where it
    rests on dependencies that are not certain.
    """
    rows, saved_ns = rows[saved_ns != 0], saved_ns[saved_ns != 0]
    if not rows.size:
        return GainRange(0, 0)
    in_place = recorded_ns - (_last_end_ns(work, rows, saved_ns) - int(work.begin_ns.min()))
    less = saved_ns > 0
    most = _most_in_a_chain(work, rows[less], saved_ns[less]) if less.any() else min(in_place, 0)
    least = -_most_in_a_chain(work, rows[~less], -saved_ns[~less]) if not less.all() else max(in_place, 0)
    if certain_path_ns is not None:
        most = min(most, recorded_ns - certain_path_ns)
    return GainRange(least, max(least, most))


def _last_end_ns(work: WorkNodes, rows: Int64Column, saved_ns: Int64Column) -> int:
    """When the last node ends if everything begins as recorded."""
    end_ns, last = work.end_ns[rows], int(work.end_ns.max())
    if int(end_ns.max()) == last:
        others = work.end_ns.copy()
        others[rows] -= saved_ns
        return int(others.max())
    return max(last, int((end_ns - saved_ns).max()))


def _most_in_a_chain(work: WorkNodes, rows: Int64Column, weight_ns: Int64Column) -> int:
    """The largest sum of weights over rows of one process that do not overlap."""
    process, most = work.process[rows], 0
    for own in distinct_values(process).tolist():
        of = slice(None) if own == process[0] and (process == own).all() else np.flatnonzero(process == own)
        chain = _heaviest_chain_ns(work.begin_ns[rows[of]], work.end_ns[rows[of]], weight_ns[of])
        most = max(most, chain)
    return most
