"""Stream arguments of API calls to lanes: no table of a recording says it, so launches are the witnesses.

A launch's call names the stream by pointer and its node runs in a lane
(docs/reference/execution-graph.md, section 5). A pointer can name another stream after its stream was
destroyed, so each pairing holds for a range of calls. A thread has a default stream of its own on each
device, the same one under both of its names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.graph import join_keys, number_keys, places
from rpl_core.model.trace import (
    LEGACY_STREAM,
    NO_HANDLE,
    NOT_RECORDED,
    NULL_STREAM,
    THREAD_STREAM,
    CallKind,
    distinct_values,
)
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.host_program.calls import CurrentDevice, HostCalls
    from rpl_analysis.execution_graph.host_program.submission import Submissions

    Int64Column = NDArray[np.int64]
    BoolColumn = NDArray[np.bool_]

__all__ = ["StreamHandles", "learn_stream_handles"]

_NOT_OWN = -1


@frozen(eq=False)
class StreamHandles:
    """Which lane a stream argument means. Ranges of one key are ascending and disjoint.

    ``handle``: distinct handles ascending. Per range ``range_key`` ((process, handle, thread and device of
    its own stream) as one number, times calls, plus last row; ascending) and ``range_lane``. ``null_lane``
    [process, agent] and ``only_lane`` [process] are -1 where there is none.
    """

    calls: HostCalls
    device: CurrentDevice
    handle: NDArray[np.uint64]
    range_key: Int64Column
    range_lane: Int64Column
    null_lane: Int64Column
    only_lane: Int64Column

    def lane_at(self, rows: Int64Column) -> Int64Column:
        """Lane of the stream argument of each API call, -1 where it can't be told."""
        table = self.calls.table
        handle = table.stream_handle[rows]
        process = table.process[rows].astype(np.int64)
        lane = self._by_range(rows)
        null = self.is_null(rows) & (process >= 0)
        if null.any():
            agent = self.device.agent_at(rows[null])
            of_null = np.where(agent >= 0, self.null_lane[process[null], agent], NOT_RECORDED)
            # Where queues stand in for streams there is no null lane: launches tell what there is.
            lane[null] = np.where(of_null >= 0, of_null, lane[null])
        # Without the argument there is no doubt only where the process has one lane.
        absent = (handle == NO_HANDLE) & (process >= 0)
        lane[absent] = self.only_lane[process[absent]]
        return lane

    def is_null(self, rows: Int64Column) -> BoolColumn:
        """Whether each call's stream argument is the null stream."""
        handle = self.calls.table.stream_handle[rows]
        null: BoolColumn = (handle == NULL_STREAM) & ~self.calls.own_null[rows]
        null |= handle == LEGACY_STREAM
        return null

    def own_at(self, rows: Int64Column) -> Int64Column:
        """A number of thread and device where the stream argument means the thread's own stream, else -1."""
        return _own_streams(self.device, rows)

    def names_at(self, rows: Int64Column) -> NDArray[np.uint64]:
        """The stream arguments, each stream by one name only."""
        return np.where(self.is_null(rows), NULL_STREAM, _names(self.calls, rows))

    def own_lanes(self) -> Int64Column:
        """Lanes that are threads' own default streams."""
        is_own = self.range_key // np.int64(len(self.calls) + 1) % _own_span(self.device) > 0
        own: Int64Column = self.range_lane[is_own]
        return own

    def range_at(self, rows: Int64Column) -> Int64Column:
        """Index of the range that each call's stream argument falls into, -1 for none."""
        code = places(_names(self.calls, rows), self.handle)
        key = _range_key(self.device, rows, code, self.handle.size)
        if not self.range_key.size:
            return np.full(rows.size, NOT_RECORDED, dtype=np.int64)
        size = np.int64(len(self.calls) + 1)
        index = np.searchsorted(self.range_key, key * size + rows)
        inside = (code >= 0) & (index < self.range_key.size)
        index = np.minimum(index, self.range_key.size - 1)
        inside &= self.range_key[index] // size == key
        return np.where(inside, index, NOT_RECORDED)

    def _by_range(self, rows: Int64Column) -> Int64Column:
        index = self.range_at(rows)
        if not self.range_lane.size:
            return index
        return np.where(index >= 0, self.range_lane[index], NOT_RECORDED)


def _is_own(calls: HostCalls, rows: Int64Column) -> BoolColumn:
    """Whether the stream argument means a stream of the calling thread's own."""
    handle = calls.table.stream_handle[rows]
    own: BoolColumn = (handle == THREAD_STREAM) | (calls.own_null[rows] & (handle == NULL_STREAM))
    return own


def _names(calls: HostCalls, rows: Int64Column) -> NDArray[np.uint64]:
    return np.where(_is_own(calls, rows), THREAD_STREAM, calls.table.stream_handle[rows])


def _own_streams(device: CurrentDevice, rows: Int64Column) -> Int64Column:
    own = _is_own(device.calls, rows)
    found = np.full(rows.size, _NOT_OWN, dtype=np.int64)
    if own.any():
        thread = device.calls.thread[rows[own]].astype(np.int64)
        found[own] = thread * _devices(device) + device.ordinal_at(rows[own])
    return found


