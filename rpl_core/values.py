"""``frozen``: immutable attrs values that cost little at start-up.

attrs compiles ``__eq__``, ``__hash__`` and ``__repr__`` for each class, two thirds of its cost, and a run
builds more than two hundred classes. Here all classes share one of each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from operator import attrgetter
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
        return attrs.frozen(cls, eq=False, repr=False, **options)


@cache
def _compared(cls: Any) -> Callable[[Any], Any]:
    names = [field.name for field in attrs.fields(cls) if field.eq]
    return attrgetter(*names) if names else lambda _: ()


def _equal(self: Any, other: Any) -> Any:
    compared = _compared(self.__class__)
    return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash((self.__class__, _compared(self.__class__)(self)))


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in attrs.fields(self.__class__) if f.repr)
    return f"{self.__class__.__qualname__.rpartition('>.')[2]}({', '.join(shown)})"
