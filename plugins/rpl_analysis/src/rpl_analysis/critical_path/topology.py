"""A processing order for the edges between breakpoints: by time, and by counting where times tie.

Zero-duration nodes at one instant may depend on each other in any direction, so time alone does not order
them. Their cycles (possible only there) are cut the same way for every row order of the input.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]

__all__ = ["order_breakpoints"]


def order_breakpoints(
    previous: IntArray, source: IntArray, target: IntArray, times: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    """Edge numbers so that all edges into a breakpoint come before all edges out of it or what follows it.

    ``previous[b]`` is the breakpoint that b continues, or b itself. ``times`` never descend along an edge.
    Second result: edges that close cycles, left out of the first.
    """
    time_rank = _ranks(np.lexsort((times[1], times[0])))
    against_time = time_rank[source] >= time_rank[target]
    if not against_time.any():
        return np.argsort(time_rank[target], kind="stable"), np.zeros(0, dtype=np.int64)
    rank, unordered = _rank_by_counting(previous, source, target)
    # What counting left over sits on or behind a cycle: cut it at the edges that time order refuses.
    cyclic = unordered[target] & unordered[source] & against_time
    rank = np.where(unordered, previous.size + time_rank, rank)
    order = np.argsort(rank[target], kind="stable")
    return order[~cyclic[order]], np.flatnonzero(cyclic)


def _ranks(order: IntArray) -> IntArray:
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank


def _rank_by_counting(
    previous: IntArray, source: IntArray, target: IntArray
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Kahn's algorithm: ranks of the breakpoints it reaches, and a mask of those it does not."""
    continued = np.flatnonzero(previous != np.arange(previous.size))
    tail = np.concatenate([source, previous[continued]])
    head = np.concatenate([target, continued])
    by_tail = np.argsort(tail, kind="stable")
    first = np.searchsorted(tail[by_tail], np.arange(previous.size + 1)).tolist()
    heads = head[by_tail].tolist()
    waiting = np.bincount(head, minlength=previous.size).tolist()
    ready = deque(node for node, count in enumerate(waiting) if count == 0)
    rank = np.zeros(previous.size, dtype=np.int64)
    unordered = np.ones(previous.size, dtype=np.bool_)
    done = 0
    while ready:
        node = ready.popleft()
        rank[node], unordered[node] = done, False
        done += 1
        for follower in heads[first[node] : first[node + 1]]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                ready.append(follower)
    return rank, unordered
