"""Totals over streamed waves: cycles by instruction, taken branches, and who waited for what."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from rpl_att.instruction_class import memory_operation, wait_of
from rpl_att.reading.json_arrays import Rows
from rpl_att.reading.wave_files import CATEGORY, DURATION, STALL, TIME
from rpl_core.values import frozen

Counts = NDArray[np.int64]


@frozen(eq=False)
class IdleBlock:
    """Idle cycles before each instruction of a block, and the clock that the next block goes on from."""

    idle: Counts
    previous_end: int


def idle_before(block: Rows, previous_end: int) -> IdleBlock:
    """Gap between each instruction and the latest end of those before it in the wave, at least 0."""
    ends = block[:, TIME] + block[:, DURATION]
    latest = np.maximum.accumulate(np.concatenate(([previous_end], ends)))
    return IdleBlock(np.maximum(block[:, TIME] - latest[:-1], 0), int(latest[-1]))


@frozen(eq=False)
class LineTotals:
    """Sums by row of the code table; the last element collects instructions that match no row.

    ``startup`` is the part of ``idle`` before the first instruction of a wave.
    """

    hit: Counts
    latency: Counts
    stall: Counts
    idle: Counts
    startup: Counts

    @classmethod
    def zero(cls, rows: int) -> LineTotals:
        return cls(*(np.zeros(rows + 1, np.int64) for _ in range(5)))

    def add(self, rows: Counts, block: Rows, idle: Counts) -> None:
        """``rows`` has the row of each instruction, or the index of the last element."""
        np.add(self.hit, np.bincount(rows, minlength=len(self.hit)), out=self.hit)
        for total, values in (
            (self.latency, block[:, DURATION]),
            (self.stall, block[:, STALL]),
            (self.idle, idle),
        ):
            np.add.at(total, rows, values)

    @property
    def unresolved(self) -> int:
        """Instructions that match no row of the code table."""
        return int(self.hit[-1])


# Where control went: taken branches as edges, outcomes by branch, and hits by wave.

#: Categories of branches (docs/reference/thread-trace.md, 2.5).
TAKEN, NOT_TAKEN = 7, 8


@frozen(eq=False)
class FlowTotals:
    """``edges``: (row of the branch, row executed next) -> count. ``taken`` and ``not_taken`` by row;
    ``fewest`` and ``most`` hits of a row in any one wave.
    """

    edges: Counter[tuple[int, int]]
    taken: Counts
    not_taken: Counts
    fewest: Counts
    most: Counts


class ControlFlow:
    """Feed the blocks of a wave, then ``end_wave``; ``totals`` at the end."""

    def __init__(self, rows: int) -> None:
        self._edges: Counter[tuple[int, int]] = Counter()
        self._taken = np.zeros(rows + 1, np.int64)
        self._not_taken = np.zeros(rows + 1, np.int64)
        self._fewest = np.full(rows + 1, np.iinfo(np.int64).max)
        self._most = np.zeros(rows + 1, np.int64)
        self._size = rows + 1
        self._wave_hits = np.zeros(rows + 1, np.int64)
        self._open_branch: int | None = None

    def add(self, rows: Counts, block: Rows) -> None:
        if self._open_branch is not None and len(rows):
            self._edges[self._open_branch, int(rows[0])] += 1
            self._open_branch = None
        category = block[:, CATEGORY]
        self._taken += np.bincount(rows[category == TAKEN], minlength=self._size)
        self._not_taken += np.bincount(rows[category == NOT_TAKEN], minlength=self._size)
        self._wave_hits += np.bincount(rows, minlength=self._size)
        jumps = np.flatnonzero(category == TAKEN)
        if len(jumps) and jumps[-1] == len(rows) - 1:
            self._open_branch = int(rows[-1])
            jumps = jumps[:-1]
        pairs = np.stack((rows[jumps], rows[jumps + 1]), axis=1)
        for (source, target), count in _counted(pairs):
            self._edges[source, target] += count

    def totals(self) -> FlowTotals:
        return FlowTotals(self._edges, self._taken, self._not_taken, self._fewest, self._most)

    def end_wave(self) -> None:
        self._fewest = np.minimum(self._fewest, self._wave_hits)
        self._most = np.maximum(self._most, self._wave_hits)
        self._wave_hits = np.zeros(self._size, np.int64)
        self._open_branch = None


def _counted(pairs: Counts) -> list[tuple[tuple[int, int], int]]:
    if not len(pairs):
        return []
    unique, counts = np.unique(pairs, axis=0, return_counts=True)
    return [((int(a), int(b)), int(n)) for (a, b), n in zip(unique.tolist(), counts.tolist(), strict=True)]


# Which memory operations each wait waited for, and how long they were under way.
#
# Replays the counters of a wave in program order (docs/reference/thread-trace.md, 2.6 and 3.5). A wait for
# counter <= n retires all but the n youngest operations of that counter. Where the wait really waited
# (longer than one issue), the youngest operation that had to return bounds it: latency = end of the wait -
# successful issue of that operation. Other waits give an upper bound only and are left out, as are waits
# while operations that return out of order (SMEM, FLAT) are under way.

#: A wait of one issue slot did not wait (docs/reference/thread-trace.md, 3.5).
ISSUE_CYCLES = 4

#: An operation under way: clock of its issue, row, whether it returns in order, its counters. A tuple,
#: because a trace has millions of them.
_Pending = tuple[int, int, bool, tuple[str, ...]]
#: Waits of a wave in order: row of the wait, rows of the operations that had to return.
WaitRows = tuple[tuple[int, tuple[int, ...]], ...]


@attrs.define(eq=False)
class WaitTotals:
    """What one wait instruction waited for, over all waves: operations by row, and the deciding one."""

    hits: int = 0
    producers: Counter[int] = attrs.field(factory=Counter)  # every operation that had to return
    deciding_cycles: Counter[int] = attrs.field(factory=Counter)  # wait cycles by youngest operation


class WaitReplay:
    """Feed the blocks of a wave, then ``end_wave``. ``latencies``: counter -> cycles -> how often."""

    def __init__(self, isa: Sequence[str], gfx_major: int) -> None:
        self._operations = [memory_operation(line, gfx_major) for line in isa]
        self._limits = [None if (wait := wait_of(line)) is None else wait.limits for line in isa]
        self._relevant: NDArray[np.bool_] = np.array(
            [op is not None or w is not None for op, w in zip(self._operations, self._limits, strict=True)]
            + [False],
            np.bool_,
        )
        self._queues: dict[str, deque[_Pending]] = {}
        self._unordered: Counter[str] = Counter()  # operations under way that return out of order
        self._recorded: list[tuple[int, tuple[int, ...]]] | None = None
        self.latencies: dict[str, Counter[int]] = {}
        self.waits: dict[int, WaitTotals] = {}

    def begin_wave(self, *, record: bool) -> None:
        """``record`` keeps the waits of the wave for ``end_wave``, at the price of memory."""
        self._queues.clear()
        self._unordered.clear()
        self._recorded = [] if record else None

    def add(self, rows: NDArray[np.int64], block: Rows) -> None:
        places = np.flatnonzero(self._relevant[rows])
        chosen = block[places]
        issue = (chosen[:, TIME] + chosen[:, STALL]).tolist()
        end = (chosen[:, TIME] + chosen[:, DURATION]).tolist()
        duration = chosen[:, DURATION].tolist()
        for row, issued, ended, lasted in zip(rows[places].tolist(), issue, end, duration, strict=True):
            limits = self._limits[row]
            if limits is None:
                self._start(row, issued)
            else:
                self._wait(row, limits, ended, lasted)

    def end_wave(self) -> WaitRows:
        """The recorded waits that had operations to wait for."""
        return tuple(self._recorded or ())

    def _start(self, row: int, issued: int) -> None:
        operation = self._operations[row]
        assert operation is not None
        pending = (issued, row, operation.in_order, operation.counters)
        for counter in operation.counters:
            queue = self._queues.get(counter)
            if queue is None:
                queue = self._queues[counter] = deque()
            queue.append(pending)
            if not operation.in_order:
                self._unordered[counter] += 1

    def _wait(self, row: int, limits: tuple[tuple[str, int], ...], ended: int, lasted: int) -> None:
        totals = self.waits.get(row)
        if totals is None:
            totals = self.waits[row] = WaitTotals()
        totals.hits += 1
        required: list[_Pending] = []
        for counter, limit in limits:
            ordered = not self._unordered[counter]
            retired = self._retire(counter, limit, ordered=ordered)
            if not retired:
                continue
            required += [one for one in retired if one not in required] if required else retired
            if ordered and lasted > ISSUE_CYCLES:
                samples = self.latencies.get(counter)
                if samples is None:
                    samples = self.latencies[counter] = Counter()
                samples[ended - retired[-1][0]] += 1
        if required:
            self._note(row, totals, required, lasted)

    def _note(self, row: int, totals: WaitTotals, required: list[_Pending], lasted: int) -> None:
        for one in required:
            totals.producers[one[1]] += 1
        youngest = required[-1] if len(required) == 1 else max(required, key=lambda one: one[0])
        totals.deciding_cycles[youngest[1]] += lasted
        if self._recorded is not None:
            self._recorded.append((row, tuple(one[1] for one in required)))

    def _retire(self, counter: str, limit: int, *, ordered: bool) -> list[_Pending]:
        """Take what must have returned out of all queues; out-of-order returns resolve only at zero."""
        queue = self._queues.get(counter)
        if not queue or (limit and not ordered):
            return []
        retired = [queue.popleft() for _ in range(len(queue) - limit)]
        for one in retired:
            if len(one[3]) > 1:
                for other in one[3]:
                    if other != counter and one in self._queues.get(other, ()):
                        self._queues[other].remove(one)
                        self._unordered[other] -= not one[2]
        if not ordered:
            self._unordered[counter] = 0
        return retired
