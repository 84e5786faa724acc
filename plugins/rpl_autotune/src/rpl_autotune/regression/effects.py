"""Which parameters matter by the model: parts of the variance of its predictions over the whole space.

First-order and second-order parts of a functional analysis of variance (Sobol, Mathematics and Computers in
Simulation 55, 2001): the variance of the mean prediction given one parameter, and given two of them less
what each explains alone. It is exact for the model on this space; whether the model is right is another
question, which its held-out error answers.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_autotune.interfaces.space import SearchSpace

    Floats = NDArray[np.float64]

#: Pairs are many and most are nothing.
_MOST_PAIRS = 10


@frozen
class Effects:
    """Parts of the variance, largest first; ``best_pair`` holds a grid of mean times for the first pair."""

    single: tuple[tuple[str, float], ...]
    pairs: tuple[tuple[str, str, float], ...]


def effects_of(space: SearchSpace, log_times: Floats) -> Effects:
    """Effects of every parameter with several values on the predicted ``log_times``."""
    total = float(log_times.var())
    codes = {}
    for position, name in enumerate(space.parameters):
        levels = {level: number for number, level in enumerate(space.levels(position))}
        if len(levels) > 1:
            codes[name] = np.asarray([levels[row[position]] for row in space.configurations], np.intp)
    if total <= 0:
        return Effects(tuple((name, 0.0) for name in codes), ())
    single = {name: _explained(code, log_times) / total for name, code in codes.items()}
    pairs = [
        (a, b, max(_explained(_joined(codes[a], codes[b]), log_times) / total - single[a] - single[b], 0.0))
        for a, b in combinations(codes, 2)
    ]
    ordered = sorted(single.items(), key=lambda item: (-item[1], item[0]))
    return Effects(
        tuple(ordered),
        tuple(sorted(pairs, key=lambda pair: (-pair[2], pair[:2]))[:_MOST_PAIRS]),
    )


def _joined(a: NDArray[np.intp], b: NDArray[np.intp]) -> NDArray[np.intp]:
    return a * (int(b.max()) + 1) + b


def _explained(groups: NDArray[np.intp], values: Floats) -> float:
    """The variance of the group means, each weighted by its members."""
    counts = np.bincount(groups)
    sums = np.bincount(groups, weights=values)
    present = counts > 0
    means = sums[present] / counts[present]
    return float(np.average((means - values.mean()) ** 2, weights=counts[present]))
