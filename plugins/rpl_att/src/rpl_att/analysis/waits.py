"""From each wait back to the memory operations that it waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rpl_att.analysis.totals import Totals
from rpl_att.contract import AttLatency, AttProducer, AttWait
from rpl_att.instruction_class import wait_of
from rpl_att.reading.code_table import CodeTable
from rpl_att.reduction.wait_replay import WaitTotals

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
