"""Hits, latency, stall and idle of every static instruction, accumulated over waves.

The accumulation is that of AMD's own att-tool (docs/reference/thread-trace.md, 2.3), so that on complete
traces the sums equal ``code.json`` exactly: prev = begin; hit += 1; latency += duration; stall += stall;
idle += max(time - prev, 0); prev = max(prev, time + duration).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rpl_att.reading.numeric_rows import Rows
from rpl_att.reading.wave_file import DURATION, STALL, TIME
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
