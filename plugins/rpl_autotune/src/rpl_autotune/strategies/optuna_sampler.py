"""The strategy `optuna`: the tree-structured Parzen estimator of Optuna, over the same space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rpl_autotune.interfaces.strategy import Evaluated, Phase, Proposed, Search, Strategy, StrategyRequest
from rpl_core.errors import MissingError

__all__ = ["OptunaStrategy"]

#: Optuna draws parameters one by one and knows no constraints: draws outside the space, or repeated ones,
#: are told as failures, and after so many of them a free configuration near the last draw is taken.
_MOST_DRAWS = 5


class OptunaStrategy(Strategy):
    """Optuna suggests; what it suggests outside the space is moved to the nearest free place."""

    name = "optuna"
    summary = "Optuna's TPE sampler (pip install 'rpl-autotune[optuna]')"

    def missing(self) -> str | None:
        try:
            import optuna  # noqa: F401 - only whether it is there
        except ImportError:
            return "the strategy 'optuna' needs Optuna: pip install 'rpl-autotune[optuna]'"
        return None

    def start(self, request: StrategyRequest) -> Search:
        reason = self.missing()
        if reason is not None:
            raise MissingError(reason)
        return _OptunaSearch(request)


class _OptunaSearch(Search):
    def __init__(self, request: StrategyRequest) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = request.space
        self._levels = [request.space.levels(n) for n in range(len(request.space.parameters))]
        self._study: Any = optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=request.seed), direction="minimize"
        )
        self._distributions = {
            name: optuna.distributions.CategoricalDistribution(tuple(range(len(levels))))
            if not all(isinstance(level, (int, float)) for level in levels)
            else optuna.distributions.IntDistribution(0, len(levels) - 1)
            for name, levels in zip(request.space.parameters, self._levels, strict=True)
        }
        self._trials: dict[int, Any] = {}
        self._told = 0

    def propose(self, history: Sequence[Evaluated], pending: Sequence[int], count: int) -> Sequence[Proposed]:
        for item in history[self._told :]:
            self._tell(item)
        self._told = len(history)
        busy = {*(item.index for item in history), *pending}
        chosen: list[Proposed] = []
        while len(chosen) < count and len(busy) < len(self._space):
            index = self._draw(busy)
            busy.add(index)
            chosen.append(Proposed(index, Phase.EXPLORE))
        return chosen

    def _tell(self, item: Evaluated) -> None:
        import optuna

        trial = self._trials.pop(item.index, None)
        state = optuna.trial.TrialState.COMPLETE if item.runtime_ms else optuna.trial.TrialState.FAIL
        if trial is not None:
            self._study.tell(trial, item.runtime_ms, state=state)
        elif item.runtime_ms is not None:  # measured by someone else, such as the reference
            self._study.add_trial(
                optuna.trial.create_trial(
                    params=self._positions(item.index),
                    distributions=self._distributions,
                    value=item.runtime_ms,
                )
            )

    def _positions(self, index: int) -> dict[str, int]:
        values = self._space.configurations[index]
        names = self._space.parameters
        return {
            name: levels.index(value) for name, levels, value in zip(names, self._levels, values, strict=True)
        }

    def _draw(self, busy: set[int]) -> int:
        import optuna

        for attempt in range(_MOST_DRAWS):
            trial = self._study.ask(self._distributions)
            drawn = {
                name: levels[trial.params[name]]
                for name, levels in zip(self._space.parameters, self._levels, strict=True)
            }
            index = self._space.index_of(drawn)
            if index is not None and index not in busy:
                self._trials[index] = trial
                return index
            if attempt < _MOST_DRAWS - 1:
                self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        return self._nearest({name: trial.params[name] for name in self._space.parameters}, busy)

    def _nearest(self, positions: dict[str, int], busy: set[int]) -> int:
        """The free configuration that differs least from a draw outside the space."""
        wanted = np.asarray(
            [positions[name] / max(len(levels) - 1, 1) for name, levels in self._scaled_levels()]
        )
        distance = np.abs(self._grid() - wanted).sum(axis=1)
        distance[list(busy)] = np.inf
        return int(np.argmin(distance))

    def _scaled_levels(self) -> list[tuple[str, tuple[Any, ...]]]:
        return list(zip(self._space.parameters, self._levels, strict=True))

    def _grid(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Every configuration as positions of its values, scaled to 0..1."""
        if self._places is None:
            numbers = [{level: n for n, level in enumerate(levels)} for levels in self._levels]
            self._places = np.asarray(
                [
                    [
                        number[value] / max(len(number) - 1, 1)
                        for number, value in zip(numbers, row, strict=True)
                    ]
                    for row in self._space.configurations
                ]
            )
        return self._places

    _places: np.ndarray[Any, np.dtype[np.float64]] | None = None
