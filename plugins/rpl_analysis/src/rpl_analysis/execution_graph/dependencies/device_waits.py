"""Calls that wait for many lanes: device synchronisation, frees, null streams with blocking streams.

Found from the nodes: the first such call after a node waits for it, unless the lane's next node comes before
that call too. So the cost grows with nodes and calling threads, never with lanes times calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.execution_graph.dependencies.null_streams import Blocking
from rpl_analysis.execution_graph.graph import Confidence
from rpl_analysis.execution_graph.host_program.calls import last_surely_before, surely_submitted
from rpl_analysis.execution_graph.host_program.submission import call_place
from rpl_core.model.trace import CallKind, distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.program import HostProgram
    from rpl_analysis.execution_graph.host_program.stream_handles import StreamHandles

    Int64Column = NDArray[np.int64]
    BoolColumn = NDArray[np.bool_]

__all__ = ["AwaitedPairs", "device_waits"]

#: Pairs per node that are kept: a real program has at most one per thread that synchronises (chosen).
_MOST_PAIRS_PER_NODE = 4
_FEWEST_PAIRS = 2**14
#: Nodes looked at over all threads (chosen: about ten seconds).
_MOST_LOOKS = 2**28


@frozen(eq=False)
class AwaitedPairs:
    """A call (row) and a node that it had waited for, with ``Confidence``, one entry per pair."""

    call: Int64Column
    node: Int64Column
    confidence: NDArray[np.int8]

    @classmethod
    def made(cls, call: Int64Column, node: Int64Column, confidence: Confidence) -> AwaitedPairs:
        """Pairs of one confidence, without those whose node is -1."""
        known = node >= 0
        return cls(call[known], node[known], np.full(int(known.sum()), confidence, dtype=np.int8))


@attrs.define
class _Budget:
    """What a recording with absurdly many threads and lanes may cost."""

    pairs: int
    looks: int

    def spent(self) -> bool:
        return self.pairs < 0 or self.looks < 0


def device_waits(
    program: HostProgram, calls: HostCalls, streams: StreamHandles, status: NDArray[np.int8]
) -> tuple[list[AwaitedPairs], int]:
    """Pairs, and how many device synchronisations are left out: unknown device, or beyond the budget."""
    nodes = program.nodes
    every = np.ones(len(nodes.lanes), dtype=np.bool_)
    with_null = nodes.lanes.is_null | (status == Blocking.YES) | (status == Blocking.ASSUMED)
    of_stream = calls.rows(CallKind.STREAM_SYNC)
    copies = calls.rows(CallKind.BLOCKING_COPY)
    submitted = np.zeros(len(calls), dtype=np.bool_)
    submitted[program.submissions.call[program.submissions.call >= 0]] = True
    budget = _Budget(max(_FEWEST_PAIRS, _MOST_PAIRS_PER_NODE * len(nodes)), _MOST_LOOKS)
    pairs: list[AwaitedPairs] = []
    left_out = 0
    for rows, taken, confidence in (
        (calls.rows(CallKind.DEVICE_SYNC), every, Confidence.CERTAIN),
        (calls.rows(CallKind.FREE), every, Confidence.PROBABLE),
        (of_stream[streams.is_null(of_stream)], with_null, Confidence.PROBABLE),
        (copies[~submitted[copies]], with_null, Confidence.PROBABLE),
    ):
        agent = streams.device.agent_at(rows)
        known = agent >= 0
        waits, beyond = _waits_of_threads(
            program, calls, rows[known], agent[known], taken, confidence, budget
        )
        pairs += waits
        if confidence is Confidence.CERTAIN:
            left_out += int((~known).sum()) + beyond
    return pairs, left_out


def _waits_of_threads(
    program: HostProgram,
    calls: HostCalls,
    rows: Int64Column,
    agent: Int64Column,
    taken: BoolColumn,
    confidence: Confidence,
    budget: _Budget,
) -> tuple[list[AwaitedPairs], int]:
    """Pairs of each call with the last node before it in every taken lane of its agent; calls left out."""
    key = calls.thread[rows].astype(np.int64) * (int(agent.max(initial=0)) + 1) + agent
    lanes = program.nodes.lanes
    waits: list[AwaitedPairs] = []
    left_out = 0
    for number in distinct_values(key).tolist():
        own = key == number
        if budget.spent():
            left_out += int(own.sum())
            continue
        process, device = int(calls.table.process[rows[own][0]]), int(agent[own][0])
        inside = taken & (lanes.process == process) & (lanes.agent == device)
        pairs = _waits_of_thread(program, rows[own], inside, confidence)
        budget.pairs -= pairs.call.size
        budget.looks -= len(program.nodes)
        waits.append(pairs)
    return waits, left_out


def _waits_of_thread(
    program: HostProgram, rows: Int64Column, lanes: BoolColumn, confidence: Confidence
) -> AwaitedPairs:
    order = program.order
    index = np.arange(order.node.size)
    if not lanes.all():
        index = np.flatnonzero(lanes[program.nodes.lane[order.node]])
    place = order.key[index] % order.span - 1
    following = np.searchsorted(call_place(rows), place, side="right")
    lane = order.key[index] // order.span
    is_last = np.ones(index.size, dtype=np.bool_)
    is_last[:-1] = (lane[1:] != lane[:-1]) | (following[1:] != following[:-1])
    is_last &= following < rows.size
    call, node = following[is_last], order.last_to_end[index[is_last]]
    sure = surely_submitted(program, node, rows[call])
    if sure.all():
        return AwaitedPairs.made(rows[call], node, confidence)
    # Launches of other threads that overlap the call: it waits for those before, the next call for them.
    call, node, late, again = call[sure], node[sure], call[~sure], node[~sure]
    before = last_surely_before(program, program.nodes.lane[again].astype(np.int64), rows[late])
    following, again = late[late + 1 < rows.size] + 1, again[late + 1 < rows.size]
    sure = surely_submitted(program, again, rows[following])
    return AwaitedPairs.made(
        rows[np.concatenate([call, late, following[sure]])],
        np.concatenate([node, before, again[sure]]),
        confidence,
    )
