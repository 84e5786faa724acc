"""HIP runtime calls and copies of a results JSON, as columns that grow record by record."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED
from rpl_rocprofv3.readers.columns.handle_text import handle_value, number_values
from rpl_rocprofv3.readers.json.records import number_at, numbers_at, value_at
from rpl_rocprofv3.readers.trace.api_table import ApiArguments, ordered_api_calls
from rpl_rocprofv3.readers.trace.copy_table import CopyRows, direction_name

if TYPE_CHECKING:
    from rpl_core.model.trace import ApiCalls, Int64Column
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.json.info import JsonInfo

__all__ = ["JsonCalls", "JsonCopies"]

_HIP_RUNTIME = "HIP_RUNTIME_API"
_DEVICES = ("device", "deviceId")
_TIMES = ("start_timestamp", "end_timestamp")
#: In the order in which ``add`` takes their values.
_CALL_COLUMNS = ("operation", "correlation", "thread", "begin", "end")
_COPY_COLUMNS = ("source", "target", "stream", "operation", "correlation", "size", "begin", "end")


def _columns(names: tuple[str, ...]) -> dict[str, array[int]]:
    return {name: array("q") for name in names}


def _column(values: array[int]) -> Int64Column:
    return np.array(values, np.int64)


@attrs.define(eq=False)
class _Operations:
    """Distinct (kind, operation) pairs, numbered in order of appearance."""

    numbers: dict[tuple[int, int], int] = attrs.field(factory=dict)

    def number(self, record: Any) -> int:
        kind, operation = numbers_at(record, ("kind", "operation"))
        return self.numbers.setdefault((kind, operation), len(self.numbers))

    def named(self, info: JsonInfo) -> list[tuple[str, str]]:
        """Domain and name of each."""
        return [info.operation(*pair) for pair in self.numbers]


@attrs.define(eq=False)
class JsonCalls:
    """All HIP calls, those of the compiler's interface too: which are which is known at the end."""

    operations: _Operations = attrs.field(factory=_Operations)
    numbers: dict[str, array[int]] = attrs.field(factory=lambda: _columns(_CALL_COLUMNS))
    handles: dict[str, array[int]] = attrs.field(factory=lambda: {"stream": array("Q"), "event": array("Q")})
    texts: dict[str, list[Any]] = attrs.field(factory=lambda: {"flags": [], "device": []})

    def add(self, record: Any) -> None:
        """Add one record of the HIP API."""
        values = (
            self.operations.number(record),
            number_at(record, "correlation_id", "internal"),
            *numbers_at(record, ("thread_id", *_TIMES)),
        )
        for column, value in zip(self.numbers.values(), values, strict=True):
            column.append(value)
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
        of_call = np.array(function, np.int32)[_column(self.numbers["operation"])]
        rows = np.flatnonzero(of_call >= 0)
        calls = ordered_api_calls(
            process=np.zeros(len(rows), np.int32),
            thread_id=_column(self.numbers["thread"])[rows],
            function=of_call[rows],
            correlation_id=_column(self.numbers["correlation"])[rows],
            begin_ns=_column(self.numbers["begin"])[rows],
            end_ns=_column(self.numbers["end"])[rows],
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
    listed = value_at(record, "args")
    arguments: dict[str, Any] = {}
    for argument in listed if isinstance(listed, list) else ():
        value = value_at(argument, "value")
        arguments[str(value_at(argument, "name"))] = value if isinstance(value, (str, int)) else None
    return arguments


@attrs.define(eq=False)
class JsonCopies:
    """Copies by the copy engines."""

    operations: _Operations = attrs.field(factory=_Operations)
    numbers: dict[str, array[int]] = attrs.field(factory=lambda: _columns(_COPY_COLUMNS))

    def add(self, record: Any) -> None:
        """Add one record of a copy."""
        values = (
            number_at(record, "src_agent_id", "handle"),
            number_at(record, "dst_agent_id", "handle"),
            number_at(record, "stream_id", "handle"),
            self.operations.number(record),
            number_at(record, "correlation_id", "internal"),
            *numbers_at(record, ("bytes", *_TIMES)),
        )
        for column, value in zip(self.numbers.values(), values, strict=True):
            column.append(value)

    def copies(self, info: JsonInfo) -> tuple[CopyRows, Int64Column] | None:
        """The copies with their stream ids, None when there are none."""
        names: dict[str, int] = {}
        direction = [
            names.setdefault(direction_name(name), len(names)) for _, name in self.operations.named(info)
        ]
        if not names:
            return None
        columns = {name: _column(values) for name, values in self.numbers.items()}
        count = len(columns["begin"])
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
