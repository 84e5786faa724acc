"""How good a model is on measurements that it has not seen, and whether that is good enough to follow it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_autotune.regression.model import TimeModel, Training
from rpl_compare.statistics.signed_rank import signed_rank_test
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_autotune.interfaces.space import Features

    Floats = NDArray[np.float64]

__all__ = ["FEWEST", "HeldOut", "Trust", "held_out"]

#: Parts of the cross-validation: each measurement is predicted once by a model that has not seen it.
_FOLDS = 5
#: With fewer measurements nothing is said (chosen: five parts of two).
FEWEST = 10
#: A trace of trust: more often right than the mean by Wilcoxon's signed-rank test at this level, with this
#: part of the variance predicted. Pure noise looks so at times, and then following it does no harm.
_SOME_R2, _SOME_ALPHA = 0.1, 0.1
#: "Clearly better than the mean". Both bounds together keep pure noise out: see ``--noise`` of
#: benchmarks/autotune.py, which counts.
_CLEAR_R2, _CLEAR_ALPHA = 0.3, 0.001


class Trust(str, Enum):
    """What the held-out errors say about following a model."""

    NONE = "none"
    SOME = "some"
    CLEAR = "clear"


@frozen
class HeldOut:
    """``r2`` and ``residual_std`` are of ln(time); 0.1 means errors of about 10 %."""

    r2: float | None
    residual_std: float | None
    samples: int
    trust: Trust
    reason: str | None = None


def held_out(features: Features, training: Training, seed: int) -> HeldOut:
    """Cross-validate a fresh model: in each part its kernels, too, are fitted without what it predicts."""
    samples = len(training.rows)
    if samples < FEWEST:
        reason = f"{samples} measurements are too few to judge a model; {FEWEST} are needed"
        return HeldOut(None, None, samples, Trust.NONE, reason)
    if np.ptp(training.log_times) == 0:
        return HeldOut(None, 0.0, samples, Trust.NONE, "all times are equal: there is nothing to predict")
    predicted, means = _predictions(features, training, seed)
    errors, naive = training.log_times - predicted, training.log_times - means
    r2 = 1.0 - float((errors**2).sum() / (naive**2).sum())
    trust = _trust(r2, signed_rank_test((np.abs(naive) - np.abs(errors)).tolist()).p_greater)
    doubt = f"held-out R² is {r2:.2f}: the model is not clearly better than the mean of all times"
    return HeldOut(r2, float(errors.std()), samples, trust, None if trust is Trust.CLEAR else doubt)


def _trust(r2: float, p: float) -> Trust:
    if r2 >= _CLEAR_R2 and p <= _CLEAR_ALPHA:
        return Trust.CLEAR
    return Trust.SOME if r2 >= _SOME_R2 and p <= _SOME_ALPHA else Trust.NONE


def _predictions(features: Features, training: Training, seed: int) -> tuple[Floats, Floats]:
    """For each measurement the prediction of the model, and of the mean, without its part."""
    samples = len(training.rows)
    order = np.random.default_rng(seed).permutation(samples)
    predicted, means = np.empty(samples), np.empty(samples)
    for part in np.array_split(order, _FOLDS):
        rest = np.setdiff1d(np.arange(samples), part)
        seen = attrs.evolve(training, rows=training.rows[rest], log_times=training.log_times[rest])
        means[part] = seen.log_times.mean()
        model = TimeModel(features, seed)
        model.fit(seen)
        predicted[part] = model.predict(training.rows[part]).mean
    return predicted, means
