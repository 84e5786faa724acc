"""One part of a rocpd database (one guid) as a ``Trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.origin import Origin
from rpl_core.model.trace import TraceSource
from rpl_rocprofv3.readers.api_ancestors import launching_calls
from rpl_rocprofv3.readers.findings import Findings
from rpl_rocprofv3.readers.id_lookup import distinct_ids
from rpl_rocprofv3.readers.rocpd_api import api_calls, has_api_rows, read_host_calls
from rpl_rocprofv3.readers.rocpd_copies import read_copies
from rpl_rocprofv3.readers.rocpd_counters import read_counters
from rpl_rocprofv3.readers.rocpd_dispatches import read_dispatch_columns, resolve_dispatches
from rpl_rocprofv3.readers.rocpd_events import read_events
from rpl_rocprofv3.readers.rocpd_info import read_agents, read_names, read_processes
from rpl_rocprofv3.readers.trace_parts import TraceParts, assembled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.model.trace import Int64Column, Trace
    from rpl_rocprofv3.readers.id_lookup import IntegerColumn
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
    copies = read_copies(database, part, events, processes, agents, findings)
    counters = read_counters(database, part, findings)
    rows = found.rows
    if calls is not None:
        rows = attrs.evolve(rows, correlation_id=launching_calls(rows.correlation_id, calls))
    stream_ids = [raw["stream_id"], *([copies[1]] if copies else [])]
    parts = TraceParts(
        source=TraceSource(reader, form, (str(database.path),)),
        processes=processes.values,
        agents=agents.values,
        kernels=found.kernels,
        rows=rows,
        stream_id=raw["stream_id"],
        queue_id=raw["queue_id"],
        copies=copies,
        calls=api_calls(part, calls, processes, findings) if calls else None,
        counter_names=counters.names if counters else (),
        stream_names=read_names(part, "info_stream", _used(stream_ids)),
        queue_names=read_names(part, "info_queue", _used([raw["queue_id"]])),
        grouped_by_queue=processes.grouped_by_queue,
        origin=_origin(part, findings),
    )
    return assembled(
        parts, lambda ordered: counters.rows(found.event_id, ordered) if counters else None, findings
    )


def _used(columns: Sequence[IntegerColumn]) -> Int64Column:
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
    )
    return Origin.weakest([known.get(mark, Origin.SYNTHETIC) for mark in marks])
