"""rocpd databases of rocprofv3 (schema 3): one file per process, or several merged.

One part (one guid) becomes a ``Trace``. When HSA calls are traced too, the stack id of a dispatch may be that
of an inner HSA call; the HIP call that launched it is an ancestor (docs/reference/execution-graph.md,
section 5).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.metric import ORIGIN_MARK, Origin
from rpl_core.model.trace import (
    NO_HANDLE,
    NOT_RECORDED,
    ApiCalls,
    HostRange,
    Trace,
    TraceSource,
    distinct_values,
)
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns import (
    distinct_ids,
    handle_values,
    number_values,
    positions,
    taken,
)
from rpl_rocprofv3.readers.rocpd.info import (
    Part,
    Processes,
    read_agents,
    read_names,
    read_processes,
    read_strings,
)
from rpl_rocprofv3.readers.rocpd.work import (
    Events,
    read_copies,
    read_counters,
    read_dispatch_columns,
    read_events,
    read_hip_events,
    resolve_dispatches,
)
from rpl_rocprofv3.readers.sqlite import ArgumentTexts, read_arguments, read_integers
from rpl_rocprofv3.readers.trace import TraceParts, assembled, mark_of_folder, origin_of
from rpl_rocprofv3.readers.trace.tables import (
    OF_PROCESS,
    RANGE_DOMAINS,
    ApiArguments,
    Findings,
    no_arguments,
    ordered_api_calls,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column, Int64Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.columns import IntegerColumn

# HIP runtime calls of a rocpd part: regions, zero-length samples, and their arguments.
#
# Calls that begin and end at the same tick are stored in ``rocpd_sample`` instead of ``rocpd_region``
# (docs/reference/formats.md, 2.2), so both are read. Arguments are read in bulk by name, never per call.

# Older builds lack the suffix _EXT (docs/reference/formats.md, 2.5).
_HIP_RUNTIME = "HIP_RUNTIME_API"
# Argument names of the HIP runtime that order work (docs/reference/execution-graph.md, section 5).
_STREAM, _EVENT, _FLAGS = "stream", "event", "flags"
_DEVICES = ("device", "deviceId")


@frozen(eq=False)
class HostCalls:
    """All host-side records (HIP, HSA, markers, ...) in file order."""

    pid: IntegerColumn
    tid: Int64Column
    name_id: IntegerColumn
    begin_ns: Int64Column
    end_ns: Int64Column
    event_id: IntegerColumn
    stack_id: Int64Column
    parent_stack_id: Int64Column
    is_hip: NDArray[np.bool_]
    is_range: NDArray[np.bool_]

    def hip_calls(self) -> HostCalls:
        """Only the calls of the HIP runtime."""
        if self.is_hip.all():
            return self
        chosen = {field.name: getattr(self, field.name)[self.is_hip] for field in attrs.fields(HostCalls)}
        return HostCalls(**chosen)


def has_api_rows(part: Part) -> bool:
    """Whether the part holds any host-side record."""
    for base in ("region", "sample"):
        table = part.table(base)
        if table is not None and next(table.rows(part.connection, ("id",)), None) is not None:
            return True
    return False


def read_host_calls(database: Database, part: Part, events: Events) -> HostCalls | None:
    """Read regions and samples; None when there are none."""
    pieces = [p for p in (_region_rows(database, part), _samples(database, part)) if p is not None]
    if not pieces:
        return None
    joined = (
        pieces[0] if len(pieces) == 1 else [np.concatenate(column) for column in zip(*pieces, strict=True)]
    )
    own_id, pid, tid, name_id, begin, end, event_id = joined
    row = events.positions(event_id)
    stack = taken(events.stack_id, row, none=0)
    category = taken(events.category_id, row)
    domains = read_strings(part, category)
    return HostCalls(
        pid=pid,
        tid=tid,
        name_id=name_id,
        begin_ns=begin,
        end_ns=end,
        event_id=event_id,
        stack_id=np.where(stack == NOT_RECORDED, own_id, stack),
        parent_stack_id=taken(events.parent_stack_id, row, none=0),
        is_hip=_of_domain(domains, category, _HIP_RUNTIME),
        is_range=_ranges(domains, category, begin < end),
    )


def _of_domain(domains: dict[int, str], category: Int64Column, prefix: str) -> NDArray[np.bool_]:
    own = np.array(sorted(i for i, name in domains.items() if name.startswith(prefix)), np.int64)
    return positions(category, own) >= 0


def _ranges(
    domains: dict[int, str], category: Int64Column, has_length: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Newer releases have a category for ranges, and their calls in the older one."""
    newer = _of_domain(domains, category, RANGE_DOMAINS[0])
    return has_length & (newer if newer.any() else _of_domain(domains, category, RANGE_DOMAINS[1]))


