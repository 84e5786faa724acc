"""What was around a moment: against looking at every interval."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rpl_torch.analysis import launches
from rpl_torch.analysis.launches import nested


def tree(rng, begin, end, depth, rows, thread):
    rows.append((thread, begin, end))
    if depth == 0 or end - begin < 8:
        return
    cuts = sorted(rng.sample(range(begin, end + 1), 2 * rng.randint(0, min(3, (end - begin) // 4))))
    for low, high in zip(cuts[::2], cuts[1::2], strict=True):
        tree(rng, low, high, depth - 1, rows, thread)


@pytest.mark.parametrize("block", [3, 1 << 16])
def test_the_innermost_and_the_nearest_chosen_are_those_of_plain_search(monkeypatch, block):
    monkeypatch.setattr(launches, "_BLOCK", block)
    rng = random.Random(7)
    for _ in range(30):
        rows = []
        for thread in (3, 8):
            tree(rng, 0, 300, 4, rows, thread)
            tree(rng, 310, 400, 2, rows, thread)
        rows.sort(key=lambda row: (row[0], row[1], -row[2]))
        thread, begin, end = (np.array(column, np.int64) for column in zip(*rows, strict=True))
        found = nested(thread, begin, end)
        chosen = np.array([rng.random() < 0.3 for _ in rows])
        nearest = found.nearest(chosen)
        times = np.array([rng.randint(-5, 410) for _ in range(40)])
        asked = np.array([rng.choice((3, 8, 9)) for _ in times])
        for place, (own, time) in enumerate(zip(asked.tolist(), times.tolist(), strict=True)):
            around = [i for i, (t, a, b) in enumerate(rows) if t == own and a <= time <= b]
            innermost = int(found.innermost(asked, times)[place])
            # At a border both sides are around; the later one is meant.
            assert innermost == (around[-1] if around else -1)
            at, expected = innermost, -1
            while at >= 0 and expected < 0:
                expected = at if chosen[at] else -1
                at = int(found.parent[at])
            assert (int(nearest[innermost]) if innermost >= 0 else -1) == expected


def test_nothing_is_around_where_nothing_was_recorded():
    empty = np.empty(0, np.int64)
    found = nested(empty, empty, empty)
    assert found.innermost(np.array([1]), np.array([2])).tolist() == [-1]
    assert found.nearest(np.empty(0, np.bool_)).tolist() == []
