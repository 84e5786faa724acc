"""How good a model is on what it has not seen, whether to follow it, and which parameters matter by it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import combinations, takewhile
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_autotune.interfaces.strategy import Evaluated, random_draws
from rpl_autotune.regression.model import TimeModel, Training, training_of
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_measure.rank_tests import signed_rank_test

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_autotune.interfaces.space import SearchSpace

    Floats = NDArray[np.float64]
    Rows = NDArray[np.intp]


#: Parts of the cross-validation: each draw is predicted once by a model that has not seen it.
_FOLDS = 5
#: With fewer draws nothing is said (chosen), and more than so many say nothing new.
FEWEST, _MOST = 8, 200
#: A trace of trust: more often right than the mean by Wilcoxon's signed-rank test at this level, with this
#: part of the variance predicted. Pure noise looks so at times, and then following it does no harm.
_SOME_R2, _SOME_ALPHA = 0.1, 0.1
#: Clear trust: R² is above 0.3 at 19 of 20. The t test is too sure of few draws with far-off times among them
#: (what it gives as the lower end was above the truth in 9 % of 274 models instead of 5): so more is asked
#: of them, the fewer they are: 0.5 of 8, 0.39 of 18. ``--trust`` and ``--noise`` of benchmarks/autotune.py
#: count.
_CLEAR_R2, _MORE_R2, _CLEAR_ALPHA = 0.3, 1.6, 0.05
#: A search follows its model without doubt from here on (chosen: both bounds together keep pure noise out).
_FOLLOWED_R2, _FOLLOWED_ALPHA = 0.3, 0.001


class Trust(str, Enum):
    """What the held-out errors say about following a model."""

    NONE = "none"
    SOME = "some"
    CLEAR = "clear"


@frozen
class HeldOut:
    """``r2`` and ``residual_std`` are of ln(time); 0.1 means errors of about 10 %.

    ``r2_low``: below it R² over the whole space is once in 20. ``samples`` are draws with a time.
    """

    r2: float | None
    residual_std: float | None
    samples: int
    trust: Trust
    reason: str | None = None
    r2_low: float | None = None


def held_out(space: SearchSpace, history: Sequence[Evaluated], seed: int) -> HeldOut:
    """What the random draws among the measurements say of a model; what is told of it rests on this."""
    training = training_of(history)
    drawn = _measured_draws(space, training, seed)
    samples = len(drawn)
    if samples < FEWEST:
        few = counted(samples, "random measurement is", "random measurements are")
        reason = f"{few} too few to judge a model; {FEWEST} are needed"
        return HeldOut(None, None, samples, Trust.NONE, reason)
    tested = _tested(space, training, drawn, seed)
    if tested is None:
        return HeldOut(None, 0.0, samples, Trust.NONE, "all times are equal: there is nothing to predict")
    low = _lower_end(tested.errors**2, tested.spread)
    trust = Trust.CLEAR if low >= _CLEAR_R2 + _MORE_R2 / samples else tested.trace()
    doubt = (
        f"on {samples} random configurations the held-out R² is {tested.r2:.2f}, and may be {low:.2f} on "
        "all: the model is not clearly better than the mean of all times"
    )
    told = None if trust is Trust.CLEAR else doubt
    return HeldOut(tested.r2, float(tested.errors.std()), samples, trust, told, low)


def followed(space: SearchSpace, training: Training, seed: int) -> Trust:
    """How far a search goes after its model: by all that it measured, which leans to where it goes next.

    Nothing is told of a model by this: what helps a search may know little of the rest of the space.
    """
    order = np.random.default_rng(seed).permutation(len(training.rows))
    tested = _tested(space, training, order, seed)
    if tested is None:
        return Trust.NONE
    is_clear = tested.r2 >= _FOLLOWED_R2 and tested.p_better() <= _FOLLOWED_ALPHA
    return Trust.CLEAR if is_clear else tested.trace()


@frozen
class _Tested:
    """Errors of predictions of ln(time) by a model that had not seen it, and what the mean would leave."""

    errors: Floats
    naive: Floats
    spread: Floats

    @property
    def r2(self) -> float:
        return 1.0 - float((self.errors**2).sum() / self.spread.sum())

    def p_better(self) -> float:
        return signed_rank_test((np.abs(self.naive) - np.abs(self.errors)).tolist()).p_greater

    def trace(self) -> Trust:
        return Trust.SOME if self.r2 >= _SOME_R2 and self.p_better() <= _SOME_ALPHA else Trust.NONE


def _tested(space: SearchSpace, training: Training, rows: Rows, seed: int) -> _Tested | None:
    """Cross-validate a fresh model on ``rows`` of ``training``; ``None`` where all their times are equal.

    In each part its kernels, too, are fitted without what it predicts.
    """
    times = training.log_times[rows]
    if np.ptp(times) == 0:
        return None
    # What predicting their own mean would leave, the mean being of the others each time.
    correction = len(rows) / (len(rows) - 1)
    errors = times - _predictions(space, training, rows, seed)
    return _Tested(errors, (times - times.mean()) * correction, (times - times.mean()) ** 2 * correction)


def _measured_draws(space: SearchSpace, training: Training, seed: int) -> Rows:
    """Where in ``training`` the draws are, up to the first not measured one; failed ones have no time."""
    position = {int(row): n for n, row in enumerate(training.rows)}
    measured = position.keys() | set(training.failed.tolist())
    drawn = takewhile(measured.__contains__, random_draws(space, seed).tolist())
    return np.asarray([position[index] for index in drawn if index in position][:_MOST], np.intp)


def _lower_end(squared_errors: Floats, spread: Floats) -> float:
    """The largest R² that a one-sided t test on ``(1 - R²) spread - errors²`` still refutes from below.

    Errors and spread of one draw stay together, so that one far-off draw widens both.
    """
    from scipy.stats import t

    samples = len(spread)
    needed = float(t.ppf(1 - _CLEAR_ALPHA, samples - 1)) / samples**0.5

    def is_refuted(r2: float) -> bool:
        gain = (1 - r2) * spread - squared_errors
        return bool(gain.mean() > needed * gain.std(ddof=1))

    candidates = np.arange(99, -100, -1) / 100
    return float(next((r2 for r2 in candidates if is_refuted(float(r2))), -1.0))


def _predictions(space: SearchSpace, training: Training, drawn: Rows, seed: int) -> Floats:
    """For each draw the prediction of a model without its part."""
    predicted = np.empty(len(drawn))
    for part in np.array_split(np.arange(len(drawn)), _FOLDS):
        rest = np.setdiff1d(np.arange(len(training.rows)), drawn[part])
        seen = attrs.evolve(training, rows=training.rows[rest], log_times=training.log_times[rest])
        model = TimeModel(space.features, seed)
        model.fit(seen)
        predicted[part] = model.predict(training.rows[drawn[part]]).mean
    return predicted


# Which parameters matter by the model: parts of the variance of its predictions over the whole space.
#
# First-order and second-order parts of a functional analysis of variance (Sobol, Mathematics and Computers
# in Simulation 55, 2001): the variance of the mean prediction given one parameter, and given two of them
# less what each explains alone. It is exact for the model on this space; whether the model is right is
# another question, which its held-out error answers.

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
