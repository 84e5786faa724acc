"""From a space file to the list of its configurations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
from pydantic import ValidationError

from rpl_autotune.contracts.space_file import SpaceFile
from rpl_autotune.interfaces.space import SearchSpace
from rpl_autotune.space.expressions import Expression, parse_expression
from rpl_core.errors import BadDataError, MissingError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_autotune.contracts.space_file import SpaceDescription
    from rpl_autotune.interfaces.space import Configuration, Value

#: A model predicts every configuration, so all are held at once (chosen: some hundred MB).
MOST_CONFIGURATIONS = 500_000
#: Partial configurations that are looked at before constraints are said to come too late (chosen).
_MOST_STEPS = 20_000_000
_MOST_BYTES = 256 << 20


def read_space(path: Path, default: Mapping[str, str] | None = None) -> SearchSpace:
    """The space in ``path``; ``default`` (from the command line) goes before the file's own.

    Raises ``MissingError`` without the file and ``BadDataError`` for one that can't be used.
    """
    return space_of(_description(path), default, str(path))


def _description(path: Path) -> SpaceDescription:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadDataError(f"{path} is larger than 256 MiB: no space file")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise MissingError(f"{path} can't be read: {error.strerror}", next_step="check the path") from None
    except (ValueError, RecursionError) as error:
        raise BadDataError(f"{path} is not valid JSON: {error}") from None
    try:
        return SpaceFile.model_validate(content).description
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[-1]
        place = ".".join(map(str, first["loc"])) or "the whole file"
        raise BadDataError(
            f"{path} is no space file: {place}: {first['msg']}",
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
    ready = [
        [c for c in constraints if c.names <= set(parameters[: n + 1]) and not c.names <= set(parameters[:n])]
        for n in range(len(parameters))
    ]
    if any(not c.names and not c.value({}) for c in constraints):
        return parameters, []
    walk = _Walk(parameters, [tuple(dict.fromkeys(choices[name])) for name in parameters], ready, where)
    return parameters, list(walk.rows())


@attrs.define
class _Walk:
    """All combinations, each constraint tested as soon as its parameters are set."""

    parameters: tuple[str, ...]
    choices: list[tuple[Value, ...]]
    ready: list[list[Expression]]
    where: str
    steps: int = 0
    found: int = 0

    def rows(self) -> Iterator[Configuration]:
        yield from self._below({}, 0)

    def _below(self, values: dict[str, Value], depth: int) -> Iterator[Configuration]:
        if depth == len(self.parameters):
            self.found += 1
            if self.found > MOST_CONFIGURATIONS:
                raise _too_many(self.where)
            yield tuple(values.values())
            return
        name = self.parameters[depth]
        for value in self.choices[depth]:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise BadDataError(
                    f"{self.where} has too many combinations to look at",
                    cause="its constraints need parameters that stand late",
                    next_step="put parameters that are constrained together first",
                )
            values[name] = value
            if _holds(self.ready[depth], values):
                yield from self._below(values, depth + 1)
        values.pop(name, None)


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
