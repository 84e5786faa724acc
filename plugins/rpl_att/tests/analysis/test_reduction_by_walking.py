"""The sums that waves are reduced to, by going through their instructions one by one.

Waves come in blocks that are cut anywhere: what spans two of them must count as if there were one.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from rpl_att import reduction
from rpl_att.instruction_class import IMMEDIATE
from rpl_att.reduction import (
    ANY,
    CLASSES,
    ControlFlow,
    IssueIntervals,
    LineTotals,
    WaitReplay,
    idle_before,
)

TAKEN, NOT_TAKEN = 7, 8  # docs/reference/thread-trace.md, 2.5
ROWS = 5


def _wave(rng: random.Random, length: int, start: int = 0) -> list[tuple[int, int, int, int, int]]:
    """Time, category, stall, duration and row of each instruction; some overlap."""
    at, wave = start, []
    for _ in range(length):
        at = max(0, at + rng.choice((-2, 0, 0, 1, 5)))
        duration = rng.randint(0, 6)
        category = rng.choice((1, 3, TAKEN, TAKEN, NOT_TAKEN))
        wave.append((at, category, rng.randint(0, duration), duration, rng.randint(0, ROWS)))
        at += duration
    return wave


def _blocks(rng: random.Random, wave: list[Any]) -> list[Any]:
    """The same in blocks of drawn lengths, some of them empty."""
    blocks, at = [], 0
    while at < len(wave):
        size = rng.randint(0, 4)
        blocks.append(np.array(wave[at : at + size], np.int64).reshape(-1, 5))
        at += size
    return blocks


@pytest.mark.parametrize("seed", range(25))
def test_cycles_idle_time_and_branches_of_drawn_waves(seed: int) -> None:
    rng = random.Random(seed)
    lines, flow = LineTotals.zero(ROWS), ControlFlow(ROWS)
    sums: Counter[tuple[str, int]] = Counter()
    edges: Counter[tuple[int, int]] = Counter()
    outcomes: Counter[tuple[int, int]] = Counter()
    hits_of_waves = []
    for _ in range(rng.randint(1, 4)):
        begin = rng.randint(0, 5)
        wave = _wave(rng, rng.randint(1, 12), begin)
        reached = begin
        for number, (at, category, stall, duration, row) in enumerate(wave):
            sums["hit", row] += 1
            sums["latency", row] += duration
            sums["stall", row] += stall
            sums["idle", row] += max(0, at - reached)
            reached = max(reached, at + duration)
            outcomes[category, row] += 1
            if category == TAKEN and number + 1 < len(wave):
                edges[row, wave[number + 1][4]] += 1
        hits_of_waves.append(Counter(row for *_, row in wave))
        end = begin
        for block in _blocks(rng, wave):
            idle = idle_before(block, end)
            end = idle.previous_end
            lines.add(block[:, 4], block, idle.idle)
            flow.add(block[:, 4], block)
        assert end == reached
        flow.end_wave()
    for name in ("hit", "latency", "stall", "idle"):
        assert getattr(lines, name).tolist() == [sums[name, row] for row in range(ROWS + 1)], name
    assert lines.unresolved == sums["hit", ROWS]
    found = flow.totals()
    assert dict(found.edges) == dict(edges)
    assert found.taken.tolist() == [outcomes[TAKEN, row] for row in range(ROWS + 1)]
    assert found.not_taken.tolist() == [outcomes[NOT_TAKEN, row] for row in range(ROWS + 1)]
    assert found.fewest.tolist() == [min(hits[row] for hits in hits_of_waves) for row in range(ROWS + 1)]
    assert found.most.tolist() == [max(hits[row] for hits in hits_of_waves) for row in range(ROWS + 1)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("merge_at", [0, 3, 500_000])
def test_busy_cycles_of_pipes_are_counted_cycle_by_cycle(
    seed: int, merge_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe issues from the end of the stall to the end of the instruction; immediate ones use no pipe."""
    monkeypatch.setattr(reduction, "_MERGE_AT", merge_at)
    rng = random.Random(seed)
    collected = IssueIntervals()
    expected = []
    for simd in range(2):
        cycles: dict[str, set[int]] = {}
        for _ in range(rng.randint(1, 3)):
            wave = _wave(rng, rng.randint(1, 8), rng.randint(0, 9))
            kinds = [rng.randrange(len(CLASSES)) for _ in wave]
            for (at, _, stall, duration, _), kind in zip(wave, kinds, strict=True):
                busy = set(range(at + stall, at + duration))
                for name in [CLASSES[kind].value] + ([ANY] if CLASSES[kind] not in IMMEDIATE else []):
                    cycles.setdefault(name, set()).update(busy)
            collected.add(np.array(kinds), np.array(wave, np.int64))
        expected.append({name: len(busy) for name, busy in cycles.items()})
        collected.end_simd(1, simd, 100 + simd)
    assert [(one.shader_engine, one.simd, one.window) for one in collected.finished] == [
        (1, 0, 100),
        (1, 1, 101),
    ]
    assert [one.busy for one in collected.finished] == expected


