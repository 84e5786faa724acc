"""Records: values that stand in a document as they are, declared once.

A record is a frozen value inside, and its declaration gives the pydantic model too, which is made only where
somebody looks at a contract: ``RanksPart | None`` as the type of a model's field is enough. A document is
written from the values (``plain_values``). Importing a record costs what importing a frozen value costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache, reduce
from math import isinf
from operator import or_
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import attrs

from rpl_core.documents import Draft
from rpl_core.values import frozen

if TYPE_CHECKING:
    from attrs import frozen as record

__all__ = ["INSIDE", "OR_EMPTY", "OR_NULL", "OR_ZERO", "Limited", "contract_of", "plain_values", "record"]

T = TypeVar("T")

#: ``attrs.field(metadata=...)``: what a document may lack, and how that reads then.
OR_NULL: Mapping[str, Any] = {"absent": None}
OR_ZERO: Mapping[str, Any] = {"absent": 0}
OR_EMPTY: Mapping[str, Any] = {"absent": ()}
#: ... and what no document holds.
INSIDE: Mapping[str, Any] = {"inside": True}


class Limited:
    """In ``Annotated``: limits that contracts hold, such as ``Limited(ge=0, le=1)`` or a ``pattern``."""

    def __init__(self, **limits: Any) -> None:
        self._limits = limits

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), **self._limits}


if not TYPE_CHECKING:  # for type checkers it is attrs' frozen

    @classmethod
    def _core_schema(cls: type, _source: Any, handler: Any) -> Any:
        return handler.generate_schema(contract_of(cls))

    def record(cls: type | None = None, **options: Any) -> Any:
        """``frozen``, and known to pydantic by its declaration."""

        def decorate(cls: type) -> type:
            cls.__get_pydantic_core_schema__ = _core_schema
            return frozen(cls, **options)

        return decorate if cls is None else decorate(cls)


@cache
def contract_of(value: type[T]) -> type[T]:
    """The model of a record, called like it and with its docstring; enums are written as their values."""
    from typing import get_type_hints

    from pydantic import create_model

    from rpl_core.contracts.common import Part

    kind: Any = value
    hints, fields = get_type_hints(kind, include_extras=True), attrs.fields_dict(kind)
    own: dict[str, Any] = {n: (_written(hints[n]), _default(fields[n])) for n in _names(kind) or ()}
    model: Any = create_model(value.__name__, __base__=Part, __doc__=value.__doc__, **own)
    return cast("type[T]", model)  # with the same fields


def _written(hint: Any) -> Any:
    """A type as documents hold it."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Literal[tuple(member.value for member in hint)]
    origin, parts = get_origin(hint), tuple(map(_written, get_args(hint)))
    if origin in (None, Literal, Annotated):
        return hint
    if origin in (Union, UnionType):
        return reduce(or_, parts)
    return (dict if origin is Mapping else origin)[parts]


def _default(field: Any) -> Any:
    default = field.metadata.get("absent", ...) if field.default is attrs.NOTHING else field.default
    kind: Any = type(default)
    return contract_of(kind).model_validate(default) if attrs.has(kind) else default


def plain_values(value: Any) -> Any:
    """Frozen values as contracts take them: drafts and tuples; an infinite factor becomes null."""
    kind: Any = type(value)
    names = _names(kind)
    if names is not None:
        return Draft({name: plain_values(getattr(value, name)) for name in names})
    if isinstance(value, tuple):
        return tuple(plain_values(item) for item in value)
    if isinstance(value, float):
        return None if isinf(value) else value
    return value.value if isinstance(value, Enum) else value


@cache
def _names(kind: Any) -> tuple[str, ...] | None:
    """The fields that documents hold; ``None`` for what is no value with fields."""
    if not attrs.has(kind):
        return None
    return tuple(field.name for field in attrs.fields(kind) if not field.metadata.get("inside"))
