"""One part of a rocpd database (one guid) as a ``Trace``.

When HSA calls are traced too, the stack id of a dispatch may be that of an inner HSA call; the HIP call that
launched it is an ancestor (docs/reference/execution-graph.md, section 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.metric import ORIGIN_MARK
from rpl_core.model.trace import NOT_RECORDED, TraceSource, distinct_values
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns import distinct_ids, positions, taken
from rpl_rocprofv3.readers.findings import Findings
from rpl_rocprofv3.readers.rocpd.api import api_calls, has_api_rows, marked_ranges, read_host_calls
from rpl_rocprofv3.readers.rocpd.info import read_agents, read_names, read_processes
from rpl_rocprofv3.readers.rocpd.work import (
    read_copies,
    read_counters,
    read_dispatch_columns,
    read_events,
    read_hip_events,
    resolve_dispatches,
)
from rpl_rocprofv3.readers.trace.parts import TraceParts, assembled, mark_of_folder, origin_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.metric import Origin
    from rpl_core.model.trace import ApiCalls, HostRange, Int64Column, Trace
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.columns import IntegerColumn
    from rpl_rocprofv3.readers.rocpd.api import HostCalls
    from rpl_rocprofv3.readers.rocpd.info import Part, Processes
    from rpl_rocprofv3.readers.rocpd.work import Events

__all__ = ["read_part"]

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
