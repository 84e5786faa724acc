"""HIP runtime calls, ranges of roctx and copies of a results JSON, as columns that grow record by record."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.calls import HostRange
from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED
from rpl_rocprofv3.readers.columns.handle_text import handle_value, number_values
from rpl_rocprofv3.readers.json.number_rows import NumberRows
from rpl_rocprofv3.readers.json.records import fields, number_at, text_at
from rpl_rocprofv3.readers.trace.api_table import ApiArguments, ordered_api_calls
from rpl_rocprofv3.readers.trace.copy_table import CopyRows, direction_name
from rpl_rocprofv3.readers.trace.range_names import OF_PROCESS, RANGE_DOMAINS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_core.model.trace import ApiCalls, Int64Column
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.json.info import JsonInfo

__all__ = ["JsonCalls", "JsonCopies", "JsonRanges"]

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
                own = NOT_RECORDED if called in OF_PROCESS else thread
                yield HostRange(name, process.guid, process.pid, own, begin, end)


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
