"""HIP runtime calls of a rocpd part: regions, zero-length samples, and their arguments.

Calls that begin and end at the same tick are stored in ``rocpd_sample`` instead of ``rocpd_region``
(rocpd.md, section 1.2), so both are read. Arguments are read in bulk by name, never per call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED
from rpl_rocprofv3.readers.api_table import no_arguments, ordered_api_calls
from rpl_rocprofv3.readers.handle_text import handle_values, number_values
from rpl_rocprofv3.readers.id_lookup import distinct_ids, positions
from rpl_rocprofv3.readers.integer_columns import read_integers
from rpl_rocprofv3.readers.rocpd_events import taken
from rpl_rocprofv3.readers.rocpd_info import read_strings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import ApiCalls, Int64Column
    from rpl_rocprofv3.readers.api_table import ApiArguments
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.rocpd_events import Events
    from rpl_rocprofv3.readers.rocpd_info import Processes
    from rpl_rocprofv3.readers.rocpd_parts import Part
    from rpl_rocprofv3.readers.sqlite_file import Database

__all__ = ["HostCalls", "api_calls", "has_api_rows", "read_host_calls"]

# Older builds lack the suffix _EXT (rocpd.md, section 1.4).
_HIP_RUNTIME = "HIP_RUNTIME_API"
# Argument names of the HIP runtime that order work (critical_path.md, section 5).
_STREAM, _EVENT, _FLAGS = "stream", "event", "flags"
_DEVICES = ("device", "deviceId")


@attrs.frozen(eq=False)
class HostCalls:
    """All host-side records (HIP, HSA, markers, ...) in file order."""

    pid: Int64Column
    tid: Int64Column
    name_id: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column
    event_id: Int64Column
    stack_id: Int64Column
    parent_stack_id: Int64Column
    is_hip: NDArray[np.bool_]


def has_api_rows(part: Part) -> bool:
    """Whether the part holds any host-side record."""
    for base in ("region", "sample"):
        table = part.table(base)
        if table is not None and next(table.rows(part.connection, ("id",)), None) is not None:
            return True
    return False


def read_host_calls(database: Database, part: Part, events: Events) -> HostCalls | None:
    """Read regions and samples; None when there are none."""
    pieces = [p for p in (_regions(database, part), _samples(database, part)) if p is not None]
    if not pieces:
        return None
    own_id, pid, tid, name_id, begin, end, event_id = (
        np.concatenate(column) for column in zip(*pieces, strict=True)
    )
    row = events.positions(event_id)
    stack = taken(events.stack_id, row, none=0)
    category = taken(events.category_id, row)
    return HostCalls(
        pid=pid,
        tid=tid,
        name_id=name_id,
        begin_ns=begin,
        end_ns=end,
        event_id=event_id,
        stack_id=np.where(stack == NOT_RECORDED, own_id, stack),
        parent_stack_id=taken(events.parent_stack_id, row, none=0),
        is_hip=_is_hip(part, category),
    )


def _is_hip(part: Part, category: Int64Column) -> NDArray[np.bool_]:
    names = read_strings(part, category)
    hip = np.array(sorted(i for i, name in names.items() if name.startswith(_HIP_RUNTIME)), np.int64)
    return positions(category, hip) >= 0


def _regions(database: Database, part: Part) -> tuple[Int64Column, ...] | None:
    table = part.table("region")
    if table is None:
        return None
    columns = ("id", "pid", "tid", "name_id", "start", "end", "event_id")
    raw = read_integers(database, table, columns)
    return tuple(raw[c] for c in columns) if len(raw) else None


def _samples(database: Database, part: Part) -> tuple[Int64Column, ...] | None:
    table, tracks = part.table("sample"), part.table("track")
    if table is None or tracks is None:
        return None
    raw = read_integers(database, table, ("track_id", "timestamp", "event_id"))
    if not len(raw):
        return None
    track = read_integers(database, tracks, ("id", "pid", "tid", "name_id"))
    row = positions(raw["track_id"], track["id"])
    # A sample has no id of its own that could be a stack id.
    own_id = np.full(len(raw), NOT_RECORDED, np.int64)
    time = raw.wide("timestamp")
    return own_id, *(taken(track[c], row) for c in ("pid", "tid", "name_id")), time, time, raw["event_id"]


def api_calls(
    part: Part, calls: HostCalls, processes: Processes, findings: Findings
) -> tuple[ApiCalls, tuple[str, ...]] | None:
    """The HIP runtime calls and the names that they point to; None when HIP was not traced."""
    chosen = np.flatnonzero(calls.is_hip)
    if not len(chosen):
        return None
    name_id = calls.name_id[chosen]
    used = distinct_ids(name_id)
    names = read_strings(part, used)
    process = processes.positions(calls.pid[chosen])
    values = ordered_api_calls(
        process=np.maximum(process, 0) if len(processes.ids) == 1 else process,
        thread_id=calls.tid[chosen],
        function=positions(name_id, used),
        correlation_id=calls.stack_id[chosen],
        begin_ns=calls.begin_ns[chosen],
        end_ns=calls.end_ns[chosen],
        arguments=_arguments(part, calls.event_id[chosen], findings),
        findings=findings,
    )
    return values, tuple(names.get(i, "unknown") for i in used.tolist())


def _arguments(part: Part, event_id: Int64Column, findings: Findings) -> ApiArguments:
    found = no_arguments(len(event_id))
    events, texts = _argument_texts(part)
    unreadable = 0
    for name, column in ((_STREAM, found.stream_handle), (_EVENT, found.event_handle)):
        rows, values = _of_calls(events[name], texts[name], event_id)
        handles = handle_values(values)
        unreadable += int((handles == NO_HANDLE).sum())
        column[rows] = handles
    for name, numbers in ((_FLAGS, found.flags), *((name, found.device) for name in _DEVICES)):
        rows, values = _of_calls(events[name], texts[name], event_id)
        numbers[rows] = number_values(values)
    findings.add(
        "api.unreadable_handle", unreadable, "stream or event arguments are no pointers and count as absent"
    )
    return found


def _argument_texts(part: Part) -> tuple[dict[str, list[int]], dict[str, list[object]]]:
    """Event ids and texts of every argument that orders work, by its name. One pass over the table."""
    wanted = (_STREAM, _EVENT, _FLAGS, *_DEVICES)
    events: dict[str, list[int]] = {name: [] for name in wanted}
    texts: dict[str, list[object]] = {name: [] for name in wanted}
    table = part.table("arg")
    if table is not None:
        condition = f"name IN ({', '.join(repr(name) for name in wanted)})"
        for name, event, text in table.rows(part.connection, ("name", "event_id", "value"), condition):
            if isinstance(event, int):
                events[name].append(event)
                texts[name].append(text)
    return events, texts


def _of_calls(
    events: list[int], texts: list[object], event_id: Int64Column
) -> tuple[Int64Column, list[object]]:
    """Rows of ``event_id`` that the argument belongs to, with its text."""
    place = positions(np.array(events, np.int64), event_id)
    known = np.flatnonzero(place >= 0)
    return place[known].astype(np.int64), [texts[i] for i in known.tolist()]
