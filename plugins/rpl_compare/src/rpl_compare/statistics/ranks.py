"""Ranks with ties shared, as whole numbers, and how rank sums are distributed by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def doubled_ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Twice the mid-rank of each value (n,), counted from 1: ties share their mean rank, without halves."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    first = last - counts + 1
    return (first + last)[inverse.reshape(-1)].astype(np.int64)


def tie_sizes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """How often each distinct value occurs."""
    return np.unique(values, return_counts=True)[1].astype(np.int64)


def subset_sum_counts(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Entry s: how many of the 2^n subsets of ``weights`` sum to s. Exact up to n = 62."""
    counts = np.zeros(int(weights.sum()) + 1, dtype=np.int64)
    counts[0] = 1
    for weight in weights:
        shifted = np.zeros_like(counts)
        shifted[weight:] = counts[: counts.size - weight]
        counts = counts + shifted
    return counts


def sized_subset_sum_counts(weights: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Entry s: how many subsets of exactly ``size`` of the ``weights`` sum to s. Exact up to n = 62."""
    counts = np.zeros((size + 1, int(weights.sum()) + 1), dtype=np.int64)
    counts[0, 0] = 1
    for weight in weights:
        counts[1:, weight:] += counts[:-1, : counts.shape[1] - weight].copy()
    found: NDArray[np.int64] = counts[size]
    return found
