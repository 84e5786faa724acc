"""Columns in the exact types that the trace model declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["typed_columns"]

_TYPES = {
    "Int32Column": np.int32,
    "Int64Column": np.int64,
    "UInt64Column": np.uint64,
    "Float64Column": np.float64,
}


def typed_columns(
    model: type, columns: Mapping[str, NDArray[Any]], selection: NDArray[Any] | None
) -> dict[str, NDArray[Any]]:
    """The columns of a model class (``Dispatches``, ...), cast and, if asked, selected and ordered."""
    return {
        field.name: np.ascontiguousarray(
            columns[field.name] if selection is None else columns[field.name][selection],
            dtype=_TYPES[str(field.type)],
        )
        for field in attrs.fields(model)
    }
