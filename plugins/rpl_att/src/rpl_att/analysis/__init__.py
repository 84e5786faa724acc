"""The sums that all fractions are made of, by row of the code table, and relations that they must keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rpl_att.contract import AttCheck, AttClassCycles, AttLatency, AttProducer, AttStallSplit, AttWait
from rpl_att.instruction_class import IMMEDIATE, InstructionClass, classify, wait_of
from rpl_att.reading import CodeTable
from rpl_att.reduction import WaitTotals
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_att.decoded_trace import ThreadTrace

Counts = NDArray[np.int64]

ROCPROFV2_STALL = (
    "rocprofv2 counts no waiting as stall, so its stall can't be compared with that of rocprofv3"
)
EARLY_STALL = "files of early 2025 (8 columns) have neither stall nor idle"


@frozen(eq=False)
class Totals:
    """Per row of the code: hits and cycles. ``extra_*`` are instructions that match no row.

    ``stall`` and ``idle`` are ``None`` where the input has none; ``reasons`` says why, by name. ``startup``
    is the part of ``idle`` in which a wave had not begun; zero where only wave files would tell.
    """

    kinds: tuple[InstructionClass, ...]
    hit: Counts
    latency: Counts
    stall: Counts | None
    idle: Counts | None
    extra_hit: int
    extra_latency: int
    extra_stall: int
    extra_idle: int
    reasons: dict[str, str]
    startup: Counts

    @property
    def hits(self) -> int:
        return int(self.hit.sum()) + self.extra_hit

    @property
    def latency_sum(self) -> int:
        return int(self.latency.sum()) + self.extra_latency

    @property
    def stall_sum(self) -> int | None:
        return None if self.stall is None else int(self.stall.sum()) + self.extra_stall

    @property
    def idle_sum(self) -> int | None:
        return None if self.idle is None else int(self.idle.sum()) + self.extra_idle

    @property
    def total(self) -> int | None:
        """T = latency + idle; latency contains stall (docs/reference/thread-trace.md, 1.1)."""
        idle = self.idle_sum
        return None if idle is None else self.latency_sum + idle

    def fraction(self, cycles: int | None) -> float | None:
        """``cycles`` / T, or ``None`` when either is unknown."""
        total = self.total
        return None if cycles is None or not total else cycles / total


def totals_of(trace: ThreadTrace) -> Totals | None:
    """The totals of ``trace``; ``None`` when nothing in it was executed or read."""
    if trace.code is None and trace.waves is None:
        return None
    kinds = tuple(classify(isa) for isa in trace.code.isa) if trace.code else ()
    totals = _from_waves(trace, kinds) if trace.waves else _from_code(trace, kinds)
    return totals if totals.hits else None


def _from_waves(trace: ThreadTrace, kinds: tuple[InstructionClass, ...]) -> Totals:
    assert trace.waves is not None
    lines = trace.waves.lines
    old = trace.code is not None and trace.code.layout == "rocprofv2"
    return Totals(
        kinds=kinds,
        hit=lines.hit[:-1],
        latency=lines.latency[:-1],
        stall=None if old else lines.stall[:-1],
        idle=lines.idle[:-1],
        extra_hit=int(lines.hit[-1]),
        extra_latency=int(lines.latency[-1]),
        extra_stall=int(lines.stall[-1]),
        extra_idle=int(lines.idle[-1]),
        reasons={"stall": ROCPROFV2_STALL} if old else {},
        startup=lines.startup[:-1],
    )


def _from_code(trace: ThreadTrace, kinds: tuple[InstructionClass, ...]) -> Totals:
    code = trace.code
    assert code is not None
    why = ROCPROFV2_STALL if code.layout == "rocprofv2" else EARLY_STALL
    reasons = {}
    if code.stall is None:
        reasons["stall"] = why
    if code.idle is None:
        reasons["idle"] = f"{code.layout} code tables have no idle, and no wave file could be read"
    real = np.array([not isa.startswith("; ") for isa in code.isa], np.int64)
    return Totals(
        kinds=kinds,
        hit=code.hit * real,
        latency=code.latency * real,
        stall=None if code.stall is None else code.stall * real,
        idle=None if code.idle is None else code.idle * real,
        extra_hit=0,
        extra_latency=0,
        extra_stall=0,
        extra_idle=0,
        reasons=reasons,
        startup=np.zeros(len(code), np.int64),
    )


# Relations that every sound trace keeps; a broken one says that the numbers are not to be trusted.

#: latency + idle covers the lifetimes but for the end of the last instruction (0.1 % on all samples:
#: docs/reference/thread-trace.md, 1.1; waves that end in a long s_endpgm may differ by more on gfx10 and
#: newer).
_LIFETIME_TOLERANCE = 0.01
#: Counter of activity -> beginnings of the instructions that it counts on gfx9, one unit each
#: (docs/reference/thread-trace.md, 3.6, cross-check on a real trace; memory by the categories of 2.5).
_ACTIVITY = {
    "SQ_ACTIVE_INST_VALU": ("v_",),
    "SQ_ACTIVE_INST_LDS": ("ds_",),
    "SQ_ACTIVE_INST_VMEM": ("buffer_", "tbuffer_", "image_"),
    "SQ_ACTIVE_INST_FLAT": ("global_", "scratch_", "flat_"),
}
#: The counts of the last, unfinished sample of a counter are lost (chosen).
_SAMPLING_TOLERANCE = 0.01


def checks(trace: ThreadTrace, totals: Totals) -> tuple[AttCheck, ...]:
    """All checks in a fixed order."""
    return (
        _latency_contains_stall(totals),
        _cycles_are_lifetimes(trace, totals),
        _waves_equal_code(trace),
        _waits_equal_decoder(trace),
        *_activity(trace, totals),
    )


def _latency_contains_stall(totals: Totals) -> AttCheck:
    name = "latency contains stall"
    if totals.stall is None:
        return AttCheck(name=name, holds=None, detail=totals.reasons.get("stall", "no stall"))
    wrong = int(np.count_nonzero(totals.stall > totals.latency))
    return AttCheck(name=name, holds=wrong == 0, detail=f"{wrong} instructions with stall above latency")


def _cycles_are_lifetimes(trace: ThreadTrace, totals: Totals) -> AttCheck:
    name = "latency + idle = wave lifetimes"
    total = totals.total
    if trace.waves is None or total is None:
        return AttCheck(name=name, holds=None, detail="needs wave files")
    life = sum(wave.lifetime for wave in trace.waves.waves)
    if not life:
        return AttCheck(name=name, holds=None, detail="the waves have no lifetime")
    off = abs(total - life) / life
    return AttCheck(
        name=name, holds=off <= _LIFETIME_TOLERANCE, detail=f"{total} against {life} cycles ({off:.3%} off)"
    )


def _waves_equal_code(trace: ThreadTrace) -> AttCheck:
    name = "counts in wave files = code table"
    if trace.waves is None or trace.code is None:
        return AttCheck(name=name, holds=None, detail="needs wave files and code.json")
    if trace.waves.missing_files or trace.waves.damaged:
        lost = trace.waves.missing_files + len(trace.waves.damaged)
        return AttCheck(
            name=name,
            holds=None,
            detail=f"{counted(lost, 'wave file is', 'wave files are')} not there or unreadable",
        )
    lines, code = trace.waves.lines, trace.code
    pairs = (
        ("hit", lines.hit, code.hit),
        ("latency", lines.latency, code.latency),
        ("stall", lines.stall, code.stall),
        ("idle", lines.idle, code.idle),
    )
    compared = [
        (n, int(np.count_nonzero(ours[:-1] != theirs))) for n, ours, theirs in pairs if theirs is not None
    ]
    wrong = [f"{counted(count, 'row differs', 'rows differ')} in {n}" for n, count in compared if count]
    columns = ", ".join(n for n, _ in compared)
    return AttCheck(
        name=name,
        holds=not wrong,
        detail="; ".join(wrong) or f"{counted(len(code), 'row agrees', 'rows agree')} in {columns}",
    )


def _waits_equal_decoder(trace: ThreadTrace) -> AttCheck:
    name = "replayed waits = decoder's waits"
    agree = trace.waves.waits_agree if trace.waves else None
    if agree is None or (trace.code is not None and trace.code.layout == "rocprofv2"):
        return AttCheck(name=name, holds=None, detail="the decoder lists no waits of this form")
    detail = "every wait was replayed alike" if agree else "some waits were replayed differently"
    return AttCheck(name=name, holds=agree, detail=detail)


def _activity(trace: ThreadTrace, totals: Totals) -> Iterator[AttCheck]:
    """Counters see all waves of the traced engines, instructions those of the target CU: compare per wave."""
    if not trace.counters or trace.waves is None or trace.occupancy is None or trace.code is None:
        return
    started = sum(int((engine.start == 1).sum()) for engine in trace.occupancy.engines)
    traced = len(trace.waves.waves)
    flow = trace.waves.flow
    uniform = np.asarray(flow.fewest[:-1] == flow.most[:-1])
    for counter, prefixes in _ACTIVITY.items():
        if counter not in trace.counters or not started:
            continue
        rows = np.array([isa.startswith(prefixes) for isa in trace.code.isa], np.bool_)
        name = f"{counter} = instructions that it counts"
        if not uniform[rows].all():
            yield AttCheck(
                name=name, holds=None, detail="waves differ, so other CUs may have executed others"
            )
            continue
        reading, expected = trace.counters[counter], int(totals.hit[rows].sum()) * started / traced
        yield AttCheck(
            name=name,
            holds=abs(reading - expected) <= _SAMPLING_TOLERANCE * max(reading, expected),
            detail=f"{reading} counted, {expected:g} expected for {counted(started, 'wave')}",
        )


# Where wave time went: by class of instruction, by cause, and from waits to what they waited for.


def instruction_mix(totals: Totals) -> dict[str, AttClassCycles]:
    """One entry per class that was executed, in the fixed order of the classes."""
    hits = totals.hits
    mix = {}
    for kind in InstructionClass:
        chosen = np.array([k is kind for k in totals.kinds], np.bool_)
        count = int(totals.hit[chosen].sum())
        if count:
            mix[kind.value] = AttClassCycles(
                hits=count,
                share=count / hits,
                latency=int(totals.latency[chosen].sum()),
                stall=None if totals.stall is None else int(totals.stall[chosen].sum()),
                idle=None if totals.idle is None else int(totals.idle[chosen].sum()),
            )
    return mix


def stall_split(totals: Totals, isa: Iterable[str], startup: int | None) -> AttStallSplit | None:
    """Fractions of T; ``None`` when T is unknown. ``startup``: idle cycles before first instructions.

    Waits count with their whole latency, as on every architecture all of it is waiting but one issue.
    """
    if not totals.total:
        return None
    memory, other = _wait_cycles(totals, isa)
    pressure = _backpressure(totals)
    return AttStallSplit(
        memory_wait_fraction=totals.fraction(sum(memory.values())),
        memory_wait=_fractions(totals, memory),
        other_wait_fraction=totals.fraction(other),
        barrier_fraction=totals.fraction(_latency_of(totals, InstructionClass.BARRIER)),
        internal_fraction=totals.fraction(_latency_of(totals, InstructionClass.INTERNAL)),
        pipe_backpressure_fraction=None if pressure is None else totals.fraction(sum(pressure.values())),
        pipe_backpressure=_fractions(totals, pressure or {}),
        startup_fraction=totals.fraction(startup),
    )


def memory_wait_cycles(totals: Totals, isa: Iterable[str]) -> int:
    """Cycles of all waits for memory."""
    return sum(_wait_cycles(totals, isa)[0].values())


def _wait_cycles(totals: Totals, isa: Iterable[str]) -> tuple[dict[str, int], int]:
    memory: dict[str, int] = {}
    other = 0
    for row, text in enumerate(isa):
        wait = wait_of(text)
        cycles = int(totals.latency[row])
        if wait is None or not cycles:
            continue
        if wait.other not in (None, "unnamed"):
            other += cycles
        else:
            memory[wait.label] = memory.get(wait.label, 0) + cycles
    return dict(sorted(memory.items())), other


def _latency_of(totals: Totals, kind: InstructionClass) -> int:
    return sum(int(totals.latency[row]) for row, row_kind in enumerate(totals.kinds) if row_kind is kind)


def _backpressure(totals: Totals) -> dict[str, int] | None:
    """Stall of instructions that a pipe executes, by class; ``None`` without stall."""
    if totals.stall is None:
        return None
    stalled: dict[str, int] = {}
    for row, kind in enumerate(totals.kinds):
        cycles = int(totals.stall[row])
        if kind not in IMMEDIATE and cycles:
            stalled[kind.value] = stalled.get(kind.value, 0) + cycles
    return dict(sorted(stalled.items()))


def _fractions(totals: Totals, cycles: dict[str, int]) -> dict[str, float]:
    total = totals.total
    return {name: value / total for name, value in cycles.items()} if total else {}


# From each wait back to the memory operations that it waited for.

#: Loads of vector memory by architecture: vmcnt to gfx11, loadcnt on gfx12
#: (docs/reference/thread-trace.md, 3.5).
_VECTOR_MEMORY = ("vmcnt", "loadcnt")


def waits(
    code: CodeTable, totals: Totals, waited: Mapping[int, WaitTotals], limit: int | None
) -> tuple[AttWait, ...]:
    """Waits by descending latency, then by line."""
    rows = sorted(waited, key=lambda row: (-int(totals.latency[row]), row))
    return tuple(_wait(row, code, totals, waited[row]) for row in rows[:limit])


def _wait(row: int, code: CodeTable, totals: Totals, waited: WaitTotals) -> AttWait:
    wait = wait_of(code.isa[row])
    assert wait is not None
    return AttWait(
        line=int(code.line[row]),
        isa=code.isa[row],
        source=code.source[row] or None,
        counter=wait.label,
        hits=waited.hits,
        latency=int(totals.latency[row]),
        share=totals.fraction(int(totals.latency[row])),
        producers=tuple(_producer(producer, code, waited) for producer in _by_weight(waited)),
    )


def _by_weight(waited: WaitTotals) -> list[int]:
    return sorted(
        waited.producers, key=lambda row: (-waited.deciding_cycles[row], -waited.producers[row], row)
    )


def _producer(row: int, code: CodeTable, waited: WaitTotals) -> AttProducer:
    return AttProducer(
        line=int(code.line[row]),
        isa=code.isa[row],
        source=code.source[row] or None,
        times=waited.producers[row],
        deciding_cycles=waited.deciding_cycles[row],
    )


def memory_latencies(samples: Mapping[str, Counter[int]]) -> dict[str, AttLatency]:
    """Mean, median, maximum and number of samples by counter."""
    return {counter: _latency(values) for counter, values in sorted(samples.items()) if values}


def vector_memory_latency(latencies: Mapping[str, AttLatency]) -> float | None:
    """The mean for loads of vector memory, or ``None`` when no wait waited for one."""
    return next((latencies[name].mean for name in _VECTOR_MEMORY if name in latencies), None)


def _latency(values: Counter[int]) -> AttLatency:
    count = sum(values.values())
    return AttLatency(
        mean=sum(cycles * times for cycles, times in values.items()) / count,
        median=(_at(values, (count - 1) // 2) + _at(values, count // 2)) / 2,
        max=max(values),
        samples=count,
    )


def _at(values: Counter[int], index: int) -> int:
    """The value at ``index`` of the sorted samples."""
    for cycles in sorted(values):
        index -= values[cycles]
        if index < 0:
            return cycles
    raise IndexError(index)
