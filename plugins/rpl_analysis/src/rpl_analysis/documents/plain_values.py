"""Frozen values of analyses as drafts of the parts of documents, field by field."""

from __future__ import annotations

from functools import cache
from math import isinf
from typing import Any

import attrs

from rpl_core.documents.drafts import Draft

__all__ = ["finite", "plain_values"]


def plain_values(value: Any) -> Any:
    """Frozen values as contracts take them: drafts and tuples; an infinite factor becomes null."""
    kind: Any = type(value)
    names = _field_names(kind)
    if names is not None:
        return Draft({name: plain_values(getattr(value, name)) for name in names})
    if isinstance(value, tuple):
        return tuple(plain_values(item) for item in value)
    return finite(value)


@cache
def _field_names(kind: Any) -> tuple[str, ...] | None:
    return tuple(field.name for field in attrs.fields(kind)) if attrs.has(kind) else None


def finite(value: Any) -> Any:
    return None if isinstance(value, float) and isinf(value) else value
