"""Kernel dispatches of a results JSON, and the counters that were read at them, one entry per instance."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED, Kernel
from rpl_rocprofv3.readers.columns.id_lookup import distinct_ids, positions, taken
from rpl_rocprofv3.readers.columns.launch_shapes import Geometry
from rpl_rocprofv3.readers.json.number_rows import NumberRows
from rpl_rocprofv3.readers.json.records import fields, number_at, value_at
from rpl_rocprofv3.readers.trace.counter_table import CounterRows
from rpl_rocprofv3.readers.trace.dispatch_table import DispatchRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int64Column
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.json.info import JsonInfo

__all__ = ["JsonCounters", "JsonDispatches", "counter_names", "launches_replayed", "replay_pass_of"]

#: Far more groups than any GPU needs; what a damaged file says beyond it is one pass.
_MOST_PASSES = 1000
#: Relative difference between replays that is worth a line, as between passes of their own.
_AGREEMENT = 0.05

#: In the order in which ``JsonDispatches.add`` takes their values.
_COLUMNS = (
    *("agent", "queue", "stream", "correlation", "kernel", "dispatch", "lds", "scratch", "begin", "end"),
    *("workgroup_x", "workgroup_y", "workgroup_z", "grid_x", "grid_y", "grid_z"),
)


@attrs.define(eq=False)
class JsonDispatches:
    """Dispatch columns that grow record by record, 16 numbers each."""

    numbers: NumberRows = attrs.field(factory=lambda: NumberRows(_COLUMNS))

    def __len__(self) -> int:
        return len(self.numbers)

    def column(self, name: str) -> Int64Column:
        return self.numbers.column(name)

    def add(self, data: Any, stream: Any) -> None:
        """Add a record with ``dispatch_info``, times and correlation id."""
        get = fields(data).get
        info = fields(get("dispatch_info")).get
        workgroup, grid = fields(info("workgroup_size")).get, fields(info("grid_size")).get
        self.numbers.add(
            (
                *(fields(info("agent_id")).get("handle"), fields(info("queue_id")).get("handle")),
                *(fields(stream).get("handle"), fields(get("correlation_id")).get("internal")),
                *(info("kernel_id"), info("dispatch_id")),
                *(info("group_segment_size"), info("private_segment_size")),
                *(get("start_timestamp"), get("end_timestamp")),
                *(workgroup("x"), workgroup("y"), workgroup("z"), grid("x"), grid("y"), grid("z")),
            )
        )

    def rows(self, info: JsonInfo, findings: Findings) -> tuple[DispatchRows, tuple[Kernel, ...]]:
        """The rows for the trace; stream and queue are numbered by the caller."""
        column = self.column
        correlation = column("correlation")
        used = distinct_ids(column("kernel"))
        described = {i: info.symbol(i) for i in used.tolist()}
        kernels = tuple(
            known or Kernel(f"unknown kernel (id {i})", None, 0) for i, known in described.items()
        )
        findings.add(
            "dispatch.unknown_kernel",
            sum(known is None for known in described.values()),
            "kernel was launched that the recording does not describe; it appears as 'unknown kernel'",
            "kernels were launched that the recording does not describe; they appear as 'unknown kernel'",
        )
        rows = DispatchRows(
            process=np.zeros(len(self), np.int32),
            agent=info.agent_positions(column("agent")),
            kernel=positions(column("kernel"), used),
            stream=np.empty(0, np.int32),
            queue=np.empty(0, np.int32),
            dispatch_id=column("dispatch"),
            correlation_id=np.where(correlation > 0, correlation, NOT_RECORDED),
            begin_ns=column("begin"),
            end_ns=column("end"),
            geometry=Geometry(
                (column("workgroup_x"), column("workgroup_y"), column("workgroup_z")),
                (column("grid_x"), column("grid_y"), column("grid_z")),
                column("lds"),
                column("scratch"),
            ),
        )
        findings.add(
            "dispatch.unknown_agent",
            int((rows.agent < 0).sum()),
            "dispatch names a GPU that the recording does not describe",
            "dispatches name a GPU that the recording does not describe",
        )
        return rows, kernels


@attrs.define(eq=False)
class JsonCounters:
    """Readings by dispatch id, growing record by record."""

    dispatch_id: array[int] = attrs.field(factory=lambda: array("q"))
    handle: array[int] = attrs.field(factory=lambda: array("q"))
    duration_ns: array[int] = attrs.field(factory=lambda: array("q"))
    value: array[float] = attrs.field(factory=lambda: array("d"))
    replay_pass: array[int] = attrs.field(factory=lambda: array("h"))  # 0 where nothing was replayed

    def __len__(self) -> int:
        return len(self.value)

    def add(self, record: Any) -> None:
        """Add the readings of one dispatch."""
        data = value_at(record, "dispatch_data")
        dispatch = number_at(data, "dispatch_info", "dispatch_id")
        begin, end = number_at(data, "start_timestamp"), number_at(data, "end_timestamp")
        duration = end - begin if 0 <= begin <= end else NOT_RECORDED
        replayed = max(0, min(replay_pass_of(record), _MOST_PASSES))
        readings = value_at(record, "records")
        for reading in readings if isinstance(readings, list) else ():
            value = value_at(reading, "value")
            self.dispatch_id.append(dispatch)
            self.handle.append(number_at(reading, "counter_id", "handle"))
            self.duration_ns.append(duration)
            self.replay_pass.append(replayed)
            self.value.append(float(value) if isinstance(value, (int, float)) else float("nan"))

    def rows(
        self,
        names_by_handle: Mapping[int, str],
        dispatch_ids: Int64Column,
        row_of: Int64Column,
        findings: Findings,
    ) -> CounterRows:
        """The readings attached to the final dispatch rows, counters numbered as in ``counter_names``.

        A counter that several replay passes of a launch read counts once, from the first of them.
        """
        names = counter_names(names_by_handle)
        number = np.array([names.index(name) for name in names_by_handle.values()], np.int64)
        handle = positions(np.array(self.handle, np.int64), list(names_by_handle))
        ids, first = np.unique(dispatch_ids, return_index=True)
        place = positions(np.array(self.dispatch_id, np.int64), ids)
        target = row_of[first][place] if len(ids) else place
        rows = CounterRows(
            dispatch=np.where(place < 0, NOT_RECORDED, target),
            counter=taken(number, handle).astype(np.int32),
            value=np.array(self.value, np.float64),
            duration_ns=np.array(self.duration_ns, np.int64),
        )
        replayed = np.array(self.replay_pass, np.int16)
        return _of_first_pass(rows, replayed, findings) if replayed.any() else rows


def replay_pass_of(record: Any) -> int:
    """Which replay of its launch a record is of, from 0; -1 where the profiler replayed nothing."""
    number = number_at(record, "replay_pass")
    return number if number != NOT_RECORDED else number_at(record, "dispatch_data", "replay_pass")


def launches_replayed(counters: JsonCounters) -> tuple[Int64Column, Int64Column]:
    """The dispatch ids with counters, and in how many passes each was read."""
    ids, place = np.unique(np.array(counters.dispatch_id, np.int64), return_inverse=True)
    passes = np.zeros(len(ids), np.int64)
    np.maximum.at(passes, place.reshape(-1), np.array(counters.replay_pass, np.int64) + 1)
    return ids, passes


def _of_first_pass(rows: CounterRows, replayed: NDArray[np.int16], findings: Findings) -> CounterRows:
    """Of each counter of a launch the readings of the first pass that has it; adding passes up is wrong."""
    keys = np.stack([rows.dispatch, rows.counter.astype(np.int64)], axis=1)
    _, pair = np.unique(keys, axis=0, return_inverse=True)
    pair = pair.reshape(-1)
    first = np.full(int(pair.max()) + 1, np.iinfo(np.int16).max, np.int16)
    np.minimum.at(first, pair, replayed)
    kept = replayed == first[pair]
    by_pass = pair * (int(replayed.max()) + 1) + replayed  # sums over the instances of each pass
    passes, of_row = np.unique(by_pass, return_inverse=True)
    sums = np.bincount(of_row.reshape(-1), np.nan_to_num(rows.value))
    of_pair = passes // (int(replayed.max()) + 1)
    low, high = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    np.minimum.at(low, of_pair, sums)
    np.maximum.at(high, of_pair, sums)
    with np.errstate(invalid="ignore"):
        apart = high - low > _AGREEMENT * np.maximum(np.abs(high), np.abs(low))
    findings.add(
        "counter.replays_disagree",
        int(apart.sum()),
        "counter of a launch differs by more than 5 % between replays of it; the first is used",
        "counters of launches differ by more than 5 % between replays of them; the first is used",
        cause="cycles and cache traffic vary; counts of work that differ mean that memory was not restored",
        remedy="compare with --replay off",
    )
    return attrs.evolve(
        rows,
        dispatch=rows.dispatch[kept],
        counter=rows.counter[kept],
        value=rows.value[kept],
        duration_ns=rows.duration_ns[kept],
    )


def counter_names(names_by_handle: Mapping[int, str]) -> tuple[str, ...]:
    """Handles name a counter of one GPU; the same counter of all GPUs has one name."""
    return tuple(sorted(set(names_by_handle.values())))
