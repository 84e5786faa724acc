"""Dispatches, counter readings, API calls, ranges and copies of a results JSON, as columns that grow."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED, HostRange, Kernel
from rpl_rocprofv3.readers.columns import (
    Geometry,
    distinct_ids,
    handle_value,
    number_values,
    positions,
    taken,
)
from rpl_rocprofv3.readers.json import INT64_LIMIT, fields, int64, number_at, text_at, value_at
from rpl_rocprofv3.readers.trace.tables import (
    OF_PROCESS,
    RANGE_DOMAINS,
    ApiArguments,
    CopyRows,
    CounterRows,
    DispatchRows,
    direction_name,
    ordered_api_calls,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import ApiCalls, Int64Column
    from rpl_rocprofv3.readers.json.trace import JsonInfo
    from rpl_rocprofv3.readers.trace.tables import Findings

# Rows of numbers that grow record by record, and become columns at the end.

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


# Kernel dispatches of a results JSON, and the counters that were read at them, one entry per instance.

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
    of_first = replayed == first[pair]
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
        dispatch=rows.dispatch[of_first],
        counter=rows.counter[of_first],
        value=rows.value[of_first],
        duration_ns=rows.duration_ns[of_first],
    )


def counter_names(names_by_handle: Mapping[int, str]) -> tuple[str, ...]:
    """Handles name a counter of one GPU; the same counter of all GPUs has one name."""
    return tuple(sorted(set(names_by_handle.values())))


# HIP runtime calls, ranges of roctx and copies of a results JSON, as columns that grow record by record.

_HIP_RUNTIME = "HIP_RUNTIME_API"
_DEVICES = ("device", "deviceId")
#: In the order in which ``add`` takes their values.
_CALL_COLUMNS = ("operation", "correlation", "thread", "begin", "end")
_COPY_COLUMNS = ("source", "target", "stream", "operation", "correlation", "size", "begin", "end")


@attrs.define(eq=False)
class _Operations:
    """Distinct (kind, operation) pairs, numbered in order of appearance."""

    numbers: dict[tuple[int, int], int] = attrs.field(factory=dict)

    def number(self, record: Any) -> int:
        pair = number_at(record, "kind"), number_at(record, "operation")
        return self.numbers.setdefault(pair, len(self.numbers))

    def named(self, info: JsonInfo) -> list[tuple[str, str]]:
        """Domain and name of each."""
        return [info.operation(*pair) for pair in self.numbers]


@attrs.define(eq=False)
class JsonCalls:
    """All HIP calls, those of the compiler's interface too: which are which is known at the end."""

    operations: _Operations = attrs.field(factory=_Operations)
    numbers: NumberRows = attrs.field(factory=lambda: NumberRows(_CALL_COLUMNS))
    handles: dict[str, array[int]] = attrs.field(factory=lambda: {"stream": array("Q"), "event": array("Q")})
    texts: dict[str, list[Any]] = attrs.field(factory=lambda: {"flags": [], "device": []})

    def add(self, record: Any) -> None:
        """Add one record of the HIP API."""
        get = fields(record).get
        operation, correlation = self.operations.number(record), fields(get("correlation_id")).get("internal")
        times = get("start_timestamp"), get("end_timestamp")
        self.numbers.add((operation, correlation, get("thread_id"), *times))
        arguments = _arguments(record)
        for name, handles in self.handles.items():
            handle = handle_value(arguments.get(name))
            handles.append(int(NO_HANDLE) if handle is None else handle)
        self.texts["flags"].append(arguments.get("flags"))
        self.texts["device"].append(next((arguments[d] for d in _DEVICES if d in arguments), None))

    def calls(self, info: JsonInfo, findings: Findings) -> tuple[ApiCalls, tuple[str, ...]] | None:
        """The calls of the HIP runtime and their names, None when it was not traced."""
        names: dict[str, int] = {}
        function = [
            names.setdefault(name, len(names)) if domain.startswith(_HIP_RUNTIME) else NOT_RECORDED
            for domain, name in self.operations.named(info)
        ]
        if not names:
            return None
        of_call = np.array(function, np.int32)[self.numbers.column("operation")]
        rows = np.flatnonzero(of_call >= 0)
        calls = ordered_api_calls(
            process=np.zeros(len(rows), np.int32),
            thread_id=self.numbers.column("thread")[rows],
            function=of_call[rows],
            correlation_id=self.numbers.column("correlation")[rows],
            begin_ns=self.numbers.column("begin")[rows],
            end_ns=self.numbers.column("end")[rows],
            arguments=ApiArguments(
                np.array(self.handles["stream"], np.uint64)[rows],
                np.array(self.handles["event"], np.uint64)[rows],
                number_values(self.texts["flags"])[rows],
                number_values(self.texts["device"])[rows],
            ),
            findings=findings,
        )
        return calls, tuple(names)


