"""Busy and idle time of a set of intervals, by one sweep in begin order.

Knows nothing of dependencies: what ran at once, not what could have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]

__all__ = ["BusyTime", "Intervals", "merge_intervals", "sum_busy_time"]


@frozen(eq=False, kw_only=True)
class Intervals:
    """Disjoint intervals ascending in time, none touching the next."""

    begin_ns: IntArray
    end_ns: IntArray

    def gaps(self) -> Intervals:
        """The times between them."""
        return Intervals(begin_ns=self.end_ns[:-1], end_ns=self.begin_ns[1:])


@frozen(kw_only=True)
class BusyTime:
    """Sums: ``total_ns`` of all durations, ``busy_ns`` of their union, ``makespan_ns`` from first to last."""

    total_ns: int
    busy_ns: int
    makespan_ns: int

    @property
    def idle_ns(self) -> int:
        """Time inside the makespan in which nothing ran."""
        return self.makespan_ns - self.busy_ns

    @property
    def concurrency(self) -> float | None:
        """``total / busy``: intervals at once, averaged over busy time; None without any."""
        return self.total_ns / self.busy_ns if self.busy_ns else None

    def parallelism(self, critical_path_ns: int) -> float | None:
        """``total / critical path``: the speed-up over serial execution that dependencies allow."""
        return self.total_ns / critical_path_ns if critical_path_ns else None


def merge_intervals(begin_ns: IntArray, end_ns: IntArray) -> Intervals:
    """Union of the intervals, touching ones joined. Raises BadDataError if one ends before it begins."""
    if bool((end_ns < begin_ns).any()):
        raise BadDataError(
            counted(
                int((end_ns < begin_ns).sum()),
                "interval ends before it begins",
                "intervals end before they begin",
            )
        )
    if begin_ns.size == 0:
        return Intervals(begin_ns=begin_ns, end_ns=end_ns)
    if bool((begin_ns[1:] < begin_ns[:-1]).any()):
        order = np.argsort(begin_ns, kind="stable")
        begin_ns, end_ns = begin_ns[order], end_ns[order]
    reached = np.maximum.accumulate(end_ns)
    opens = np.flatnonzero(begin_ns[1:] > reached[:-1]) + 1
    return Intervals(
        begin_ns=begin_ns[np.append(0, opens)], end_ns=reached[np.append(opens, begin_ns.size) - 1]
    )


def sum_busy_time(begin_ns: IntArray, end_ns: IntArray) -> BusyTime:
    """Totals over the intervals; all zero without any."""
    merged = merge_intervals(begin_ns, end_ns)
    if merged.begin_ns.size == 0:
        return BusyTime(total_ns=0, busy_ns=0, makespan_ns=0)
    return BusyTime(
        total_ns=int((end_ns - begin_ns).sum()),
        busy_ns=int((merged.end_ns - merged.begin_ns).sum()),
        makespan_ns=int(merged.end_ns[-1] - merged.begin_ns[0]),
    )
