"""Strategies choose which configurations are measured next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.interfaces.space import SearchSpace


class Phase(str, Enum):
    """Why a configuration is measured."""

    SEED = "seed"  # spread over the space, to learn from
    CONFIRM = "confirm"  # a prediction says that it may be fast
    EXPLORE = "explore"  # without a prediction: there is none, or it is not trusted


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
    """``predicted_ms`` is the model's expectation where one was asked."""

    index: int
    phase: Phase
    predicted_ms: float | None = None


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
