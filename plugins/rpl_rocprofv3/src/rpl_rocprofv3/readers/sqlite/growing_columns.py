"""A column that arrives batch by batch and is kept once: no pieces that have to be joined at the end.

Many columns of a recording hold one number for all rows (process, GPU, queue). Those cost no memory per
row, here or in what is computed from them (``row_groups.is_constant``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_rocprofv3.readers.columns import is_constant

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GrowingColumn"]

_GROWTH = 1.125


class GrowingColumn:
    """int32 while all numbers are, else int64; or float64. ``expected`` is about how many rows will come."""

    def __init__(self, kind: type[np.generic], expected: int) -> None:
        self._expected = expected
        self._length = 0
        self._dtype = np.dtype(kind)
        self._constant: Any = None
        self._stored: NDArray[Any] | None = None

    def extend(self, values: NDArray[Any]) -> None:
        """Append ``values``, whose memory may be used again afterwards."""
        if not len(values):
            return
        self._dtype = np.promote_types(self._dtype, values.dtype)
        if self._stored is None and self._stays_constant(values):
            self._length += len(values)
            return
        end = self._length + len(values)
        self._room(end)[self._length : end] = values
        self._length = end

    def finished(self) -> NDArray[Any]:
        """The column; read-only where all rows hold the same number."""
        if self._stored is None:
            constant = self._dtype.type(0 if self._constant is None else self._constant)
            return np.broadcast_to(constant, self._length)
        # Given back to the system in place: nothing else refers to the memory yet.
        self._stored.resize(self._length, refcheck=False)
        return self._stored

    def _stays_constant(self, values: NDArray[Any]) -> bool:
        if self._dtype.kind == "f":
            return False
        first = values[0]
        if self._length and first != self._constant:
            return False
        if not is_constant(values) and (values[-1] != first or not bool((values == first).all())):
            return False
        self._constant = first
        return True

    def _room(self, end: int) -> NDArray[Any]:
        """The memory of the column, with room for ``end`` rows of the type that is needed by now."""
        stored = self._stored
        if stored is None:
            # Memory that is never written to is never taken from the system.
            stored = np.empty(max(self._expected, end), self._dtype)
            if self._length:
                stored[: self._length] = self._constant
        elif stored.dtype != self._dtype:
            wide = np.empty(len(stored), self._dtype)
            wide[: self._length] = stored[: self._length]
            stored = wide
        if len(stored) < end:
            stored.resize(max(end, int(len(stored) * _GROWTH)), refcheck=False)
        self._stored = stored
        return stored
