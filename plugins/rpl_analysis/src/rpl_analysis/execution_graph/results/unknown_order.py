"""What the order of streams could be where the recording does not tell: figures that hold under any order.

Work whose order is unknown may wait for each other or not. What overlaps did not wait, so the longest sum of
intervals that do not overlap bounds every path, and the union of a symbol's intervals what it can cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.intervals import merge_intervals
from rpl_core.model.trace import distinct_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.contracts.graph import UnresolvedPart
    from rpl_analysis.execution_graph.dependencies.all_edges import SyncInfo
    from rpl_analysis.execution_graph.results.domain import Domain

    Int64Column = NDArray[np.int64]

__all__ = ["ceiling_at_most", "longest_chain_ns", "order_is_known"]


def order_is_known(domain: Domain, sync_info: SyncInfo, unresolved: UnresolvedPart) -> bool:
    """Whether every wait between the lanes of a process is in the recording; one lane waits for none."""
    used = distinct_values(domain.work.lane)
    process = domain.work.lanes.process[used]
    if distinct_values(process).size == process.size:
        return True
    told = sync_info in ("api_calls", "measured_events")
    return told and not unresolved.waits and not unresolved.syncs


def longest_chain_ns(domain: Domain) -> int:
    """The longest sum of intervals of one process of which no two overlap."""
    work = domain.work
    chains = []
    for process in distinct_values(work.process).tolist():
        own = work.process == process
        chains.append(_longest_chain_ns(work.begin_ns[own], work.end_ns[own]))
    return max(chains, default=0)


def _longest_chain_ns(begin_ns: Int64Column, end_ns: Int64Column) -> int:
    """Weighted interval scheduling, in the order of the ends."""
    order = np.argsort(end_ns, kind="stable")
    order = order[end_ns[order] > begin_ns[order]]
    begin, end = begin_ns[order], end_ns[order]
    ended_before = np.searchsorted(end, begin, side="right")
    best, longest = 0, [0]
    for duration, before in zip((end - begin).tolist(), ended_before.tolist(), strict=True):
        with_it = longest[before] + duration
        if with_it > best:
            best = with_it
        longest.append(best)
    return best


def ceiling_at_most(domain: Domain, symbol: int, makespan_ns: int) -> float | None:
    """Speed-up of the application if ``symbol`` cost nothing and all else waited for it; None: no end."""
    own = domain.work.symbol == symbol
    taken = merge_intervals(domain.work.begin_ns[own], domain.work.end_ns[own])
    left = makespan_ns - int((taken.end_ns - taken.begin_ns).sum())
    return makespan_ns / left if left > 0 else None
