"""Drawn graphs whose times tie: edges in an order to solve them, and which ones close cycles, by networkx.

Nodes are contracted to breakpoints here by their definition: the first of a segment, or the target of an
edge. An edge may be worked on when all edges into what it leaves from, or into what that continues, are done.
"""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest

from rpl_analysis.critical_path.contraction import contract


def _drawn(rng: random.Random):
    """Segment starts, a time per position that never falls in a segment, edges that never go back."""
    times, starts = [], []
    for _ in range(rng.randint(1, 5)):
        starts.append(len(times))
        at = rng.randint(0, 2)
        for _ in range(rng.randint(1, 5)):
            times.append(at)
            at += rng.choice((0, 0, 1))
    places = range(len(times))
    edges = [
        (source, target)
        for source in places
        for target in places
        if source != target and times[source] <= times[target] and rng.random() < 0.12
    ]
    rng.shuffle(edges)
    return starts, times, edges


def _links(starts: list[int], count: int) -> list[tuple[int, int]]:
    return [(one - 1, one) for one in range(1, count) if one not in starts]


@pytest.mark.parametrize("batch", range(4))
def test_edges_come_in_an_order_to_solve_them(batch: int) -> None:
    cycles = 0
    for seed in range(100):
        starts, times, edges = _drawn(random.Random(1000 * batch + seed))
        while True:
            found, cyclic = _contracted(starts, times, edges)
            whole = nx.DiGraph([*_links(starts, len(times)), *edges])
            if nx.is_directed_acyclic_graph(whole):
                break
            cycles += 1
            on_or_behind = {
                node
                for part in nx.strongly_connected_components(whole)
                if len(part) > 1
                for node in (*part, *nx.descendants(whole, next(iter(part))))
            }
            # Some edges go, and only such as tie: a later time is no part of a circle.
            assert cyclic
            for number in cyclic:
                source, target = edges[number]
                assert times[source] == times[target]
                assert {source, target} <= on_or_behind
            ends = found.source_position.tolist(), found.target_position.tolist()
            kept = {edge for number, edge in enumerate(edges) if number not in cyclic}
            assert set(zip(*ends, strict=True)) == kept
            edges = [edge for number, edge in enumerate(edges) if number not in cyclic]
        assert cyclic == []
        _is_an_order(found, starts, edges, len(times))
    assert cycles > 10


def _contracted(starts, times, edges):
    when = np.array(times, np.int64)
    ends = [np.array([edge[side] for edge in edges], np.int64) for side in (0, 1)]
    found, cyclic = contract(
        len(times), np.array(starts, np.int64), *ends, lambda at: (when[at], np.zeros(at.size, np.int64))
    )
    return found, cyclic.tolist()


def _is_an_order(found, starts: list[int], edges: list[tuple[int, int]], count: int) -> None:
    segment = [sum(start <= one for start in starts) - 1 for one in range(count)]
    points = sorted({*starts, *(target for _, target in edges)})
    assert found.breakpoint.tolist() == points
    assert found.segment.tolist() == [segment[one] for one in points]
    before = [
        max((i for i in range(number) if segment[points[i]] == segment[one]), default=number)
        for number, one in enumerate(points)
    ]
    assert found.previous.tolist() == before
    ends = [max(i for i, one in enumerate(points) if segment[one] == part) for part in range(len(starts))]
    assert found.last_of_segment.tolist() == ends
    last = [max(i for i in range(count) if segment[i] == part) for part in range(len(starts))]
    assert found.segment_end.tolist() == last

    assert sorted(found.edge.tolist()) == list(range(len(edges)))
    entered: set[int] = set()
    done: set[int] = set()
    for place, number in enumerate(found.edge.tolist()):
        source, target = edges[number]
        assert (found.source_position[place], found.target_position[place]) == (source, target)
        governs = max(i for i, one in enumerate(points) if segment[one] == segment[source] and one <= source)
        assert (found.source[place], found.target[place]) == (governs, points.index(target))
        # All that a source may still gain from is done.
        earlier = {one for one in points[: governs + 1] if segment[one] == segment[source]}
        assert all(other in done for other, edge in enumerate(edges) if edge[1] in earlier)
        # So is what the target continues; edges into one target follow each other.
        own = {one for one in points if segment[one] == segment[target] and one < target}
        assert all(other in done for other, edge in enumerate(edges) if edge[1] in own)
        if target in entered:
            assert edges[int(found.edge[place - 1])][1] == target
        carries = points.index(target) if target in entered else before[points.index(target)]
        assert found.carried[place] == carries
        entered.add(target)
        done.add(number)