def marked_ranges(part: Part, calls: HostCalls, processes: Processes) -> Iterator[HostRange]:
    """The ranges of roctx. Their message is the text that the event holds."""
    chosen = np.flatnonzero(calls.is_range)
    table = part.table("event")
    if not len(chosen) or table is None:
        return
    wanted = set(calls.event_id[chosen].tolist())
    rows = table.rows(part.connection, ("id", "extdata"))
    texts = {number: text for number, text in rows if number in wanted}
    names = read_strings(part, calls.name_id[chosen])
    process = np.maximum(processes.positions(calls.pid[chosen]), 0).tolist()
    for row, of in zip(chosen.tolist(), process, strict=True):
        called = names.get(int(calls.name_id[row]), "")
        name = _message(texts.get(int(calls.event_id[row]))) or called
        thread = NOT_RECORDED if called in OF_PROCESS else int(calls.tid[row])
        own = processes.values[of]
        yield HostRange(name, own.guid, own.pid, thread, int(calls.begin_ns[row]), int(calls.end_ns[row]))


def _message(text: object) -> str | None:
    try:
        document = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    message = document.get("message") if isinstance(document, dict) else None
    return message if isinstance(message, str) and message else None


def _region_rows(database: Database, part: Part) -> tuple[Int64Column, ...] | None:
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
    database: Database, part: Part, calls: HostCalls, processes: Processes, findings: Findings
) -> tuple[ApiCalls, tuple[str, ...]] | None:
    """The HIP runtime calls and the names that they point to; None when HIP was not traced."""
    calls = calls.hip_calls()
    if not len(calls.is_hip):
        return None
    used = distinct_ids(calls.name_id)
    names = read_strings(part, used)
    process = processes.positions(calls.pid)
    values = ordered_api_calls(
        process=np.maximum(process, 0) if len(processes.ids) == 1 else process,
        thread_id=calls.tid,
        function=positions(calls.name_id, used),
        correlation_id=calls.stack_id,
        begin_ns=calls.begin_ns,
        end_ns=calls.end_ns,
        arguments=_arguments(database, part, calls.event_id, findings),
        findings=findings,
    )
    return values, tuple(names.get(i, "unknown") for i in used.tolist())


def _arguments(database: Database, part: Part, event_id: IntegerColumn, findings: Findings) -> ApiArguments:
    arguments = no_arguments(len(event_id))
    table = part.table("arg")
    if table is None:
        return arguments
    listed = read_arguments(database, table, (_STREAM, _EVENT, _FLAGS, *_DEVICES))
    unreadable = 0
    for name, column in ((_STREAM, arguments.stream_handle), (_EVENT, arguments.event_handle)):
        rows, code = _of_calls(listed[name], event_id)
        handles = np.append(handle_values(listed[name].texts), NO_HANDLE)[code]
        unreadable += int((handles == NO_HANDLE).sum())
        column[rows] = handles
    for name, numbers in ((_FLAGS, arguments.flags), *((name, arguments.device) for name in _DEVICES)):
        rows, code = _of_calls(listed[name], event_id)
        numbers[rows] = np.append(number_values(listed[name].texts), NOT_RECORDED)[code]
    findings.add(
        "api.unreadable_handle",
        unreadable,
        "stream or event argument is no pointer and counts as absent",
        "stream or event arguments are no pointers and count as absent",
    )
    return arguments


def _of_calls(texts: ArgumentTexts, event_id: IntegerColumn) -> tuple[Int64Column, Int32Column]:
    """Rows of ``event_id`` that have the argument, and the code of its text."""
    place = positions(texts.event_id, event_id)
    known = place >= 0
    return place[known].astype(np.int64), texts.code[known]


# Deeper nesting of calls than this is a cycle.
_DEEPEST = 64


