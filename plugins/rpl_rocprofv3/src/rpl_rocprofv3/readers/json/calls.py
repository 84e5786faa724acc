"""HIP runtime calls and copies of a results JSON."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED
from rpl_rocprofv3.readers.columns.handle_text import handle_value, number_values
from rpl_rocprofv3.readers.json.records import entries, number_at, value_at
from rpl_rocprofv3.readers.trace.api_table import ApiArguments, ordered_api_calls
from rpl_rocprofv3.readers.trace.copy_table import CopyRows, direction_name

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.model.trace import ApiCalls, Int64Column
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.json.info import JsonInfo

__all__ = ["read_json_calls", "read_json_copies"]

_HIP_RUNTIME = "HIP_RUNTIME_API"
_DEVICES = ("device", "deviceId")


def _column(values: array[int]) -> Int64Column:
    return np.array(values, np.int64)


def read_json_calls(
    path: Path, info: JsonInfo, findings: Findings
) -> tuple[ApiCalls, tuple[str, ...]] | None:
    """The HIP runtime calls and their names, None when HIP was not traced. Streams the section."""
    names: dict[str, int] = {}
    numbers = {n: array("q") for n in ("thread", "function", "correlation", "begin", "end")}
    handles = {"stream": array("Q"), "event": array("Q")}
    texts: dict[str, list[Any]] = {"flags": [], "device": []}
    for record in entries(path, "buffer_records.hip_api.item"):
        domain, function = info.operation(record)
        if not domain.startswith(_HIP_RUNTIME):
            continue
        numbers["thread"].append(number_at(record, "thread_id"))
        numbers["function"].append(names.setdefault(function, len(names)))
        numbers["correlation"].append(number_at(record, "correlation_id", "internal"))
        numbers["begin"].append(number_at(record, "start_timestamp"))
        numbers["end"].append(number_at(record, "end_timestamp"))
        arguments = _arguments(record)
        for name, column in handles.items():
            value = handle_value(arguments.get(name))
            column.append(int(NO_HANDLE) if value is None else value)
        texts["flags"].append(arguments.get("flags"))
        texts["device"].append(next((arguments[d] for d in _DEVICES if d in arguments), None))
    if not names:
        return None
    calls = ordered_api_calls(
        process=np.zeros(len(numbers["begin"]), np.int32),
        thread_id=_column(numbers["thread"]),
        function=_column(numbers["function"]).astype(np.int32),
        correlation_id=_column(numbers["correlation"]),
        begin_ns=_column(numbers["begin"]),
        end_ns=_column(numbers["end"]),
        arguments=ApiArguments(
            np.array(handles["stream"], np.uint64),
            np.array(handles["event"], np.uint64),
            number_values(texts["flags"]),
            number_values(texts["device"]),
        ),
        findings=findings,
    )
    return calls, tuple(names)


def _arguments(record: Any) -> dict[str, Any]:
    """Arguments by name; releases before 7.0 record none."""
    listed = value_at(record, "args")
    return {
        str(value_at(argument, "name")): value_at(argument, "value")
        for argument in (listed if isinstance(listed, list) else ())
    }


def read_json_copies(path: Path, info: JsonInfo) -> tuple[CopyRows, Int64Column] | None:
    """The copies with their stream ids, None when there are none. Streams the section."""
    names: dict[str, int] = {}
    columns = {
        n: array("q")
        for n in ("source", "target", "stream", "direction", "size", "correlation", "begin", "end")
    }
    for record in entries(path, "buffer_records.memory_copy.item"):
        values = (
            info.agent_of.get(number_at(record, "src_agent_id", "handle"), NOT_RECORDED),
            info.agent_of.get(number_at(record, "dst_agent_id", "handle"), NOT_RECORDED),
            number_at(record, "stream_id", "handle"),
            names.setdefault(direction_name(info.operation(record)[1]), len(names)),
            number_at(record, "bytes"),
            number_at(record, "correlation_id", "internal"),
            number_at(record, "start_timestamp"),
            number_at(record, "end_timestamp"),
        )
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    if not names:
        return None
    count = len(columns["begin"])
    rows = CopyRows(
        process=np.zeros(count, np.int32),
        source_agent=_column(columns["source"]).astype(np.int32),
        destination_agent=_column(columns["target"]).astype(np.int32),
        stream=np.full(count, NOT_RECORDED, np.int32),
        direction=_column(columns["direction"]).astype(np.int32),
        size_bytes=_column(columns["size"]),
        correlation_id=_column(columns["correlation"]),
        begin_ns=_column(columns["begin"]),
        end_ns=_column(columns["end"]),
        directions=tuple(names),
    )
    return rows, _column(columns["stream"])
