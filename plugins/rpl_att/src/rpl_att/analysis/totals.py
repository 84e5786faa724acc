"""The sums that all fractions are made of, by row of the code table, and relations that they must keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rpl_att.contract import AttCheck
from rpl_att.instruction_class import InstructionClass, classify
from rpl_core.text.table import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_att.model import ThreadTrace


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
