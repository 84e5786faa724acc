"""Check values that plugins return against the annotations of their classes.

Plugins are checked at the boundary, so that a wrong value names its plugin instead of breaking what uses it
later. What annotations say is checked: attrs classes field by field, containers item by item (of large
ones the first items), numpy columns by type; and what a class itself calls ``impossible()``.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import cache
from itertools import islice
from math import isfinite
from typing import Any, TypeVar, Union, get_args, get_origin
from weakref import WeakValueDictionary

import attrs

T = TypeVar("T")

_MOST_ITEMS = 1000
_DEEPEST = 12
_ABSENT = object()


def value_violation(value: object) -> str | None:
    """What contradicts the annotations of an attrs value, as one phrase; ``None`` for anything else."""
    return _fields_violation(value, 0)


def attribute_violation(value: object, interface: type[Any]) -> str | None:
    """What contradicts the attributes that an interface declares, as far as ``value`` has them."""
    owner: Any = interface
    return _hinted_violation(value, _class_hints(owner), 1)


def require_value(value: object, expected: type[T]) -> T:
    """``value`` where it is a sound ``expected``. Raises ``TypeError`` saying what is wrong."""
    if not isinstance(value, expected):
        raise TypeError(f"{expected.__name__} was expected, not {type(value).__name__}")
    problem = value_violation(value)
    if problem is not None:
        raise TypeError(f"{expected.__name__}: {problem}")
    return value


#: Values that were found sound, by identity: what several contributions share is looked at once.
_sound: WeakValueDictionary[int, Any] = WeakValueDictionary()


def _fields_violation(value: Any, depth: int) -> str | None:
    owner: Any = type(value)
    hints = _hints(owner)
    if not hints or _sound.get(id(value)) is value:
        return None
    problem = _hinted_violation(value, hints, depth + 1)
    if problem is None and hasattr(owner, "impossible"):
        problem = value.impossible()
    if problem is None:
        with suppress(TypeError):  # a class may allow no weak references
            _sound[id(value)] = value  # attrs values are frozen here, so they stay sound
    return problem


def _hinted_violation(value: Any, hints: Mapping[str, Any], depth: int) -> str | None:
    for name, hint in hints.items():
        if type(part := getattr(value, name, _ABSENT)) is float and not isfinite(part):
            return f"{name} is {part}, which is no finite figure"
        if type(part) in _at_once(hint) or part is _ABSENT:
            continue
        problem = _violation(part, hint, depth)
        if problem is not None:
            return f"{name} {problem}" if problem.startswith(("is ", "holds ")) else f"{name}.{problem}"
    return None


@cache
def _hints(owner: Any) -> Mapping[str, Any]:
    """The annotations of an attrs class; of anything else none."""
    if not attrs.has(owner):
        return {}
    hints = _class_hints(owner)
    return {field.name: hints[field.name] for field in attrs.fields(owner) if field.name in hints}


@cache
def _class_hints(owner: Any) -> Mapping[str, Any]:
    """The annotations of a class and its bases; a name that exists for type checkers only costs its own.

    ``typing.get_type_hints`` compiles each annotation of each class, a tenth of a short run; most are alike.
    """
    hints = dict[str, Any]()
    for base in reversed(owner.__mro__):
        module = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
        for name, written in vars(base).get("__annotations__", {}).items():
            with suppress(NameError, TypeError, AttributeError, SyntaxError):
                hints[name] = _evaluated(written, module) if isinstance(written, str) else written
    return hints


def _evaluated(annotation: str, module: dict[str, Any]) -> Any:
    return eval(_code(annotation), module, _names())  # noqa: S307 - the plugin's own code, already imported


@cache
def _code(annotation: str) -> types.CodeType:
    return compile(annotation, "<annotation>", "eval")


class _Column:
    """Stands for an annotation such as ``Int64Column``, which exists for type checkers only."""

    dtype: str


@cache
def _names() -> dict[str, Any]:
    """What annotations of the model may name without importing it at run time."""
    dtypes = {"Int32": "int32", "Int64": "int64", "UInt64": "uint64", "Float64": "float64", "Bool": "bool"}
    columns = {f"{n}Column": type(f"{n}Column", (_Column,), {"dtype": d}) for n, d in dtypes.items()}
    return {"Mapping": Mapping, "Any": Any, "Sequence": Sequence, "Callable": Callable, **columns}


@cache
def _at_once(hint: Any) -> frozenset[type[Any]]:
    """Classes of values that need no second look: those of nearly all fields."""
    if hint is None or hint is float:
        return frozenset({int, float} if hint is float else {type(None)})
    if get_origin(hint) in (Union, types.UnionType):
        return frozenset().union(*map(_at_once, get_args(hint)))
    plain = isinstance(hint, type) and get_origin(hint) is None and not attrs.has(hint)
    return frozenset({hint} if plain and not issubclass(hint, _Column) else ())


def _violation(value: object, hint: Any, depth: int) -> str | None:
    if type(value) in _at_once(hint):
        return None
    if hint is Any or isinstance(hint, TypeVar) or depth > _DEEPEST:
        return None
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _choice_violation(value, get_args(hint), depth)
    if origin is not None:
        return _container_violation(value, origin, get_args(hint), depth)
    if hint is None or hint is type(None):
        return None if value is None else _wrong(value, "None")
    if not isinstance(hint, type):
        return None
    if issubclass(hint, _Column):
        return _column_violation(value, hint.dtype)
    return _plain_violation(value, hint, depth)


def _choice_violation(value: object, choices: tuple[Any, ...], depth: int) -> str | None:
    problems: list[str] = []
    for choice in choices:
        problem = _violation(value, choice, depth)
        if problem is None:
            return None
        problems.append(problem)
    return problems[-1] if value else problems[0]


def _plain_violation(value: object, hint: type[Any], depth: int) -> str | None:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return None  # an int is as good as a float, as for type checkers
    if not isinstance(value, hint) or (isinstance(value, bool) and hint in (int, float)):
        return _wrong(value, hint.__name__)
    return _fields_violation(value, depth)


def _container_violation(value: object, origin: Any, arguments: tuple[Any, ...], depth: int) -> str | None:
    if not isinstance(origin, type):
        return None
    if origin is Callable or not isinstance(value, origin):
        return None if callable(value) and origin is Callable else _wrong(value, origin.__name__.lower())
    if isinstance(value, Mapping) and len(arguments) == 2:
        return _first(
            _violation(part, hint, depth + 1)
            for pair in islice(value.items(), _MOST_ITEMS)
            for part, hint in zip(pair, arguments, strict=True)
        )
    if isinstance(value, tuple) and arguments and arguments[-1] is not Ellipsis:
        if len(value) != len(arguments):
            return f"is a tuple of {len(value)} where {len(arguments)} were expected"
        return _first(_violation(v, h, depth + 1) for v, h in zip(value, arguments, strict=True))
    if isinstance(value, (tuple, list, AbstractSet)) and arguments:
        at_once = _at_once(arguments[0])
        left = (item for item in islice(value, _MOST_ITEMS) if type(item) not in at_once)
        return _first(_violation(item, arguments[0], depth + 1) for item in left)
    return None


def _first(problems: Iterable[str | None]) -> str | None:
    problem = next((problem for problem in problems if problem is not None), None)
    if problem is None:
        return None
    return problem.replace("is ", "holds ", 1) if problem.startswith("is ") else f"holds a wrong {problem}"


def _column_violation(value: object, dtype: str) -> str | None:
    found = getattr(value, "dtype", None)
    if found is None or hasattr(value, "mask"):
        return _wrong(value, f"a column of {dtype}")
    narrower = found.kind in "iu" and dtype.startswith({"i": "int", "u": "uint"}[found.kind])
    if found == dtype or (narrower and found.itemsize * 8 <= int(dtype.lstrip("uint"))):
        return None  # columns of small integers may be kept narrow
    return f"is a column of {found} where {dtype} was expected"


def _wrong(value: object, expected: str) -> str:
    return f"is {type(value).__name__} where {expected} was expected"
