"""Idle time of a set of nodes, blamed on what the node that ended it had waited for.

Until the thread came back from a wait it is ``sync``, until the next launch call the ``host``; work that was
queued already waited for an event or stream (``sync``) or for its launch (``launch``). critical_path.md, 1.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.intervals import BusyTime
from rpl_analysis.execution_graph.breakdown import QUEUED_WAITS
from rpl_analysis.execution_graph.model import IdleTime
from rpl_analysis.execution_graph.numbering import BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.domain import Domain

    Int64Column = NDArray[np.int64]

__all__ = ["Releases", "find_releases", "sum_idle_time"]


@attrs.frozen(eq=False)
class Releases:
    """Per work node: begin of its API call and return of the wait before it (-1 unknown or none).

    ``held``: an event or stream held it back after it had been submitted.
    """

    submitted_ns: Int64Column
    woken_ns: Int64Column
    held: NDArray[np.bool_]


def find_releases(domain: Domain) -> Releases:
    """What is known about the release of every work node of ``domain``."""
    count = len(domain.work)
    edges = domain.trusted_edges()
    if not len(edges):
        nothing = np.broadcast_to(np.int64(-1), count), np.broadcast_to(np.bool_(False), count)
        return Releases(domain.submitted_ns[:count], *nothing)
    woken = np.full(count, -1, dtype=np.int64)
    from_host = (edges.source >= count) & (edges.target < count)
    woken[edges.target[from_host]] = domain.end_ns[edges.source[from_host]]
    held = np.zeros(count, dtype=np.bool_)
    held[edges.target[np.isin(edges.kind, QUEUED_WAITS)]] = True
    return Releases(submitted_ns=domain.submitted_ns[:count], woken_ns=woken, held=held)


def sum_idle_time(
    begin_ns: Int64Column, end_ns: Int64Column, releases: Releases, rows: Int64Column | None = None
) -> tuple[BusyTime, IdleTime]:
    """Busy and idle time of work nodes that ascend by begin; ``rows`` are their rows in ``releases``."""
    if not begin_ns.size:
        return BusyTime(total_ns=0, busy_ns=0, makespan_ns=0), IdleTime(0, 0, 0, 0)
    total_ns, blamed = 0, np.zeros(4, dtype=np.int64)
    reached_ns = int(begin_ns[0])
    # In blocks: the intervals between millions of nodes would need several columns.
    for first in range(0, begin_ns.size, BLOCK):
        begin, end = begin_ns[first : first + BLOCK], end_ns[first : first + BLOCK]
        total_ns += int((end - begin).sum())
        busy_until = np.maximum.accumulate(np.append(reached_ns, end))
        reached_ns = int(busy_until[-1])
        ender = np.flatnonzero(begin > busy_until[:-1])
        node = ender + first if rows is None else rows[ender + first]
        blamed += _blamed(busy_until[ender], begin[ender], node, releases)
    idle = IdleTime(*blamed.tolist())
    makespan_ns = reached_ns - int(begin_ns[0])
    return BusyTime(total_ns=total_ns, busy_ns=makespan_ns - int(blamed.sum()), makespan_ns=makespan_ns), idle


def _blamed(
    begin_ns: Int64Column, end_ns: Int64Column, ender: Int64Column, releases: Releases
) -> tuple[int, int, int, int]:
    """Times between ``begin_ns`` and ``end_ns`` in the order of the fields of ``IdleTime``."""
    woken = np.clip(releases.woken_ns[ender], begin_ns, end_ns)
    submitted = np.clip(releases.submitted_ns[ender], woken, end_ns)
    queued = end_ns - submitted
    known = releases.submitted_ns[ender] >= 0
    held = releases.held[ender]
    return (
        int((submitted - woken)[known].sum()),
        int((woken - begin_ns).sum() + queued[held].sum()),
        int(queued[known & ~held].sum()),
        int(queued[~known & ~held].sum()),
    )
