"""Stream all waves of a folder once, in order of shader engine and SIMD, into bounded summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

import attrs
import numpy as np
from numpy.typing import NDArray

from rpl_att.instruction_class import IMMEDIATE, InstructionClass, classify
from rpl_att.reading.code_table import CodeTable
from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.json_arrays import Rows
from rpl_att.reading.wave_files import (
    CATEGORY,
    DURATION,
    LINE,
    STALL,
    STATE_COUNT,
    TIME,
    OpenWave,
    Waits,
    WaveFile,
    WaveIndex,
    open_wave,
)
from rpl_att.reduction.line_totals import (
    ControlFlow,
    FlowTotals,
    LineTotals,
    WaitReplay,
    WaitRows,
    WaitTotals,
    idle_before,
)
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

# How much of the time each pipe of a SIMD was issuing: unions of issue intervals over its waves.


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


Counts = NDArray[np.int64]


@frozen
class WaveSummary:
    """One wave that was read. ``startup`` is the idle time before its first instruction, in cycles."""

    file: WaveFile
    cu: int | None
    instructions: int
    startup: int
    latency: int
    stall: int
    idle: int
    not_stitched: int  # tokens that the decoder could not match to an instruction

    @property
    def lifetime(self) -> int:
        return self.file.end - self.file.begin


@frozen(eq=False)
class ReducedWaves:
    """Everything that later steps know of the waves. Rows are those of the code table."""

    waves: tuple[WaveSummary, ...]
    missing_files: int
    damaged: tuple[str, ...]
    lines: LineTotals
    categories: dict[int, int]
    states: tuple[int, ...]
    simds: tuple[SimdIssue, ...]
    flow: FlowTotals
    latencies: dict[str, Counter[int]]
    waits: dict[int, WaitTotals]
    waits_agree: bool | None  # with the decoder's own list; None where it has none


def reduce_waves(folder: TraceFolder, index: WaveIndex, code: CodeTable | None) -> ReducedWaves:
    """Read every wave of ``index`` that is there; a damaged one is named and left out as a whole.

    Damage may show in the middle of a wave. Then everything is read again, each wave checked to its end
    before any of it counts; sound traces, which are the rule, are read once.
    """
    try:
        return _reduce(folder, index, code, check_first=False)
    except BadDataError:
        return _reduce(folder, index, code, check_first=True)


def _reduce(
    folder: TraceFolder, index: WaveIndex, code: CodeTable | None, *, check_first: bool
) -> ReducedWaves:
    reducer = _Reducer(code, index.gfx_major or 9)
    missing, damaged = 0, []
    for (engine, simd), files in groupby(index.waves, key=lambda w: (w.shader_engine, w.simd)):
        read: list[WaveFile] = []
        for file in files:
            path = folder.find(file.name)
            if path is None:
                missing += 1
                continue
            try:
                with open_wave(path) as wave:
                    if check_first:
                        _check(wave)
                    reducer.add(file, wave)
            except BadDataError as error:
                if not check_first:
                    raise
                damaged.append(error.one_line())
                continue
            read.append(file)
        if read:
            reducer.issue.end_simd(engine, simd, _window(read))
    return reducer.result(missing, tuple(damaged))


def _check(wave: OpenWave) -> None:
    """Read a wave to its end, so that a damaged one leaves nothing behind."""
    for _ in wave.instructions():
        pass
    wave.state_cycles()
    wave.waits()


def _window(files: Iterable[WaveFile]) -> int:
    listed = list(files)
    return max(f.end for f in listed) - min(f.begin for f in listed)


def _merged(waits: Iterable[tuple[int, list[int]]]) -> list[tuple[int, list[int]]]:
    """Entries of one line that follow each other as one: the decoder may list a wait once per counter."""
    groups = groupby(waits, key=lambda wait: wait[0])
    return [(line, sorted(op for _, ops in same for op in ops)) for line, same in groups]


class _Reducer:
    def __init__(self, code: CodeTable | None, gfx_major: int) -> None:
        isa = code.isa if code else ()
        self._line = code.line if code else np.zeros(0, np.int64)
        self._label = np.array([text.startswith("; ") for text in isa], np.bool_)
        kinds = [CLASSES.index(classify(text)) for text in isa]
        self._class = np.array([*kinds, len(CLASSES) - 1], np.int64)
        self._lines = LineTotals.zero(len(isa))
        self._flow = ControlFlow(len(isa))
        self._replay = WaitReplay(isa, gfx_major)
        self.issue = IssueIntervals()
        self._waves: list[WaveSummary] = []
        self._categories = np.zeros(256, np.int64)
        self._states = np.zeros(STATE_COUNT, np.int64)
        self._agreement: list[bool] = []

    def add(self, file: WaveFile, wave: OpenWave) -> None:
        previous, startup = wave.begin, None
        sums = np.zeros(4, np.int64)
        listed = wave.waits()
        self._replay.begin_wave(record=listed is not None)
        for block in wave.instructions():
            rows = self._rows(block)
            gaps = idle_before(block, previous)
            previous = gaps.previous_end
            if startup is None:
                startup = int(gaps.idle[0])
                self._lines.startup[rows[0]] += startup
            sums += (len(block), block[:, 3].sum(), block[:, 2].sum(), gaps.idle.sum())
            self._lines.add(rows, block, gaps.idle)
            self._categories += np.bincount(block[:, CATEGORY], minlength=256)
            self._replay.add(rows, block)
            self._flow.add(rows, block)
            self.issue.add(self._class[rows], block)
        self._flow.end_wave()
        self._compare(listed, self._replay.end_wave())
        self._states += wave.state_cycles()
        count, latency, stall, idle = (int(value) for value in sums)
        stitched, told = wave.reported_stitched, wave.reported_instructions
        lost = told - stitched if told is not None and stitched is not None else 0
        placed = attrs.evolve(file, begin=wave.begin, end=wave.end)
        self._waves.append(
            WaveSummary(placed, wave.cu, count, startup or 0, latency, stall, idle, max(0, lost))
        )

    def _rows(self, block: Rows) -> Counts:
        """Row of the code table for each instruction, or the number of rows where there is none."""
        size = len(self._line)
        if not size:
            return np.zeros(len(block), np.int64)
        place = np.minimum(np.searchsorted(self._line, block[:, LINE]), size - 1)
        known = (self._line[place] == block[:, LINE]) & ~self._label[place]
        return np.where(known, place, size)

    def _compare(self, listed: Waits | None, replayed: WaitRows) -> None:
        if listed is None or not len(self._line):
            return
        lines = self._line
        ours = [(int(lines[w]), [int(lines[op]) for op in ops]) for w, ops in replayed]
        theirs = [(line, list(ops)) for line, ops in listed if ops]
        self._agreement.append(_merged(ours) == _merged(theirs))

    def result(self, missing: int, damaged: tuple[str, ...]) -> ReducedWaves:
        return ReducedWaves(
            waves=tuple(self._waves),
            missing_files=missing,
            damaged=damaged,
            lines=self._lines,
            categories={i: int(n) for i, n in enumerate(self._categories.tolist()) if n},
            states=tuple(int(n) for n in self._states),
            simds=tuple(self.issue.finished),
            flow=self._flow.totals(),
            latencies=self._replay.latencies,
            waits=self._replay.waits,
            waits_agree=all(self._agreement) if self._agreement else None,
        )
