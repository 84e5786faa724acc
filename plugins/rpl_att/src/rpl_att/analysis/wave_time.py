"""Where wave time went: by class of instruction, by cause, and from waits to what they waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from rpl_att.analysis.totals import Totals
from rpl_att.contract import AttClassCycles, AttLatency, AttProducer, AttStallSplit, AttWait
from rpl_att.instruction_class import IMMEDIATE, InstructionClass, wait_of
from rpl_att.reading.code_table import CodeTable
from rpl_att.reduction.line_totals import WaitTotals


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
    return sum(int(totals.latency[row]) for row, found in enumerate(totals.kinds) if found is kind)


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
        producers=tuple(_producer(one, code, waited) for one in _by_weight(waited)),
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
