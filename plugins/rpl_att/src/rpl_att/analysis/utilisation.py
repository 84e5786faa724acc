"""How busy the hardware was: waves in flight over time, and units, SIMDs and pipes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rpl_att.analysis import Totals
from rpl_att.contract import AttIpc, AttOccupancy, AttTimeline
from rpl_att.instruction_class import InstructionClass
from rpl_att.reading import CodeTable
from rpl_att.reading.wave_files import EngineEvents, OccupancyEvents, StateSteps
from rpl_att.reduction import ReducedWaves
from rpl_core.contracts.common import MetricDoc

if TYPE_CHECKING:
    from rpl_core.model.device import Architecture, MatrixRates


#: Points of a curve that are kept for display (chosen: more than a plot has pixels for).
SHOWN_POINTS = 500

Counts = NDArray[np.int64]


def occupancy(events: OccupancyEvents) -> tuple[AttOccupancy, ...]:
    """Per shader engine, then per CU of it, then per SIMD of that CU, in ascending order."""
    parts = []
    for engine in events.engines:
        if not len(engine):
            continue
        parts.append(_entry(engine, np.ones(len(engine), np.bool_), None, None))
        for cu in np.unique(engine.cu).tolist():
            on_cu = engine.cu == cu
            parts.append(_entry(engine, on_cu, cu, None))
            simds = np.unique(engine.simd[on_cu]).tolist()
            parts += [_entry(engine, on_cu & (engine.simd == simd), cu, simd) for simd in simds]
    return tuple(parts)


def busiest_target(events: OccupancyEvents) -> tuple[int, int] | None:
    """(shader engine, CU) with the most wave begins; the lowest numbers win a tie. ``None``: no waves."""
    starts: dict[tuple[int, int], int] = {}
    for engine in events.engines:
        for cu in engine.cu[engine.start == 1].tolist():
            starts[engine.shader_engine, cu] = starts.get((engine.shader_engine, cu), 0) + 1
    return min(starts, key=lambda place: (-starts[place], place)) if starts else None


def occupancy_timeline(engine: EngineEvents) -> AttTimeline:
    clocks, waves = _running(engine, np.ones(len(engine), np.bool_))
    return timeline(f"occupancy SE{engine.shader_engine}", clocks, waves)


def timeline(name: str, clocks: Counts, values: Counts) -> AttTimeline:
    """The curve, thinned out to ``SHOWN_POINTS``; of each stretch the highest value is kept."""
    if len(clocks) > SHOWN_POINTS:
        bounds = np.linspace(0, len(clocks), SHOWN_POINTS + 1).astype(np.int64)[:-1]
        values = np.maximum.reduceat(values, bounds)
        clocks = clocks[bounds]
    return AttTimeline(name=name, clocks=tuple(clocks.tolist()), values=tuple(values.tolist()))


def state_timelines(states: Sequence[StateSteps]) -> tuple[AttTimeline, ...]:
    """The curves of all states at the same clocks, so that they add up to the waves there are."""
    known = [steps for steps in states if steps.clocks]
    if not known:
        return ()
    clocks = np.unique(np.concatenate([np.array(steps.clocks, dtype=np.int64) for steps in known]))
    if len(clocks) > SHOWN_POINTS:
        clocks = clocks[np.linspace(0, len(clocks) - 1, SHOWN_POINTS).astype(np.int64)]
    return tuple(
        timeline(f"waves {steps.state}", clocks, _at(clocks, np.array(steps.clocks), np.array(steps.counts)))
        for steps in known
    )


def _at(clocks: Counts, changed: Counts, counts: Counts) -> Counts:
    place = np.searchsorted(changed, clocks, side="right") - 1
    return np.where(place >= 0, counts[np.maximum(place, 0)], 0)


def _running(engine: EngineEvents, chosen: NDArray[np.bool_]) -> tuple[Counts, Counts]:
    """Clocks at which the number of waves changes, and the number from there on."""
    time = engine.time[chosen]
    steps = np.where(engine.start[chosen] == 1, 1, -1)
    clocks, first = np.unique(time, return_index=True)
    running = np.cumsum(steps)
    waves = running[np.concatenate((first[1:] - 1, [len(time) - 1]))]
    # Waves that began before the trace end without a begin, each in a slot of its own: the count starts above
    # zero, and higher still where begins were lost.
    slots = np.stack((engine.cu, engine.simd, engine.slot), axis=1)[chosen]
    _, opening = np.unique(slots, axis=0, return_index=True)
    from_before = int((steps[opening] < 0).sum())
    return clocks, waves + max(from_before, -int(running.min()))


def _entry(engine: EngineEvents, chosen: NDArray[np.bool_], cu: int | None, simd: int | None) -> AttOccupancy:
    clocks, waves = _running(engine, chosen)
    span = int(clocks[-1] - clocks[0])
    area = int((waves[:-1] * np.diff(clocks)).sum())
    return AttOccupancy(
        shader_engine=engine.shader_engine,
        cu=cu,
        simd=simd,
        mean_waves=area / span if span else float(waves.max()),
        peak_waves=int(waves.max()),
        first_clock=int(clocks[0]),
        last_clock=int(clocks[-1]),
    )


# How busy units, SIMDs and pipes were: by sampled counters, known cycles of MFMA, or the waves.

_BUSY_CU = "SQ_BUSY_CU_CYCLES"
_MFMA_BUSY = "SQ_VALU_MFMA_BUSY_CYCLES"
_VALU = "SQ_ACTIVE_INST_VALU"
#: Where the architecture is unknown: only GPUs with four SIMDs per CU sample these counters.
_SIMDS = 4
#: Where the rates are unknown, only a trace without such an instruction has a figure: zero.
_NO_MFMA = "thread trace: no matrix instruction was executed"
_COUNTER_SOURCE = "rocprof-compute-viewer (docs/reference/thread-trace.md, 3.6)"

_SHAPE = re.compile(
    r"v_mfma_\w+?_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?:(?P<blocks>\d+)b_)?(?P<type>[a-z]+\d[a-z0-9]*)"
)


def valu_utilisation(counters: Mapping[str, int]) -> MetricDoc:
    """sum(SQ_ACTIVE_INST_VALU) / sum(SQ_BUSY_CU_CYCLES)."""
    return _by_counters(counters, _VALU, 1, f"sum({_VALU}) / sum({_BUSY_CU})")


def mfma_utilisation(
    counters: Mapping[str, int],
    code: CodeTable | None,
    totals: Totals | None,
    windows: int | None,
    architecture: Architecture | None,
) -> MetricDoc:
    """By counters where they were sampled, otherwise modelled from known cycles, otherwise null."""
    limits = architecture.occupancy if architecture is not None else None
    simds = _SIMDS if limits is None else limits.simds_per_cu
    if _MFMA_BUSY in counters:
        return _by_counters(counters, _MFMA_BUSY, simds, f"sum({_MFMA_BUSY}) / sum({_BUSY_CU}) / {simds}")
    if code is None or totals is None or not windows:
        return _unknown((_BUSY_CU, _MFMA_BUSY), "no counters and no wave files")
    rates = architecture.matrix_rates if architecture is not None else None
    cycles = _known_cycles(code, totals, rates)
    if isinstance(cycles, str):
        return _unknown((_BUSY_CU, _MFMA_BUSY), cycles)
    return MetricDoc(
        value=cycles / windows,
        unit="fraction",
        exactness="estimate",
        origin="modelled",
        formula="executed MFMA x cycles at the peak rate / window of the SIMDs",
        source=rates.source if rates is not None else _NO_MFMA,
        missing=(_BUSY_CU, _MFMA_BUSY),
        note="cycles are those of dense inputs at the peak rate, not measured ones",
    )


def _by_counters(counters: Mapping[str, int], name: str, units: int, formula: str) -> MetricDoc:
    missing = tuple(n for n in (_BUSY_CU, name) if n not in counters)
    if missing:
        return _unknown(missing, "the trace was recorded without these counters (--att-activity)")
    if not counters[_BUSY_CU]:
        return _unknown((), f"{_BUSY_CU} stayed at zero")
    return MetricDoc(
        value=counters[name] / counters[_BUSY_CU] / units,
        unit="fraction",
        exactness="estimate",
        origin="measured",
        formula=formula,
        counters=(name, _BUSY_CU),
        source=_COUNTER_SOURCE,
        note="sampled on all CUs of the traced shader engines",
    )


def _unknown(missing: tuple[str, ...], reason: str) -> MetricDoc:
    return MetricDoc(value=None, unit="fraction", missing=missing, reason=reason)


def _known_cycles(code: CodeTable, totals: Totals, rates: MatrixRates | None) -> float | str:
    """Cycles of all executed MFMAs, or why they are not known."""
    cycles = 0.0
    for row, kind in enumerate(totals.kinds):
        hits = int(totals.hit[row])
        if kind is not InstructionClass.MFMA or not hits:
            continue
        if rates is None:
            return "no counters, and the architecture's MFMA rates are not known"
        each = cycles_of_mfma(code.isa[row], rates)
        if each is None:
            return f"no counters, and the cycles of {code.isa[row].split()[0]} are not known"
        cycles += hits * each
    return cycles


def cycles_of_mfma(isa: str, rates: MatrixRates) -> float | None:
    """2 m n k blocks / (operations per cycle of a SIMD); ``None`` for a shape or type that is not known."""
    match = _SHAPE.match(isa)
    if match is None:
        return None
    kind = "F8" if match["type"] in ("fp8", "bf8") else match["type"].upper()
    rate = rates.rate(kind)
    flops = 2 * int(match["m"]) * int(match["n"]) * int(match["k"]) * int(match["blocks"] or 1)
    return None if rate is None else flops / rate


def ipc(waves: ReducedWaves, total: int) -> AttIpc:
    """H / T per wave; H / sum of SIMD windows per SIMD; per CU the sum over its SIMDs, mean over CUs."""
    executed = sum(wave.instructions for wave in waves.waves)
    windows = sum(simd.window for simd in waves.simds)
    return AttIpc(
        per_wave=executed / total if total else None,
        per_simd=executed / windows if windows else None,
        per_cu=_per_cu(waves),
    )


def _per_cu(waves: ReducedWaves) -> float | None:
    """Each traced shader engine has one target CU, so its SIMDs add up to that CU."""
    executed: dict[tuple[int, int], int] = {}
    for wave in waves.waves:
        place = (wave.file.shader_engine, wave.file.simd)
        executed[place] = executed.get(place, 0) + wave.instructions
    rates: dict[int, float] = {}
    for simd in waves.simds:
        if simd.window:
            rate = executed[simd.shader_engine, simd.simd] / simd.window
            rates[simd.shader_engine] = rates.get(simd.shader_engine, 0.0) + rate
    return sum(rates.values()) / len(rates) if rates else None


def waves_per_simd(waves: ReducedWaves) -> float | None:
    """Sum of lifetimes / sum of windows (docs/reference/thread-trace.md, 3.4)."""
    windows = sum(simd.window for simd in waves.simds)
    return sum(wave.lifetime for wave in waves.waves) / windows if windows else None


def issue_utilization(waves: ReducedWaves) -> dict[str, float] | None:
    """Busy cycles / window by class and for any pipe; ``None`` when a SIMD had too many intervals."""
    windows = sum(simd.window for simd in waves.simds)
    busy: dict[str, int] = {}
    for simd in waves.simds:
        if simd.busy is None:
            return None
        for name, cycles in simd.busy.items():
            busy[name] = busy.get(name, 0) + cycles
    return {name: cycles / windows for name, cycles in sorted(busy.items())} if windows else {}
