"""When a recorded figure and the one worked out again are the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

#: Relative: other builds of numpy may round the last digits differently.
_SAME_FIGURE = 1e-9


def alike(left: Any, right: Any) -> bool:
    """Equal, numbers up to rounding; mappings and tuples by their members."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=_SAME_FIGURE, abs_tol=_SAME_FIGURE)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(alike(left[key], right[key]) for key in left)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(alike, left, right))
    return bool(left == right)
