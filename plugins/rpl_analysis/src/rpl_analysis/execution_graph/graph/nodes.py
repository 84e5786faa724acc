"""Work nodes of a trace: dispatches and copies in time order, each in a lane and with a symbol.

Which lane a node runs in is ``lanes``' knowledge; who waits for whom across lanes that of ``dependencies``.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_analysis.execution_graph.graph.lanes import Lanes, find_lanes, lanes_are_queues
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Copies, Trace

    Int64Column = NDArray[np.int64]
    Int32Column = NDArray[np.int32]

__all__ = ["WorkNodes", "work_nodes"]


@frozen(eq=False)
class WorkNodes:
    """One row per dispatch or copy, ascending by begin (at equal begins dispatches first).

    ``lane`` indexes ``lanes``, ``symbol`` ``symbol_names`` (copies follow the kernels), ``row`` is the row in
    the trace's table of dispatches or copies.
    """

    process: Int32Column
    agent: Int32Column
    lane: Int32Column
    queue: Int32Column  # index into the trace's queues, -1 for copies
    symbol: Int32Column
    row: Int32Column
    correlation_id: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column
    is_copy: NDArray[np.bool_]
    lanes: Lanes
    symbol_names: tuple[str, ...]
    kernel_symbols: int  # the first so many symbols are kernels
    skipped: int  # rows without kernel, or that end before they begin

    def __len__(self) -> int:
        return int(self.begin_ns.shape[0])

    @property
    def by_queue(self) -> bool:
        """Whether hardware queues stand in for streams."""
        return self.lanes.by_queue

    @cached_property
    def last_end_ns(self) -> int:
        return int(self.end_ns.max())

    def duration_ns(self) -> Int64Column:
        return self.end_ns - self.begin_ns

    def pick(self, rows: NDArray[np.bool_]) -> WorkNodes:
        """The nodes for which ``rows`` (n,) is true."""
        return attrs.evolve(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})


_COLUMNS = (
    *("process", "agent", "lane", "queue", "symbol", "row", "correlation_id"),
    *("begin_ns", "end_ns", "is_copy"),
)


def work_nodes(trace: Trace, *, include_copies: bool) -> WorkNodes:
    """All usable nodes of ``trace``."""
    names = tuple(sorted({kernel.name for kernel in trace.kernels}))
    columns, skipped = _dispatches(trace, names)
    if include_copies and trace.copies is not None and len(trace.copies):
        copied, skipped_copies = _copies(trace, trace.copies, len(names))
        columns = {name: np.concatenate([columns[name], copied[name]]) for name in columns}
        order = np.argsort(columns["begin_ns"], kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
        skipped += skipped_copies
    by_queue = lanes_are_queues(trace)
    stream = columns.pop("stream")
    lanes, lane = find_lanes(
        trace, columns["process"], columns["agent"], stream, columns["queue"], by_queue=by_queue
    )
    return WorkNodes(
        **columns,
        lane=lane,
        lanes=lanes,
        symbol_names=names + trace.copy_directions,
        kernel_symbols=len(names),
        skipped=skipped,
    )


def _dispatches(trace: Trace, names: tuple[str, ...]) -> tuple[dict[str, NDArray[Any]], int]:
    dispatches = trace.dispatches
    numbers = {name: i for i, name in enumerate(names)}
    table = np.array([numbers[kernel.name] for kernel in trace.kernels] or [0], dtype=np.int32)
    usable = (dispatches.kernel >= 0) & (dispatches.end_ns >= dispatches.begin_ns)
    everything = bool(usable.all())
    rows = np.arange(len(dispatches), dtype=np.int32)
    if not everything:
        rows = rows[usable]
    columns = {
        name: getattr(dispatches, name)
        for name in ("process", "agent", "stream", "queue", "correlation_id", "begin_ns", "end_ns")
    }
    if not everything:
        columns = {name: column[rows] for name, column in columns.items()}
    columns["symbol"] = table[dispatches.kernel if everything else dispatches.kernel[rows]]
    columns["row"] = rows
    columns["is_copy"] = np.broadcast_to(np.bool_(False), rows.size)
    return columns, len(dispatches) - rows.size


def _copies(trace: Trace, copies: Copies, first_symbol: int) -> tuple[dict[str, NDArray[Any]], int]:
    rows = np.flatnonzero(copies.end_ns >= copies.begin_ns).astype(np.int32)
    gpu = np.array([agent.kind == "GPU" for agent in trace.agents] or [False])
    destination, source = copies.destination_agent[rows], copies.source_agent[rows]
    to_gpu = (destination >= 0) & gpu[destination]
    columns: dict[str, NDArray[Any]] = {
        "process": copies.process[rows],
        "agent": np.where(to_gpu, destination, source).astype(np.int32),
        "stream": copies.stream[rows],
        # Copies carry no queue (docs/reference/formats.md, 2.2).
        "queue": np.full(rows.size, NOT_RECORDED, dtype=np.int32),
        "correlation_id": copies.correlation_id[rows],
        "begin_ns": copies.begin_ns[rows],
        "end_ns": copies.end_ns[rows],
        "symbol": copies.direction[rows] + np.int32(first_symbol),
        "row": rows,
        "is_copy": np.ones(rows.size, dtype=np.bool_),
    }
    return columns, len(copies) - rows.size
