"""A results JSON of rocprofv3 (one process) as a ``Trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.model.trace import TraceSource
from rpl_rocprofv3.readers.findings import Findings
from rpl_rocprofv3.readers.json.calls import read_json_calls, read_json_copies
from rpl_rocprofv3.readers.json.counters import JsonCounters
from rpl_rocprofv3.readers.json.dispatches import JsonDispatches
from rpl_rocprofv3.readers.json.info import read_info
from rpl_rocprofv3.readers.json.records import entries, value_at
from rpl_rocprofv3.readers.trace.origin_marks import origin_of
from rpl_rocprofv3.readers.trace.parts import TraceParts, assembled

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.model.trace import Trace
    from rpl_rocprofv3.readers.json.info import JsonInfo

__all__ = ["read_results_json"]

_FORMAT = "rocprofv3 JSON"


def read_results_json(path: Path, reader: str) -> Trace:
    """Read one file; each section is streamed once."""
    findings = Findings(path)
    info = read_info(path)
    dispatches, counters = _dispatches_and_counters(path, info)
    rows, kernels = dispatches.rows(findings)
    parts = TraceParts(
        source=TraceSource(reader, _FORMAT, (str(path),)),
        processes=(info.process,),
        agents=info.agents,
        kernels=kernels,
        rows=rows,
        stream_id=dispatches.column("stream"),
        queue_id=dispatches.column("queue"),
        copies=read_json_copies(path, info),
        calls=read_json_calls(path, info, findings),
        counter_names=counters.names,
        grouped_by_queue=info.grouped_by_queue,
        origin=origin_of(info.origin_marks, findings),
    )
    return assembled(
        parts,
        lambda ordered: counters.rows(rows.dispatch_id, ordered.row_of) if len(counters) else None,
        findings,
    )


def _dispatches_and_counters(path: Path, info: JsonInfo) -> tuple[JsonDispatches, JsonCounters]:
    """The dispatches of the kernel trace, or of the counter records where no trace was made."""
    dispatches = JsonDispatches(info)
    for record in entries(path, "buffer_records.kernel_dispatch.item"):
        dispatches.add(record, value_at(record, "stream_id"))
    traced = len(dispatches) > 0
    counters = JsonCounters.of(info.counter_names)
    for record in entries(path, "callback_records.counter_collection.item"):
        counters.add(record)
        if not traced:
            dispatches.add(value_at(record, "dispatch_data"), value_at(record, "stream_id"))
    return dispatches, counters
