"""Columns in the exact types that the trace model declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_rocprofv3.readers.columns.row_groups import is_constant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["typed_columns"]

_TYPES: dict[str, type[np.generic]] = {
    "Int32Column": np.int32,
    "Int64Column": np.int64,
    "UInt64Column": np.uint64,
    "Float64Column": np.float64,
}


def typed_columns(
    model: type, columns: Mapping[str, NDArray[Any]], selection: NDArray[Any] | None
) -> dict[str, NDArray[Any]]:
    """The columns of a model class (``Dispatches``, ...), cast and, if asked, selected and ordered.

    Columns of one number for all rows stay without memory per row, and read-only.
    """
    return {
        field.name: _typed(columns[field.name], _TYPES[str(field.type)], selection)
        for field in attrs.fields(model)
    }


def _typed(column: NDArray[Any], kind: type[np.generic], selection: NDArray[Any] | None) -> NDArray[Any]:
    if is_constant(column):
        return np.broadcast_to(
            column[:1].astype(kind)[0], len(column) if selection is None else len(selection)
        )
    return np.ascontiguousarray(column if selection is None else column[selection], dtype=kind)
