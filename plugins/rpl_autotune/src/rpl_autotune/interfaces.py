"""What strategies work with: the search space, what workers are asked and answer, and the strategy itself."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs
import numpy as np
from pydantic import Field

from rpl_core.contracts.common import OriginName, Part
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Column = NDArray[np.float64]

# The search space as strategies see it: configurations by index, and numbers to learn from.

#: What a parameter can be set to.
Value: TypeAlias = "bool | int | float | str"
#: The values of all parameters, in the order of ``SearchSpace.parameters``.
Configuration: TypeAlias = "tuple[Value, ...]"


@frozen(eq=False)
class Features:
    """Static numbers of each configuration, each column scaled to 0..1. Rows are configurations.

    ``coordinates`` place configurations so that near ones are alike; ``parameter_of`` says which parameter
    each of them is from, ``None`` for numbers that the user or a code object adds. ``products`` hold
    products and ratios of sizes.
    """

    coordinates: NDArray[np.float64]
    coordinate_names: tuple[str, ...]
    parameter_of: tuple[int | None, ...]
    products: NDArray[np.float64]
    product_names: tuple[str, ...]


@frozen(eq=False)
class SearchSpace:
    """All configurations that the constraints permit. ``default`` is the index of the usual one.

    ``given_features`` are columns by name that the user or a code object adds, one number for each
    configuration.
    """

    parameters: tuple[str, ...]
    configurations: tuple[Configuration, ...] = attrs.field(repr=False)
    default: int
    given_features: Mapping[str, tuple[float, ...]] = attrs.field(factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.configurations)

    def values(self, index: int) -> dict[str, Value]:
        """The configuration as a mapping from parameter to value."""
        return dict(zip(self.parameters, self.configurations[index], strict=True))

    def index_of(self, values: Mapping[str, Value]) -> int | None:
        """The configuration with these values, or ``None``."""
        return self._indices.get(tuple(values.get(name, "") for name in self.parameters))

    def levels(self, position: int) -> tuple[Value, ...]:
        """The distinct values of a parameter, in order; numbers by size."""
        values = dict.fromkeys(configuration[position] for configuration in self.configurations)
        if all(isinstance(value, (int, float)) for value in values):
            return tuple(sorted(values, key=float))
        return tuple(values)

    @cached_property
    def features(self) -> Features:
        """Numbers to learn from, worked out when first asked for."""
        return features_of(self)

    @cached_property
    def _indices(self) -> dict[Configuration, int]:
        return {configuration: index for index, configuration in enumerate(self.configurations)}


# Static numbers of configurations, which models learn from; nothing here was measured.
#
# GPUs work in powers of two: lanes of a wave, banks, cache lines, sizes of problems. Whether an integer is a
# power of two, and by which power it can be divided, often matters more than its size, so both are
# coordinates of their own where a parameter has values of both sorts.

#: From this ratio of largest to smallest value on, a parameter is looked at by its logarithm (chosen).
_LOGARITHMIC_RATIO = 4.0
#: More parameters would give more products than there are measurements to weigh them (chosen).
_MOST_FACTORS = 8


def features_of(space: SearchSpace) -> Features:
    """The features of every configuration, each column scaled to 0..1."""
    coordinates: list[tuple[str, int | None, _Column]] = []
    sizes: list[tuple[str, _Column]] = []
    for position, name in enumerate(space.parameters):
        values = [configuration[position] for configuration in space.configurations]
        levels = space.levels(position)
        if len(levels) < 2:
            continue
        coordinates += [(label, position, column) for label, column in _coordinates(name, values, levels)]
        if len(levels) > 2 and all(isinstance(level, (int, float)) and level > 0 for level in levels):
            sizes.append((name, np.asarray(values, np.float64)))
    given = [
        (name, _scaled_by_size(np.asarray(numbers, np.float64)))
        for name, numbers in space.given_features.items()
    ]
    coordinates += [(name, None, column) for name, column in given if np.ptp(column) > 0]
    products = [(name, column) for name, column in _products(sizes[:_MOST_FACTORS]) if np.ptp(column) > 0]
    return Features(
        _matrix([column for _, _, column in coordinates], len(space)),
        tuple(name for name, _, _ in coordinates),
        tuple(position for _, position, _ in coordinates),
        _matrix([column for _, column in products], len(space)),
        tuple(name for name, _ in products),
    )


def _coordinates(name: str, values: list[Value], levels: tuple[Value, ...]) -> Iterator[tuple[str, _Column]]:
    if not all(isinstance(level, (int, float)) for level in levels):
        # A choice among names has no order: each name but the first gets a column.
        for level in levels if len(levels) > 2 else levels[1:]:
            yield f"{name}={level}", np.asarray([value == level for value in values], np.float64)
        return
    column = np.asarray(values, np.float64)
    yield name, _scaled_by_size(column)
    if len(levels) > 2 and all(isinstance(level, int) and level >= 0 for level in levels):
        whole = np.asarray(values, np.int64)
        powers = (whole & (whole - 1)) == 0
        if not powers.all():
            # The exponent of the largest power of two that divides each number; 0 for 0.
            yield f"2-power in {name}", np.log2(np.maximum(whole & -whole, 1)).astype(np.float64)
            if powers.any():
                yield f"{name} is 2^n", powers.astype(np.float64)


def _scaled_by_size(column: _Column) -> _Column:
    smallest, largest = float(column.min()), float(column.max())
    if smallest > 0 and largest / smallest >= _LOGARITHMIC_RATIO:
        logarithm: _Column = np.log2(column)
        return logarithm
    return column


def _products(sizes: list[tuple[str, _Column]]) -> Iterator[tuple[str, _Column]]:
    """Products and ratios of sizes, as logarithms: threads of a block, work per thread, and the like."""
    for (left, a), (right, b) in combinations(sizes, 2):
        yield f"{left}*{right}", np.log2(a) + np.log2(b)
        yield f"{left}/{right}", np.log2(a) - np.log2(b)
    if len(sizes) > 2:
        yield "*".join(name for name, _ in sizes), np.sum([np.log2(column) for _, column in sizes], axis=0)


def _matrix(columns: list[_Column], rows: int) -> NDArray[np.float64]:
    if not columns:
        return np.zeros((rows, 0))
    matrix = np.stack(columns, axis=1)
    low = matrix.min(axis=0)
    scaled: NDArray[np.float64] = (matrix - low) / np.maximum(matrix.max(axis=0) - low, 1e-300)
    scaled.flags.writeable = False
    return scaled


# What a worker is asked to measure and what it answers: plain JSON, because workers are other processes.

TimeSource = Literal["profile", "wall", "printed"]
#: ``lost``: the device went away; everything else is about the configuration.
State = Literal["ok", "build_failed", "failed", "time_limit", "wrong", "no_time", "lost"]


class Timing(Part):
    """How an evaluation is timed; two evaluations can be compared only if this is the same.

    ``profile``: sum over all dispatches; ``wall``: the whole process; ``printed``: what ``pattern`` finds in
    the output, in ``unit_ms`` milliseconds.
    """

    source: TimeSource
    runs: int = Field(ge=1)
    pattern: str | None = None
    unit_ms: float = Field(gt=0, default=1.0)
    device: str | None = None  # device model that the recording must be of
    collector: str | None = None


class Variant(Part):
    """One configuration as commands. ``build`` is empty where nothing is built.

    ``{program}`` in a command stands for the built program.
    """

    index: int
    build: tuple[str, ...] = ()
    build_key: str | None = None
    command: tuple[str, ...]
    validate_command: tuple[str, ...] = ()


class PluginChoice(Part):
    """Which plugins a worker loads: those that the command was started with."""

    modules: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    config_file: str | None = None


class Job(Part):
    """Measure ``variants``: one configuration, or several ``in_turns`` to compare them, ``rounds`` times."""

    number: int
    variants: tuple[Variant, ...]
    timing: Timing
    in_turns: bool = False
    rounds: int = Field(ge=1, default=1)
    device: str | None = None  # where it must run; null: anywhere
    working_directory: str
    scratch: str  # builds and recordings go below
    time_limit_s: float = Field(gt=0)
    build_time_limit_s: float = Field(gt=0)
    plugins: PluginChoice = PluginChoice()
    keep: str | None = None  # a run directory of the first variant stays here


class Reading(Part):
    """What one variant gave. ``times_ms`` has one value per run, or per round."""

    index: int
    state: State
    times_ms: tuple[float, ...] = ()
    origin: OriginName | None = None
    reason: str | None = None
    binary: str | None = None  # digest of the program that ran

    def checked(self) -> Reading:
        """Itself, or a failure where what it calls a time can't be one: no program runs for 0 ms or less."""
        if self.state != "ok" or (self.times_ms and all(0 < time < math.inf for time in self.times_ms)):
            return self
        wrong = next((time for time in self.times_ms if not 0 < time < math.inf), None)
        reason = "it ran, and no time was given" if wrong is None else f"{wrong:g} ms is no time of a run"
        return self.model_copy(update={"state": "no_time", "times_ms": (), "reason": reason})


class Outcome(Part):
    """The answer to one job. ``device`` is where it ran."""

    number: int
    device: str
    readings: tuple[Reading, ...]
    wall_s: float = Field(ge=0, default=0.0)


# Strategies choose which configurations are measured next.


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
    generator = np.random.default_rng([seed, 7])
    return _spread_order(space.features.coordinates, np.arange(len(space)), generator, _HALVINGS)


#: 256 parts: more than a search draws (chosen: some ten milliseconds).
_HALVINGS = 8


def _spread_order(
    places: NDArray[np.float64], rows: NDArray[np.intp], generator: np.random.Generator, halvings: int
) -> NDArray[np.intp]:
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
