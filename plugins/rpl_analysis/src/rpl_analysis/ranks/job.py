"""Summaries of ranks together, and which launches on different ranks are one operation.

A job is its summaries in the order of ranks: merging is a union, so no order and no grouping matters, and a
summary that comes twice counts once. Clocks of machines differ by an offset that nobody recorded. No rank
leaves a collective that waits for all before the last one came to it, on whatever clock: that bounds every
offset from both sides, and what is said of ranks on two machines is said for every offset in these bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.ranks.digest import KernelTimes, merge_times
from rpl_analysis.ranks.report import compare_arrivals
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.ranks.summary import Collective, RankSummary

    Int64Column = NDArray[np.int64]

__all__ = ["Clocks", "JobSummary", "Match", "Waits", "find_waits", "merge_jobs", "two_highest"]

#: An offset that nothing bounds: 73 years, which leaves room in 64 bits beside the time of an epoch.
UNBOUNDED_NS = 1 << 61
#: The bounds of offsets get no narrower after a few rounds; what was found until then holds (chosen).
_MOST_ROUNDS = 32
#: Times of ranks and operations that are worked on at a time, 1 MiB: beyond the caches of a core every pass
#: over a column costs twice as much, and thousands of ranks are beyond them (measured).
_BLOCK_TIMES = 1 << 17
_CONTRADICTION = (
    "a rank ended before another began under every offset of the clocks: the launches don't belong together, "
    "or the clocks drift apart"
)


@frozen(eq=False)
class Match:
    """Launches of one collective that are one operation per column (ranks, operations).

    ``rows`` are the ranks that launched it, in order. ``reason`` says why the launches can't be paired; the
    columns are empty then.
    """

    collective: Collective
    rows: Int64Column
    calls: Int64Column  # per rank of ``rows``
    total_ns: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column
    exposed_ns: Int64Column
    work_ns: Int64Column
    host_ns: Int64Column  # from the collective before to this one, without ``work_ns``
    reason: str | None = None

    def blocks(self) -> Iterator[slice]:
        """All operations, some at a time."""
        width = max(1, _BLOCK_TIMES // self.rows.size)
        for first in range(0, self.begin_ns.shape[1], width):
            yield slice(first, first + width)


@frozen(eq=False)
class Clocks:
    """Per machine, by the order of ranks: at least and at most so much is added to its times.

    The first machine's clock is the common one. With ``reason`` nothing bounds some clock. ``assumed``: they
    rest on collectives of which nobody knows that they wait for all. ``likely_ns`` lies between: ranks leave
    a collective at about the same time, so it is the median difference of their ends.
    """

    nodes: tuple[str, ...]
    least_ns: Int64Column
    most_ns: Int64Column
    likely_ns: Int64Column
    reason: str | None = None
    assumed: bool = False

    @property
    def width_ns(self) -> int:
        """Of the widest interval."""
        return int((self.most_ns - self.least_ns).max(initial=0))


@frozen(eq=False)
class JobSummary:
    """Summaries in the order of ranks, each once."""

    ranks: tuple[RankSummary, ...]

    @staticmethod
    def of(ranks: Iterable[RankSummary]) -> JobSummary:
        once = {rank.identity.order(): rank for rank in ranks}
        return JobSummary(tuple(once[place] for place in sorted(once)))

    @cached_property
    def kernels(self) -> KernelTimes:
        """Of all ranks together."""
        return merge_times([rank.kernels for rank in self.ranks])

    @cached_property
    def node(self) -> Int64Column:
        """The number of each rank's machine; ranks of one machine stand together."""
        names = [rank.identity.node for rank in self.ranks]
        opens = [i == 0 or name != names[i - 1] for i, name in enumerate(names)]
        return np.cumsum(opens, dtype=np.int64) - 1

    @cached_property
    def matches(self) -> tuple[Match, ...]:
        """The n-th launch on each rank is one operation: of a communicator and a size, else of a kernel."""
        places: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
        for row, rank in enumerate(self.ranks):
            for kind, one in enumerate(rank.collectives):
                key = (one.name, one.communicator or "", -1 if one.elements is None else one.elements)
                places.setdefault(key, []).append((row, kind))
        return tuple(self._match(places[key]) for key in sorted(places))

    def _match(self, places: Sequence[tuple[int, int]]) -> Match:
        rows, parts = [row for row, _ in places], []
        for row, kind in places:
            rank = self.ranks[row]
            own, picked = rank.operations, rank.operations.kind == kind
            gap = own.begin_ns - np.maximum.accumulate(np.append(rank.begin_ns, own.end_ns))[:-1]
            columns = (own.begin_ns, own.end_ns, own.exposed_ns, own.work_ns)
            parts.append([*(c[picked] for c in columns), np.maximum(gap - own.work_ns, 0)[picked]])
        collective = self.ranks[rows[0]].collectives[places[0][1]]
        calls = np.array([part[0].size for part in parts], np.int64)
        total = np.array([int((part[1] - part[0]).sum()) for part in parts], np.int64)
        reason = _why_unpaired(calls)
        nothing = np.zeros((len(rows), 0), np.int64)
        begin, end, exposed, work, host = (
            [nothing] * 5 if reason else [np.stack(column) for column in zip(*parts, strict=True)]
        )
        return Match(
            collective, np.array(rows, np.int64), calls, total, begin, end, exposed, work, host, reason
        )

    @cached_property
    def clocks(self) -> Clocks:
        """The offsets that collectives allow: those that wait for all, else any, which is an assumption."""
        paired = [match for match in self.matches if match.reason is None]
        sure = [match for match in paired if match.collective.waits_for_all]
        clocks = self._clocks(sure)
        if clocks.reason is None or len(sure) == len(paired):
            return clocks
        return attrs.evolve(self._clocks(paired), assumed=True)

    def _clocks(self, matches: Sequence[Match]) -> Clocks:
        nodes = tuple(dict.fromkeys(rank.identity.node for rank in self.ranks))
        least = np.full(len(nodes), -UNBOUNDED_NS, np.int64)
        most = np.full(len(nodes), UNBOUNDED_NS, np.int64)
        least[:1] = most[:1] = 0
        pairs = [_extremes(match, self.node) for match in matches]
        for _ in range(_MOST_ROUNDS if len(nodes) > 1 else 0):
            before = least.copy(), most.copy()
            for present, last_begin, first_end in pairs:
                came = (last_begin + least[present, None]).max(axis=0)
                left = (first_end + most[present, None]).min(axis=0)
                np.maximum.at(least, present, (came - first_end).max(axis=1))
                np.minimum.at(most, present, (left - last_begin).min(axis=1))
            if np.array_equal(before[0], least) and np.array_equal(before[1], most):
                break
        free = int(((least <= -UNBOUNDED_NS // 2) | (most >= UNBOUNDED_NS // 2)).sum())
        reason = None
        if bool((least > most).any()):
            reason = _CONTRADICTION
        elif free:
            reason = (
                f"the clocks of {free} of {len(nodes)} machines are not bounded: no collective that all of"
                " them launched equally often connects them"
            )
        if reason is not None:
            return Clocks(nodes, least * 0, most * 0, least * 0, reason)
        return Clocks(nodes, least, most, np.clip(_likely(pairs, least, most), least, most))


def _extremes(match: Match, node: Int64Column) -> tuple[Int64Column, Int64Column, Int64Column]:
    """The machines in it, and per machine and operation the last begin and the first end."""
    own = node[match.rows]
    opens = np.flatnonzero(np.diff(own, prepend=-1))
    begins = np.maximum.reduceat(match.begin_ns, opens, axis=0)
    return own[opens], begins, np.minimum.reduceat(match.end_ns, opens, axis=0)


def _likely(
    pairs: Sequence[tuple[Int64Column, Int64Column, Int64Column]], least: Int64Column, most: Int64Column
) -> Int64Column:
    """Offsets by the ends of operations that the first machine takes part in; else the middle."""
    likely = least + (most - least) // 2
    ends = [(present, first_end) for present, _, first_end in pairs if present[0] == 0]
    if ends:
        present, first_end = max(ends, key=lambda pair: pair[1].size)
        likely[present] = np.median(first_end[0] - first_end, axis=1).astype(np.int64)
    return likely


def _why_unpaired(calls: Int64Column) -> str | None:
    if calls.size < 2:
        return "one rank alone ran it"
    least, most = int(calls.min()), int(calls.max())
    if least < most:
        return f"the ranks launched it {least} to {most} times: no pairs are known"
    return None


def merge_jobs(jobs: Sequence[JobSummary]) -> JobSummary:
    """The union. Associative and commutative, and merging a job with itself changes nothing."""
    return JobSummary.of(rank for job in jobs for rank in job.ranks)


@frozen(eq=False)
class Waits:
    """Who waited in a matched collective, per rank of ``rows``, and who came last.

    ``wait_ns`` is that under the likely offsets of the clocks, between ``least_ns`` and ``most_ns`` under
    any; ``exposed_ns`` the part of it while no other kernel ran. Per operation ``last`` is the row among
    the match's ranks that came last, ``settled`` whether it did under every offset, and ``second_ns`` how
    long the one before it waited: all others waited longer.
    """

    wait_ns: Int64Column
    least_ns: Int64Column
    most_ns: Int64Column
    exposed_ns: Int64Column
    last: Int64Column
    second_ns: Int64Column
    settled: NDArray[np.bool_]
    reason: str | None = None


def find_waits(match: Match, node: Int64Column, clocks: Clocks) -> Waits:
    """The waits of ``match``; ``node`` is the machine of each rank of the job."""
    own = node[match.rows]
    several = np.unique(own).size > 1
    reason = match.reason or (clocks.reason if several else None)
    if reason is None and not several:
        reason = compare_arrivals(list(match.begin_ns), list(match.end_ns)).reason
    if reason is not None:
        nothing = np.zeros(0, np.int64)
        return Waits(nothing, nothing, nothing, nothing, nothing, nothing, nothing.astype(np.bool_), reason)
    present, last_begin, _ = _extremes(match, node)
    number = np.searchsorted(present, own)
    wait, least, most, exposed = (np.zeros(own.size, np.int64) for _ in range(4))
    last, second = (np.zeros(match.begin_ns.shape[1], np.int64) for _ in range(2))
    settled = np.ones(last.size, np.bool_)
    for block in match.blocks():
        began = match.begin_ns[:, block]
        begin = began + clocks.likely_ns[own, None]
        latest, last[block], before = two_highest(begin)
        second[block] = latest - before
        each = np.subtract(latest, begin, out=begin)
        wait += each.sum(axis=1)
        exposed += np.minimum(each, match.exposed_ns[:, block]).sum(axis=1)
        if not several:
            continue
        low = last_begin[:, block] + clocks.least_ns[present, None]
        high = last_begin[:, block] + clocks.most_ns[present, None]
        came = low.max(axis=0)
        highest, place, other = two_highest(high)
        # Until the last one of its own machine, which no clock moves.
        same = last_begin[number, block] - began
        least += np.maximum(same, came - (began + clocks.most_ns[own, None])).sum(axis=1)
        others = np.where(number[:, None] == place, other, highest)
        most += np.maximum(same, others - (began + clocks.least_ns[own, None])).sum(axis=1)
        winner = number[last[block]]
        rest = np.where(place == winner, other, highest)
        settled[block] = low[winner, np.arange(winner.size)] >= rest
    if not several:
        least = most = wait
    return Waits(wait, least, most, exposed, last, second, settled)


def two_highest(rows: Int64Column) -> tuple[Int64Column, Int64Column, Int64Column]:
    """Per column the highest value, its row, and the highest of the other rows."""
    place = rows.argmax(axis=0)
    columns = np.arange(rows.shape[1])
    highest = rows[place, columns]
    others = rows.copy()
    others[place, columns] = -UNBOUNDED_NS
    return highest, place, others.max(axis=0)
