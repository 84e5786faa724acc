"""GPU idle time by the operator whose work ended it, and stretches in which the host sets the pace.

A GPU idles from the end of everything before to the begin of the next work. Until the launching call of that
work began nothing was submitted: that part is the host's, whatever it did; what follows was queued.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen
from rpl_torch.contracts import TorchHostBoundPart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Trace
    from rpl_torch.analysis.launches import Launches

    Int64Column = NDArray[np.int64]

__all__ = ["Idle", "find_idle", "host_bound_stretches"]


@frozen(eq=False)
class Idle:
    """Per work row the idle time of its GPU right before it: the host's part, the queued and the unknown."""

    host_ns: Int64Column
    queued_ns: Int64Column
    unknown_ns: Int64Column
    order: tuple[NDArray[np.int64], ...]  # rows of each GPU by begin

    @property
    def total_ns(self) -> int:
        return int(self.host_ns.sum() + self.queued_ns.sum() + self.unknown_ns.sum())


def find_idle(launches: Launches) -> Idle:
    """Idle time of each GPU between its first and its last work."""
    count = len(launches.begin_ns)
    host, queued, unknown = (np.zeros(count, np.int64) for _ in range(3))
    orders = []
    for agent in np.unique(launches.agent).tolist():
        rows = np.flatnonzero(launches.agent == agent)
        rows = rows[np.argsort(launches.begin_ns[rows], kind="stable")]
        orders.append(rows)
        begin = launches.begin_ns[rows]
        reached = np.maximum.accumulate(launches.end_ns[rows])
        since = np.concatenate([begin[:1], reached[:-1]])
        gap = np.maximum(begin - since, 0)
        submitted = launches.submitted_ns[rows]
        known = submitted >= 0
        of_host = np.clip(submitted - since, 0, gap)
        host[rows] = np.where(known, of_host, 0)
        queued[rows] = np.where(known, gap - of_host, 0)
        unknown[rows] = np.where(known, 0, gap)
    return Idle(host, queued, unknown, tuple(orders))


def host_bound_stretches(trace: Trace, launches: Launches, idle: Idle) -> list[TorchHostBoundPart]:
    """Maximal runs of two or more launches that each found their GPU drained, most idle time first."""
    first_ns = int(launches.begin_ns.min())
    found = []
    for rows in idle.order:
        drained = (idle.host_ns[rows] > 0).astype(np.int8)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], drained, [0]])))
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if end - begin > 1:
                found.append(_stretch(trace, launches, idle, rows[begin:end], first_ns))
    return sorted(found, key=lambda stretch: (-stretch.idle_ns, stretch.begin_ns, stretch.agent))


def _stretch(
    trace: Trace, launches: Launches, idle: Idle, rows: Int64Column, first_ns: int
) -> TorchHostBoundPart:
    waits = idle.host_ns[rows] + idle.queued_ns[rows]
    begin, end = int(launches.begin_ns[rows[0]] - waits[0]), int(launches.end_ns[rows].max())
    by_operator: Counter[int] = Counter()
    for operator, ns in zip(launches.operator[rows].tolist(), waits.tolist(), strict=True):
        by_operator[operator] += ns
    operator, ns = max(by_operator.items(), key=lambda item: (item[1], -item[0]))
    by_line: Counter[int] = Counter()
    own = launches.operator[rows] == operator
    for line, wait in zip(launches.line[rows][own].tolist(), waits[own].tolist(), strict=True):
        by_line[line] += wait
    line = max(by_line.items(), key=lambda item: (item[1], -item[0]))[0]
    process, agent = int(launches.process[rows[0]]), int(launches.agent[rows[0]])
    return TorchHostBoundPart(
        process=trace.processes[process].pid if process >= 0 else -1,
        agent=trace.agents[agent].index if agent >= 0 else -1,
        begin_ns=begin - first_ns,
        length_ns=end - begin,
        idle_ns=int(waits.sum()),
        launches=len(rows),
        operator=launches.operators[operator] if operator >= 0 else None,
        operator_idle_ns=ns,
        line=launches.lines[line] if line >= 0 else None,
    )
