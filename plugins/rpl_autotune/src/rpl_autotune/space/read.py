"""From a space file to the list of its configurations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
from pydantic import ValidationError

from rpl_autotune.contracts.space_file import SpaceFile
from rpl_autotune.interfaces.space import SearchSpace
from rpl_autotune.space.expressions import Expression, parse_expression
from rpl_autotune.space.possible import Possibilities
from rpl_autotune.space.t1 import t1_description
from rpl_core.errors import BadDataError, UsageError
from rpl_core.files.bounded import parse_json, read_regular

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_autotune.contracts.space_file import SpaceDescription
    from rpl_autotune.interfaces.space import Configuration, Value

#: A model predicts every configuration, so all are held at once (chosen: some hundred MB).
MOST_CONFIGURATIONS = 500_000
#: Partial configurations that are looked at before a space is given up (chosen: some ten seconds).
_MOST_STEPS = 3_000_000
#: After so many questions, a kind of which not one in ``_WORTH`` prunes is asked once in as many (chosen).
_TRIES, _WORTH = 64, 16
#: So many combinations of two values are looked at while one step is made (measured: 2.5 µs, 0.1 µs).
_PAIRS_PER_STEP = 25
_MOST_BYTES = 256 << 20


def read_space(path: Path, default: Mapping[str, str] | None = None) -> SearchSpace:
    """The space in ``path``; ``default`` (from the command line) goes before the file's own.

    Raises ``MissingError`` without the file and ``BadDataError`` for one that can't be used.
    """
    return space_of(_description(path), default, str(path))


def _description(path: Path) -> SpaceDescription:
    content = parse_json(read_regular(path, _MOST_BYTES), path)
    if isinstance(content, dict) and "ConfigurationSpace" in content:
        return t1_description(content, str(path))
    try:
        return SpaceFile.model_validate(content).description
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_input=False)
        # Of all forms that a value may have, what is wrong with the one that it has says most.
        meant = [one for one in mistakes if not one["type"].endswith("_type")] or mistakes
        worst = max(meant, key=lambda one: len(one["loc"]))
        place = ".".join(str(part) for part in worst["loc"] if "[" not in str(part)) or "the whole file"
        raise BadDataError(
            f"{path} is no space file: {place}: {worst['msg']}",
            next_step="see `rpl schema search-space` and `rpl docs autotune`",
        ) from None


def space_of(
    description: SpaceDescription, default: Mapping[str, str] | None = None, where: str = "the space"
) -> SearchSpace:
    """All permitted configurations of ``description``, in its own order."""
    if description.configurations is not None:
        parameters, rows = _listed(description, where)
    else:
        parameters, rows = _enumerated(description, where)
    if len(rows) < 2:
        raise BadDataError(
            f"{where} holds {len(rows)} permitted configuration{'' if len(rows) == 1 else 's'}: "
            "there is nothing to choose from",
            cause="the constraints leave nothing" if description.constraints else None,
        )
    space = SearchSpace(parameters, tuple(rows), 0)
    return attrs.evolve(
        space,
        default=_default_index(space, description, default, where),
        given_features=_feature_columns(space, description),
    )


def _listed(description: SpaceDescription, where: str) -> tuple[tuple[str, ...], list[Configuration]]:
    configurations = description.configurations or ()
    parameters = tuple(configurations[0]) if configurations else ()
    for number, configuration in enumerate(configurations, 1):
        if set(configuration) != set(parameters):
            raise BadDataError(
                f"{where}: configuration {number} has other parameters than the first one",
                next_step="name the same parameters in each",
            )
    if len(configurations) > MOST_CONFIGURATIONS:
        raise _too_many(where)
    constraints = _constraints(description, parameters)
    rows = (tuple(configuration[name] for name in parameters) for configuration in configurations)
    kept = [row for row in rows if _holds(constraints, dict(zip(parameters, row, strict=True)))]
    return parameters, list(dict.fromkeys(kept))


def _constraints(description: SpaceDescription, parameters: Sequence[str]) -> list[Expression]:
    return [parse_expression(text, frozenset(parameters)) for text in description.constraints]


def _holds(constraints: Sequence[Expression], values: Mapping[str, Value]) -> bool:
    return all(constraint.value(values) for constraint in constraints)


def _enumerated(description: SpaceDescription, where: str) -> tuple[tuple[str, ...], list[Configuration]]:
    choices = description.parameters or {}
    for name, values in choices.items():
        if not values:
            raise BadDataError(f"{where}: the parameter {name!r} has no values")
    parameters = tuple(choices)
    constraints = _constraints(description, parameters)
    if any(not constraint.names and not constraint.value({}) for constraint in constraints):
        return parameters, []
    distinct = {name: tuple(dict.fromkeys(values)) for name, values in choices.items()}
    return parameters, _Walk(distinct, [c for c in constraints if c.names], where).rows()


class _Walk:
    """All permitted combinations of ``choices``, depth first.

    Parameters are set in an order in which constraints are known soon. A constraint that has all its
    parameters is tested; one that lacks some is asked whether it can still hold.
    """

    def __init__(
        self, choices: Mapping[str, tuple[Value, ...]], constraints: Sequence[Expression], where: str
    ) -> None:
        self._where = where
        self._constraints = constraints
        self._given = choices
        self._order = _order(choices, constraints)
        self._choices = self._without_hopeless()
        ranks = {name: rank for rank, name in enumerate(self._order)}
        self._complete: list[list[Expression]] = [[] for _ in self._order]
        self._open: list[list[_Question]] = [[] for _ in self._order]
        for constraint in constraints:
            *before, last = sorted(ranks[name] for name in constraint.names)
            self._complete[last].append(constraint)
            for rank in before:
                known = self._order[: rank + 1]
                self._open[rank].append(_Question(Possibilities(constraint.text, self._choices, known)))
        self._steps = self._asking = 0

    def _without_hopeless(self) -> dict[str, tuple[Value, ...]]:
        """The values with which every constraint alone can still hold."""
        kept = dict(self._given)
        for constraint in self._constraints:
            for name in constraint.names:
                alone = Possibilities(constraint.text, kept, (name,))
                kept[name] = tuple(value for value in kept[name] if alone.can_hold({name: value}))
                if not kept[name]:
                    return dict.fromkeys(kept, ())
        return kept

    def rows(self) -> list[Configuration]:
        """In the order of the parameters and values as they are given."""
        found: list[Configuration] = []
        self._below({}, 0, found)
        places = [{value: n for n, value in enumerate(values)} for values in self._given.values()]
        if self._order != list(self._given):
            found.sort(key=lambda row: [place[value] for place, value in zip(places, row, strict=True)])
        return found

    def _work(self) -> int:
        """What questions have cost, in steps; looked up now and then."""
        if self._steps % 1024 == 0:
            asked = (question for questions in self._open for question in questions)
            self._asking = sum(question.work for question in asked) // _PAIRS_PER_STEP
        return self._asking

    def _below(self, values: dict[str, Value], depth: int, found: list[Configuration]) -> None:
        if depth == len(self._order):
            if len(found) >= MOST_CONFIGURATIONS:
                raise _too_many(self._where)
            found.append(tuple(values[name] for name in self._given))
            return
        name, complete, questions = self._order[depth], self._complete[depth], self._open[depth]
        for value in self._choices[name]:
            self._steps += 1
            if self._steps + self._work() > _MOST_STEPS:
                raise BadDataError(
                    f"{self._where} has too many combinations to look at",
                    cause="its constraints tell only with nearly all parameters what they forbid",
                    next_step="write constraints that need few parameters each, or list the configurations",
                )
            values[name] = value
            if all(constraint.value(values) for constraint in complete) and all(
                question.can_hold(values) for question in questions
            ):
                self._below(values, depth + 1, found)
        values.pop(name, None)


class _Question:
    """Asks what is possible as long as that prunes: else it costs more than it saves."""

    def __init__(self, possible: Possibilities) -> None:
        self._possible = possible
        self._asked = self._pruned = self._passed = self.work = 0

    def can_hold(self, values: Mapping[str, Value]) -> bool:
        if self._asked >= _TRIES and self._pruned * _WORTH < self._asked:
            self._passed += 1
            if self._passed % _WORTH:
                return True
        self._asked += 1
        can = self._possible.can_hold(values)
        self.work = self._possible.work
        self._pruned += not can
        return can


def _order(choices: Mapping[str, tuple[Value, ...]], constraints: Sequence[Expression]) -> list[str]:
    """Next is always what leaves the fewest parameters of some constraint open, then what has few values."""
    left, order = list(choices), list[str]()
    while left:
        missing = [constraint.names - set(order) for constraint in constraints]

        def rank(name: str, missing: Sequence[frozenset[str]] = missing) -> tuple[float, int, int]:
            sizes = [len(names) for names in missing if name in names]
            return min(sizes, default=math.inf), -len(sizes), len(choices[name])

        order.append(min(left, key=rank))
        left.remove(order[-1])
    return order


def _too_many(where: str) -> BadDataError:
    return BadDataError(
        f"{where} has more than {MOST_CONFIGURATIONS:,} permitted configurations",
        next_step="add constraints, or fewer values",
    )


def _default_index(
    space: SearchSpace, description: SpaceDescription, given: Mapping[str, str] | None, where: str
) -> int:
    if given is not None:
        return _given_index(space, given)
    if description.default is None:
        return 0
    index = space.index_of(description.default) if set(description.default) == set(space.parameters) else None
    if index is None:
        raise BadDataError(
            f"{where}: the default is none of its permitted configurations",
            next_step="name every parameter with one of its values, as the constraints permit",
        )
    return index


def _given_index(space: SearchSpace, given: Mapping[str, str]) -> int:
    """The configuration that ``--default`` names; values are compared as text."""
    unknown = set(given) ^ set(space.parameters)
    if unknown:
        raise UsageError(
            f"--default must name each parameter once, and {sorted(unknown)[0]!r} is not so",
            next_step=f"the parameters are {', '.join(space.parameters)}",
        )
    wanted = tuple(given[name] for name in space.parameters)
    for index, configuration in enumerate(space.configurations):
        if tuple(map(str, configuration)) == wanted:
            return index
    raise UsageError("--default is none of the permitted configurations of the space")


def _feature_columns(space: SearchSpace, description: SpaceDescription) -> dict[str, tuple[float, ...]]:
    columns = {}
    for name, text in description.features.items():
        expression = parse_expression(text, frozenset(space.parameters))
        values = [expression.value(space.values(index)) for index in range(len(space))]
        if not all(isinstance(value, (bool, int, float)) for value in values):
            raise BadDataError(f"the feature {name!r} is not a number for every configuration")
        columns[name] = tuple(float(value) for value in values)
    return columns
