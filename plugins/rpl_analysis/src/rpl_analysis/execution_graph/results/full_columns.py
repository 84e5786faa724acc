"""The whole graph as columns, for other programs: every node with its slack, every edge with its kind.

Rows are dispatches and copies in time order, then host synchronisations. The npz that holds them has the
arrays below by name; equal graphs give equal bytes.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.graph import Confidence, EdgeKind
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.dependencies.all_edges import Dependencies
    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.results.domain import SolvedDomain
    from rpl_core.model.trace import Queue, Stream, Trace

__all__ = ["GraphColumns", "graph_columns"]

#: Values of the array ``kind``.
DISPATCH, COPY, HOST_SYNC = 0, 1, 2


@frozen(eq=False)
class GraphColumns:
    """Arrays by name. Per node (m,): ``kind``, ``process`` (OS pid), ``agent``, ``stream``, ``queue``,
    ``dispatch_id``, ``symbol``, ``begin_ns``, ``end_ns``, ``slack_ns``, ``on_path``. Per edge between lanes
    (e,): ``edge_source``, ``edge_target`` (node rows), ``edge_kind``, ``edge_confidence``, ``edge_lag_ns``.

    Ids are -1 where not recorded. ``names`` holds UTF-8 JSON: symbols, edge kinds and confidences by number.
    """

    arrays: dict[str, NDArray[np.generic]]

    def to_npz(self) -> bytes:
        """The arrays as an uncompressed npz file."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **self.arrays)
        return buffer.getvalue()


def graph_columns(
    trace: Trace, nodes: WorkNodes, dependencies: Dependencies, solved: Sequence[SolvedDomain]
) -> GraphColumns:
    """All machines together; slack and path are those of each machine's own graph."""
    syncs, work = dependencies.syncs, len(nodes)
    total = work + len(syncs)
    slack = np.zeros(total, dtype=np.int64)
    on_path = np.zeros(total, dtype=np.bool_)
    for domain in solved:
        slack[domain.domain.rows] = domain.slack_ns
        on_path[domain.domain.rows[domain.path.rows]] = True
    process = np.concatenate([nodes.process, syncs.process])
    pids = np.array([entry.pid for entry in trace.processes] or [NOT_RECORDED], dtype=np.int64)
    kind = np.where(nodes.is_copy, COPY, DISPATCH)
    arrays: dict[str, NDArray[np.generic]] = {
        "kind": np.concatenate([kind, np.full(len(syncs), HOST_SYNC)]).astype(np.int8),
        "process": pids[process],
        "agent": _padded(_agents(trace)[nodes.agent], total),
        "stream": _padded(_ids(trace.streams)[nodes.lanes.stream[nodes.lane]], total),
        "queue": _padded(_ids(trace.queues)[nodes.queue], total),
        "dispatch_id": _padded(_dispatch_ids(trace, nodes), total),
        "symbol": _padded(nodes.symbol, total).astype(np.int32),
        "begin_ns": np.concatenate([nodes.begin_ns, syncs.time_ns]),
        "end_ns": np.concatenate([nodes.end_ns, syncs.time_ns]),
        "slack_ns": slack,
        "on_path": on_path,
        "edge_source": dependencies.edges.source,
        "edge_target": dependencies.edges.target,
        "edge_kind": dependencies.edges.kind,
        "edge_confidence": dependencies.edges.confidence,
        "edge_lag_ns": dependencies.edges.lag_ns,
        "names": _names(nodes),
    }
    return GraphColumns(arrays)


def _padded(column: NDArray[np.integer], total: int) -> NDArray[np.int64]:
    """The column of the work nodes, followed by -1 for host synchronisations."""
    padding = np.full(total - column.size, NOT_RECORDED, dtype=np.int64)
    return np.concatenate([column.astype(np.int64), padding])


def _ids(entries: Sequence[Stream] | Sequence[Queue]) -> NDArray[np.int64]:
    """Ids by index; the last entry answers for the index -1."""
    return np.array([*(entry.id for entry in entries), NOT_RECORDED], dtype=np.int64)


def _agents(trace: Trace) -> NDArray[np.int64]:
    return np.array([*(agent.index for agent in trace.agents), NOT_RECORDED], dtype=np.int64)


def _dispatch_ids(trace: Trace, nodes: WorkNodes) -> NDArray[np.int64]:
    ids = np.full(len(nodes), NOT_RECORDED, dtype=np.int64)
    own = ~nodes.is_copy
    ids[own] = trace.dispatches.dispatch_id[nodes.row[own]]
    return ids


def _names(nodes: WorkNodes) -> NDArray[np.uint8]:
    names = {
        "symbols": nodes.symbol_names,
        "edge_kinds": [kind.name.lower() for kind in EdgeKind],
        "edge_confidences": [confidence.name.lower() for confidence in Confidence],
    }
    return np.frombuffer(json.dumps(names, ensure_ascii=False).encode("utf-8"), dtype=np.uint8)
