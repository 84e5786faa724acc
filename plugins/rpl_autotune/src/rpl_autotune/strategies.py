"""The strategies ``regression``, which trusts no model without held-out evidence, and ``neighbours``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_autotune.interfaces import (
    Evaluated,
    Phase,
    Proposed,
    Search,
    SearchSpace,
    Strategy,
    StrategyRequest,
    random_draws,
)
from rpl_autotune.regression import (
    Intervals,
    Prediction,
    TimeModel,
    Training,
    Trust,
    followed,
    missing_libraries,
    success_probability,
    training_of,
)
from rpl_core.errors import MissingError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

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


# The strategy itself.

#: The documented guarantee: learning takes no more than a quarter of the budget.
MOST_SEED = 0.25
#: With fewer measurements no model is asked (chosen).
_FEWEST_KNOWN = 10
#: Every so many-th measurement is the next random draw, however sure the model is: what it does not see it
#: can't learn, and by draws it is judged. More of them at first, so that the judgement comes early (chosen).
_DRAW_EVERY, _DRAW_EVERY_AT_FIRST = 8, ((10, 2), (24, 4))
#: The model is judged anew when the data have grown by this factor (chosen: a judgement costs five fits).
_JUDGE_GROWTH = 1.5
#: The same for a model that was found clearly better than the mean: new data rarely unmake that (chosen).
_TRUSTED_GROWTH = 2.0
#: Fewer measurements than this can't show that a model is useless, either: until then they go where a gain
#: would be likely if it were right, but for the draws and as many steps beside the fastest (chosen: where few
#: configurations are fast, a space looks like noise for longest, and drawing more is worth least).
_DECIDED = 40
#: So many measurements in a row without a gain of this part are a stall: half of the next ones then go where
#: the model knows least, and beside the ``_NEAR`` fastest, whatever it predicts there (chosen).
_STALL, _GAIN, _NEAR = 8, 0.005, 3
#: Of larger spaces so many random configurations are predicted each time, beside all that differ from one of
#: the ``_BEST`` measured ones in one parameter (chosen: some hundredths of a second).
_MOST_CANDIDATES, _BEST = 1000, 5


class NeighboursStrategy(Strategy):
    """What ``regression`` does as long as no model helps: draws, looks far away, steps beside the fastest."""

    name = "neighbours"
    summary = "walks beside the fastest and looks far from what was measured, without a model"

    def start(self, request: StrategyRequest) -> Search:
        return _UnledSearch(request)


class _UnledSearch(Search):
    def __init__(self, request: StrategyRequest) -> None:
        self._request = request
        self._space = request.space
        self._generator = np.random.default_rng(request.seed)
        self._order = random_draws(request.space, request.seed)
        self._without_model = Untrusting(request.space, self._generator, self._order)
        self._seeds_left = self._seed_size()

    def propose(self, history: Sequence[Evaluated], pending: Sequence[int], count: int) -> Sequence[Proposed]:
        busy, chosen = {*(item.index for item in history), *pending}, list[Proposed]()
        while len(chosen) < count and (proposed := self._unled(history, busy)) is not None:
            chosen.append(proposed)
            busy.add(proposed.index)
        return chosen

    def _seed_size(self) -> int:
        part = min(self._request.seed_fraction, MOST_SEED)
        return max(1, math.floor(part * self._request.budget))

    def _unled(
        self, history: Sequence[Evaluated], busy: set[int], *, doubtful: bool = False
    ) -> Proposed | None:
        """What is next without a prediction; ``doubtful`` where others follow one."""
        if self._owes_a_draw(history, busy):
            return _proposed(self._without_model.draw(busy), Phase.EXPLORE)
        if self._seeds_left > 0 and not doubtful:
            self._seeds_left -= 1
            return _proposed(self._without_model.spread(busy), Phase.SEED)
        # A step beside the best, in turns with a look elsewhere; neither asks the model.
        index = self._without_model.step(history, busy) if doubtful or len(busy) % 4 < 2 else None
        return _proposed(self._without_model.spread(busy) if index is None else index, Phase.EXPLORE)

    def _owes_a_draw(self, history: Sequence[Evaluated], busy: set[int]) -> bool:
        """Whether it is a draw's turn. One that failed says nothing of times, and is made up for: where most
        configurations fail, once for each turn."""
        due = _draws_due(len(busy))
        if due > _draws_due(len(busy) - 1):
            return True
        drawn = list(takewhile(busy.__contains__, self._order.tolist()))
        failed = {item.index for item in history if item.runtime_ms is None}
        return len(drawn) < due + min(due, sum(index in failed for index in drawn))


class RegressionStrategy(Strategy):
    """Predicts all configurations from those measured so far, and measures where a gain is most likely."""

    name = "regression"
    summary = "predicts times by a Gaussian process, as long as its held-out error says that it can"

    def missing(self) -> str | None:
        missing = missing_libraries()
        return missing and f"{missing}, or take the strategy neighbours, which needs nothing"

    def start(self, request: StrategyRequest) -> Search:
        reason = self.missing()
        if reason is not None:
            raise MissingError(reason)
        return _RegressionSearch(request)


class _RegressionSearch(_UnledSearch):
    def __init__(self, request: StrategyRequest) -> None:
        super().__init__(request)
        self._model = TimeModel(request.space.features, request.seed)
        self._intervals = Intervals()
        self._trusted = Trust.NONE
        self._judged_at = 0

    def propose(self, history: Sequence[Evaluated], pending: Sequence[int], count: int) -> Sequence[Proposed]:
        taken = {*(item.index for item in history), *pending}
        training = training_of(history)
        self._intervals.learn(history)
        trust = self._trust(training)
        if trust is not Trust.NONE:
            self._seeds_left = 0  # what is left of the seed is worth more later
        chosen: list[Proposed] = []
        while len(chosen) < count:
            busy = {*taken, *(item.index for item in chosen)}
            proposed = self._next(history, training, busy, trust)
            if proposed is None:
                break
            chosen.append(proposed)
            if proposed.predicted_ms is not None and len(chosen) < count:
                training = self._with_expected_time(training, proposed.index, math.log(proposed.predicted_ms))
        return chosen

    def _trust(self, training: Training) -> Trust:
        known = len(training.rows)
        growth = _TRUSTED_GROWTH if self._trusted is Trust.CLEAR else _JUDGE_GROWTH
        if known >= max(_FEWEST_KNOWN, math.ceil(growth * self._judged_at)):
            self._trusted = followed(self._space, training, self._request.seed)
            self._judged_at = known
        return self._trusted

    def _next(
        self, history: Sequence[Evaluated], training: Training, busy: set[int], trust: Trust
    ) -> Proposed | None:
        if self._owes_a_draw(history, busy):
            return self._unled(history, busy)
        if trust is Trust.CLEAR:
            return self._predicted(history, training, busy, Phase.CONFIRM)
        doubtful = trust is Trust.SOME or self._is_undecided(training)
        if doubtful and len(busy) % _DRAW_EVERY != 1 + _DRAW_EVERY // 2:
            phase = Phase.CONFIRM if trust is Trust.SOME else Phase.EXPLORE
            return self._predicted(history, training, busy, phase)
        return self._unled(history, busy, doubtful=doubtful)

    @staticmethod
    def _is_undecided(training: Training) -> bool:
        """Whether there are data for a model, and too few to say that it is useless."""
        return _FEWEST_KNOWN <= len(training.rows) < _DECIDED and bool(np.ptp(training.log_times) > 0)

    def _predicted(
        self, history: Sequence[Evaluated], training: Training, busy: set[int], phase: Phase
    ) -> Proposed | None:
        rows = self._candidates(history, busy)
        if rows.size == 0:
            return None
        if training is not self._fitted:
            self._model.fit(training)
            self._fitted = training
        prediction = self._model.predict(rows)
        worth = _expected_gain(prediction, float(training.log_times.min()))
        chances = success_probability(self._space.features, training, rows, self._request.seed)
        worth = worth if chances is None else worth * chances
        # Predictions up to ``prune_factor`` times the best one.
        kept = np.flatnonzero(
            prediction.mean <= float(prediction.mean.min()) + math.log(self._request.prune_factor)
        )
        turn = len(busy) % 4 if _is_stalled(history) else 1
        if turn == 0:  # where the model knows least, whatever it predicts there
            phase, kept = Phase.EXPLORE, np.arange(rows.size)
            worth = prediction.deviation if chances is None else prediction.deviation * chances
        elif turn == 2:  # beside the fastest, whatever it predicts there
            near = np.flatnonzero(np.isin(rows, list(self._without_model.around(history, _NEAR))))
            phase, kept = (Phase.EXPLORE, near) if near.size else (phase, kept)
        best = kept[np.argmax(worth[kept])]
        index, mean = int(rows[best]), float(prediction.mean[best])
        interval = self._intervals.around(index, mean, float(prediction.deviation[best]))
        return Proposed(index, phase, math.exp(mean), interval)

    _fitted: Training | None = None

    def _candidates(self, history: Sequence[Evaluated], busy: set[int]) -> NDArray[np.intp]:
        """Free configurations to predict: all, or in large spaces neighbours of the best and a sample."""
        mask = np.ones(len(self._space), np.bool_)
        mask[list(busy)] = False
        free = np.flatnonzero(mask)
        if free.size <= _MOST_CANDIDATES:
            return free
        near = [index for index in self._without_model.around(history, _BEST) if mask[index]]
        sample = self._generator.choice(free, _MOST_CANDIDATES, replace=False)
        return np.union1d(sample, np.asarray(near, np.intp))

    def _with_expected_time(self, training: Training, index: int, log_time: float) -> Training:
        """As if ``index`` had been measured as predicted, so that the next choice looks elsewhere."""
        believed = attrs.evolve(
            training,
            rows=np.append(training.rows, index),
            log_times=np.append(training.log_times, log_time),
        )
        self._model.fit(believed, keep_kernels=True)
        self._fitted = believed
        return believed


def _draws_due(turn: int) -> int:
    """How many of the first ``turn`` measurements and the next one are draws."""
    due, begin = 0, 0
    for end, every in (*_DRAW_EVERY_AT_FIRST, (turn + 1, _DRAW_EVERY)):
        due += sum(k % every == 1 for k in range(begin, min(end, turn + 1)))
        begin = end
    return due


def _is_stalled(history: Sequence[Evaluated]) -> bool:
    """Whether the last measurements have brought nothing: then the model is sure where it should not be."""
    times = [math.inf if item.runtime_ms is None else item.runtime_ms for item in history]
    if len(times) <= _STALL:
        return False
    return min(times[-_STALL:]) > (1 - _GAIN) * min(times[:-_STALL])


def _proposed(index: int | None, phase: Phase) -> Proposed | None:
    return None if index is None else Proposed(index, phase)


def _expected_gain(prediction: Prediction, best: float) -> Floats:
    """The expected improvement on ``best`` (Jones, Schonlau and Welch, Journal of Global Optimization 13,
    1998, equation 15).
    """
    from scipy.stats import norm

    deviation = np.maximum(prediction.deviation, 1e-9)
    gap = (best - prediction.mean) / deviation
    gain: Floats = deviation * (gap * norm.cdf(gap) + norm.pdf(gap))
    return gain


# The strategy `optuna`: the tree-structured Parzen estimator of Optuna, over the same space.

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
