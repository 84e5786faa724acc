"""Waits behind which nothing was submitted yet: records and synchronisations of the stream stand for them.

A stream is a FIFO of commands, and waits are commands: what is recorded or awaited behind a wait comes after
all that the wait waited for, though the stream may hold no work in between, or none at all
(docs/reference/execution-graph.md, 2.3). The synchronisation of a device stands for those of all its streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rpl_analysis.critical_path.segmented import running_max
from rpl_analysis.execution_graph.graph import Confidence, first_rows, join_keys, number_keys
from rpl_analysis.execution_graph.host_program.calls import last_surely_before, surely_before
from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED, CallKind
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.dependencies.event_edges import EventRecords, EventWaits
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.program import HostProgram
    from rpl_analysis.execution_graph.host_program.stream_handles import StreamHandles

    Int64Column = NDArray[np.int64]

__all__ = ["PendingWork", "pending_work"]

#: Pairs of a wait and a call behind it that are looked at (chosen: some seconds).
_MOST_LOOKS = 2**20


@frozen(eq=False)
class PendingWork:
    """Nodes beside the last one of its stream that a call stands for, with ``Confidence``.

    ``records`` by index of the record, ``syncs`` by row of the synchronisation of a stream or device.
    """

    records: dict[int, dict[int, int]]
    syncs: dict[int, dict[int, int]]

    def of_records(self, record: Int64Column) -> tuple[Int64Column, Int64Column, NDArray[np.int8]]:
        """Entries of ``record`` that stand for further nodes, once per such node; the nodes; how sure."""
        if not self.records:
            return _columns([])
        known = np.isin(record, np.fromiter(self.records, dtype=np.int64))
        return _columns(
            (int(entry), node, doubt)
            for entry in np.flatnonzero(known)
            for node, doubt in self.records[int(record[entry])].items()
        )

    def of_syncs(self) -> tuple[Int64Column, Int64Column, NDArray[np.int8]]:
        """Row of the call, node and confidence of every pair."""
        return _columns(
            (row, node, doubt) for row, found in self.syncs.items() for node, doubt in found.items()
        )


def _columns(
    rows: Iterable[tuple[int, int, int]],
) -> tuple[Int64Column, Int64Column, NDArray[np.int8]]:
    table: Int64Column = np.array(list(rows), dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2].astype(np.int8)


class _Behind(NamedTuple):
    """Calls that stand for what a stream held before them: its last node, and waits behind that."""

    row: Int64Column
    lane: Int64Column
    node: Int64Column
    record: Int64Column  # index of the record, -1 for synchronisations


def pending_work(program: HostProgram, records: EventRecords, waits: EventWaits) -> PendingWork:
    """What every record and stream synchronisation stands for beside the last node of its stream."""
    found = PendingWork({}, {})
    if program.nodes.by_queue or not waits.row.size:
        return found  # A queue holds several streams: what waited there is not known.
    calls, streams = program.calls, program.streams
    assert calls is not None
    assert streams is not None
    behind = _calls_behind(program, calls, streams, records)
    wait = np.flatnonzero((waits.record >= 0) & ((waits.lane >= 0) | _is_named(calls, waits.row)))
    stream = _streams_of(
        calls,
        streams,
        np.concatenate([waits.row[wait], behind.row]),
        np.concatenate([waits.lane[wait], behind.lane]),
        len(program.nodes.lanes),
    )
    of_wait, of_call = stream[: wait.size], stream[wait.size :]
    if (streams.device.set_ordinal > 0).any():
        # Of several devices; what the streams of a single one wait for is the device's own work.
        further, of_further = _device_syncs_behind(program, calls, streams, waits, wait, of_wait)
        behind = _Behind(*(np.concatenate(both) for both in zip(behind, further, strict=True)))
        of_call = np.concatenate([of_call, of_further])
    order = np.lexsort((waits.row[wait], of_wait))
    wait, of_wait = wait[order], of_wait[order]
    first, last = _ranges(program, waits, wait, of_wait, behind, of_call)
    looks = np.cumsum(np.maximum(last - first, 0))
    for call in np.flatnonzero((first < last) & (looks <= _MOST_LOOKS)).tolist():
        nodes = _nodes_of(program, records, waits, wait[first[call] : last[call]], behind, call, found)
        if nodes and behind.record[call] >= 0:
            found.records[int(behind.record[call])] = nodes
        elif nodes:
            known = found.syncs.setdefault(int(behind.row[call]), {})
            known.update({node: min(doubt, known.get(node, doubt)) for node, doubt in nodes.items()})
    return found


def _is_named(calls: HostCalls, rows: Int64Column) -> NDArray[np.bool_]:
    named: NDArray[np.bool_] = calls.table.stream_handle[rows] != NO_HANDLE
    return named


def _calls_behind(
    program: HostProgram, calls: HostCalls, streams: StreamHandles, records: EventRecords
) -> _Behind:
    """All records and stream synchronisations, ascending by row: a wait meets records made before it only."""
    rows = calls.rows(CallKind.STREAM_SYNC)
    lane = streams.lane_at(rows)
    marks = np.flatnonzero(calls.kind[records.row] == CallKind.RECORD)
    behind = _Behind(
        row=np.concatenate([records.row[marks], rows]),
        lane=np.concatenate([records.lane[marks], lane]),
        node=np.concatenate([records.node[marks], last_surely_before(program, lane, rows)]),
        record=np.concatenate([marks, np.full(rows.size, NOT_RECORDED)]),
    )
    known = (behind.lane >= 0) | _is_named(calls, behind.row)
    order = np.argsort(behind.row, kind="stable")
    order = order[known[order]]
    return _Behind(*(column[order] for column in behind))


def _device_syncs_behind(
    program: HostProgram,
    calls: HostCalls,
    streams: StreamHandles,
    waits: EventWaits,
    wait: Int64Column,
    of_wait: Int64Column,
) -> tuple[_Behind, Int64Column]:
    """One entry per device synchronisation and stream of its device with waits; the streams' numbers."""
    numbers, index = number_keys(of_wait)
    first = wait[first_rows(index, numbers.size)]
    lane, row = waits.lane[first], waits.row[first]
    syncs = calls.rows(CallKind.DEVICE_SYNC)[: _MOST_LOOKS // max(1, numbers.size)]
    agent = streams.device.agent_at(syncs)
    same = (program.nodes.lanes.agent[lane][:, None] == agent) & (agent >= 0)
    same[lane < 0] = _ordinal_of_stream(calls, streams, row[lane < 0])[:, None] == streams.device.ordinal_at(
        syncs
    )
    same &= calls.table.process[row][:, None] == calls.table.process[syncs]
    stream, sync = np.nonzero(same)
    behind = _Behind(
        row=syncs[sync],
        lane=lane[stream],
        node=last_surely_before(program, lane[stream], syncs[sync]),
        record=np.full(sync.size, NOT_RECORDED),
    )
    return behind, numbers[stream]


def _ordinal_of_stream(calls: HostCalls, streams: StreamHandles, rows: Int64Column) -> Int64Column:
    """The device of each call's stream: that of the call which created it; of a null stream the caller's."""
    ordinal = streams.device.ordinal_at(rows)
    named = np.flatnonzero(~streams.is_null(rows) & (streams.own_at(rows) < 0))
    creates = calls.rows(CallKind.STREAM_CREATE)
    both = np.concatenate([rows[named], creates])
    key = join_keys((calls.table.process[both], calls.table.stream_handle[both].view(np.int64)))
    size = np.int64(len(calls) + 1)
    made = np.sort(key[named.size :] * size + creates)
    index = np.searchsorted(made, key[: named.size] * size + rows[named]) - 1
    last = made[np.maximum(index, 0)] if made.size else np.zeros(named.size, dtype=np.int64)
    known = (index >= 0) & (last // size == key[: named.size])
    ordinal[named] = np.where(known, streams.device.ordinal_at(last % size), NOT_RECORDED)
    return ordinal


def _streams_of(
    calls: HostCalls, streams: StreamHandles, rows: Int64Column, lane: Int64Column, lanes: int
) -> Int64Column:
    """A number per stream, that of its lane where it has one: streams without any work are told by handle."""
    number: Int64Column = lane.copy()
    unknown = np.flatnonzero(lane < 0)
    rows = rows[unknown]
    handle = streams.names_at(rows).view(np.int64)
    process = calls.table.process[rows]
    # A pointer names another stream once it was destroyed or created again.
    marks = calls.rows(CallKind.STREAM_CREATE, CallKind.STREAM_DESTROY)
    both = join_keys(
        (
            np.concatenate([process, calls.table.process[marks]]),
            np.concatenate([handle, calls.table.stream_handle[marks].view(np.int64)]),
        )
    )
    size = np.int64(len(calls) + 1)
    lived = np.sort(both[rows.size :] * size + marks)
    life = np.searchsorted(lived, both[: rows.size] * size + rows)
    device = np.where(streams.is_null(rows), streams.device.ordinal_at(rows), NOT_RECORDED)
    own = streams.own_at(rows)
    _, index = number_keys(join_keys((both[: rows.size], life, device, own)))
    number[unknown] = index + np.int64(lanes)
    return number


def _ranges(
    program: HostProgram,
    waits: EventWaits,
    wait: Int64Column,
    of_wait: Int64Column,
    behind: _Behind,
    of_call: Int64Column,
) -> tuple[Int64Column, Int64Column]:
    """Per call the waits (by stream and row) from the first behind its last node to the last before it."""
    size = np.int64(int(max(waits.row.max(initial=0), behind.row.max(initial=0))) + 1)
    span = np.int64(len(program.nodes) + 3)
    rank = program.order.rank
    held = np.where(waits.node[wait] >= 0, rank[waits.node[wait]] + 1, span - 1)
    reached = running_max(held, of_wait) if wait.size else held
    last_node = np.where(behind.node >= 0, rank[behind.node] + 1, 0)
    first = np.searchsorted(of_wait * span + reached, of_call * span + last_node, side="right")
    last = np.searchsorted(of_wait * size + waits.row[wait], of_call * size + behind.row)
    return first, last


def _nodes_of(
    program: HostProgram,
    records: EventRecords,
    waits: EventWaits,
    candidates: Int64Column,
    behind: _Behind,
    call: int,
    found: PendingWork,
) -> dict[int, int]:
    """Nodes that the waits before one call waited for, with how sure that is; per lane the latest."""
    calls, rank = program.calls, program.order.rank
    assert calls is not None
    own = int(behind.node[call])
    row = np.full(candidates.size, behind.row[call])
    nodes: dict[int, int] = {}
    for wait in candidates[surely_before(calls, waits.row[candidates], row)].tolist():
        held = int(waits.node[wait])
        if held >= 0 and own >= 0 and rank[held] <= rank[own]:
            continue
        record = int(waits.record[wait])
        doubt = int(Confidence.CERTAIN if waits.sure[wait] else Confidence.PROBABLE)
        if records.node[record] >= 0:
            node = int(records.node[record])
            nodes[node] = min(doubt, nodes.get(node, doubt))
        for node, own_doubt in found.records.get(record, {}).items():
            nodes[node] = min(max(doubt, own_doubt), nodes.get(node, doubt | own_doubt))
    return _latest_per_lane(program, nodes)


def _latest_per_lane(program: HostProgram, nodes: dict[int, int]) -> dict[int, int]:
    """Without nodes that a later one of the same lane, at least as sure, implies."""
    kept: dict[int, int] = {}
    surest: dict[int, int] = {}
    for node in sorted(nodes, key=lambda node: -int(program.order.rank[node])):
        lane = int(program.nodes.lane[node])
        if nodes[node] < surest.get(lane, Confidence.GUESS):
            kept[node] = surest[lane] = nodes[node]
    return kept
