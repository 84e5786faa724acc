"""Strategies choose which configurations are measured next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rpl_autotune.interfaces.space import SearchSpace


class Phase(str, Enum):
    """Why a configuration is measured."""

    SEED = "seed"  # far from what was measured, to learn from
    CONFIRM = "confirm"  # a prediction says that it may be fast
    EXPLORE = "explore"  # drawn at random, or without a prediction that is trusted


@frozen
class StrategyRequest:
    """``budget`` is the most evaluations; ``seed`` makes equal searches equal.

    ``seed_fraction`` is the part of the budget that learning may take before predictions are used;
    predictions above ``prune_factor`` times the best prediction are not worth a measurement.
    """

    space: SearchSpace
    budget: int
    seed: int
    seed_fraction: float = 0.2
    prune_factor: float = 1.75


@frozen
class Evaluated:
    """A measured configuration by its index; ``runtime_ms`` is ``None`` where it failed or was wrong."""

    index: int
    runtime_ms: float | None


@frozen
class Proposed:
    """``predicted_ms`` is the model's expectation where one was asked.

    ``predicted_interval_ms``: from where to where a measurement is expected to be, 19 times of 20.
    """

    index: int
    phase: Phase
    predicted_ms: float | None = None
    predicted_interval_ms: tuple[float, float] | None = None


def random_draws(space: SearchSpace, seed: int) -> NDArray[np.intp]:
    """All configurations of a space in the random order of one search, spread evenly over the space.

    Those at its beginning that were measured, for whatever reason, are a sample that leans nowhere: by them
    the model is judged. A strategy that measures some of them earns a judgement.

    Each configuration is equally likely at each place. The space is halved across one of its widest
    coordinates, and so are the halves; draws come from both halves in pairs. Such a stratified sample says
    more of the whole than independent draws (Cochran, Sampling Techniques, 1977, section 5.6).
    """
    import numpy as np

    generator = np.random.default_rng([seed, 7])
    return _spread_order(space.features.coordinates, np.arange(len(space)), generator, _HALVINGS)


#: 256 parts: more than a search draws (chosen: some ten milliseconds).
_HALVINGS = 8


def _spread_order(
    places: NDArray[np.float64], rows: NDArray[np.intp], generator: np.random.Generator, halvings: int
) -> NDArray[np.intp]:
    import numpy as np

    rows = generator.permutation(rows)
    if rows.size < 4 or halvings == 0:
        return rows
    if rows.size % 2:  # a random one goes to a random place, so that the halves are equal and nobody favoured
        rest = _spread_order(places, rows[1:], generator, halvings)
        return np.insert(rest, generator.integers(rows.size), rows[0])
    widths = np.ptp(places[rows], axis=0)
    if not widths.any():
        return rows
    across = generator.choice(np.flatnonzero(widths >= widths.max() * (1 - 1e-9)))
    rows = rows[np.argsort(places[rows, across], kind="stable")]  # equal ones stay in their random order
    half = rows.size // 2
    pairs = np.stack(
        [_spread_order(places, part, generator, halvings - 1) for part in (rows[:half], rows[half:])], axis=1
    )
    return generator.permuted(pairs, axis=1).ravel()


class Search(ABC):
    """One search in progress."""

    @abstractmethod
    def propose(self, history: Sequence[Evaluated], pending: Sequence[int], count: int) -> Sequence[Proposed]:
        """Up to ``count`` configurations that are neither in ``history`` nor ``pending``.

        ``history`` is in the order in which results came. Equal histories must give equal answers: that
        is how an interrupted search finds its way back. None at all with nothing pending ends the search.
        """


class Strategy(ABC):
    """A way to search."""

    name: str
    summary: str

    def missing(self) -> str | None:
        """Why it can't work here (for people, with the remedy), or ``None`` if it can."""
        return None

    @abstractmethod
    def start(self, request: StrategyRequest) -> Search:
        """A new search of ``request.space``."""
