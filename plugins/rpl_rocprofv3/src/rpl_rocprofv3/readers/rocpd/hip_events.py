"""GPU-side event records and waits: the rows of ``rocpd_hip_event`` (schema 3.0.4 and later)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NOT_RECORDED, DeviceEvents, distinct_values
from rpl_rocprofv3.readers.columns.id_lookup import positions
from rpl_rocprofv3.readers.rocpd.info import read_strings
from rpl_rocprofv3.readers.sqlite.integer_columns import read_integers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.model.trace import Int32Column, Int64Column, Queue
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.columns.id_lookup import IntegerColumn
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.rocpd.events import Events
    from rpl_rocprofv3.readers.rocpd.info import Agents, Processes
    from rpl_rocprofv3.readers.rocpd.parts import Part

__all__ = ["read_hip_events"]

_COLUMNS = (
    *("pid", "agent_id", "name_id", "hip_event_handle", "queue_id", "source_queue_id"),
    *("start", "end", "event_id"),
)
# Operation names of the table (docs/reference/execution-graph.md, 2.7).
_WAIT, _RECORD = "HIP_EVENT_WAIT", "HIP_EVENT_RECORD"


def read_hip_events(
    database: Database,
    part: Part,
    events: Events,
    processes: Processes,
    agents: Agents,
    queues: Sequence[Queue],
    findings: Findings,
) -> DeviceEvents | None:
    """All records and waits in order of (begin, end, process, correlation id); None when there are none."""
    table = part.table("hip_event")
    if table is None:
        return None
    raw = read_integers(database, table, _COLUMNS)
    if not len(raw):
        return None
    findings.add(
        "hip_event.unreadable_values",
        raw.unreadable,
        "value in rocpd_hip_event is no integer",
        "values in rocpd_hip_event are no integers",
    )
    process = processes.positions(raw["pid"])
    process = np.maximum(process, 0) if len(processes.ids) == 1 else process
    correlation = events.stack_id_at(events.positions(raw["event_id"]))
    is_wait, known = _operations(part, raw["name_id"])
    begin, end = raw.wide("start"), raw.wide("end")
    usable = known & (process >= 0) & (begin >= 0) & (end >= begin)
    findings.add(
        "hip_event.unusable",
        int((~usable).sum()),
        "GPU-side event is no record or wait, or has no usable times, and is left out",
        "GPU-side events are no records or waits, or have no usable times, and are left out",
    )
    order = np.lexsort((correlation, process, end, begin))
    chosen = order[usable[order]]
    return DeviceEvents(
        process=process[chosen].astype(np.int32),
        agent=agents.positions(raw["agent_id"])[chosen].astype(np.int32),
        queue=_queue_index(queues, process, raw["queue_id"])[chosen],
        source_queue=_queue_index(queues, process, raw["source_queue_id"])[chosen],
        is_wait=is_wait[chosen],
        event_handle=raw.wide("hip_event_handle")[chosen].view(np.uint64),
        correlation_id=correlation[chosen].astype(np.int64),
        begin_ns=begin[chosen],
        end_ns=end[chosen],
    )


def _operations(part: Part, name_id: IntegerColumn) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row is a wait, and whether it is one of the two operations."""
    names = read_strings(part, name_id)
    waits = [number for number, name in names.items() if name == _WAIT]
    records = [number for number, name in names.items() if name == _RECORD]
    is_wait = positions(name_id, sorted(waits)) >= 0
    return is_wait, is_wait | (positions(name_id, sorted(records)) >= 0)


def _queue_index(queues: Sequence[Queue], process: Int32Column, ids: IntegerColumn) -> Int32Column:
    """Index into ``queues`` of each (process, queue id); -1 where no dispatch ran on it."""
    index = np.full(len(ids), NOT_RECORDED, np.int32)
    for number in distinct_values(process).tolist():
        own = [i for i, queue in enumerate(queues) if queue.process == number]
        if not own:
            continue
        rows = process == number
        place = positions(ids[rows], [queues[i].id for i in own])
        known: Int64Column = np.array(own)
        index[rows] = np.where(place < 0, NOT_RECORDED, known[place])
    return index
