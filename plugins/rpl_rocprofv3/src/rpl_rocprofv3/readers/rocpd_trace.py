"""One part of a rocpd database (one guid) as a ``Trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.diagnostic import Severity
from rpl_core.model.origin import Origin
from rpl_core.model.trace import Queue, Stream, Trace, TraceRole, TraceSource
from rpl_rocprofv3.readers.api_ancestors import launching_calls
from rpl_rocprofv3.readers.copy_table import ordered_copies
from rpl_rocprofv3.readers.counter_table import checked_counters
from rpl_rocprofv3.readers.dispatch_table import ordered_dispatches
from rpl_rocprofv3.readers.findings import Findings
from rpl_rocprofv3.readers.handles import number_handles
from rpl_rocprofv3.readers.id_lookup import distinct_ids
from rpl_rocprofv3.readers.rocpd_api import api_calls, has_api_rows, read_host_calls
from rpl_rocprofv3.readers.rocpd_copies import read_copies
from rpl_rocprofv3.readers.rocpd_counters import read_counters
from rpl_rocprofv3.readers.rocpd_dispatches import read_dispatch_columns, resolve_dispatches
from rpl_rocprofv3.readers.rocpd_events import read_events
from rpl_rocprofv3.readers.rocpd_info import read_agents, read_names, read_processes
from rpl_rocprofv3.readers.trace_checks import check_clock, check_waves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.model.trace import Int64Column
    from rpl_rocprofv3.readers.rocpd_parts import Part
    from rpl_rocprofv3.readers.sqlite_file import Database

__all__ = ["read_part"]

_ORIGIN_TAG = "rpl_origin"


def read_part(database: Database, part: Part, reader: str, form: str) -> Trace:
    """Read everything that a trace can hold from one part."""
    findings = Findings(database.path)
    processes, agents = read_processes(part), read_agents(part)
    traced_api = has_api_rows(part)
    events = read_events(database, part, of_api_calls=traced_api)
    calls = read_host_calls(database, part, events) if traced_api else None
    raw = read_dispatch_columns(database, part, findings)
    found = resolve_dispatches(part, raw, events, processes, agents, findings)
    copied = read_copies(database, part, events, processes, agents, findings)
    rows, copy_rows = found.rows, copied.rows if copied else None
    process_columns = [rows.process, *([copy_rows.process] if copy_rows else [])]
    stream_ids = [raw["stream_id"], *([copied.stream_id] if copied else [])]
    streams, stream_columns = number_handles(
        Stream, process_columns, stream_ids, read_names(part, "info_stream", _used(stream_ids))
    )
    queues, (queue,) = number_handles(
        Queue, [rows.process], [raw["queue_id"]], read_names(part, "info_queue", _used([raw["queue_id"]]))
    )
    correlation = launching_calls(rows.correlation_id, calls) if calls else rows.correlation_id
    rows = attrs.evolve(rows, stream=stream_columns[0], queue=queue, correlation_id=correlation)
    ordered = ordered_dispatches(rows, findings)
    counters = read_counters(part, findings)
    values = None
    if counters is not None:
        duration = ordered.dispatches.duration_ns()
        readings = counters.rows(found.event_id, ordered.row_of, duration)
        values = checked_counters(readings, counters.names, findings)
    copies = None
    if copy_rows is not None:
        copies = ordered_copies(attrs.evolve(copy_rows, stream=stream_columns[1]), findings)
    api = api_calls(part, calls, processes, findings) if calls else None
    trace = Trace(
        source=TraceSource(reader, form, (str(database.path),)),
        role=TraceRole.TIMING if values is None else TraceRole.COUNTERS,
        origin=_origin(part, findings),
        processes=processes.values,
        agents=agents.values,
        kernels=found.kernels,
        dispatches=ordered.dispatches,
        shapes=ordered.shapes,
        streams=streams,
        queues=queues,
        copies=copies,
        copy_directions=copy_rows.directions if copy_rows else (),
        api_calls=api[0] if api else None,
        api_functions=api[1] if api else (),
        counters=values,
        counter_names=counters.names if counters else (),
        grouped_by_queue=processes.grouped_by_queue,
    )
    check_clock(trace, findings)
    check_waves(trace, findings)
    return attrs.evolve(trace, diagnostics=findings.diagnostics())


def _used(columns: Sequence[Int64Column]) -> Int64Column:
    return distinct_ids(np.concatenate(columns))


def _origin(part: Part, findings: Findings) -> Origin:
    """Measured, unless the writer left a mark that says otherwise. An unknown mark is not trusted."""
    table = part.table("metadata")
    marks = [
        str(value)
        for tag, value in (table.rows(part.connection, ("tag", "value")) if table else ())
        if tag == _ORIGIN_TAG
    ]
    if not marks:
        return Origin.MEASURED
    known = {origin.value: origin for origin in Origin}
    unknown = [mark for mark in marks if mark not in known]
    findings.add(
        "origin.unknown_mark",
        len(unknown),
        f"marks of origin are unknown ({', '.join(unknown)}); the recording counts as synthetic",
        severity=Severity.WARNING,
    )
    return Origin.weakest([known.get(mark, Origin.SYNTHETIC) for mark in marks])
