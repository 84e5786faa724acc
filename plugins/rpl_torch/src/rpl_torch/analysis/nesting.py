"""What was around a moment of a thread: operators inside of operators, functions inside of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64Column = NDArray[np.int64]

__all__ = ["Nesting", "nested"]

_NONE = -1


@frozen(eq=False)
class Nesting:
    """Intervals by (thread, begin, longest first); ``parent`` is the row of the one around each, -1 for none.

    ``threads`` (t,) ascends and ``first`` (t + 1,) says where the rows of each begin.
    """

    begin_ns: Int64Column
    end_ns: Int64Column
    parent: Int64Column
    threads: Int64Column
    first: Int64Column

    def innermost(self, thread: Int64Column, time_ns: Int64Column) -> Int64Column:
        """The row of the innermost interval around each moment, -1 where there is none."""
        found = np.full(len(time_ns), _NONE, np.int64)
        if not len(self.parent):
            return found
        place = np.searchsorted(self.threads, thread)
        for number in np.unique(place[place < len(self.threads)]).tolist():
            own = np.flatnonzero((place == number) & (thread == self.threads[number]))
            low, high = int(self.first[number]), int(self.first[number + 1])
            row = low + np.searchsorted(self.begin_ns[low:high], time_ns[own], side="right") - 1
            row[row < low] = _NONE
            found[own] = row
        while True:
            over = np.flatnonzero((found >= 0) & (self.end_ns[found] < time_ns))
            if not over.size:
                return found
            found[over] = self.parent[found[over]]

    def nearest(self, chosen: NDArray[np.bool_]) -> Int64Column:
        """For each row itself or the nearest around it that is ``chosen``; -1 without one."""
        found = np.where(chosen, np.arange(len(chosen)), _NONE).tolist()
        for row, (own, around) in enumerate(zip(found, self.parent.tolist(), strict=True)):
            if own < 0 <= around:
                found[row] = found[around]  # rows around come first
        return np.array(found, np.int64)


def nested(thread: Int64Column, begin_ns: Int64Column, end_ns: Int64Column) -> Nesting:
    """``Nesting`` of intervals in the order that it asks for."""
    threads, first = np.unique(thread, return_index=True)
    parents: list[int] = []
    around: list[tuple[int, int]] = []  # end and row of what is open
    number, starts = 0, [*first.tolist(), -1]
    for row, (begin, end) in enumerate(zip(begin_ns.tolist(), end_ns.tolist(), strict=True)):
        if row == starts[number]:
            around.clear()
            number += 1
        while around and around[-1][0] <= begin and around[-1][0] < end:
            around.pop()
        parents.append(around[-1][1] if around else _NONE)
        around.append((end, row))
    return Nesting(
        begin_ns,
        end_ns,
        np.array(parents, np.int64),
        threads,
        np.append(first, len(begin_ns)).astype(np.int64),
    )
