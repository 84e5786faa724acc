"""Which GPU a host thread works on when it makes a call: the one it chose, ordinals to agents.

An ordinal is not an agent index (the environment can hide GPUs), so the mapping is learnt from launches:
the ordinal that was current at the call and the agent that its dispatch ran on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED, CallKind
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.graph.nodes import WorkNodes
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.submission import Submissions

    Int64Column = NDArray[np.int64]

__all__ = ["CurrentDevice", "find_current_device"]

#: The device of a thread that never chose one.
_FIRST_DEVICE = 0
#: Ordinals above this are damaged arguments: no host has so many GPUs.
_MOST_DEVICES = 1024


@frozen(eq=False)
class CurrentDevice:
    """``only_agent`` [process]: its one agent, or -1 if ``agent`` [process, ordinal] is to be asked."""

    calls: HostCalls
    only_agent: Int64Column
    agent: Int64Column
    set_key: Int64Column
    set_ordinal: Int64Column

    def agent_at(self, rows: Int64Column) -> Int64Column:
        """Agent index that is current at each API call, -1 where it can't be told."""
        process = np.maximum(self.calls.table.process[rows], 0)
        agent = self.only_agent[process]
        unsure = agent < 0
        if unsure.any():
            ordinal = self.ordinal_at(rows[unsure])
            agent[unsure] = self.agent[process[unsure], np.minimum(ordinal, self.agent.shape[1] - 1)]
        return agent

    def ordinal_at(self, rows: Int64Column) -> Int64Column:
        """Ordinal that is current at each API call."""
        key = _thread_key(self.calls, rows)
        index = np.searchsorted(self.set_key, key, side="right") - 1
        ordinal = np.full(rows.size, _FIRST_DEVICE, dtype=np.int64)
        if self.set_key.size:
            known = np.maximum(index, 0)
            same = (index >= 0) & (self.set_key[known] // len(self.calls) == key // len(self.calls))
            ordinal[same] = self.set_ordinal[known[same]]
        return ordinal


def find_current_device(nodes: WorkNodes, submissions: Submissions, calls: HostCalls) -> CurrentDevice:
    """Learn the mapping from all nodes whose call is known."""
    table = calls.table
    rows = calls.rows(CallKind.SET_DEVICE)
    rows = rows[(table.device[rows] >= 0) & (table.device[rows] < _MOST_DEVICES)]
    key = _thread_key(calls, rows)
    order = np.argsort(key, kind="stable")
    processes = 1 + max(int(table.process.max()), int(nodes.process.max(initial=0)))
    elsewhere = np.zeros(processes, dtype=np.bool_)
    elsewhere[np.maximum(table.process[rows[table.device[rows] != _FIRST_DEVICE]], 0)] = True
    device = CurrentDevice(
        calls=calls,
        only_agent=_only_agents(nodes, processes),
        agent=np.full((processes, 1), NOT_RECORDED, dtype=np.int64),
        set_key=key[order],
        set_ordinal=table.device[rows][order],
    )
    if not elsewhere.any() and bool((device.only_agent[nodes.process] >= 0).all()):
        return device
    agent = _agents_by_ordinal(device, nodes, submissions, processes)
    # A device that was chosen may have no work: then a call there does not mean the only agent that has some.
    unsure = elsewhere & (agent >= 0).any(axis=1)
    return attrs.evolve(device, only_agent=np.where(unsure, NOT_RECORDED, device.only_agent), agent=agent)


def _thread_key(calls: HostCalls, rows: Int64Column) -> Int64Column:
    key: Int64Column = calls.thread[rows] * np.int64(len(calls)) + rows
    return key


def _only_agents(nodes: WorkNodes, processes: int) -> Int64Column:
    lowest = np.full(processes, np.iinfo(np.int64).max)
    highest = np.full(processes, NOT_RECORDED, dtype=np.int64)
    np.minimum.at(lowest, nodes.lanes.process, nodes.lanes.agent)
    np.maximum.at(highest, nodes.lanes.process, nodes.lanes.agent)
    return np.where(lowest == highest, highest, NOT_RECORDED)


def _agents_by_ordinal(
    device: CurrentDevice, nodes: WorkNodes, submissions: Submissions, processes: int
) -> Int64Column:
    """The agent that most launches under each ordinal ran on; -1 for ordinals without launches."""
    launched = np.flatnonzero((submissions.call >= 0) & (nodes.agent >= 0))
    ordinal = device.ordinal_at(submissions.call[launched])
    ordinals = int(ordinal.max(initial=0)) + 2
    agents = int(nodes.agent.max(initial=0)) + 1
    cell = (nodes.process[launched] * np.int64(ordinals) + ordinal) * agents + nodes.agent[launched]
    votes = np.bincount(cell, minlength=processes * ordinals * agents).reshape(processes, ordinals, agents)
    return np.where(votes.any(axis=2), votes.argmax(axis=2), NOT_RECORDED).astype(np.int64)
