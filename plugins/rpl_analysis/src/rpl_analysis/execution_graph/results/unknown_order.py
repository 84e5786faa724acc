"""What the order of streams could be where the recording does not tell: figures that hold under any order.

Work whose order is unknown may wait for each other or not. What overlaps did not wait, so the longest sum of
intervals that do not overlap bounds every path, and of those of one symbol what it can cost.
"""

from __future__ import annotations

from array import array
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.graph.numbering import BLOCK, is_constant
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

#: Intervals from which on arrays beat a step per interval (measured, beside other work).
_FEWEST_IN_STRETCHES = 4096
#: Recordings settle in two to four rounds; each costs a hundredth of a step per interval.
_MOST_ROUNDS = 8


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
    rest = np.repeat(count > 2, count)
    if 4 * int(np.count_nonzero(rest)) > 3 * rest.size:
        return _heaviest_of_overlapping_ns(begin_ns, end_ns, weight_ns)  # hardly less, and no copies of it
    return sure + _heaviest_of_overlapping_ns(begin_ns[rest], end_ns[rest], weight_ns[rest])


def _heaviest_of_overlapping_ns(begin_ns: Int64Column, end_ns: Int64Column, weight_ns: Int64Column) -> int:
    order = np.argsort(end_ns, kind="stable")
    weight = weight_ns[order]
    # Counts of rows fit into 32 bits; questions that ascend are answered from the caches.
    ended_before = np.searchsorted(end_ns[order], begin_ns, side="right").astype(np.int32)[order]
    del order
    if weight.size >= _FEWEST_IN_STRETCHES:
        settled = _heaviest_by_stretches_ns(weight, ended_before)
        if settled is not None:
            return settled
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


def _heaviest_by_stretches_ns(weight_ns: Int64Column, ended_before: NDArray[np.int32]) -> int | None:
    """The same by arrays: stretches of intervals side by side, each relative to what its begin is worth.

    Intervals ascend by end; ``ended_before`` counts those that ended by the begin of each. What one that
    began before its stretch builds on is a guess at first, then what the round before found; when a round
    finds what it was given all is exact, since the first stretch always is. Choices soon forget how they
    began (Maleki, Musuvathi, Mytkowicz, "Parallelizing Dynamic Programming Through Rank Convergence", PPoPP
    2014). None where they do not, as of streams in lockstep.
    """
    steps = isqrt(weight_ns.size)
    stretches = -(-weight_ns.size // steps)
    first = np.arange(0, stretches * steps, steps, dtype=np.int32)[:, None]
    # What fills the last stretch weighs nothing and builds on its begin.
    before = np.full((stretches, steps), first[-1, 0], np.int32)
    before.reshape(-1)[: ended_before.size] = ended_before
    weight = np.zeros((stretches, steps), np.int64)
    weight.reshape(-1)[: weight_ns.size] = weight_ns
    weight = np.ascontiguousarray(weight.T)
    stretch, step = np.nonzero(before < first)
    from_stretch, from_step = np.divmod(before[stretch, step], steps)
    # Row k: what the first k intervals of each stretch add; behind the rows what comes from other stretches.
    size = (steps + 1) * stretches
    worth = np.zeros(size + stretch.size, np.int64)
    rows, brought = worth[:size].reshape(-1, stretches), worth[size:]
    place = before
    place -= first
    place *= stretches
    place += np.arange(stretches, dtype=np.int32)[:, None]
    place[stretch, step] = size + np.arange(stretch.size)
    place = np.ascontiguousarray(place.T)
    for _ in range(_MOST_ROUNDS):
        for k in range(steps):
            np.maximum(worth[place[k]] + weight[k], rows[k], out=rows[k + 1])
        total = np.cumsum(rows[steps])
        at_begin = total - rows[steps]
        found = at_begin[from_stretch] + rows[from_step, from_stretch] - at_begin[stretch]
        if np.array_equal(found, brought):
            return int(total[-1])
        brought[:] = found
    return None


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
    if is_constant(work.process):  # as a rule: one process
        return _heaviest_chain_ns(work.begin_ns[rows], work.end_ns[rows], weight_ns)
    process, most = work.process[rows], 0
    for own in distinct_values(process).tolist():
        of = np.flatnonzero(process == own)
        chain = _heaviest_chain_ns(work.begin_ns[rows[of]], work.end_ns[rows[of]], weight_ns[of])
        most = max(most, chain)
    return most
