"""All waves of a folder, streamed once into bounded summaries: cycles, branches, waits and their causes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import groupby

import attrs
import numpy as np
from numpy.typing import NDArray

from rpl_att.instruction_class import IMMEDIATE, InstructionClass, classify, memory_operation, wait_of
from rpl_att.reading import CodeTable, TraceFolder
from rpl_att.reading.wave_files import (
    CATEGORY,
    DURATION,
    LINE,
    STALL,
    STATE_COUNT,
    TIME,
    OpenWave,
    Rows,
    Waits,
    WaveFile,
    WaveIndex,
    open_wave,
)
from rpl_core.errors import BadDataError
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
            required += [access for access in retired if access not in required] if required else retired
            if ordered and lasted > ISSUE_CYCLES:
                samples = self.latencies.get(counter)
                if samples is None:
                    samples = self.latencies[counter] = Counter()
                samples[ended - retired[-1][0]] += 1
        if required:
            self._note(row, totals, required, lasted)

    def _note(self, row: int, totals: WaitTotals, required: list[_Pending], lasted: int) -> None:
        for access in required:
            totals.producers[access[1]] += 1
        youngest = required[-1] if len(required) == 1 else max(required, key=lambda access: access[0])
        totals.deciding_cycles[youngest[1]] += lasted
        if self._recorded is not None:
            self._recorded.append((row, tuple(access[1] for access in required)))

    def _retire(self, counter: str, limit: int, *, ordered: bool) -> list[_Pending]:
        """Take what must have returned out of all queues; out-of-order returns resolve only at zero."""
        queue = self._queues.get(counter)
        if not queue or (limit and not ordered):
            return []
        retired = [queue.popleft() for _ in range(len(queue) - limit)]
        for access in retired:
            if len(access[3]) > 1:
                for other in access[3]:
                    if other != counter and access in self._queues.get(other, ()):
                        self._queues[other].remove(access)
                        self._unordered[other] -= not access[2]
        if not ordered:
            self._unordered[counter] = 0
        return retired


# Stream all waves of a folder once, in order of shader engine and SIMD, into bounded summaries.


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
                        # Read a wave to its end, so that a damaged one leaves
                        # nothing behind.
                        for _ in wave.instructions():
                            pass
                        wave.state_cycles()
                        wave.waits()
                    reducer.add(file, wave)
            except BadDataError as error:
                if not check_first:
                    raise
                damaged.append(error.one_line())
                continue
            read.append(file)
        if read:
            listed = list(read)
            reducer.issue.end_simd(engine, simd, max(f.end for f in listed) - min(f.begin for f in listed))
    return reducer.result(missing, tuple(damaged))


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
