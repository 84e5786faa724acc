"""Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) over a space."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from rpl_autotune.interfaces import Evaluated, Phase, Proposed, Search, Strategy, StrategyRequest

#: At the start a configuration that takes 1.5 times as long is accepted with probability 1/e.
_FIRST_TEMPERATURE = math.log(1.5)


class Annealing(Strategy):
    name = "annealing"
    summary = "simulated annealing, one parameter changed at a time"

    def start(self, request: StrategyRequest) -> Search:
        return _Walk(request)


class _Walk(Search):
    def __init__(self, request: StrategyRequest) -> None:
        self._request = request
        self._space = request.space

    def propose(self, history: Sequence[Evaluated], pending: Sequence[int], count: int) -> Sequence[Proposed]:
        busy = {*pending, *(item.index for item in history)}
        # S311: a walk, no secret.
        generator = random.Random(f"{self._request.seed} {len(busy)}")  # noqa: S311
        chosen: list[Proposed] = []
        while len(chosen) < count:
            index = self._next(self._here(history), busy, generator)
            if index is None:
                break
            busy.add(index)
            chosen.append(Proposed(index, Phase.EXPLORE))
        return chosen

    def _here(self, history: Sequence[Evaluated]) -> int | None:
        """Where the walk stands: the history taken step by step, each accepted or not."""
        generator = random.Random(self._request.seed)  # noqa: S311
        here: tuple[int, float] | None = None
        for step, item in enumerate(history):
            chance = generator.random()
            if item.runtime_ms is None:
                continue
            temperature = _FIRST_TEMPERATURE * max(1 - step / self._request.budget, 1e-6)
            if here is None or chance < math.exp(min(math.log(here[1] / item.runtime_ms) / temperature, 0.0)):
                here = item.index, item.runtime_ms
        return None if here is None else here[0]

    def _next(self, here: int | None, busy: set[int], generator: random.Random) -> int | None:
        near = [] if here is None else [index for index in self._neighbours(here) if index not in busy]
        if near:
            return generator.choice(near)
        free = [index for index in range(len(self._space)) if index not in busy]
        return generator.choice(free) if free else None

    def _neighbours(self, index: int) -> list[int]:
        values = self._space.values(index)
        others = (
            self._space.index_of({**values, name: level})
            for position, name in enumerate(self._space.parameters)
            for level in self._space.levels(position)
            if level != values[name]
        )
        return [other for other in others if other is not None]
