"""Choosing without a model: at random, and by steps to neighbours of the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from rpl_autotune.interfaces.space import SearchSpace
    from rpl_autotune.interfaces.strategy import Evaluated

__all__ = ["Untrusting"]


#: Of so many random candidates the one farthest from all measured ones is taken. All candidates would give
#: corners of the space only (chosen).
_CANDIDATES = 8


class Untrusting:
    """Draws in ``order``, spreads, and walks where it is fast. All other randomness is from ``generator``."""

    def __init__(self, space: SearchSpace, generator: np.random.Generator, order: NDArray[np.intp]) -> None:
        self._space = space
        self._generator = generator
        self._order = order
        self._place = space.features.coordinates
        self._distance = np.full(len(space), np.inf)
        self._seen: set[int] = set()
        self._levels = [space.levels(position) for position in range(len(space.parameters))]
        self._known_neighbours: dict[int, list[int]] = {}

    def draw(self, taken: Iterable[int]) -> int | None:
        """The next of the random order that is not in ``taken``, or ``None`` when none is left."""
        taken = set(taken)
        return next((int(index) for index in self._order if int(index) not in taken), None)

    def spread(self, taken: Iterable[int]) -> int | None:
        """A configuration far from all in ``taken``, or ``None`` when none is left."""
        taken = set(taken)
        for index in sorted(taken - self._seen):
            self._distance = np.minimum(self._distance, ((self._place - self._place[index]) ** 2).sum(axis=1))
        self._seen |= taken
        free = np.setdiff1d(np.arange(len(self._space)), np.fromiter(taken, np.intp, len(taken)))
        if free.size == 0:
            return None
        candidates = self._generator.choice(free, min(_CANDIDATES, free.size), replace=False)
        return int(candidates[np.argmax(self._distance[candidates])])

    def step(self, history: Sequence[Evaluated], taken: Iterable[int]) -> int | None:
        """A free configuration that differs from a fast one in one parameter, or ``None``.

        Neighbours of the best first, then of the next ones.
        """
        taken = set(taken)
        for index in _fastest(history):
            near = [other for other in self._neighbours(index) if other not in taken]
            if near:
                return int(self._generator.choice(near))
        return None

    def around(self, history: Sequence[Evaluated], count: int) -> set[int]:
        """All that differ from one of the ``count`` fastest in one parameter."""
        fastest = _fastest(history)[:count]
        return {other for index in fastest for other in self._neighbours(index)}

    def _neighbours(self, index: int) -> list[int]:
        """Configurations with one parameter changed, to any of its values."""
        if index not in self._known_neighbours:
            here = self._space.values(index)
            others = (
                self._space.index_of({**here, name: level})
                for position, name in enumerate(self._space.parameters)
                for level in self._levels[position]
                if level != here[name]
            )
            self._known_neighbours[index] = [other for other in others if other is not None]
        return self._known_neighbours[index]


def _fastest(history: Sequence[Evaluated]) -> list[int]:
    good = [(item.runtime_ms, item.index) for item in history if item.runtime_ms is not None]
    return [index for _, index in sorted(good)]
