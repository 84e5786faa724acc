"""Intervals of predicted times that hold as often as they say.

The deviation that a model states is too small where it is asked for the fastest of many, and too large
elsewhere. So an interval is as many deviations wide as the predictions of this very search were off:
conformal prediction, with a level that follows the misses (Gibbs and Candès, Adaptive conformal inference
under distribution shift, 2021).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_autotune.interfaces.strategy import Evaluated

__all__ = ["Intervals"]

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
