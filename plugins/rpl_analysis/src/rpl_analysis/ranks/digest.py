"""Times of a kernel over any number of launches: exact while they are few, else a histogram that merges.

The histogram has buckets of fixed borders, as HdrHistogram (Tene, http://hdrhistogram.org): each power of two
is cut into 128 equal parts, and times below 256 ns have a bucket each. So histograms add up without an error,
whatever the order, and all borders are whole numbers. A quantile is the middle of the bucket that holds the
launch of that place: at most half a bucket away, 1/256 = 0.39 % of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Int64Column = NDArray[np.int64]

__all__ = [
    "EXACT_VALUES",
    "RELATIVE_ERROR",
    "KernelTimes",
    "bucket_of",
    "merge_times",
    "middle_of",
    "times_of",
]

#: A kernel's times are kept one by one up to so many (chosen: as many as its histogram has rows).
EXACT_VALUES = 64
RELATIVE_ERROR = 1 / 256
_PARTS = 128  # of each power of two
_SMALL = 2 * _PARTS  # times below have a bucket each
#: Buckets of all 64-bit times.
_BUCKETS = _SMALL + 56 * _PARTS


def bucket_of(time_ns: Int64Column) -> Int64Column:
    """The bucket of each time (n,), which is 0 or more."""
    bits = np.frexp(time_ns.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(bits - 8, 0)
    shift += (time_ns >> shift) >= _SMALL  # where a float rounded up to the next power of two
    shift -= (shift > 0) & ((time_ns >> shift) < _PARTS)
    return np.where(shift == 0, time_ns, _SMALL + (shift - 1) * _PARTS + (time_ns >> shift) - _PARTS)


def middle_of(bucket: int) -> int:
    """The time in the middle of a bucket, rounded down."""
    if bucket < _SMALL:
        return bucket
    shift, part = divmod(bucket - _SMALL, _PARTS)
    return ((part + _PARTS) << (shift + 1)) + (1 << shift)


@frozen(eq=False)
class KernelTimes:
    """Times per kernel, kernels ascending by name. The columns of the first line are per kernel.

    ``values`` holds the times of each kernel with at most ``EXACT_VALUES`` launches, ascending, kernel after
    kernel; ``bucket_kernel``, ``bucket`` and ``bucket_count`` the histograms of all, ascending.
    """

    names: tuple[str, ...]
    count: Int64Column
    total_ns: Int64Column
    least_ns: Int64Column
    most_ns: Int64Column
    values: Int64Column
    bucket_kernel: Int64Column
    bucket: Int64Column
    bucket_count: Int64Column

    def is_exact(self, kernel: int) -> bool:
        return int(self.count[kernel]) <= EXACT_VALUES

    def quantile_ns(self, kernel: int, part: float) -> int:
        """The least time that ``part`` (0 to 1) of the launches don't exceed; exact or within 0.39 %."""
        wanted = max(1, int(np.ceil(part * int(self.count[kernel]))))
        if self.is_exact(kernel):
            few = self.count <= EXACT_VALUES
            begin = int(self.count[:kernel][few[:kernel]].sum())
            return int(self.values[begin + wanted - 1])
        first, last = np.searchsorted(self.bucket_kernel, (kernel, kernel + 1))
        place = int(np.searchsorted(np.cumsum(self.bucket_count[first:last]), wanted))
        middle = middle_of(int(self.bucket[first + place]))
        return min(max(middle, int(self.least_ns[kernel])), int(self.most_ns[kernel]))


def times_of(names: Sequence[str], kernel: NDArray[np.integer], time_ns: Int64Column) -> KernelTimes:
    """Of launches (n,) of ``names[kernel]``, which are ascending; kernels without a launch are left out."""
    order = np.lexsort((time_ns, kernel))
    kernel, time_ns = kernel[order].astype(np.int64), time_ns[order]
    first = np.flatnonzero(np.diff(kernel, prepend=-1))
    count = np.diff(first, append=kernel.size)
    number = np.repeat(np.arange(first.size), count)
    key = number * _BUCKETS + bucket_of(time_ns)  # ascending: so are the buckets of ascending times
    opens = np.flatnonzero(np.diff(key, prepend=-1))
    return KernelTimes(
        names=tuple(names[i] for i in kernel[first].tolist()),
        count=count,
        total_ns=np.add.reduceat(time_ns, first) if first.size else count,
        least_ns=time_ns[first],
        most_ns=time_ns[first + count - 1],
        values=time_ns[(count <= EXACT_VALUES)[number]],
        bucket_kernel=key[opens] // _BUCKETS,
        bucket=key[opens] % _BUCKETS,
        bucket_count=np.diff(opens, append=key.size),
    )


def merge_times(parts: Sequence[KernelTimes]) -> KernelTimes:
    """Of all launches together. Associative, and no order of ``parts`` gives anything else."""
    names = tuple(sorted({name for part in parts for name in part.names}))
    place = {name: number for number, name in enumerate(names)}
    maps = [np.array([place[name] for name in part.names], np.int64) for part in parts]
    owner = np.concatenate([*maps, np.zeros(0, np.int64)])
    count, total = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    least, most = np.full(len(names), np.iinfo(np.int64).max), np.zeros(len(names), np.int64)
    columns = ("count", "total_ns", "least_ns", "most_ns")
    of = {c: np.concatenate([*(getattr(p, c) for p in parts), np.zeros(0, np.int64)]) for c in columns}
    np.add.at(count, owner, of["count"])
    np.add.at(total, owner, of["total_ns"])
    np.minimum.at(least, owner, of["least_ns"])
    np.maximum.at(most, owner, of["most_ns"])
    key = [m[p.bucket_kernel] * _BUCKETS + p.bucket for m, p in zip(maps, parts, strict=True)]
    keys, counts = _summed(key, [p.bucket_count for p in parts])
    return KernelTimes(
        names=names,
        count=count,
        total_ns=total,
        least_ns=least,
        most_ns=most,
        values=_values(parts, maps, count),
        bucket_kernel=keys // _BUCKETS,
        bucket=keys % _BUCKETS,
        bucket_count=counts,
    )


def _summed(keys: list[Int64Column], counts: list[Int64Column]) -> tuple[Int64Column, Int64Column]:
    """Distinct keys ascending, and the sum of the counts of each."""
    key, count = (
        np.concatenate([*keys, np.zeros(0, np.int64)]),
        np.concatenate([*counts, np.zeros(0, np.int64)]),
    )
    order = np.argsort(key, kind="stable")
    key, count = key[order], count[order]
    opens = np.flatnonzero(np.diff(key, prepend=-1))
    return key[opens], np.add.reduceat(count, opens) if opens.size else count


def _values(parts: Sequence[KernelTimes], maps: list[Int64Column], count: Int64Column) -> Int64Column:
    """The single times of kernels that have few of them in all parts together."""
    few = count <= EXACT_VALUES
    owners, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for part, own in zip(parts, maps, strict=True):
        kept = part.count <= EXACT_VALUES
        owner = np.repeat(own[kept], part.count[kept])
        owners.append(owner[few[owner]])
        values.append(part.values[few[owner]])
    owner, value = np.concatenate(owners), np.concatenate(values)
    return value[np.lexsort((value, owner))]
