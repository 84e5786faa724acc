"""What the built-in strategy believes: times of configurations, failures, and how far to trust it.

The mean of two regressions on the logarithm of the time, in which factors between configurations are alike
over orders of magnitude: a Gaussian process with one length scale per coordinate, which finds out which ones
matter, and randomized trees (Geurts, Ernst and Wehenkel, Machine Learning 63, 2006), which see steps and
products.
Where they disagree, the prediction is uncertain. Failures are learnt apart.

Processes: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 4.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import lru_cache
from itertools import combinations, takewhile
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_autotune.interfaces import Evaluated, Features, SearchSpace, random_draws
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_measure.rank_tests import signed_rank_test

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rows = NDArray[np.intp]


#: The kernels are fitted anew when the data have grown by this factor: in between they hardly move (chosen).
_REFIT_GROWTH = 1.15
#: The same for the trees, which follow new data only by being grown anew (chosen).
_TREE_GROWTH = 1.1
#: Bounds of length scales in units of a coordinate's range, of signal and noise variance in units of the
#: data's variance (chosen: a length of 10 ranges is a coordinate without effect; shorter ones than 0.3 would
#: explain few data by nothing but their distance).
_LENGTHS, _SIGNAL, _NOISE = (0.3, 10.0), (0.05, 50.0), (1e-6, 1.0)
_TREES = 20
#: Steps in which a kernel is fitted: what more would gain is less than what few data say (chosen).
_STEPS = 10
#: Rows that are predicted at once: bounds the memory in large spaces.
_BLOCK = 20_000


def missing_libraries() -> str | None:
    """What to do where the libraries are absent that the model needs: an extra, since they are large."""
    from importlib.util import find_spec

    if all(map(find_spec, ("scipy", "sklearn", "threadpoolctl"))):
        return None
    return "the model needs scikit-learn (some 200 MB): pip install 'rpl-autotune[regression]'"


@frozen(eq=False)
class Training:
    """Measured rows: ``rows`` are indices of configurations, ``log_times`` ln of milliseconds."""

    rows: Rows
    log_times: Floats
    failed: Rows


@frozen(eq=False)
class Prediction:
    """Mean and standard deviation of ln(time) for every configuration that was asked about."""

    mean: Floats
    deviation: Floats


def training_of(history: Sequence[Evaluated]) -> Training:
    """The history as arrays."""
    good = [item for item in history if item.runtime_ms is not None and item.runtime_ms > 0]
    failed = [item.index for item in history if item.runtime_ms is None]
    times = np.asarray([item.runtime_ms for item in good], np.float64)
    rows = np.asarray([item.index for item in good], np.intp)
    return Training(rows, np.log(times), np.asarray(failed, np.intp))


class TimeModel:
    """The regressions over one space; kernels are kept between fits."""

    def __init__(self, features: Features, seed: int) -> None:
        self._members: tuple[_Process | _Trees, ...] = (
            _Process(features.coordinates),
            _Trees(np.hstack([features.coordinates, features.products]), seed),
        )
        self._centre = 0.0
        self._scale = 1.0

    def fit(self, training: Training, *, keep_kernels: bool = False) -> None:
        """Learn from ``training``; with ``keep_kernels`` the kernels stay as the last fit left them."""
        if not keep_kernels:
            self._centre = float(training.log_times.mean())
            self._scale = float(training.log_times.std()) or 1.0
        standard = (training.log_times - self._centre) / self._scale
        with _in_haste():
            for member in self._members:
                member.fit(training.rows, standard, keep_kernel=keep_kernels)

    def predict(self, rows: Rows) -> Prediction:
        """For the configurations in ``rows``."""
        with _in_haste():
            blocks = [self._block(rows[at : at + _BLOCK]) for at in range(0, max(rows.size, 1), _BLOCK)]
        mean = np.concatenate([mean for mean, _ in blocks])
        deviation = np.concatenate([deviation for _, deviation in blocks])
        return Prediction(mean * self._scale + self._centre, deviation * self._scale)

    def _block(self, rows: Rows) -> tuple[Floats, Floats]:
        """Moments of the mixture of all members."""
        parts = [member.predict(rows) for member in self._members]
        means = np.stack([mean for mean, _ in parts])
        variances = np.stack([deviation**2 for _, deviation in parts])
        return means.mean(axis=0), np.sqrt(variances.mean(axis=0) + means.var(axis=0))


@contextmanager
def _in_haste() -> Iterator[None]:
    """scikit-learn as many small fits need it: one thread (to hand some hundred rows to several costs more
    than it gains), and no checks of arrays that this module made itself.
    """
    from sklearn import config_context

    with _thread_pools().limit(limits=1), config_context(assume_finite=True, skip_parameter_validation=True):
        yield


@lru_cache(maxsize=1)
def _thread_pools() -> Any:
    """The pools of the libraries that are loaded; looking for them takes longer than a prediction."""
    import sklearn.gaussian_process  # noqa: F401 - loads those that are meant
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _Process:
    """A Gaussian process with a Matern kernel of one length scale per coordinate."""

    def __init__(self, design: Floats) -> None:
        self._design = design
        self._kernel: Any = None
        self._fitted_rows = 0
        self._process: Any = None

    def fit(self, rows: Rows, values: Floats, *, keep_kernel: bool) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor

        anew = not keep_kernel and (self._kernel is None or len(rows) >= _REFIT_GROWTH * self._fitted_rows)
        self._process = GaussianProcessRegressor(
            self._kernel if self._kernel is not None else self._first_kernel(),
            optimizer=_few_steps if anew else None,
            alpha=1e-8,
        )
        with warnings.catch_warnings():
            # A length at its bound says that a coordinate has no effect: that is an answer.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._process.fit(self._design[rows], values)
        if anew:
            self._kernel, self._fitted_rows = self._process.kernel_, len(rows)

    def predict(self, rows: Rows) -> tuple[Floats, Floats]:
        mean, deviation = self._process.predict(self._design[rows], return_std=True)
        return mean, deviation

    def _first_kernel(self) -> Any:
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        lengths = np.ones(self._design.shape[1])
        return ConstantKernel(1.0, _SIGNAL) * Matern(lengths, _LENGTHS, nu=2.5) + WhiteKernel(1e-2, _NOISE)


def _few_steps(
    objective: Callable[..., tuple[float, Floats]], first: Floats, bounds: Floats
) -> tuple[Floats, float]:
    """L-BFGS-B on the likelihood, ended early."""
    from scipy.optimize import minimize

    fitted = minimize(
        objective, first, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": _STEPS}
    )
    return fitted.x, float(fitted.fun)


class _Trees:
    """Extremely randomized trees; their spread stands for the uncertainty."""

    def __init__(self, design: Floats, seed: int) -> None:
        self._design = design.astype(np.float32)
        self._seed = seed
        self._trees: list[Any] = []
        self._fitted_rows = 0

    def fit(self, rows: Rows, values: Floats, *, keep_kernel: bool) -> None:
        from sklearn.tree import ExtraTreeRegressor

        grown = len(rows) >= _TREE_GROWTH * self._fitted_rows
        if self._trees and (keep_kernel or not grown):
            return  # a few values more hardly change them
        self._fitted_rows, asked = len(rows), self._design[rows]
        # One by one: a forest object copies and checks its settings for each tree, which takes longer than
        # to grow it.
        self._trees = [
            ExtraTreeRegressor(max_features=0.7, random_state=seed).fit(asked, values, check_input=False)
            for seed in np.random.default_rng(self._seed).integers(2**31, size=_TREES).tolist()
        ]

    def predict(self, rows: Rows) -> tuple[Floats, Floats]:
        asked = self._design[rows]
        each = np.stack([tree.predict(asked, check_input=False) for tree in self._trees])
        return each.mean(axis=0), each.std(axis=0)


def success_probability(features: Features, training: Training, rows: Rows, seed: int) -> Floats | None:
    """How likely each configuration in ``rows`` runs; ``None`` while none has failed, or all have."""
    if training.failed.size == 0 or training.rows.size == 0:
        return None
    from sklearn.ensemble import ExtraTreesClassifier

    matrix = np.hstack([features.coordinates, features.products])
    measured = np.concatenate([training.rows, training.failed])
    runs = np.concatenate([np.ones(training.rows.size), np.zeros(training.failed.size)])
    with _in_haste():
        trees = ExtraTreesClassifier(_TREES, random_state=seed).fit(matrix[measured], runs)
        probability: Floats = trees.predict_proba(matrix[rows])[:, 1]
    return probability


# Intervals of predicted times that hold as often as they say.
#
# The deviation that a model states is too small where it is asked for the fastest of many, and too large
# elsewhere. So an interval is as many deviations wide as the predictions of this very search were off:
# conformal prediction, with a level that follows the misses (Gibbs and Candès, Adaptive conformal inference
# under distribution shift, 2021).

#: The part of measurements that may be outside, how far one of them moves the level, and the least and most
#: that the level can be (chosen on the spaces that docs/validation.md names as looked at).
_OUTSIDE, _STEP, _LEVELS = 0.05, 0.1, (0.002, 0.3)
#: What is known before there are predictions: quantiles of Student's distribution, as models from few data
#: are off, counted as so many predictions (chosen there, too).
_FREEDOM, _PRIOR = 8, 19
#: Where all known errors are too few for the level, the largest one and this much more.
_BEYOND = 1.3


class Intervals:
    """What one search predicted, and how far off that was."""

    def __init__(self) -> None:
        from scipy.stats import t

        self._errors = t.ppf(0.5 + np.arange(1, _PRIOR + 1) / (2 * _PRIOR + 2), _FREEDOM).tolist()
        self._outside = _OUTSIDE
        self._said: dict[int, tuple[float, float, float]] = {}
        self._learnt = 0

    def around(self, index: int, mean: float, deviation: float) -> tuple[float, float]:
        """From where to where the time of ``index`` is expected, in ms; arguments are of ln(ms)."""
        errors = sorted(self._errors)
        rank = math.ceil((1 - self._outside) * (len(errors) + 1))
        width = errors[rank - 1] if rank <= len(errors) else _BEYOND * errors[-1]
        self._said[index] = mean, deviation, width
        return math.exp(mean - width * deviation), math.exp(mean + width * deviation)

    def learn(self, history: Sequence[Evaluated]) -> None:
        """Compare what was measured since the last call with what was said."""
        for item in history[self._learnt :]:
            said = self._said.pop(item.index, None)
            if said is None or item.runtime_ms is None:
                continue
            mean, deviation, width = said
            error = abs(math.log(item.runtime_ms) - mean) / max(deviation, 1e-12)
            self._errors.append(error)
            moved = self._outside + _STEP * (_OUTSIDE - (error > width))
            self._outside = min(max(moved, _LEVELS[0]), _LEVELS[1])
        self._learnt = len(history)


# How good a model is on what it has not seen, whether to follow it, and which parameters matter by it.


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
    if missing := missing_libraries():
        return HeldOut(None, None, samples, Trust.NONE, missing)
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
    # For each draw the prediction of a model without its part.
    predicted = np.empty(len(rows))
    for part in np.array_split(np.arange(len(rows)), _FOLDS):
        rest = np.setdiff1d(np.arange(len(training.rows)), rows[part])
        seen = attrs.evolve(training, rows=training.rows[rest], log_times=training.log_times[rest])
        model = TimeModel(space.features, seed)
        model.fit(seen)
        predicted[part] = model.predict(training.rows[rows[part]]).mean
    errors = times - predicted
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
