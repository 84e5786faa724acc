"""Running maxima that restart at every segment: the one array primitive numpy lacks for chains."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["carried_max", "running_max"]

#: Keys ``segment * span + value`` must stay inside int64.
_MOST_KEYS = 2**62
#: Segments of at least so many values on average are gone through one by one (chosen).
_LONG = 256


def running_max(values: NDArray[np.int64], segment: NDArray[np.integer]) -> NDArray[np.int64]:
    """Running maximum of ``values`` (>= 0), restarted where ``segment`` (ascending from 0) changes."""
    first_segment, segments = (int(segment[0]), int(segment[-1]) + 1) if len(segment) else (0, 0)
    if segments * _LONG <= len(values):
        highest = np.empty_like(values)
        ends = np.searchsorted(segment, np.arange(first_segment, segments + 1)).tolist()
        for first, end in pairwise(ends):
            np.maximum.accumulate(values[first:end], out=highest[first:end])
        return highest
    span = int(values.max(initial=0)) + 1
    if span * segments >= _MOST_KEYS:
        distinct, rank = np.unique(values, return_inverse=True)
        return np.asarray(distinct[running_max(rank.astype(np.int64), segment)])
    keys: NDArray[np.int64] = segment * np.int64(span)
    keys += values
    np.maximum.accumulate(keys, out=keys)
    keys -= segment * np.int64(span)
    return keys


def carried_max(values: NDArray[np.int64], opens: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Exclusive running maximum: what the earlier elements of the segment reached, 0 where it ``opens``."""
    carried = np.zeros_like(values)
    carried[1:] = running_max(values, np.cumsum(opens) - 1)[:-1]
    carried[opens] = 0
    return carried
