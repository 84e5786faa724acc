"""Static numbers of configurations for models to learn from; nothing here was measured.

GPUs work in powers of two: lanes of a wave, banks, cache lines, sizes of problems. Whether an integer is a
power of two, and by which power it can be divided, often matters more than its size, so both are
coordinates of their own where a parameter has values of both sorts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_autotune.interfaces.space import SearchSpace, Value

    Column = NDArray[np.float64]

#: From this ratio of largest to smallest value on, a parameter is looked at by its logarithm (chosen).
_LOGARITHMIC_RATIO = 4.0
#: More parameters would give more products than there are measurements to weigh them (chosen).
_MOST_FACTORS = 8


@frozen(eq=False)
class Features:
    """Static numbers of each configuration, each column scaled to 0..1. Rows are configurations.

    ``coordinates`` place configurations so that near ones are alike; ``parameter_of`` says which parameter
    each of them is from, ``None`` for numbers that the user or a code object adds. ``products`` hold
    products and ratios of sizes.
    """

    coordinates: NDArray[np.float64]
    coordinate_names: tuple[str, ...]
    parameter_of: tuple[int | None, ...]
    products: NDArray[np.float64]
    product_names: tuple[str, ...]


def features_of(space: SearchSpace) -> Features:
    """The features of every configuration, each column scaled to 0..1."""
    coordinates: list[tuple[str, int | None, Column]] = []
    sizes: list[tuple[str, Column]] = []
    for position, name in enumerate(space.parameters):
        values = [configuration[position] for configuration in space.configurations]
        levels = space.levels(position)
        if len(levels) < 2:
            continue
        coordinates += [(label, position, column) for label, column in _coordinates(name, values, levels)]
        if len(levels) > 2 and all(isinstance(level, (int, float)) and level > 0 for level in levels):
            sizes.append((name, np.asarray(values, np.float64)))
    coordinates += [(name, None, column) for name, column in _given(space) if np.ptp(column) > 0]
    products = [(name, column) for name, column in _products(sizes[:_MOST_FACTORS]) if np.ptp(column) > 0]
    return Features(
        _matrix([column for _, _, column in coordinates], len(space)),
        tuple(name for name, _, _ in coordinates),
        tuple(position for _, position, _ in coordinates),
        _matrix([column for _, column in products], len(space)),
        tuple(name for name, _ in products),
    )


def _coordinates(name: str, values: list[Value], levels: tuple[Value, ...]) -> Iterator[tuple[str, Column]]:
    if not all(isinstance(level, (int, float)) for level in levels):
        # A choice among names has no order: each name but the first gets a column.
        for level in levels if len(levels) > 2 else levels[1:]:
            yield f"{name}={level}", np.asarray([value == level for value in values], np.float64)
        return
    column = np.asarray(values, np.float64)
    yield name, _scaled_by_size(column)
    if len(levels) > 2 and all(isinstance(level, int) and level >= 0 for level in levels):
        whole = np.asarray(values, np.int64)
        powers = (whole & (whole - 1)) == 0
        if not powers.all():
            yield f"2-power in {name}", _two_power(whole)
            if powers.any():
                yield f"{name} is 2^n", powers.astype(np.float64)


def _scaled_by_size(column: Column) -> Column:
    smallest, largest = float(column.min()), float(column.max())
    if smallest > 0 and largest / smallest >= _LOGARITHMIC_RATIO:
        logarithm: Column = np.log2(column)
        return logarithm
    return column


def _two_power(whole: NDArray[np.int64]) -> Column:
    """The exponent of the largest power of two that divides each number; 0 for 0."""
    lowest_bit = whole & -whole
    exponent: Column = np.log2(np.maximum(lowest_bit, 1)).astype(np.float64)
    return exponent


def _given(space: SearchSpace) -> Iterator[tuple[str, Column]]:
    for name, numbers in space.given_features.items():
        yield name, _scaled_by_size(np.asarray(numbers, np.float64))


def _products(sizes: list[tuple[str, Column]]) -> Iterator[tuple[str, Column]]:
    """Products and ratios of sizes, as logarithms: threads of a block, work per thread, and the like."""
    for (left, a), (right, b) in combinations(sizes, 2):
        yield f"{left}*{right}", np.log2(a) + np.log2(b)
        yield f"{left}/{right}", np.log2(a) - np.log2(b)
    if len(sizes) > 2:
        yield "*".join(name for name, _ in sizes), np.sum([np.log2(column) for _, column in sizes], axis=0)


def _matrix(columns: list[Column], rows: int) -> NDArray[np.float64]:
    if not columns:
        return np.zeros((rows, 0))
    matrix = np.stack(columns, axis=1)
    low = matrix.min(axis=0)
    scaled: NDArray[np.float64] = (matrix - low) / np.maximum(matrix.max(axis=0) - low, 1e-300)
    scaled.flags.writeable = False
    return scaled
