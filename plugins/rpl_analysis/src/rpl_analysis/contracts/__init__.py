"""Records: values that stand in a document as they are, declared once.

A record is a frozen value inside, and its declaration gives the pydantic model too, which is made only where
somebody looks at a contract: ``RanksPart | None`` as the type of a model's field is enough. A document is
written from the values (``plain_values``). Importing a record costs what importing a frozen value costs.

A figure of the core (``Metric``) may be a field: it stands in documents as ``MetricDoc``. The model of a
whole document is named beside its record, and made when that name is looked up: making models costs a process
more than analysing 100 000 dispatches, and only who reads documents back needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache, partial, reduce
from math import isinf
from operator import or_
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import attrs

from rpl_core.model.metric import Metric
from rpl_core.values import frozen, plain_fields

if TYPE_CHECKING:
    from attrs import frozen as record

__all__ = [
    "INSIDE",
    "OR_EMPTY",
    "OR_NULL",
    "OR_ZERO",
    "Limited",
    "SchemaVersion",
    "contract_of",
    "document_of",
    "plain_values",
    "record",
]

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


#: Of documents that stand outside the envelope of an analysis.
SchemaVersion = Annotated[str, Limited(pattern=r"^1\.[0-9]+$")]


if not TYPE_CHECKING:  # for type checkers it is attrs' frozen

    @classmethod
    def _core_schema(cls: type, _source: Any, handler: Any) -> Any:
        return handler.generate_schema(contract_of(cls))

    def record(cls: type | None = None, **options: Any) -> Any:
        """``frozen``, and known to pydantic by its declaration."""

        if cls is None:
            return partial(record, **options)
        cls.__get_pydantic_core_schema__ = _core_schema
        return frozen(cls, **options)


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


@cache
def document_of(value: type[T], name: str, *, in_envelope: bool = True) -> type[T]:
    """The model ``name`` of a document: what the record says, in the envelope of an analysis by default."""
    from pydantic import create_model

    from rpl_core.contracts.common import Document

    record: Any = value
    bases = (contract_of(record), Document) if in_envelope else (contract_of(record),)
    model: Any = create_model(name, __base__=bases, __doc__=value.__doc__)
    return cast("type[T]", model)


def _written(hint: Any) -> Any:
    """A type as documents hold it."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Literal[tuple(member.value for member in hint)]
    if hint is Metric:
        from rpl_core.contracts.common import MetricDoc

        return MetricDoc
    origin, parts = get_origin(hint), tuple(map(_written, get_args(hint)))
    if origin in (None, Literal, Annotated):
        return hint
    if origin in (Union, UnionType):
        return reduce(or_, parts)
    return (dict if origin is Mapping else origin)[parts]


def _default(field: Any) -> Any:
    from pydantic import Field

    default = field.metadata.get("absent", ...) if field.default is attrs.NOTHING else field.default
    kind: Any = type(default)
    if hasattr(default, "factory"):
        return Field(default_factory=default.factory)
    return contract_of(kind).model_validate(default) if attrs.has(kind) else default


_PLAIN = frozenset((str, int, bool, type(None)))


def plain_values(value: Any) -> Any:
    """Frozen values as contracts take them: fields by name, tuples and mappings of plain values.

    An infinite factor becomes null, but not an infinite figure (``Metric``): that one is a mistake, which the
    check of the document finds.
    """
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, float):
        return None if isinf(value) else value
    if isinstance(value, tuple):
        return tuple(map(plain_values, value))
    names = _names(kind)
    if names is not None:
        fields = {name: getattr(value, name) for name in names}
        if kind is not Metric:
            return {name: f if type(f) in _PLAIN else plain_values(f) for name, f in fields.items()}
        return {name: f.value if isinstance(f, Enum) else f for name, f in fields.items()}
    if isinstance(value, Mapping):
        return {name: plain_values(item) for name, item in value.items()}
    return value.value if isinstance(value, Enum) else value


@cache
def _names(kind: Any) -> tuple[str, ...] | None:
    """The fields that documents hold; ``None`` for what is no value with fields."""
    if plain := plain_fields(kind):
        return plain
    if not attrs.has(kind):
        return None
    return tuple(field.name for field in attrs.fields(kind) if not field.metadata.get("inside"))
