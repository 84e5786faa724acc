"""Counter readings of a results JSON: per dispatch a list of (counter, value), one entry per instance."""

from __future__ import annotations

from array import array
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_rocprofv3.readers.columns.id_lookup import positions
from rpl_rocprofv3.readers.json.records import number_at, value_at
from rpl_rocprofv3.readers.trace.counter_table import CounterRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.model.trace import Int64Column

__all__ = ["JsonCounters"]


@attrs.define(eq=False)
class JsonCounters:
    """Readings by dispatch id, growing record by record."""

    names: tuple[str, ...]
    index: Mapping[int, int]  # counter handle -> index into names
    dispatch_id: array[int] = attrs.field(factory=lambda: array("q"))
    counter: array[int] = attrs.field(factory=lambda: array("q"))
    duration_ns: array[int] = attrs.field(factory=lambda: array("q"))
    value: array[float] = attrs.field(factory=lambda: array("d"))

    @classmethod
    def of(cls, names_by_handle: Mapping[int, str]) -> JsonCounters:
        """Handles name a counter of one GPU; the same counter of all GPUs has one name."""
        names = tuple(sorted(set(names_by_handle.values())))
        return cls(names, {handle: names.index(name) for handle, name in names_by_handle.items()})

    def __len__(self) -> int:
        return len(self.value)

    def add(self, record: Any) -> None:
        """Add the readings of one dispatch."""
        data = value_at(record, "dispatch_data")
        dispatch = number_at(data, "dispatch_info", "dispatch_id")
        begin, end = number_at(data, "start_timestamp"), number_at(data, "end_timestamp")
        duration = end - begin if 0 <= begin <= end else NOT_RECORDED
        readings = value_at(record, "records")
        for reading in readings if isinstance(readings, list) else ():
            value = value_at(reading, "value")
            self.dispatch_id.append(dispatch)
            self.counter.append(self.index.get(number_at(reading, "counter_id", "handle"), NOT_RECORDED))
            self.duration_ns.append(duration)
            self.value.append(float(value) if isinstance(value, (int, Decimal)) else float("nan"))

    def rows(self, dispatch_ids: Int64Column, row_of: Int64Column) -> CounterRows:
        """The readings attached to the final dispatch rows."""
        ids, first = np.unique(dispatch_ids, return_index=True)
        place = positions(np.array(self.dispatch_id, np.int64), ids)
        target = row_of[first][place] if len(ids) else place
        return CounterRows(
            dispatch=np.where(place < 0, NOT_RECORDED, target),
            counter=np.array(self.counter, np.int32),
            value=np.array(self.value, np.float64),
            duration_ns=np.array(self.duration_ns, np.int64),
        )