def _devices(device: CurrentDevice) -> int:
    return 1 + int(device.set_ordinal.max(initial=0))


def _own_span(device: CurrentDevice) -> int:
    """More than any number of ``_own_streams`` plus 1."""
    return device.calls.threads * _devices(device) + 1


def _range_key(device: CurrentDevice, rows: Int64Column, code: Int64Column, handles: int) -> Int64Column:
    process = device.calls.table.process[rows].astype(np.int64)
    return (process * max(1, handles) + np.maximum(code, 0)) * _own_span(device) + (
        _own_streams(device, rows) + 1
    )


def learn_stream_handles(
    nodes: WorkNodes, submissions: Submissions, calls: HostCalls, device: CurrentDevice
) -> StreamHandles:
    """Pair handles and lanes from all nodes whose call is known."""
    lane, first, last = _sightings(nodes, submissions, device)
    handles = distinct_values(_names(calls, first))
    code = places(_names(calls, first), handles)
    key = _range_key(device, first, code, handles.size)
    order = np.lexsort((lane, first, key))
    key, lane, first, last = key[order], lane[order], first[order], last[order]
    end = _range_ends(device, handles, key, first, last)
    size = np.int64(len(calls) + 1)
    return StreamHandles(
        calls=calls,
        device=device,
        handle=handles,
        range_key=key * size + end,
        range_lane=lane,
        null_lane=_null_lanes(nodes, device),
        only_lane=_only_lanes(nodes, device),
    )


def _sightings(
    nodes: WorkNodes, submissions: Submissions, device: CurrentDevice
) -> tuple[Int64Column, Int64Column, Int64Column]:
    """Lane, first and last call of every pairing of a handle with a lane; null streams are left out."""
    node = np.flatnonzero(submissions.call >= 0)
    call = submissions.call[node]
    calls = device.calls
    handle, lane = _names(calls, call), nodes.lane[node].astype(np.int64)
    named = (handle != NO_HANDLE) & ~nodes.lanes.is_null[lane]
    if not named.all():
        call, handle, lane = call[named], handle[named], lane[named]
    sample = np.zeros(len(nodes.lanes), dtype=np.int64)
    sample[lane] = call
    # Nearly always a lane has one handle for its life; only others need to be told apart by sorting.
    odd = handle != _names(calls, sample)[lane]
    own = _own_streams(device, call)
    odd |= own != _own_streams(device, sample)[lane]
    group = lane
    if odd.any():
        several = np.isin(lane, lane[odd])
        _, rank = np.unique(handle[several], return_inverse=True)
        group = lane.copy()
        group[several] = join_keys((lane[several], rank.reshape(-1), own[several] + 1)) + len(nodes.lanes)
    numbers, index = number_keys(group)
    first = np.full(numbers.size, len(calls), dtype=np.int64)
    last = np.zeros(numbers.size, dtype=np.int64)
    np.minimum.at(first, index, call)
    np.maximum.at(last, index, call)
    of_group = np.zeros(numbers.size, dtype=np.int64)
    of_group[index] = lane
    return of_group, first, last


def _range_ends(
    device: CurrentDevice,
    handles: NDArray[np.uint64],
    key: Int64Column,
    first: Int64Column,
    last: Int64Column,
) -> Int64Column:
    """Last row for which each pairing holds: up to the stream's destruction, else up to the next pairing."""
    calls = device.calls
    size = np.int64(len(calls) + 1)
    until = np.full(key.size, len(calls), dtype=np.int64)
    followed = key[1:] == key[:-1]
    until[:-1][followed] = np.maximum(first[1:][followed] - 1, first[:-1][followed])
    rows = calls.rows(CallKind.STREAM_DESTROY)
    code = places(calls.table.stream_handle[rows], handles)
    rows, code = rows[code >= 0], code[code >= 0]
    destroyed = np.sort(_range_key(device, rows, code, handles.size) * size + rows)
    if not destroyed.size:
        return until
    index = np.searchsorted(destroyed, key * size + last)
    place = np.minimum(index, destroyed.size - 1)
    same = (index < destroyed.size) & (destroyed[place] // size == key)
    return np.where(same, np.minimum(until, destroyed[place] % size), until)


def _null_lanes(nodes: WorkNodes, device: CurrentDevice) -> Int64Column:
    lanes = nodes.lanes
    agents = int(np.concatenate([lanes.agent, device.agent.ravel()]).max(initial=-1)) + 1
    null_lane = np.full((device.only_agent.size, agents), NOT_RECORDED, dtype=np.int64)
    null = np.flatnonzero(lanes.is_null & (lanes.agent >= 0) & (lanes.process >= 0))
    null_lane[lanes.process[null], lanes.agent[null]] = null
    return null_lane


def _only_lanes(nodes: WorkNodes, device: CurrentDevice) -> Int64Column:
    """Per process its one lane, -1 where it has several."""
    process = nodes.lanes.process
    known = np.flatnonzero(process >= 0)
    only_lane = np.full(device.only_agent.size, NOT_RECORDED, dtype=np.int64)
    only_lane[process[known]] = known
    several = np.bincount(process[known], minlength=only_lane.size) > 1
    only_lane[several] = NOT_RECORDED
    return only_lane
