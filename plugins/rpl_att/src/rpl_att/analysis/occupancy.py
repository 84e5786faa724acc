"""Waves in flight over time per shader engine, CU and SIMD, from the occupancy events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rpl_att.contract import AttOccupancy, AttTimeline
from rpl_att.reading.occupancy_events import EngineEvents, OccupancyEvents
from rpl_att.reading.wave_states import StateSteps

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
    # Waves that began before the trace end without a begin: the count starts above zero.
    return clocks, waves - min(0, int(running.min()))


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
