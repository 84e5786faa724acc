"""Equality of results that may hold numpy arrays and attrs objects, for determinism checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def same_value(left: Any, right: Any) -> bool:
    """Whether two results are equal, element by element."""
    if type(left) is not type(right):
        return False
    if hasattr(left, "dtype") and hasattr(left, "tobytes"):
        return bool(
            left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
        )
    if isinstance(left, Mapping):
        return list(left) == list(right) and all(same_value(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same_value, left, right))
    fields = getattr(type(left), "__attrs_attrs__", None)
    if fields is not None:
        return all(same_value(getattr(left, f.name), getattr(right, f.name)) for f in fields)
    return bool(left == right)
