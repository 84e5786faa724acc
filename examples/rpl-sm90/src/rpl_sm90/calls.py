"""CUDA calls with the streams and events that they are about.

The table of calls names neither. What a call launched, recorded or waited for is in other tables under the
same correlation id, and these name stream and event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from rpl_core.model.trace import NO_HANDLE, NON_BLOCKING, NULL_STREAM, ApiCalls
from rpl_sm90.cuda_api import ON_DEVICE, STREAM_TABLE, plain_name

if TYPE_CHECKING:
    from rpl_sm90.export import Columns, Tables

#: CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING, and that of null streams, which nobody creates.
_NON_BLOCKING, _NULL = 2, 3
_SUBJECT = ("contextId", "streamId", "correlationId", "globalPid")
#: Stands for "no event" and "no stream" in the synchronization table (CUPTI_SYNCHRONIZATION_INVALID_VALUE).
_NONE = 0xFFFF_FFFF
_CONTEXT = 2**32
_ABSENT = int(NO_HANDLE)


class Numbers(Protocol):
    """What the session knows of its processes, streams and names."""

    strings: dict[int, str]
    kernels: Columns
    copies: Columns
    pids: list[int]
    null_streams: set[tuple[int, int, int]]

    def process_of(self, serialized: NDArray[np.int64]) -> NDArray[np.int32]: ...

    def copied_on_device(self) -> set[tuple[int, int]]: ...


def api_calls(export: Tables, session: Numbers) -> tuple[ApiCalls | None, tuple[str, ...]]:
    """The calls in the order of their begin, and the names of their functions; ``None`` without any."""
    rows = export.integers(
        "CUPTI_ACTIVITY_KIND_RUNTIME", "start", "end", "globalTid", "correlationId", "nameId"
    )
    if not len(rows["start"]):
        return None, ()
    process = session.process_of(rows["globalTid"])
    streams, events = _subjects(export, session)
    keys = list(zip(process.tolist(), rows["correlationId"].tolist(), strict=True))
    names = _names(rows["nameId"].tolist(), keys, session)
    created = _created_streams(export, session)
    functions = tuple(dict.fromkeys([*names, *([STREAM_TABLE] if created else [])]))
    number = {name: i for i, name in enumerate(functions)}
    first = int(rows["start"].min()) - 1
    table = [
        (*key, number[name], thread, begin, end, streams.get(key, _ABSENT), events.get(key, _ABSENT), -1)
        for key, name, thread, begin, end in zip(
            keys,
            names,
            (rows["globalTid"] % 2**24).tolist(),
            rows["start"].tolist(),
            rows["end"].tolist(),
            strict=True,
        )
    ]
    table += [
        (p, -1, number[STREAM_TABLE], 0, first, first, handle, _ABSENT, flags) for p, handle, flags in created
    ]
    return _columns(sorted(table, key=lambda row: (row[4], row[0], row[1]))), functions


def _columns(rows: list[tuple[object, ...]]) -> ApiCalls:
    process, correlation, function, thread, begin, end, stream, event, flags = zip(*rows, strict=True)
    return ApiCalls(
        process=np.array(process, np.int32),
        thread_id=np.array(thread, np.int64),
        function=np.array(function, np.int32),
        correlation_id=np.array(correlation, np.int64),
        begin_ns=np.array(begin, np.int64),
        end_ns=np.array(end, np.int64),
        stream_handle=np.array(stream, np.uint64),
        event_handle=np.array(event, np.uint64),
        flags=np.array(flags, np.int64),
        device=np.full(len(rows), -1, np.int64),
    )


def _names(ids: list[int], keys: list[tuple[int, int]], session: Numbers) -> list[str]:
    plain = {i: plain_name(session.strings.get(i, f"unknown function (id {i})")) for i in set(ids)}
    on_device = session.copied_on_device()
    return [plain[i] + (ON_DEVICE if key in on_device else "") for i, key in zip(ids, keys, strict=True)]


def _handle(session: Numbers, process: int, context: int, stream: int) -> int | None:
    if stream in (-1, _NONE) or process < 0:
        return None
    if (session.pids[process], context, stream) in session.null_streams:
        return int(NULL_STREAM)
    return (context + 1) * _CONTEXT + stream


def _subjects(
    export: Tables, session: Numbers
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]:
    """(Process, correlation) -> stream and event of the call."""
    streams: dict[tuple[int, int], int] = {}
    events: dict[tuple[int, int], int] = {}
    tables = [
        export.integers(f"CUPTI_ACTIVITY_KIND_{n}", *_SUBJECT, "eventId")
        for n in ("SYNCHRONIZATION", "CUDA_EVENT")
    ]
    for rows in (session.kernels, session.copies, *tables):
        process = session.process_of(rows["globalPid"])
        keys = zip(process.tolist(), rows["correlationId"].tolist(), strict=True)
        subjects = zip(rows["contextId"].tolist(), rows["streamId"].tolist(), strict=True)
        event_ids = rows.get("eventId", np.full(len(process), -1)).tolist()
        for key, (context, stream), event in zip(keys, subjects, event_ids, strict=True):
            handle = _handle(session, key[0], context, stream)
            if handle is not None:
                streams[key] = handle
            if event not in (-1, _NONE):
                events[key] = (context + 1) * _CONTEXT + event
    return streams, events


def _created_streams(export: Tables, session: Numbers) -> list[tuple[int, int, int]]:
    """(Process, handle, flags) of streams that the program created: does the null stream wait for them?"""
    index = {pid: i for i, pid in enumerate(session.pids)}
    found = []
    for pid, context, stream, flag in export.rows(STREAM_TABLE, "processId", "contextId", "streamId", "flag"):
        process = index.get(pid, 0 if len(index) == 1 else -1)
        handle = _handle(session, process, context, stream) if isinstance(stream, int) else None
        if handle is not None and handle != int(NULL_STREAM) and flag != _NULL:
            found.append((process, handle, NON_BLOCKING if flag == _NON_BLOCKING else 0))
    return found