def read_part(database: Database, part: Part, reader: str, form: str) -> Trace:
    """Read everything that a trace can hold from one part."""
    findings = Findings(database.path)
    processes, agents = read_processes(part), read_agents(part)
    traced_api = has_api_rows(part)
    events = read_events(database, part, of_api_calls=traced_api)
    host = _host_side(database, part, events, processes, findings) if traced_api else _HostSide()
    tree = host.tree
    raw = read_dispatch_columns(database, part, findings)
    stream_id, queue_id = raw["stream_id"], raw["queue_id"]
    resolved = resolve_dispatches(part, raw, events, processes, agents, findings)
    del raw  # with millions of rows every column that is done with counts
    copies = read_copies(database, part, events, processes, agents, findings)
    counters = read_counters(database, part, findings)
    _refuse_pc_samples(part, findings)
    rows = resolved.rows
    if tree is not None:
        rows = attrs.evolve(rows, correlation_id=tree.launching(rows.correlation_id))
    stream_ids = [stream_id, *([copies[1]] if copies else [])]
    parts = TraceParts(
        source=TraceSource(reader, form, (str(database.path),)),
        processes=processes.values,
        agents=agents.values,
        kernels=resolved.kernels,
        rows=rows,
        stream_id=stream_id,
        queue_id=queue_id,
        copies=copies,
        calls=host.calls,
        ranges=host.ranges,
        counter_names=counters.names if counters else (),
        stream_names=read_names(part, "info_stream", _used(stream_ids)),
        queue_names=read_names(part, "info_queue", _used([queue_id])),
        grouped_by_queue=processes.grouped_by_queue,
        origin=_origin(database, part, findings),
    )
    trace = assembled(
        parts, lambda ordered: counters.rows(resolved.event_id, ordered) if counters else None, findings
    )
    device_events = read_hip_events(database, part, events, processes, agents, trace.queues, findings)
    return attrs.evolve(trace, device_events=device_events, diagnostics=findings.diagnostics())


def _refuse_pc_samples(part: Part, findings: Findings) -> None:
    """No released rocprofv3 writes them here; what the development branch writes may still change."""
    samples = part.table("gpu_pc_sample")
    if samples is not None and next(samples.rows(part.connection, ("id",)), None) is not None:
        findings.add(
            "rocpd.pc_samples_not_read",
            1,
            "table of PC samples (rocpd_gpu_pc_sample) is not read: rpl reads them from CSV and JSON",
            "tables of PC samples are not read: rpl reads them from CSV and JSON",
            remedy="sample again with `rocprofv3 --output-format json`, or `rpl profile --pc-sampling`",
        )


def _host_side(
    database: Database, part: Part, events: Events, processes: Processes, findings: Findings
) -> _HostSide:
    """The raw columns end here."""
    calls = read_host_calls(database, part, events)
    if calls is None:
        return _HostSide()
    return _HostSide(
        api_calls(database, part, calls, processes, findings),
        _call_tree(calls),
        tuple(marked_ranges(part, calls, processes)),
    )


@frozen(eq=False)
class _HostSide:
    """The HIP calls with their names, the tree of all calls, and the ranges of the application."""

    calls: tuple[ApiCalls, tuple[str, ...]] | None = None
    tree: _CallTree | None = None
    ranges: tuple[HostRange, ...] = ()


def _used(columns: Sequence[IntegerColumn]) -> Int64Column:
    return distinct_values(np.concatenate([distinct_ids(column) for column in columns]))


def _origin(database: Database, part: Part, findings: Findings) -> Origin:
    table = part.table("metadata")
    rows = table.rows(part.connection, ("tag", "value")) if table else ()
    own = (str(value) for tag, value in rows if tag == ORIGIN_MARK)
    return origin_of([*own, *mark_of_folder(database.path.parent)], findings)


@frozen(eq=False)
class _CallTree:
    """Host-side calls by stack id (distinct, ascending), with their parents."""

    stack_id: Int64Column
    parent: Int64Column
    is_hip: NDArray[np.bool_]

    def launching(self, stack_id: Int64Column) -> Int64Column:
        """The nearest HIP call for each stack id; the id itself where no HIP ancestor is recorded."""
        current: Int64Column = stack_id.copy()
        answer: Int64Column = stack_id.copy()
        open_rows = np.flatnonzero(stack_id != NOT_RECORDED)
        for _ in range(_DEEPEST):
            place = positions(current[open_rows], self.stack_id)
            known = place >= 0
            open_rows, place = open_rows[known], place[known]
            hip = self.is_hip[place]
            answer[open_rows[hip]] = current[open_rows[hip]]
            open_rows, place = open_rows[~hip], place[~hip]
            if not len(open_rows):
                break
            current[open_rows] = taken(self.parent, place)
        return answer


def _call_tree(calls: HostCalls) -> _CallTree | None:
    """The tree of all calls; None where all are HIP calls, whose stack ids stand as they are."""
    if calls.is_hip.all():
        return None
    ids, first = np.unique(calls.stack_id, return_index=True)
    return _CallTree(ids, calls.parent_stack_id[first], calls.is_hip[first])