def test_a_simd_with_too_many_intervals_has_no_busy_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "MAX_INTERVALS", 3)
    kind = next(i for i, one in enumerate(CLASSES) if one in IMMEDIATE)
    collected = IssueIntervals()
    for count in (3, 4, 2):
        wave = [(10 * i, 1, 0, 5, 0) for i in range(count)]
        collected.add(np.array([kind] * count), np.array(wave, np.int64))
        collected.end_simd(0, count, 100)
    busy = [one.busy for one in collected.finished]
    assert busy[0] == {CLASSES[kind].value: 15}
    assert busy[2] == {CLASSES[kind].value: 10}
    assert busy[1] is None or busy[1] == {}


#: Loads of gfx9 return in order by vmcnt, those of scalars in any order by lgkmcnt, LDS in order by it.
ISA = (
    "global_load_dword v1, v[2:3], off",
    "ds_read_b32 v4, v5",
    "s_load_dword s1, s[2:3], 0x0",
    "v_add_f32 v0, v1, v2",
    "s_waitcnt vmcnt(0)",
    "s_waitcnt vmcnt(1)",
    "s_waitcnt lgkmcnt(0)",
    "s_waitcnt lgkmcnt(2)",
    "s_waitcnt vmcnt(1) lgkmcnt(1)",
)
COUNTER_OF = {0: "vmcnt", 1: "lgkmcnt", 2: "lgkmcnt"}
LIMITS = {
    4: {"vmcnt": 0},
    5: {"vmcnt": 1},
    6: {"lgkmcnt": 0},
    7: {"lgkmcnt": 2},
    8: {"vmcnt": 1, "lgkmcnt": 1},
}


@pytest.mark.parametrize("seed", range(40))
def test_what_waits_waited_for_by_replaying_the_counters(seed: int) -> None:
    rng = random.Random(seed)
    replay = WaitReplay(ISA, 9)
    hits: Counter[int] = Counter()
    producers: Counter[tuple[int, int]] = Counter()
    deciding: Counter[tuple[int, int]] = Counter()
    latencies: Counter[tuple[str, int]] = Counter()
    for _ in range(3):
        replay.begin_wave(record=True)
        queues: dict[str, list[tuple[int, int]]] = {"vmcnt": [], "lgkmcnt": []}
        listed = []
        wave, at = [], 0
        for _ in range(rng.randint(1, 25)):
            row = rng.randrange(len(ISA))
            duration = rng.choice((1, 4, 5, 30))
            stall = rng.randint(0, duration)
            wave.append((at, 1, stall, duration, row))
            if row in COUNTER_OF:
                queues[COUNTER_OF[row]].append((at + stall, row))
            elif row in LIMITS:
                hits[row] += 1
                returned = []
                for counter, limit in LIMITS[row].items():
                    queue = queues[counter]
                    any_order = any(own == 2 for _, own in queue)
                    if any_order and limit:
                        continue
                    gone, queues[counter] = (
                        queue[: max(0, len(queue) - limit)],
                        queue[-limit:] if limit else [],
                    )
                    returned += gone
                    if gone and not any_order and duration > 4:
                        latencies[counter, at + duration - gone[-1][0]] += 1
                if returned:
                    producers.update((row, own) for _, own in returned)
                    deciding[row, max(returned, key=lambda one: one[0])[1]] += duration
                    listed.append((row, tuple(own for _, own in returned)))
            at += duration + rng.randint(1, 3)
        for block in _blocks(rng, wave):
            replay.add(block[:, 4], block)
        assert list(replay.end_wave()) == listed
    assert {row: waits.hits for row, waits in replay.waits.items()} == dict(hits)
    found = {(row, own): n for row, waits in replay.waits.items() for own, n in waits.producers.items()}
    assert found == dict(producers)
    found = {(row, own): n for row, waits in replay.waits.items() for own, n in waits.deciding_cycles.items()}
    assert found == dict(deciding)
    lasted = {(name, cycles): n for name, all_of in replay.latencies.items() for cycles, n in all_of.items()}
    assert lasted == dict(latencies)
