"""Where the cycles of drawn code are: hot rows and lines, loops and branches, counted anew row by row.

By docs/att.md and the ISA manuals' rule for branches (SOPP: target = address + 4 + 4 * simm16).
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from rpl_att.analysis import Totals
from rpl_att.analysis.att_block import branch_hints, hot_instructions, hot_lines, loops
from rpl_att.instruction_class import classify
from rpl_att.reading import CodeTable
from rpl_att.reduction import FlowTotals

SOURCES = ("", "a.hip:3", "a.hip:4", "b.h:9 -> a.hip:3", "b.h:9 -> a.hip:4 -> a.hip:8", "b.h:9")
PLAIN = ("v_add_f32 v0, v1, v2", "s_waitcnt vmcnt(0)", "global_load_dword v0, v1, off", "s_mov_b32 s0, s1")


class Drawn:
    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        count = rng.randint(5, 30)
        self.addresses = [
            0x1000 + 4 * n for n in np.cumsum([rng.choice((1, 2)) for _ in range(count)]).tolist()
        ]
        self.objects = sorted(rng.choice((1, 2)) for _ in range(count))
        self.isa = ["; kernel" if rng.random() < 0.05 else rng.choice(PLAIN) for _ in range(count)]
        self.targets: dict[int, int] = {}
        for row in range(count):
            if rng.random() < 0.3 and not self.isa[row].startswith(";"):
                target = rng.randrange(count)
                words = (self.addresses[target] - self.addresses[row] - 4) // 4
                name = rng.choice(("s_branch", "s_cbranch_scc0", "s_cbranch_execz"))
                self.isa[row] = f"{name} {words % 0x10000 if rng.random() < 0.7 else words}"
                same = self.objects[target] == self.objects[row] and not self.isa[target].startswith(";")
                if same:
                    self.targets[row] = target
        self.sources = [rng.choice(SOURCES) for _ in range(count)]
        self.hit = np.array([rng.choice((0, 1, rng.randint(2, 90))) for _ in range(count)])
        self.latency = np.array([rng.randint(1, 60) * h for h in self.hit.tolist()])
        self.idle = None if rng.random() < 0.3 else np.array([rng.choice((0, 40, 900)) for _ in range(count)])
        self.stall = None if rng.random() < 0.3 else self.latency // 3
        self.startup = np.zeros(count, np.int64)
        if self.idle is not None:
            self.startup[0] = self.idle[0] // 2
        self.extra = rng.randint(0, 50)
        self.code = CodeTable(
            layout="rocprofv3",
            columns=10,
            isa=tuple(self.isa),
            line=np.arange(10, 10 + 2 * count, 2),
            source=tuple(self.sources),
            code_object=np.array(self.objects),
            vaddr=np.array(self.addresses),
            hit=self.hit,
            latency=self.latency,
            stall=self.stall,
            idle=self.idle,
        )
        self.totals = Totals(
            kinds=tuple(map(classify, self.isa)),
            hit=self.hit,
            latency=self.latency,
            stall=self.stall,
            idle=self.idle,
            extra_hit=0,
            extra_latency=self.extra,
            extra_stall=0,
            extra_idle=0,
            reasons={},
            startup=self.startup,
        )

    def __len__(self) -> int:
        return len(self.isa)

    def cost(self, row: int, *, without_start: bool) -> int:
        idle = 0 if self.idle is None else int(self.idle[row])
        return int(self.latency[row]) + idle - (int(self.startup[row]) if without_start else 0)

    def share(self, rows: list[int]) -> float | None:
        """Of all cycles, those of rows that nothing matches included."""
        if self.idle is None:
            return None
        whole = sum(self.cost(row, without_start=False) for row in range(len(self))) + self.extra
        return sum(self.cost(row, without_start=False) for row in rows) / whole if whole else None

    def sums(self, rows: list[int]) -> tuple[int, int | None, int | None]:
        parts = (self.latency, self.stall, self.idle)
        return tuple(None if part is None else sum(int(part[row]) for row in rows) for part in parts)


@pytest.mark.parametrize("seed", range(25))
def test_rows_and_lines_by_their_cycles(seed):
    drawn = Drawn(seed)
    executed = [row for row in range(len(drawn)) if drawn.hit[row]]
    costly = sorted(executed, key=lambda row: (-drawn.cost(row, without_start=True), row))
    for limit in (3, 100):
        found = hot_instructions(drawn.code, drawn.totals, limit)
        assert [one.line for one in found] == [10 + 2 * row for row in costly[:limit]]
    for one, row in zip(found, costly, strict=True):
        assert (one.isa, one.source) == (drawn.isa[row], drawn.sources[row] or None)
        assert (one.code_object, one.vaddr, one.hits) == (
            drawn.objects[row],
            drawn.addresses[row],
            drawn.hit[row],
        )
        assert (one.latency, one.stall, one.idle) == drawn.sums([row])
        assert one.share == (None if drawn.share([row]) is None else pytest.approx(drawn.share([row])))
        assert one.kind == classify(drawn.isa[row]).value
    lines: dict[str, list[int]] = {}
    for row in executed:
        if drawn.sources[row]:
            lines.setdefault(drawn.sources[row].split(" -> ")[0], []).append(row)
    order = sorted(lines, key=lambda n: (-sum(drawn.cost(row, without_start=True) for row in lines[n]), n))
    assert [one.source for one in hot_lines(drawn.code, drawn.totals)] == order
    assert [one.source for one in hot_lines(drawn.code, drawn.totals, 1)] == order[:1]
    for one in hot_lines(drawn.code, drawn.totals, None):
        rows = lines[one.source]
        assert (one.instructions, one.hits) == (len(rows), sum(int(drawn.hit[row]) for row in rows))
        assert (one.latency, one.stall, one.idle) == drawn.sums(rows)
        assert one.share == (None if drawn.share(rows) is None else pytest.approx(drawn.share(rows)))
        above = {" -> ".join(drawn.sources[row].split(" -> ")[1:]) for row in rows}
        assert list(one.callers) == sorted(above - {""})


@pytest.mark.parametrize("jumped", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_loops_between_a_target_and_the_last_branch_to_it(seed, jumped):
    drawn = Drawn(seed)
    size = len(drawn)
    if jumped:  # where waves went, fall-throughs and jumps of other code among them
        pairs = [(drawn.rng.randrange(size + 1), drawn.rng.randrange(size + 1)) for _ in range(12)]
        edges = Counter({pair: drawn.rng.randint(1, 9) for pair in pairs})
        back = {
            (one, other): count
            for (one, other), count in edges.items()
            if other <= one < size and drawn.objects[one] == drawn.objects[other]
        }
    else:
        edges = None
        back = {(row, to): 0 for row, to in drawn.targets.items() if to <= row and drawn.hit[row]}
    ends = {to: max(row for row, other in back if other == to) for _, to in back}
    order = sorted(ends.items(), key=lambda one: (one[0], -one[1]))
    found = loops(drawn.code, drawn.totals, edges)
    assert [(one.first_line, one.last_line) for one in found] == [(10 + 2 * a, 10 + 2 * b) for a, b in order]
    for one, (first, last) in zip(found, order, strict=True):
        rows = list(range(first, last + 1))
        assert one.iterations == drawn.hit[first]
        again = sum(count for (_, to), count in back.items() if to == first)
        assert one.entries == (drawn.hit[first] - again if jumped else None)
        assert one.depth == sum(a <= first and last <= b for a, b in order)
        assert (one.latency, one.stall, one.idle) == drawn.sums(rows)
        assert one.share == (None if drawn.share(rows) is None else pytest.approx(drawn.share(rows)))
        assert one.source == next((drawn.sources[row] for row in rows if drawn.sources[row]), None)
        kinds = Counter()
        for row in rows:
            kinds[classify(drawn.isa[row]).value] += int(drawn.hit[row])
        assert dict(one.kinds) == {kind: hits for kind, hits in kinds.items() if hits}


@pytest.mark.parametrize("seed", range(25))
def test_branches_that_waves_take_differently(seed):
    drawn, rng = Drawn(seed), random.Random(seed)
    taken, not_taken = (np.array([rng.choice((0, 0, 3, 9)) for _ in range(len(drawn) + 1)]) for _ in "ab")
    fewest = np.array([rng.choice((0, 1)) for _ in range(len(drawn) + 1)])
    most = fewest + np.array([rng.choice((0, 0, 2)) for _ in range(len(drawn) + 1)])
    flow = FlowTotals(Counter(), taken, not_taken, fewest, most)
    told = {}
    for row in range(len(drawn)):
        if (
            not drawn.isa[row].startswith("s_cbranch")
            or not taken[row] + not_taken[row]
            or not drawn.hit[row]
        ):
            continue
        if fewest[row] != most[row]:
            told[row] = "waves reach it differently often"
        elif "exec" in drawn.isa[row]:
            told[row] = "skips code when no lane is left"
        elif taken[row] and not_taken[row]:
            told[row] = "goes both ways"
    order = sorted(told, key=lambda row: (-taken[row] - not_taken[row], row))
    found = branch_hints(drawn.code, drawn.totals, flow)
    assert [one.line for one in found] == [10 + 2 * row for row in order]
    for one, row in zip(found, order, strict=True):
        assert one.hint.startswith(told[row])
        assert (one.taken, one.not_taken) == (taken[row], not_taken[row])
        assert one.taken_fraction == taken[row] / (taken[row] + not_taken[row])
        assert (one.fewest_per_wave, one.most_per_wave) == (fewest[row], most[row])
        assert (one.isa, one.source) == (drawn.isa[row], drawn.sources[row] or None)
