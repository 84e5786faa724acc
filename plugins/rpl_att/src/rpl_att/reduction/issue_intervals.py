"""How much of the time each pipe of a SIMD was issuing: unions of issue intervals over its waves.

Interval of an instruction: [time + stall, time + duration) (docs/reference/thread-trace.md, 3.4). Waves come
grouped by SIMD, so only the intervals of one SIMD are held at a time.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from rpl_att.instruction_class import IMMEDIATE, InstructionClass
from rpl_att.reading.numeric_rows import Rows
from rpl_att.reading.wave_file import DURATION, STALL, TIME
from rpl_core.values import frozen

ANY = "any"
#: Intervals of one SIMD that are held at most; about 100 MB while they are merged.
MAX_INTERVALS = 4_000_000
_MERGE_AT = 500_000

CLASSES = tuple(InstructionClass)
Intervals = NDArray[np.int64]  # rows of begin, end


@frozen
class SimdIssue:
    """One SIMD: its window in cycles and the busy cycles by class; ``None`` when there were too many."""

    shader_engine: int
    simd: int
    window: int
    busy: dict[str, int] | None


@attrs.define(eq=False)
class IssueIntervals:
    """Collects one SIMD after the other."""

    finished: list[SimdIssue] = attrs.field(factory=list)
    _parts: dict[str, list[Intervals]] = attrs.field(factory=dict)
    _pending: int = 0
    _overflow: bool = False

    def add(self, classes: NDArray[np.int64], block: Rows) -> None:
        """``classes`` has the index into ``CLASSES`` of each instruction."""
        if self._overflow:
            return
        spans = np.stack((block[:, TIME] + block[:, STALL], block[:, TIME] + block[:, DURATION]), axis=1)
        spans_with_width = spans[:, 1] > spans[:, 0]
        for index in np.unique(classes).tolist():
            kind = CLASSES[index]
            chosen = spans[(classes == index) & spans_with_width]
            self._parts.setdefault(kind.value, []).append(chosen)
            if kind not in IMMEDIATE:
                self._parts.setdefault(ANY, []).append(chosen)
        self._pending += len(block)
        if self._pending > _MERGE_AT:
            self._merge()

    def end_simd(self, shader_engine: int, simd: int, window: int) -> None:
        busy = None
        if not self._overflow:
            self._merge()
            busy = {name: _length(parts[0]) for name, parts in sorted(self._parts.items())}
        self.finished.append(SimdIssue(shader_engine, simd, window, busy))
        self._parts, self._pending, self._overflow = {}, 0, False

    def _merge(self) -> None:
        self._parts = {name: [_union(np.concatenate(parts))] for name, parts in self._parts.items()}
        self._pending = 0
        if sum(len(parts[0]) for parts in self._parts.values()) > MAX_INTERVALS:
            self._parts, self._overflow = {}, True


def _union(spans: Intervals) -> Intervals:
    """Disjoint intervals in order that cover the same cycles; touching ones are joined."""
    if not len(spans):
        return spans
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    latest = np.maximum.accumulate(spans[:, 1])
    first = np.concatenate(([True], spans[1:, 0] > latest[:-1]))
    begins = spans[first, 0]
    ends = latest[np.concatenate((np.flatnonzero(first)[1:] - 1, [len(spans) - 1]))]
    return np.stack((begins, ends), axis=1)


def _length(spans: Intervals) -> int:
    return int((spans[:, 1] - spans[:, 0]).sum())
