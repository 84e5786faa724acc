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
    process = np.concatenate(process_columns)
    ids = np.concatenate(id_columns)
    index = np.full(len(ids), NOT_RECORDED, np.int32)
    handles: list[Handle] = []
    for number in distinct_ids(process.astype(np.int64)).tolist():
        rows = process == number
        used = distinct_ids(ids[rows])
        used = used[used != NOT_RECORDED]
        place = positions(ids[rows], used)
        index[rows] = np.where(place < 0, NOT_RECORDED, place + len(handles))
        handles.extend(make(number, handle, names.get(handle)) for handle in used.tolist())
    ends = np.cumsum([len(column) for column in id_columns])[:-1]
    return tuple(handles), np.split(index, ends)
