"""From a space file to the list of its configurations, also from T1, the format that autotuners share."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from pydantic import ValidationError

from rpl_autotune.contracts import SpaceDescription, SpaceFile
from rpl_autotune.interfaces import Configuration, SearchSpace, Value
from rpl_autotune.space import Expression, ExpressionError, Possibilities, compiled, parse_expression
from rpl_core.errors import BadDataError, UsageError
from rpl_core.files import parse_json, read_regular

#: Values of one parameter (chosen: far more than anybody writes).
_MOST_VALUES = 10_000
_MOST_CHARACTERS = 20_000
_TYPES: Mapping[str, type] = {"int": int, "uint": int, "float": float, "bool": bool, "string": str}
_NAMED: Mapping[str, bool] = {"true": True, "false": False, "True": True, "False": False}


def t1_description(content: Mapping[str, Any], where: str) -> SpaceDescription:
    """The space of a T1 file. Raises ``BadDataError`` with the place of what can't be used.

    A default that T1's conditions forbid is left out: tuners that read T1 don't test it.
    """
    space = content["ConfigurationSpace"]
    if not isinstance(space, dict) or not isinstance(space.get("TuningParameters"), list):
        raise BadDataError(f"{where} is no T1 file: ConfigurationSpace has no list TuningParameters")
    parameters: dict[str, tuple[Value, ...]] = {}
    default: dict[str, Value] = {}
    for number, entry in enumerate(space["TuningParameters"]):
        place = f"{where}: ConfigurationSpace.TuningParameters[{number}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("Name"), str):
            raise BadDataError(f"{place} has no Name")
        name, kind = entry["Name"], _TYPES.get(str(entry.get("Type")))
        if name in parameters:
            raise BadDataError(f"{place} names {name!r} a second time")
        if kind is None:
            raise BadDataError(f"{place}.Type is none of {', '.join(_TYPES)}")
        try:
            values = _values(entry.get("Values"))
        except ExpressionError as error:
            raise BadDataError(f"{place}.Values: {error}") from None
        parameters[name] = tuple(_of_kind(value, kind, f"{place}.Values") for value in values)
        usual = entry.get("Default")
        usual = usual[0] if isinstance(usual, list) and len(usual) == 1 else usual
        if isinstance(usual, (bool, int, float, str)):
            default[name] = _of_kind(usual, kind, f"{place}.Default")
    constraints = tuple(_conditions(space.get("Conditions"), where))
    try:
        found = SpaceDescription(parameters=parameters, constraints=constraints)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[-1]
        raise BadDataError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if not _is_permitted(default, parameters, constraints):
        return found
    return found.model_copy(update={"default": default})


def _is_permitted(
    default: Mapping[str, Value], parameters: Mapping[str, Sequence[Value]], constraints: Sequence[str]
) -> bool:
    if default.keys() != parameters.keys() or any(default[n] not in parameters[n] for n in parameters):
        return False
    names = frozenset(parameters)
    return all(parse_expression(constraint, names).value(default) for constraint in constraints)


def _conditions(given: Any, where: str) -> list[str]:
    """T1 writes conditions in the language of the tuner: C's ``&&`` and ``||`` are those of Python here."""
    if given is None:
        return []
    if not isinstance(given, list):
        raise BadDataError(f"{where}: ConfigurationSpace.Conditions is no list")
    texts = []
    for number, condition in enumerate(given):
        text = condition.get("Expression") if isinstance(condition, dict) else None
        if not isinstance(text, str):
            raise BadDataError(f"{where}: ConfigurationSpace.Conditions[{number}] has no Expression")
        texts.append(text.replace("&&", " and ").replace("||", " or "))
    return texts


def _values(given: Any) -> list[Value]:
    if isinstance(given, list):
        return given
    if not isinstance(given, str) or len(given) > _MOST_CHARACTERS:
        raise ExpressionError("they are no text of a bearable length")
    try:
        tree = ast.parse(given.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"{given!r:.80} is no list") from None
    return _list(tree, given, {}, 0)


