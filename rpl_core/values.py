"""``frozen``: immutable attrs values that cost little at start-up.

A run builds more than three hundred classes, and attrs compiles methods for each, a fifth of a short run.
Here all classes share one ``__eq__``, ``__hash__`` and ``__repr__``. Plain classes, whose fields are
annotations and constants (five of six), are not built by attrs at all: their ``__init__`` is one that was
compiled for their number of fields, with the names replaced, and attrs describes their fields when somebody
asks (``attrs.fields``, ``attrs.evolve``). All others are attrs' own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:  # for type checkers it is attrs' own
    from attrs import frozen as frozen
else:

    def frozen(cls: type | None = None, *, eq: bool = True, **options: Any) -> Any:
        """``attrs.frozen`` with the same meaning; ``eq=False`` compares by identity."""

        if cls is None:
            return partial(frozen, eq=eq, **options)
        if eq and "__eq__" not in vars(cls):
            cls.__eq__ = _equal
            if "__hash__" not in vars(cls) or cls.__hash__ is None:
                cls.__hash__ = _hash
        if "__repr__" not in vars(cls):
            cls.__repr__ = _repr
        if options.keys() <= {"kw_only"} and _is_plain(cls, **options):
            return _build_plain(cls, **options)
        return attrs.frozen(cls, eq=False, repr=False, **options)


@cache
def plain_fields(cls: Any) -> tuple[str, ...]:
    """Names of the fields of a plain class, all of which are compared and shown; of other classes none.

    To ask attrs for them costs as much as building the class with it.
    """
    described = (vars(base)["__attrs_attrs__"] for base in cls.__mro__ if "__attrs_attrs__" in vars(base))
    nearest = next(described, None)
    return nearest.names if isinstance(nearest, _Description) else ()


@cache
def _compared(cls: Any) -> Callable[[Any], Any]:
    names = plain_fields(cls) or [field.name for field in attrs.fields(cls) if field.eq]
    return attrgetter(*names) if names else lambda _: ()


def _equal(self: Any, other: Any) -> Any:
    compared = _compared(self.__class__)
    return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash((self.__class__, _compared(self.__class__)(self)))


def _repr(self: Any) -> str:
    names = plain_fields(self.__class__) or [f.name for f in attrs.fields(self.__class__) if f.repr]
    shown = (f"{name}={getattr(self, name)!r}" for name in names)
    return f"{self.__class__.__qualname__.rpartition('>.')[2]}({', '.join(shown)})"


# Plain classes, built as attrs would.

#: What attrs reads in a class and in those that it inherits from, and what it leaves alone in a class.
_READ = {"__attrs_attrs__", "__attrs_pre_init__", "__attrs_post_init__", "__attrs_init_subclass__"}
_LEFT_ALONE = {"__init__", "__slots__", "__match_args__", "__setattr__", "__delattr__"}
_LEFT_ALONE |= {"__getstate__", "__setstate__"}
_NEVER_PLAIN = _READ | _LEFT_ALONE
_OF_ATTRS: tuple[type, ...] = (type(attrs.field()), type(attrs.Factory(list)))
_CONSTANTS = {str, int, float, bool, tuple, dict, type(None)}


def _is_plain(cls: Any, kw_only: bool = False) -> bool:
    """Whether annotations and defaults say all about ``cls``, and nothing in it holds on to the class."""
    body, fields = vars(cls), cls.__annotations__
    if not _NEVER_PLAIN.isdisjoint(body) or any(map(_is_special, body.values())):
        return False
    for base in cls.__mro__[1:-1]:
        if base is BaseException or not _READ.isdisjoint(vars(base)) or vars(base).get("__slots__"):
            return False
    has_default = False
    for name, said in fields.items():
        if name.startswith("_") or "ClassVar" in str(said):
            return False
        if has_default and name not in body and not kw_only:
            return False  # attrs tells what is wrong with it
        has_default = name in body
    return True


def _is_special(value: Any) -> bool:
    """Whether attrs acts on ``value``, or a method holds on to its class, by ``super()`` or ``__class__``."""
    kind = type(value)
    if kind is FunctionType:
        return value.__closure__ is not None
    if kind in _CONSTANTS:
        return False
    function = getattr(value, "__func__", None) or getattr(value, "fget", None)
    return (
        isinstance(value, (cached_property, *_OF_ATTRS)) or getattr(function, "__closure__", None) is not None
    )


def _build_plain(cls: Any, kw_only: bool = False) -> Any:
    declared, fields = vars(cls), cls.__annotations__
    names = tuple(fields)
    body = {name: value for name, value in declared.items() if name not in fields}
    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    has_weakref = any("__weakref__" in vars(base) for base in cls.__mro__[1:])
    defaults = {name: declared[name] for name in names if name in declared}
    body |= _OF_FROZEN[kw_only] | {
        "__getstate__": _get_state,
        "__setstate__": _set_state,
        "__qualname__": cls.__qualname__,
        "__slots__": names if has_weakref else (*names, "__weakref__"),
        "__match_args__": () if kw_only else names,
        "__attrs_attrs__": _Description(cls.__name__, fields, defaults, kw_only),
    }
    body["__init__"] = init = FunctionType(_code_of_init(names, kw_only), _GLOBALS, "__init__")
    init.__defaults__, init.__kwdefaults__ = (None, defaults) if kw_only else (tuple(defaults.values()), None)
    init.__annotations__ = {"return": None, **fields}
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    return type(cls)(cls.__name__, cls.__bases__, body)


def _code_of_init(names: tuple[str, ...], kw_only: bool) -> CodeType:
    code = _compiled_init(len(names), kw_only)
    renamed = {f"_{number}": name for number, name in enumerate(names)}
    return code.replace(
        co_varnames=tuple(renamed.get(name, name) for name in code.co_varnames),
        co_consts=tuple(renamed.get(constant, constant) for constant in code.co_consts),
    )


@cache
def _compiled_init(count: int, kw_only: bool) -> CodeType:
    """Sets ``count`` fields that are called ``_0``, ``_1`` and so on."""
    names = [f"_{number}" for number in range(count)]
    parameters = ["self", *(["*"] if kw_only and names else []), *names]
    lines = [f"def __init__({', '.join(parameters)}):", " _set = _bind(self)"]
    made: dict[str, Any] = {}
    exec("\n".join([*lines, *(f" _set('{name}', {name})" for name in names)]), made)  # noqa: S102 - of numbers
    code: CodeType = made["__init__"].__code__
    return code


class _Description:
    """Stands as ``__attrs_attrs__``: what attrs says of such fields, once somebody asks."""

    def __init__(self, name: str, fields: dict[str, Any], defaults: dict[str, Any], kw_only: bool) -> None:
        self.names = tuple(fields)
        self._name, self._fields, self._defaults, self._kw_only = name, fields, defaults, kw_only

    def __get__(self, _instance: object, _class: type) -> Any:
        return self._described

    @cached_property
    def _described(self) -> Any:
        # Not of the class: what it inherits from (``__init_subclass__``) would hear of one more.
        stand_in = type(self._name, (), {"__annotations__": self._fields, **self._defaults})
        return attrs.fields(attrs.frozen(stand_in, eq=False, repr=False, kw_only=self._kw_only))


def _get_state(self: Any) -> dict[str, Any]:
    return {field.name: getattr(self, field.name) for field in attrs.fields(self.__class__)}


def _set_state(self: Any, state: dict[str, Any]) -> None:
    for field in attrs.fields(self.__class__):
        if field.name in state:
            object.__setattr__(self, field.name, state[field.name])


def _of_frozen(kw_only: bool) -> dict[str, Any]:
    """What refuses changes, and what attrs and Python (``copy.replace``) tell attrs' classes by."""
    made = vars(attrs.frozen(type("Frozen", (), {}), eq=False, repr=False, kw_only=kw_only))
    names = ("__setattr__", "__delattr__", "__replace__", "__attrs_props__")
    return {name: made[name] for name in names if name in made}  # the last two by version


_OF_FROZEN = {kw_only: _of_frozen(kw_only) for kw_only in (False, True)}
_GLOBALS = {"_bind": object.__setattr__.__get__}
