"""Figures of drawn traces against a count of every cycle: which waves are there, and what each does."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import attrs
import numpy as np
import pytest

from rpl_att.analysis.utilisation import SHOWN_POINTS, busiest_target, occupancy, occupancy_timeline, timeline
from rpl_att.reading import TraceFolder
from rpl_att.reading.wave_files import read_occupancy

#: One instruction of a class each, with whether a pipe executes it.
CODE = (
    ("v_add_f32_e32 v0, v1, v2", "VALU", True),
    ("s_add_u32 s0, s1, s2", "SALU", True),
    ("global_load_dword v0, v[2:3], off", "VMEM", True),
    ("ds_read_b32 v0, v1", "LDS", True),
    ("v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", "MFMA", True),
    ("s_waitcnt vmcnt(0)", "WAITCNT", False),
    ("s_barrier", "BARRIER", False),
    ("s_nop 0", "INTERNAL", False),
)


@attrs.frozen
class _Wave:
    """A wave in its slot; times are multiples of 8, as the packed form has them."""

    place: tuple[int, int, int]  # CU, SIMD, slot
    begin: int
    end: int


def _resident(rng: random.Random) -> list[_Wave]:
    """Waves one after the other in each slot; no two events at once."""
    times = iter(rng.sample(range(1, 4_000), 600))
    found = []
    for cu in (0, 3):
        for simd in (0, 2):
            for slot in range(3):
                ends = sorted(8 * next(times) for _ in range(2 * rng.randint(1, 4)))
                found += [_Wave((cu, simd, slot), b, e) for b, e in zip(ends[::2], ends[1::2], strict=True)]
    return found


def _events(waves: list[_Wave], first: int, last: int) -> list[list[int]]:
    """``time, cu, simd, slot, start, kernel`` of what happened in the window."""
    events = [[w.begin, *w.place, 1, 5] for w in waves] + [[w.end, *w.place, 0, 5] for w in waves]
    return [event for event in events if first <= event[0] <= last]


def _packed(event: list[int]) -> int:
    time, cu, simd, slot, start, kernel = event
    return time // 8 << 23 | cu << 19 | start << 18 | slot << 14 | simd << 12 | kernel


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_waves_in_flight_also_those_from_before_the_trace(trace_folder, seed: int, packed: bool) -> None:
    rng = random.Random(seed)
    waves = _resident(rng)
    # The window begins in the middle, when some run already, and may end before others do. Of those that run
    # all the time nothing is told.
    first, last = rng.choice((0, 6_000, 12_000)), rng.choice((18_000, 24_000, 10**9))
    waves = [w for w in waves if first <= w.begin <= last or first <= w.end <= last]
    events = _events(waves, first, last)
    rng.shuffle(events)
    listed = [_packed(event) for event in events] if packed else events
    trace_folder.file("occupancy.json", {"4": listed, "dispatches": {"5": "kernel"}})
    found = read_occupancy(TraceFolder.at(trace_folder.path))
    assert found is not None
    assert found.kernel_symbols == {5: "kernel"}
    parts = {(part.cu, part.simd): part for part in occupancy(found)}
    seen = {wave.place[:2] for wave in waves}
    assert set(parts) == {(None, None), *((cu, None) for cu, _ in seen), *seen}
    for (cu, simd), part in parts.items():
        own = [w for w in waves if cu in (None, w.place[0]) and simd in (None, w.place[1])]
        clocks = sorted({t for w in own for t in (w.begin, w.end) if first <= t <= last})
        running = [sum(w.begin <= clock < w.end for w in own) for clock in clocks]
        assert (part.shader_engine, part.first_clock, part.last_clock) == (4, clocks[0], clocks[-1])
        assert part.peak_waves == max(running)
        area = sum(n * (after - at) for n, (at, after) in zip(running, pairwise(clocks), strict=False))
        span = clocks[-1] - clocks[0]
        assert part.mean_waves == pytest.approx(area / span if span else running[0])
        if (cu, simd) == (None, None):
            curve = occupancy_timeline(found.engines[0])
            assert (list(curve.clocks), list(curve.values)) == (clocks, running)
    begins = Counter(w.place[0] for w in waves if first <= w.begin <= last)
    target = min(begins, key=lambda cu: (-begins[cu], cu), default=None)
    assert busiest_target(found) == (None if target is None else (4, target))


@pytest.mark.parametrize("quiet", range(8))
def test_engines_without_waves_hide_nothing(trace_folder, quiet: int) -> None:
    """Each of three shader engines with waves or without."""
    waves = {str(3 * n): [] if quiet >> n & 1 else [_Wave((n, 0, 0), 8, 80 + 8 * n)] for n in range(3)}
    listed = {name: _events(own, 0, 10**9) for name, own in waves.items()}
    trace_folder.file("occupancy.json", {**listed, "dispatches": {"5": "kernel"}})
    found = read_occupancy(TraceFolder.at(trace_folder.path))
    with_waves = [int(name) for name, own in waves.items() if own]
    if found is None:
        assert not with_waves
        return
    parts = occupancy(found)
    assert [(part.shader_engine, part.cu) for part in parts if part.simd is None] == [
        place for name in with_waves for place in ((name, None), (name, name // 3))
    ]
    assert [part.last_clock for part in parts if part.cu is None] == [80 + 8 * (n // 3) for n in with_waves]
    assert busiest_target(found) == ((with_waves[0], with_waves[0] // 3) if with_waves else None)


def test_a_long_curve_keeps_the_highest_value_of_each_stretch() -> None:
    rng = random.Random(1)
    for count in (SHOWN_POINTS, SHOWN_POINTS + 1, 3 * SHOWN_POINTS, 1_733):
        values = [rng.randint(0, 30) for _ in range(count)]
        shown = timeline("x", np.arange(count) * 10, np.array(values))
        assert len(shown.clocks) == SHOWN_POINTS
        bounds = [clock // 10 for clock in shown.clocks] + [count]
        assert bounds[0] == 0
        assert list(shown.values) == [max(values[a:b]) for a, b in pairwise(bounds)]


def _instructions(rng: random.Random, begin: int) -> tuple[list[list[int]], int]:
    """``time, category, stall, duration, line``, some under way as the next begins; when the last ended."""
    rows, time, ended = [], begin + rng.choice((0, 12)), begin
    for _ in range(rng.randint(3, 25)):
        stall = 4 * rng.randint(0, 5)
        duration = stall + 4 * rng.randint(1, 4)
        rows.append([time, 0, stall, duration, rng.randrange(len(CODE))])
        ended = max(ended, time + duration)
        time = rng.choice((time + 4, time + duration, ended + 4 * rng.randint(0, 9)))
    return rows, ended


@pytest.mark.parametrize("seed", range(15))
def test_cycles_of_waves_simds_and_pipes(trace_folder, seed: int) -> None:
    rng = random.Random(100 + seed)
    waves: list[tuple[int, int, int, list[list[int]]]] = []
    for simd in (0, 1, 3):
        for _ in range(rng.randint(1, 4)):
            begin = 1_000 + 4 * rng.randint(0, 100)
            rows, ended = _instructions(rng, begin)
            waves.append((simd, begin, ended + 4 * rng.randint(0, 9), rows))
    sums = {line: [0, 0, 0, 0] for line in range(len(CODE))}
    idle = startup = 0
    for _, begin, _, rows in waves:
        worked: set[int] = set()
        for number, (time, _, stall, duration, line) in enumerate(rows):
            waited = sum(clock not in worked for clock in range(begin, time))
            before = max([begin, *(t + d for t, _, _, d, _ in rows[:number])])
            gap = max(0, time - before)
            startup += gap if number == 0 else 0
            sums[line] = [a + b for a, b in zip(sums[line], (1, duration, stall, gap), strict=True)]
            worked |= set(range(time, time + duration))
        # What no instruction covers until the last one began is idle.
        idle += waited
    trace_folder.code(*((isa, 16 * n, *sums[n]) for n, (isa, _, _) in enumerate(CODE)))
    for simd, begin, end, rows in waves:
        trace_folder.wave(rows, begin, end, simd=simd)
    block = trace_folder.block("gfx942")
    hits, latency, stall = (sum(values[i] for values in sums.values()) for i in range(3))
    lives = sum(end - begin for _, begin, end, _ in waves)
    assert (block.waves, block.instructions) == (len(waves), hits)
    cycles = block.cycles
    assert (cycles.latency, cycles.stall, cycles.idle, cycles.lifetime) == (latency, stall, idle, lives)
    total = latency + idle
    assert cycles.total == total
    assert block.issue_fraction == pytest.approx((latency - stall) / total)
    assert block.stall_fraction == pytest.approx(stall / total)
    assert block.idle_fraction == pytest.approx(idle / total)
    assert block.stall_split.startup_fraction == pytest.approx(startup / total)
    simds = {wave[0] for wave in waves}
    windows = sum(
        max(e for s, _, e, _ in waves if s == simd) - min(b for s, b, _, _ in waves if s == simd)
        for simd in simds
    )
    assert block.waves_per_simd == pytest.approx(lives / windows)
    assert block.ipc.per_simd == pytest.approx(hits / windows)
    assert block.ipc.per_wave == pytest.approx(hits / total)
    busy: dict[str, set[tuple[int, int]]] = {}
    for simd, _, _, rows in waves:
        for time, _, stalled, duration, line in rows:
            _, kind, by_pipe = CODE[line]
            issuing = {(simd, clock) for clock in range(time + stalled, time + duration)}
            busy.setdefault(kind, set()).update(issuing)
            if by_pipe:
                busy.setdefault("any", set()).update(issuing)
    assert block.issue_utilization == pytest.approx({kind: len(c) / windows for kind, c in busy.items()})
    per_simd = [
        sum(len(rows) for s, _, _, rows in waves if s == simd)
        / (max(e for s, _, e, _ in waves if s == simd) - min(b for s, b, _, _ in waves if s == simd))
        for simd in simds
    ]
    assert block.ipc.per_cu == pytest.approx(sum(per_simd))
    mix = {kind: sums[line] for line, (_, kind, _) in enumerate(CODE) if sums[line][0]}
    found = {kind: [e.hits, e.latency, e.stall, e.idle] for kind, e in block.instruction_mix.items()}
    assert found == mix
    waiting = {kind: sums[line][1] for line, (_, kind, _) in enumerate(CODE)}
    assert block.stall_split.memory_wait_fraction == pytest.approx(waiting["WAITCNT"] / total)
    assert block.stall_split.barrier_fraction == pytest.approx(waiting["BARRIER"] / total)
    assert block.stall_split.internal_fraction == pytest.approx(waiting["INTERNAL"] / total)
    held = sum(sums[line][2] for line, (_, _, by_pipe) in enumerate(CODE) if by_pipe)
    assert block.stall_split.pipe_backpressure_fraction == pytest.approx(held / total)
    assert block.headroom_fraction == pytest.approx(min(1, (waiting["WAITCNT"] + idle) / total))