def _list(node: ast.expr, text: str, bound: Mapping[str, Any], depth: int) -> list[Any]:
    found: list[Any]
    if depth > 20:
        raise ExpressionError(f"{text!r:.80} is nested too deeply")
    if isinstance(node, (ast.List, ast.Tuple)):
        found = [_scalar(item, text, bound) for item in node.elts]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        found = _list(node.left, text, bound, depth + 1) + _list(node.right, text, bound, depth + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        found = _called(node.func.id, node.args, text, bound, depth)
    elif isinstance(node, ast.ListComp) and len(node.generators) == 1:
        found = _comprehension(node, text, bound, depth)
    else:
        raise ExpressionError(f"{text!r:.80} holds {ast.unparse(node)!r:.80}, which makes no list here")
    if len(found) > _MOST_VALUES:
        raise ExpressionError(f"{text!r:.80} gives more than {_MOST_VALUES} values")
    return found


def _called(name: str, given: list[ast.expr], text: str, bound: Mapping[str, Any], depth: int) -> list[Any]:
    if name == "list" and len(given) == 1:
        return _list(given[0], text, bound, depth + 1)
    if name == "range" and 1 <= len(given) <= 3:
        numbers = [_scalar(item, text, bound) for item in given]
        if all(isinstance(number, int) for number in numbers) and (len(numbers) < 3 or numbers[2] != 0):
            return list(range(*numbers)[: _MOST_VALUES + 1])
    raise ExpressionError(f"{text!r:.80} calls {name!r:.40}; list and range of whole numbers are known")


def _comprehension(node: ast.ListComp, text: str, bound: Mapping[str, Any], depth: int) -> list[Any]:
    loop = node.generators[0]
    if not isinstance(loop.target, ast.Name):
        raise ExpressionError(f"{text!r:.80} has a loop over more than one name")
    turns = [{**bound, loop.target.id: item} for item in _list(loop.iter, text, bound, depth + 1)]
    return [
        _scalar(node.elt, text, turn)
        for turn in turns
        if all(_scalar(condition, text, turn) for condition in loop.ifs)
    ]


def _scalar(node: ast.expr, text: str, bound: Mapping[str, Any]) -> Any:
    known = {**_NAMED, **bound}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id not in known:
            raise ExpressionError(f"{text!r:.80} uses {inner.id!r:.40}, which is no value")
    try:
        return compiled(node, text)(known)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise ExpressionError(f"{text!r:.80} has no value: {error}") from None


def _of_kind(value: Any, kind: type, place: str) -> Value:
    """``value`` as its type says: whole numbers are fractions too, and 0 and 1 truth values."""
    if kind is bool and value in (0, 1) and not isinstance(value, str):
        return bool(value)
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if abs(value) < 1e300 else value
    if isinstance(value, kind) and (kind is bool) == isinstance(value, bool):
        assert isinstance(value, (int, float, str))
        return value
    raise BadDataError(f"{place} holds {value!r:.60}, which is no {kind.__name__}")


# From a space file to the list of its configurations.

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
        meant = [mistake for mistake in mistakes if not mistake["type"].endswith("_type")] or mistakes
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
    columns = {}
    for name, text in description.features.items():
        expression = parse_expression(text, frozenset(space.parameters))
        values = [expression.value(space.values(index)) for index in range(len(space))]
        if not all(isinstance(value, (bool, int, float)) for value in values):
            raise BadDataError(f"the feature {name!r} is not a number for every configuration")
        columns[name] = tuple(float(value) for value in values)
    return attrs.evolve(
        space,
        default=_default_index(space, description, default, where),
        given_features=columns,
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
    allowed = []
    for row in dict.fromkeys(rows):
        values = dict(zip(parameters, row, strict=True))
        if all(constraint.value(values) for constraint in constraints):
            allowed.append(row)
    return parameters, allowed


def _constraints(description: SpaceDescription, parameters: Sequence[str]) -> list[Expression]:
    return [parse_expression(text, frozenset(parameters)) for text in description.constraints]


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
