"""Which memory operations each wait waited for, and how long they were under way.

Replays the counters of a wave in program order (att.md, 1.4 and 2). A wait for counter <= n retires all
but the n youngest operations of that counter. Where the wait really waited (longer than one issue), the
youngest operation that had to return bounds it: latency = end of the wait - successful issue of that
operation. Other waits give an upper bound only and are left out, as are out-of-order operations (SMEM).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from rpl_att.instruction_class import MemoryOperation, Wait, memory_operation, wait_of
from rpl_att.reading.numeric_rows import Rows
from rpl_att.reading.wave_file import DURATION, STALL, TIME

#: A wait of one issue slot did not wait (att.md, 2).
ISSUE_CYCLES = 4


@attrs.define(eq=False)
class _Pending:
    row: int
    issued: int
    operation: MemoryOperation


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
        self._waits = [wait_of(line) for line in isa]
        chosen = [
            op is not None or w is not None for op, w in zip(self._operations, self._waits, strict=True)
        ]
        self._relevant: NDArray[np.bool_] = np.array([*chosen, False], np.bool_)
        self._queues: dict[str, deque[_Pending]] = {}
        self._wave: list[tuple[int, tuple[int, ...]]] = []
        self.latencies: dict[str, Counter[int]] = {}
        self.waits: dict[int, WaitTotals] = {}

    def add(self, rows: NDArray[np.int64], block: Rows) -> None:
        places = np.flatnonzero(self._relevant[rows])
        chosen = block[places]
        issue = (chosen[:, TIME] + chosen[:, STALL]).tolist()
        end = (chosen[:, TIME] + chosen[:, DURATION]).tolist()
        duration = chosen[:, DURATION].tolist()
        for row, issued, ended, lasted in zip(rows[places].tolist(), issue, end, duration, strict=True):
            wait = self._waits[row]
            if wait is not None:
                self._wait(row, wait, ended, lasted)
                continue
            operation = self._operations[row]
            assert operation is not None
            pending = _Pending(row, issued, operation)
            for counter in operation.counters:
                self._queues.setdefault(counter, deque()).append(pending)

    def end_wave(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Forget the wave; returns (row of the wait, rows of the operations) in order, for comparison."""
        self._queues.clear()
        waits, self._wave = tuple(self._wave), []
        return waits

    def _wait(self, row: int, wait: Wait, ended: int, lasted: int) -> None:
        totals = self.waits.setdefault(row, WaitTotals())
        totals.hits += 1
        required: list[_Pending] = []
        for counter, limit in wait.limits:
            retired = self._retire(counter, limit)
            required += [one for one in retired if one not in required]
            if retired and lasted > ISSUE_CYCLES and all(one.operation.in_order for one in retired):
                samples = self.latencies.setdefault(counter, Counter())
                samples[ended - retired[-1].issued] += 1
        if not required:
            return
        totals.producers.update(one.row for one in required)
        totals.deciding_cycles[max(required, key=lambda one: one.issued).row] += lasted
        self._wave.append((row, tuple(one.row for one in required)))

    def _retire(self, counter: str, limit: int) -> list[_Pending]:
        """Take what must have returned out of all queues; out-of-order returns resolve only at zero."""
        queue = self._queues.get(counter)
        if not queue:
            return []
        if limit and not all(one.operation.in_order for one in queue):
            return []
        retired = [queue.popleft() for _ in range(max(0, len(queue) - limit))]
        for one in retired:
            for other in one.operation.counters:
                if other != counter and one in self._queues.get(other, ()):
                    self._queues[other].remove(one)
        return retired
