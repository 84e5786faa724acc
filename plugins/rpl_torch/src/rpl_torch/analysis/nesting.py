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
_BLOCK = 1 << 16


@frozen(eq=False)
class Nesting:
    """Intervals by (thread, begin, longest first); ``parent`` is the row of the one around each, -1 for none.

    ``threads`` (t,) ascends and ``first`` (t + 1,) says where the rows of each begin.
    """

    begin_ns: Int64Column
    end_ns: Int64Column
    parent: NDArray[np.int32]
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
        # Each row points at itself or one step outwards, the row behind the last stands for none; pointing
        # where that points to doubles the steps, so that stacks of any depth take few rounds.
        none = len(chosen)
        step = np.append(np.where(self.parent < 0, none, self.parent), none).astype(np.int32)
        own = np.flatnonzero(chosen)
        step[own] = own
        while True:
            further = step[step]
            if np.array_equal(further, step):
                return np.where(step[:-1] == none, _NONE, step[:-1]).astype(np.int64)
            step = further


def nested(thread: Int64Column, begin_ns: Int64Column, end_ns: Int64Column) -> Nesting:
    """``Nesting`` of intervals in the order that it asks for."""
    threads, first = np.unique(thread, return_index=True)
    parent = np.empty(len(begin_ns), np.int32)
    around: list[tuple[int, int]] = []  # end and row of what is open
    number, starts = 0, [*first.tolist(), -1]
    # In blocks: millions of numbers as objects of Python would take most of the memory.
    for low in range(0, len(begin_ns), _BLOCK):
        block = slice(low, low + _BLOCK)
        parents: list[int] = []
        times = zip(begin_ns[block].tolist(), end_ns[block].tolist(), strict=True)
        for row, (begin, end) in enumerate(times, start=low):
            if row == starts[number]:
                around.clear()
                number += 1
            while around and around[-1][0] <= begin and around[-1][0] < end:
                around.pop()
            parents.append(around[-1][1] if around else _NONE)
            around.append((end, row))
        parent[block] = parents
    return Nesting(begin_ns, end_ns, parent, threads, np.append(first, len(begin_ns)).astype(np.int64))
