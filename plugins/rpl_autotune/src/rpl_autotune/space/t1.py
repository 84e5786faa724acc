"""T1, the input format that autotuners share: its configuration space as one of ours.

Read by its schema (docs/reference/autotuning-files.md). Values are texts such as ``[1, 2, 4]``,
``list(range(32, 1025, 32))`` or ``[2**i for i in range(6)]``: lists are put together here, the numbers in
them are expressions of space files, and nothing else is evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rpl_autotune.contracts.space_file import SpaceDescription
from rpl_autotune.space.expressions import ExpressionError, compiled, parse_expression
from rpl_core.errors import BadDataError

if TYPE_CHECKING:
    from rpl_autotune.interfaces.space import Value

__all__ = ["t1_description"]

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
