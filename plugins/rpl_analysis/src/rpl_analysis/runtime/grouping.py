"""Group the dispatches of several traces by kernel name with a few sorts, never row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.model.trace import Dispatches, Trace
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Widths of a sort key that holds kernel number and duration; the narrow one sorts twice as fast.
_KEYS: tuple[tuple[int, type[np.integer[Any]]], ...] = ((32, np.uint32), (63, np.int64))


@frozen(eq=False)
class DurationGroups:
    """Durations sorted within each kernel: group ``k`` is ``sorted_ns[starts[k]:starts[k + 1]]``.

    ``sorted_ns`` is narrower than int64 where all of them fit.
    """

    sorted_ns: NDArray[np.integer[Any]]
    starts: NDArray[np.int64]

    def group(self, kernel: int) -> NDArray[np.int64]:
        """The durations of one kernel, ascending."""
        return self.sorted_ns[self.starts[kernel] : self.starts[kernel + 1]].astype(np.int64, copy=False)


def number_names(traces: Sequence[Trace]) -> tuple[tuple[str, ...], tuple[NDArray[np.int32], ...]]:
    """All kernel names, sorted, and for each trace the number of the name of each of its kernels."""
    names = tuple(sorted({kernel.name for trace in traces for kernel in trace.kernels}))
    numbers = {name: i for i, name in enumerate(names)}
    tables = tuple(np.array([numbers[k.name] for k in trace.kernels], dtype=np.int32) for trace in traces)
    return names, tables


def usable_rows(dispatches: Dispatches) -> NDArray[np.bool_]:
    """Dispatches with a known kernel and a duration of zero or more."""
    rows: NDArray[np.bool_] = (dispatches.kernel >= 0) & (dispatches.end_ns >= dispatches.begin_ns)
    return rows


def group_durations(
    kernels: NDArray[np.int32], durations: NDArray[np.int64], kernel_count: int
) -> DurationGroups:
    """Sort ``durations`` (n,) within their ``kernels`` (n,) numbers."""
    counts = np.bincount(kernels, minlength=kernel_count)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    bits = int(durations.max(initial=0)).bit_length()
    for width, kind in _KEYS:
        if bits + kernel_count.bit_length() <= width and int(durations.min(initial=0)) >= 0:
            keys = kernels.astype(kind)
            keys <<= bits
            keys |= durations.astype(kind, copy=False)
            keys.sort()
            keys &= (1 << bits) - 1
            return DurationGroups(keys, starts)
    order = np.lexsort((durations, kernels))
    return DurationGroups(durations[order], starts)


def group_sums(groups: DurationGroups) -> NDArray[np.int64]:
    """Exact int64 sum of each group."""
    sums = np.zeros(groups.starts.size - 1, dtype=np.int64)
    filled = np.flatnonzero(groups.starts[1:] > groups.starts[:-1])
    if filled.size:
        sums[filled] = np.add.reduceat(groups.sorted_ns, groups.starts[filled], dtype=np.int64)
    return sums
