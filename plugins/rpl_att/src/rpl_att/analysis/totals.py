"""The sums that all fractions are made of, by row of the code table, from the best input there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rpl_att.instruction_class import InstructionClass, classify
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
