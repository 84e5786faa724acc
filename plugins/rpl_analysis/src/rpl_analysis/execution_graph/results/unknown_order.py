"""What the order of streams could be where the recording does not tell: figures that hold under any order.

Work whose order is unknown may wait for each other or not. What overlaps did not wait, so the longest sum of
intervals that do not overlap bounds every path, and of those of one symbol what it can cost.
"""

from __future__ import annotations

from array import array
from functools import cached_property
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.graph import BLOCK, is_constant
from rpl_core.model.trace import distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.contracts.dag import UnresolvedPart
    from rpl_analysis.execution_graph.dependencies.all_edges import SyncInfo
    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.results.domain import Domain

    Int64Column = NDArray[np.int64]

__all__ = ["ChangedWork", "GainRange", "LaneOrder", "longest_chain_ns", "order_is_known"]

#: Intervals from which on arrays beat a step per interval (measured, beside other work).
_FEWEST_IN_STRETCHES = 4096
#: Recordings settle in two to four rounds; each costs a hundredth of a step per interval.
_MOST_ROUNDS = 8
_MOST_INT32 = 0x7FFF_FFFF


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
    return _Intervals.of(begin_ns, end_ns).heaviest_chain_ns(weight_ns)


@frozen(eq=False)
class _Intervals:
    """Intervals that ascend by begin, looked at once for any weights of theirs.

    Cut where nothing runs on: of one interval between two cuts take it, of two the heavier one.
    """

    some: NDArray[np.bool_] | None  # those that last, where not all do
    alone: Int64Column
    pairs: Int64Column
    rest: NDArray[np.bool_] | None  # the others, where it is worth to look at them alone
    begin_ns: Int64Column
    end_ns: Int64Column

    @staticmethod
    def of(begin_ns: Int64Column, end_ns: Int64Column) -> _Intervals:
        some = end_ns > begin_ns
        lasting = None if some.all() else some
        if lasting is not None:
            begin_ns, end_ns = begin_ns[lasting], end_ns[lasting]
        opens = np.ones(begin_ns.size, dtype=np.bool_)
        np.greater_equal(begin_ns[1:], np.maximum.accumulate(end_ns)[:-1], out=opens[1:])
        first = np.flatnonzero(opens)
        count = np.diff(first, append=begin_ns.size)
        rest = np.repeat(count > 2, count)
        if 4 * int(np.count_nonzero(rest)) > 3 * rest.size:  # all are hardly more, and need no copies
            nothing = np.zeros(0, np.int64)
            return _Intervals(lasting, nothing, nothing, None, begin_ns, end_ns)
        pairs = first[count == 2]
        return _Intervals(lasting, first[count == 1], pairs, rest, begin_ns[rest], end_ns[rest])

    def heaviest_chain_ns(self, weight_ns: Int64Column) -> int:
        """Weighted interval scheduling; no weight is negative."""
        if self.some is not None:
            weight_ns = weight_ns[self.some]
        if self.rest is None:
            return self._heaviest_of_overlapping_ns(weight_ns)
        sure = int(weight_ns[self.alone].sum())
        sure += int(np.maximum(weight_ns[self.pairs], weight_ns[self.pairs + 1]).sum())
        return sure + self._heaviest_of_overlapping_ns(weight_ns[self.rest])

    @cached_property
    def by_end(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The intervals by end, and of each how many ended by its begin. Rows fit into 32 bits."""
        order = np.argsort(self.end_ns, kind="stable").astype(np.int32)
        # Questions that ascend are answered from the caches.
        ended_before = np.searchsorted(self.end_ns[order], self.begin_ns, side="right").astype(np.int32)
        return order, ended_before[order]

    def _heaviest_of_overlapping_ns(self, weight_ns: Int64Column) -> int:
        order, ended_before = self.by_end
        # Most durations fit into 32 bits, and with millions of intervals every column counts.
        narrow = np.int32 if int(weight_ns.max(initial=0)) <= _MOST_INT32 else np.int64
        weight = weight_ns.astype(narrow)[order]
        if weight.size >= _FEWEST_IN_STRETCHES:
            settled = _heaviest_by_stretches_ns(weight, ended_before)
            if settled is not None:
                return settled
        best, longest = 0, array("q", [0])
        # In blocks, and in 64 bits: millions of intervals as Python numbers need five times their memory.
        for start in range(0, weight.size, BLOCK):
            block = slice(start, start + BLOCK)
            for added, before in zip(weight[block].tolist(), ended_before[block].tolist(), strict=True):
                with_it = longest[before] + added
                if with_it > best:
                    best = with_it
                longest.append(best)
        return best


def _heaviest_by_stretches_ns(
    weight_ns: NDArray[np.signedinteger], ended_before: NDArray[np.int32]
) -> int | None:
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
    weight = np.zeros((stretches, steps), weight_ns.dtype)
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


@frozen(eq=False)
class ChangedWork:
    """Work nodes that get shorter or longer, each process apart, looked at once for any change of theirs."""

    work: WorkNodes
    rows: Int64Column
    of_process: tuple[tuple[Int64Column | slice, _Intervals], ...]

    @staticmethod
    def of(work: WorkNodes, rows: Int64Column) -> ChangedWork:
        """``rows`` of ``work``, ascending."""
        process = work.process[rows]
        owners = distinct_values(process[:1] if is_constant(work.process) else process).tolist()
        parts: list[Int64Column | slice] = [slice(None)]  # as a rule: one process
        if len(owners) > 1:
            parts = [np.flatnonzero(process == owner) for owner in owners]
        return ChangedWork(
            work,
            rows,
            tuple((of, _Intervals.of(work.begin_ns[rows[of]], work.end_ns[rows[of]])) for of in parts),
        )

    def gain_range(self, saved_ns: Int64Column, recorded_ns: int, certain_path_ns: int | None) -> GainRange:
        """The range where the order of lanes is unknown.

        Each of the rows gets ``saved_ns`` shorter (negative: longer). ``recorded_ns`` is the makespan,
        ``certain_path_ns`` the length of the exec-only path after the change, ``None`` where it rests on
        dependencies that are not certain.
        """
        least_saved, most_saved = int(saved_ns.min(initial=0)), int(saved_ns.max(initial=0))
        if not least_saved and not most_saved:
            return GainRange(0, 0)
        in_place = recorded_ns - (self._last_end_ns(saved_ns) - int(self.work.begin_ns[0]))
        if most_saved:
            most = self._most_in_a_chain(np.maximum(saved_ns, 0) if least_saved else saved_ns)
        else:
            most = min(in_place, 0)
        least = -self._most_in_a_chain(np.maximum(-saved_ns, 0)) if least_saved else max(in_place, 0)
        if certain_path_ns is not None:
            most = min(most, recorded_ns - certain_path_ns)
        return GainRange(least, max(least, most))

    def _last_end_ns(self, saved_ns: Int64Column) -> int:
        """When the last node ends if everything begins as recorded."""
        own, others = self._ends_ns
        return max(others, int((own - saved_ns).max()))

    @cached_property
    def _ends_ns(self) -> tuple[Int64Column, int]:
        """When the rows end, and the last of all others."""
        own, last = self.work.end_ns[self.rows], self.work.last_end_ns
        if int(own.max()) == last:
            others = self.work.end_ns.copy()
            others[self.rows] = np.iinfo(np.int64).min
            last = int(others.max())
        return own, last

    def _most_in_a_chain(self, weight_ns: Int64Column) -> int:
        """The largest sum of weights over rows of one process that do not overlap."""
        return max(each.heaviest_chain_ns(weight_ns[of]) for of, each in self.of_process)