def _arguments(record: Any) -> dict[str, Any]:
    """Arguments by name, as text; releases before 7.0 record none."""
    listed = fields(record).get("args")
    arguments: dict[str, Any] = {}
    for argument in map(fields, listed if isinstance(listed, list) else ()):
        value = argument.get("value")
        arguments[str(argument.get("name"))] = value if isinstance(value, (str, int)) else None
    return arguments


@attrs.define(eq=False)
class JsonRanges:
    """Ranges that the application marked; the text of each stands elsewhere, under its correlation id."""

    operations: _Operations = attrs.field(factory=_Operations)
    numbers: NumberRows = attrs.field(factory=lambda: NumberRows(_CALL_COLUMNS))
    texts: dict[int, str] = attrs.field(factory=dict)

    def add(self, record: Any) -> None:
        """Add one record of the marker API."""
        get = fields(record).get
        operation, correlation = (
            self.operations.number(record),
            number_at(record, "correlation_id", "internal"),
        )
        times = get("start_timestamp"), get("end_timestamp")
        self.numbers.add((operation, correlation, get("thread_id"), *times))

    def add_text(self, entry: Any) -> None:
        """Add the text of one record."""
        self.texts[number_at(entry, "key")] = text_at(entry, "value") or ""

    def ranges(self, info: JsonInfo) -> Iterator[HostRange]:
        """Those with a length; marks and calls that control the profiler are none."""
        named = self.operations.named(info)
        domains = {domain for domain, _ in named}
        domain = next((known for known in RANGE_DOMAINS if known in domains), None)
        columns = (self.numbers.column(name).tolist() for name in _CALL_COLUMNS)
        process = info.processes[0]
        for operation, correlation, thread, begin, end in zip(*columns, strict=True):
            of, called = named[operation]
            if of == domain and 0 <= begin < end:
                name = self.texts.get(correlation) or called
                range_thread = NOT_RECORDED if called in OF_PROCESS else thread
                yield HostRange(name, process.guid, process.pid, range_thread, begin, end)


@attrs.define(eq=False)
class JsonCopies:
    """Copies by the copy engines."""

    operations: _Operations = attrs.field(factory=_Operations)
    numbers: NumberRows = attrs.field(factory=lambda: NumberRows(_COPY_COLUMNS))

    def add(self, record: Any) -> None:
        """Add one record of a copy."""
        self.numbers.add(
            (
                number_at(record, "src_agent_id", "handle"),
                number_at(record, "dst_agent_id", "handle"),
                number_at(record, "stream_id", "handle"),
                self.operations.number(record),
                number_at(record, "correlation_id", "internal"),
                *(number_at(record, key) for key in ("bytes", "start_timestamp", "end_timestamp")),
            )
        )

    def copies(self, info: JsonInfo) -> tuple[CopyRows, Int64Column] | None:
        """The copies with their stream ids, None when there are none."""
        names: dict[str, int] = {}
        direction = [
            names.setdefault(direction_name(name), len(names)) for _, name in self.operations.named(info)
        ]
        if not names:
            return None
        columns = {name: self.numbers.column(name) for name in _COPY_COLUMNS}
        count = len(self.numbers)
        rows = CopyRows(
            process=np.zeros(count, np.int32),
            source_agent=info.agent_positions(columns["source"]),
            destination_agent=info.agent_positions(columns["target"]),
            stream=np.full(count, NOT_RECORDED, np.int32),
            direction=np.array(direction, np.int32)[columns["operation"]],
            size_bytes=columns["size"],
            correlation_id=columns["correlation"],
            begin_ns=columns["begin"],
            end_ns=columns["end"],
            directions=tuple(names),
        )
        return rows, columns["stream"]
