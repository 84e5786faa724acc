"""A results JSON of rocprofv3 (one process) as a ``Trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import BadDataError
from rpl_core.model.trace import NOT_RECORDED, TraceSource
from rpl_rocprofv3.readers.findings import Findings
from rpl_rocprofv3.readers.json.calls import JsonCalls, JsonCopies, JsonRanges
from rpl_rocprofv3.readers.json.dispatches import (
    JsonCounters,
    JsonDispatches,
    counter_names,
    launches_replayed,
    replay_pass_of,
)
from rpl_rocprofv3.readers.json.info import JsonInfo
from rpl_rocprofv3.readers.json.records import entries, number_at, refusing_depth, value_at
from rpl_rocprofv3.readers.trace.origin_marks import origin_of
from rpl_rocprofv3.readers.trace.parts import TraceParts, assembled

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.model.trace import Trace

__all__ = ["read_results_json"]

_FORMAT = "rocprofv3 JSON"


def read_results_json(path: Path, reader: str) -> Trace:
    """Read one file in one pass. Raises ``BadDataError`` unless exactly one process is recorded."""
    with refusing_depth(path):
        return _trace(path, reader, Findings(path))


def _trace(path: Path, reader: str, findings: Findings) -> Trace:
    records = _read(path)
    info, counters = records.info, records.counters
    dispatches = records.traced if len(records.traced) else records.counted
    rows, kernels = dispatches.rows(info, findings)
    parts = TraceParts(
        source=TraceSource(reader, _FORMAT, (str(path),)),
        processes=tuple(info.processes),
        agents=tuple(info.agents),
        kernels=kernels,
        rows=rows,
        stream_id=dispatches.column("stream"),
        queue_id=dispatches.column("queue"),
        copies=records.copies.copies(info),
        calls=records.calls.calls(info, findings),
        ranges=tuple(records.ranges.ranges(info)),
        counter_names=counter_names(info.counter_names),
        grouped_by_queue=info.grouped_by_queue,
        origin=origin_of(info.origin_marks, findings),
    )
    if records.replayed:
        _note_not_replayed(records, findings)
    return assembled(
        parts,
        lambda ordered: (
            counters.rows(info.counter_names, rows.dispatch_id, ordered.row_of, findings)
            if len(counters)
            else None
        ),
        findings,
    )


def _note_not_replayed(records: _Records, findings: Findings) -> None:
    """Launches that have fewer counter groups than others, by kernel: what kernel replay left out."""
    ids, passes = launches_replayed(records.counters)
    fewer = set(ids[passes < passes.max()].tolist()) if len(ids) else set()
    columns = (records.counted.column(name).tolist() for name in ("dispatch", "kernel"))
    counted = zip(*columns, strict=True)
    kernels = [kernel for dispatch, kernel in counted if dispatch in fewer]
    for kernel in dict.fromkeys(kernels):
        known = records.info.symbol(kernel)
        name = "an unknown kernel" if known is None else known.name
        findings.add(
            "counter.not_replayed",
            kernels.count(kernel),
            f"launch of {name} was not replayed: it has one counter group only",
            f"launches of {name} were not replayed: they have one counter group only",
            cause="a HIP graph, a submission of several packets, or memory that could not be restored",
            remedy="count these with --replay off",
        )


@attrs.define(eq=False)
class _Records:
    """Everything of a file that a trace holds.

    Dispatches of the kernel trace count; those of the counter records stand in where no trace was made.
    """

    info: JsonInfo = attrs.field(factory=JsonInfo)
    traced: JsonDispatches = attrs.field(factory=JsonDispatches)
    counted: JsonDispatches = attrs.field(factory=JsonDispatches)
    counters: JsonCounters = attrs.field(factory=JsonCounters)
    calls: JsonCalls = attrs.field(factory=JsonCalls)
    ranges: JsonRanges = attrs.field(factory=JsonRanges)
    copies: JsonCopies = attrs.field(factory=JsonCopies)
    replayed: set[int] = attrs.field(factory=set)

    def add_traced(self, record: Any) -> None:
        self.traced.add(record, value_at(record, "stream_id"))

    def add_counted(self, record: Any) -> None:
        self.counters.add(record)
        if replay_pass_of(record) != NOT_RECORDED:
            # All replays of a launch have its id: it ran once for the application.
            dispatch = number_at(record, "dispatch_data", "dispatch_info", "dispatch_id")
            if dispatch in self.replayed:
                return
            self.replayed.add(dispatch)
        self.counted.add(value_at(record, "dispatch_data"), value_at(record, "stream_id"))


def _read(path: Path) -> _Records:
    records = _Records()
    sections = {
        **records.info.sections(),
        "callback_records.counter_collection": records.add_counted,
        "buffer_records.kernel_dispatch": records.add_traced,
        "buffer_records.hip_api": records.calls.add,
        "buffer_records.marker_api": records.ranges.add,
        "buffer_records.memory_copy": records.copies.add,
        "strings.marker_api": records.ranges.add_text,
    }
    for section, value in entries(path):
        add = sections.get(section)
        if add is not None:
            add(value)
    processes = len(records.info.processes)
    if processes != 1:
        raise BadDataError(
            f"{path} holds {processes} processes, and rpl reads JSON of one process",
            next_step="record one file per process (`-o %hostname%/%pid%`, the default)",
        )
    return records
