"""Streams and queues: distinct (process, id) pairs and the index of each row into them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from rpl_core.model.trace import NOT_RECORDED, Queue, Stream
from rpl_rocprofv3.readers.id_lookup import distinct_ids, positions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rpl_core.model.trace import Int32Column
    from rpl_rocprofv3.readers.id_lookup import IntegerColumn

__all__ = ["number_handles"]

Handle = TypeVar("Handle", Stream, Queue)


def number_handles(
    make: Callable[[int, int, str | None], Handle],
    process_columns: Sequence[Int32Column],
    id_columns: Sequence[IntegerColumn],
    names: Mapping[int, str | None],
) -> tuple[tuple[Handle, ...], list[Int32Column]]:
    """The handles in order of (process, id), and one index column per pair of input columns.

    An id of -1 is not recorded and stays -1.
    """
    found = [distinct_ids(column) for column in process_columns]
    processes = np.unique(np.concatenate(found)).tolist()
    if len(processes) == 1:
        # All rows belong to it: nothing has to be picked.
        used, indices = _numbered(id_columns)
        return tuple(make(processes[0], handle, names.get(handle)) for handle in used), indices
    indices = [np.full(len(ids), NOT_RECORDED, np.int32) for ids in id_columns]
    handles: list[Handle] = []
    for number in processes:
        rows = [column == number for column in process_columns]
        used, places = _numbered([ids[own] for ids, own in zip(id_columns, rows, strict=True)])
        for index, own, place in zip(indices, rows, places, strict=True):
            index[own] = np.where(place < 0, NOT_RECORDED, place + len(handles))
        handles.extend(make(number, handle, names.get(handle)) for handle in used)
    return tuple(handles), indices


def _numbered(columns: Sequence[IntegerColumn]) -> tuple[list[int], list[Int32Column]]:
    """The ids that occur in any column, ascending without -1, and the columns as indices into them."""
    distinct = np.unique(np.concatenate([distinct_ids(column) for column in columns]))
    used = distinct[distinct != NOT_RECORDED]
    return used.tolist(), [positions(column, used) for column in columns]
