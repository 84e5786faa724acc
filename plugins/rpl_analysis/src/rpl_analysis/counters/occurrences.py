"""The joint numbering of dispatches over counter passes: same process, GPU, kernel and occurrence.

Dispatch ids alone do not join passes, because an application need not launch in the same order twice
(docs/reference/formats.md, 4.4). The n-th launch of a kernel on a GPU by a process, in submission
order, is taken for the same dispatch in every pass; its geometry is compared elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Trace

__all__ = ["JointRows", "number_dispatches"]

#: (kernel name, position of the process in its trace, KFD node id of the GPU)
_Launcher = tuple[str, int, int]


@frozen(eq=False)
class JointRows:
    """``rows[p][d]`` is the joint row of dispatch ``d`` of pass ``p``; -1 where its kernel is unknown.

    The rows of one kernel are contiguous: ``spans`` maps its name to (first row, row after the last).
    """

    rows: tuple[NDArray[np.int64], ...]
    spans: dict[str, tuple[int, int]]
    count: int


@frozen(eq=False)
class _PassOccurrences:
    launchers: tuple[_Launcher, ...]
    counts: NDArray[np.int64]  # launches of each launcher
    launcher_of: NDArray[np.int64]  # (dispatches,), -1 where the kernel is unknown
    occurrence: NDArray[np.int64]


def number_dispatches(passes: Sequence[Trace]) -> JointRows:
    """Give every dispatch of every pass its joint row; rows are in the order of (name, process, GPU, n)."""
    counted = [_count_occurrences(trace) for trace in passes]
    most: dict[_Launcher, int] = {}
    for one in counted:
        for launcher, count in zip(one.launchers, one.counts.tolist(), strict=True):
            most[launcher] = max(count, most.get(launcher, 0))
    first: dict[_Launcher, int] = {}
    spans: dict[str, tuple[int, int]] = {}
    end = 0
    for launcher in sorted(most):
        first[launcher] = end
        begin = spans.get(launcher[0], (end, end))[0]
        end += most[launcher]
        spans[launcher[0]] = (begin, end)
    return JointRows(tuple(_joint_rows(one, first) for one in counted), spans, end)


def _joint_rows(one: _PassOccurrences, first: dict[_Launcher, int]) -> NDArray[np.int64]:
    offsets = np.array([first[launcher] for launcher in one.launchers] + [0], dtype=np.int64)
    known = one.launcher_of >= 0
    return np.where(known, offsets[one.launcher_of] + one.occurrence, -1)


def _count_occurrences(trace: Trace) -> _PassOccurrences:
    dispatches = trace.dispatches
    names = sorted({kernel.name for kernel in trace.kernels})
    number = {name: i for i, name in enumerate(names)}
    name_of = np.array([number[kernel.name] for kernel in trace.kernels] + [-1], dtype=np.int64)
    node_of = np.array([agent.index for agent in trace.agents] + [-1], dtype=np.int64)
    keys = np.stack(
        [name_of[dispatches.kernel], dispatches.process.astype(np.int64), node_of[dispatches.agent]], axis=1
    )
    known = dispatches.kernel >= 0
    launchers, inverse = np.unique(keys[known], axis=0, return_inverse=True)
    launcher_of = np.full(len(dispatches), -1, dtype=np.int64)
    launcher_of[known] = inverse.reshape(-1)
    order = np.lexsort((dispatches.begin_ns, dispatches.dispatch_id, launcher_of))
    counts = np.bincount(launcher_of[known], minlength=len(launchers)).astype(np.int64)
    return _PassOccurrences(
        tuple((names[n], p, a) for n, p, a in launchers.tolist()),
        counts,
        launcher_of,
        _ranks(launcher_of, order),
    )


def _ranks(group: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position of each element within its group, groups being contiguous in ``order``."""
    ordered = group[order]
    new_group = np.ones(ordered.size, dtype=np.bool_)
    new_group[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new_group)
    sizes = np.diff(np.append(starts, ordered.size))
    ranks = np.empty(group.size, dtype=np.int64)
    ranks[order] = np.arange(group.size, dtype=np.int64) - np.repeat(starts, sizes)
    return ranks
