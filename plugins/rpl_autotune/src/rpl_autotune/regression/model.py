"""What the built-in strategy believes: times of configurations, and which of them will fail.

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
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_autotune.interfaces.features import Features
    from rpl_autotune.interfaces.strategy import Evaluated

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
