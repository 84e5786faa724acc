"""Rows of numbers that grow record by record, and become columns at the end."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_rocprofv3.readers.json.records import INT64_LIMIT, int64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.model.trace import Int64Column

__all__ = ["NumberRows"]

_PLAIN = {int}


class NumberRows:
    """A 64-bit integer per row and name; what is no such number is ``NOT_RECORDED``."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._cells = array("q")

    def __len__(self) -> int:
        return len(self._cells) // len(self._names)

    def add(self, values: Sequence[Any]) -> None:
        """A value for each name. Nearly all of millions of rows are plain integers, seen at one look."""
        plain = set(map(type, values)) == _PLAIN
        if not plain or max(values) >= INT64_LIMIT or min(values) < -INT64_LIMIT:
            values = [int64(value) for value in values]
        self._cells.extend(values)

    def column(self, name: str) -> Int64Column:
        cells = np.array(self._cells, np.int64).reshape(-1, len(self._names))
        return np.ascontiguousarray(cells[:, self._names.index(name)])
