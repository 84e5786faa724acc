"""One part of a rocpd database (one guid) as a ``Trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.trace import TraceSource
from rpl_rocprofv3.readers.api_ancestors import call_tree
from rpl_rocprofv3.readers.findings import Findings
from rpl_rocprofv3.readers.id_lookup import distinct_ids
from rpl_rocprofv3.readers.origin_marks import ORIGIN_MARK, origin_of
from rpl_rocprofv3.readers.rocpd_api import api_calls, has_api_rows, read_host_calls
from rpl_rocprofv3.readers.rocpd_copies import read_copies
from rpl_rocprofv3.readers.rocpd_counters import read_counters
from rpl_rocprofv3.readers.rocpd_dispatches import read_dispatch_columns, resolve_dispatches
from rpl_rocprofv3.readers.rocpd_events import read_events
from rpl_rocprofv3.readers.rocpd_hip_events import read_hip_events
from rpl_rocprofv3.readers.rocpd_info import read_agents, read_names, read_processes
from rpl_rocprofv3.readers.trace_parts import TraceParts, assembled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.model.origin import Origin
    from rpl_core.model.trace import ApiCalls, Int64Column, Trace
    from rpl_rocprofv3.readers.api_ancestors import CallTree
    from rpl_rocprofv3.readers.id_lookup import IntegerColumn
    from rpl_rocprofv3.readers.rocpd_events import Events
    from rpl_rocprofv3.readers.rocpd_info import Processes
    from rpl_rocprofv3.readers.rocpd_parts import Part
    from rpl_rocprofv3.readers.sqlite_file import Database

__all__ = ["read_part"]


def read_part(database: Database, part: Part, reader: str, form: str) -> Trace:
    """Read everything that a trace can hold from one part."""
    findings = Findings(database.path)
    processes, agents = read_processes(part), read_agents(part)
    traced_api = has_api_rows(part)
    events = read_events(database, part, of_api_calls=traced_api)
    calls, tree = _host_side(database, part, events, processes, findings) if traced_api else (None, None)
    raw = read_dispatch_columns(database, part, findings)
    stream_id, queue_id = raw["stream_id"], raw["queue_id"]
    found = resolve_dispatches(part, raw, events, processes, agents, findings)
    del raw  # with millions of rows every column that is done with counts
    copies = read_copies(database, part, events, processes, agents, findings)
    counters = read_counters(database, part, findings)
    rows = found.rows
    if tree is not None:
        rows = attrs.evolve(rows, correlation_id=tree.launching(rows.correlation_id))
    stream_ids = [stream_id, *([copies[1]] if copies else [])]
    parts = TraceParts(
        source=TraceSource(reader, form, (str(database.path),)),
        processes=processes.values,
        agents=agents.values,
        kernels=found.kernels,
        rows=rows,
        stream_id=stream_id,
        queue_id=queue_id,
        copies=copies,
        calls=calls,
        counter_names=counters.names if counters else (),
        stream_names=read_names(part, "info_stream", _used(stream_ids)),
        queue_names=read_names(part, "info_queue", _used([queue_id])),
        grouped_by_queue=processes.grouped_by_queue,
        origin=_origin(part, findings),
    )
    trace = assembled(
        parts, lambda ordered: counters.rows(found.event_id, ordered) if counters else None, findings
    )
    device_events = read_hip_events(database, part, events, processes, agents, trace.queues, findings)
    return attrs.evolve(trace, device_events=device_events, diagnostics=findings.diagnostics())


def _host_side(
    database: Database, part: Part, events: Events, processes: Processes, findings: Findings
) -> tuple[tuple[ApiCalls, tuple[str, ...]] | None, CallTree | None]:
    """The HIP calls with their names, and the tree of all calls. The raw columns end here."""
    calls = read_host_calls(database, part, events)
    if calls is None:
        return None, None
    return api_calls(database, part, calls, processes, findings), call_tree(calls)


def _used(columns: Sequence[IntegerColumn]) -> Int64Column:
    return np.unique(np.concatenate([distinct_ids(column) for column in columns]))


def _origin(part: Part, findings: Findings) -> Origin:
    table = part.table("metadata")
    rows = table.rows(part.connection, ("tag", "value")) if table else ()
    return origin_of([str(value) for tag, value in rows if tag == ORIGIN_MARK], findings)
