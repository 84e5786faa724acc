"""Group the dispatches of several traces by kernel name with a few sorts, never row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.trace import Dispatches, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Durations up to 2**40 ns (18 minutes) share a sort key with the kernel number.
_DURATION_BITS = 40


@attrs.frozen(eq=False)
class DurationGroups:
    """Durations sorted within each kernel: group ``k`` is ``sorted_ns[starts[k]:starts[k + 1]]``."""

    sorted_ns: NDArray[np.int64]
    starts: NDArray[np.int64]

    def group(self, kernel: int) -> NDArray[np.int64]:
        return self.sorted_ns[self.starts[kernel] : self.starts[kernel + 1]]


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
    largest = int(durations.max()) if durations.size else 0
    if largest < 1 << _DURATION_BITS and kernel_count < 1 << (62 - _DURATION_BITS):
        keys = (kernels.astype(np.int64) << _DURATION_BITS) | durations
        keys.sort()
        keys &= (1 << _DURATION_BITS) - 1
        return DurationGroups(keys, starts)
    order = np.lexsort((durations, kernels))
    return DurationGroups(durations[order], starts)


def group_sums(groups: DurationGroups) -> NDArray[np.int64]:
    """Exact int64 sum of each group."""
    totals = np.concatenate([[0], np.cumsum(groups.sorted_ns, dtype=np.int64)])
    sums: NDArray[np.int64] = totals[groups.starts[1:]] - totals[groups.starts[:-1]]
    return sums
