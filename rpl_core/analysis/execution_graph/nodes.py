"""Work nodes of a trace (dispatches and copies) and the chains they queue in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.trace import Copies, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64Column = NDArray[np.int64]
    Int32Column = NDArray[np.int32]


@attrs.frozen(eq=False)
class WorkNodes:
    """One row per dispatch or copy. ``symbol`` indexes ``symbol_names``; copies follow the kernels.

    ``lane`` is the stream (or the queue when ``by_queue``), ``row`` the row in the trace's table.
    """

    process: Int32Column
    agent: Int32Column
    lane: Int32Column
    symbol: Int32Column
    row: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column
    is_copy: NDArray[np.bool_]
    symbol_names: tuple[str, ...]
    kernel_symbols: int  # the first so many symbols are kernels
    by_queue: bool
    skipped: int  # rows without kernel, or that end before they begin

    def __len__(self) -> int:
        return int(self.begin_ns.shape[0])

    def pick(self, rows: NDArray[np.bool_]) -> WorkNodes:
        """The nodes for which ``rows`` (n,) is true."""
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return attrs.evolve(self, **columns)

    def chain(self) -> Int64Column:
        """Chain number per row: (process, agent, lane). The null stream exists once per device."""
        agents, lanes = int(self.agent.max(initial=0)) + 2, int(self.lane.max(initial=0)) + 2
        return (self.process.astype(np.int64) * agents + self.agent + 1) * lanes + self.lane + 1


_COLUMNS = ("process", "agent", "lane", "symbol", "row", "begin_ns", "end_ns", "is_copy")


def work_nodes(trace: Trace, *, include_copies: bool) -> WorkNodes:
    """All usable nodes of ``trace``."""
    dispatches = trace.dispatches
    names = tuple(sorted({kernel.name for kernel in trace.kernels}))
    numbers = {name: i for i, name in enumerate(names)}
    table = np.array([numbers[kernel.name] for kernel in trace.kernels] or [0], dtype=np.int32)
    usable = (dispatches.kernel >= 0) & (dispatches.end_ns >= dispatches.begin_ns)
    rows = np.flatnonzero(usable)
    by_queue = _lanes_are_queues(trace)
    lane = dispatches.queue if by_queue else dispatches.stream
    kernels = WorkNodes(
        process=dispatches.process[rows],
        agent=dispatches.agent[rows],
        lane=lane[rows],
        symbol=table[dispatches.kernel[rows]],
        row=rows,
        begin_ns=dispatches.begin_ns[rows],
        end_ns=dispatches.end_ns[rows],
        is_copy=np.zeros(rows.size, dtype=np.bool_),
        symbol_names=names + trace.copy_directions,
        kernel_symbols=len(names),
        by_queue=by_queue,
        skipped=len(dispatches) - rows.size,
    )
    if not include_copies or trace.copies is None or not len(trace.copies):
        return kernels
    return _with_copies(kernels, trace, trace.copies)


def _lanes_are_queues(trace: Trace) -> bool:
    """Whether stream ids say nothing, so that hardware queues must stand in.

    True with ``--group-by-queue``, without stream ids, and when one stream covers several queues
    (critical_path.md, 1.3).
    """
    streams, queues = trace.dispatches.stream, trace.dispatches.queue
    if trace.grouped_by_queue or not np.any(streams >= 0):
        return True
    one_stream = bool(streams.min() == streams.max())
    return one_stream and np.unique(queues[queues >= 0]).size > 1


def _with_copies(kernels: WorkNodes, trace: Trace, copies: Copies) -> WorkNodes:
    rows = np.flatnonzero(copies.end_ns >= copies.begin_ns)
    gpu = np.array([agent.kind == "GPU" for agent in trace.agents] or [False])
    destination, source = copies.destination_agent[rows], copies.source_agent[rows]
    to_gpu = (destination >= 0) & gpu[destination]
    agent = np.where(to_gpu, destination, source).astype(np.int32)
    # Copies carry no queue: with queue lanes they keep a lane of their own per stream, beyond all queues.
    offset = int(kernels.lane.max(initial=-1)) + 1 if kernels.by_queue else 0
    lane = (copies.stream[rows] + offset).astype(np.int32)
    return attrs.evolve(
        kernels,
        process=np.concatenate([kernels.process, copies.process[rows]]),
        agent=np.concatenate([kernels.agent, agent]),
        lane=np.concatenate([kernels.lane, lane]),
        symbol=np.concatenate([kernels.symbol, copies.direction[rows] + np.int32(kernels.kernel_symbols)]),
        row=np.concatenate([kernels.row, rows]),
        begin_ns=np.concatenate([kernels.begin_ns, copies.begin_ns[rows]]),
        end_ns=np.concatenate([kernels.end_ns, copies.end_ns[rows]]),
        is_copy=np.concatenate([kernels.is_copy, np.ones(rows.size, dtype=np.bool_)]),
        skipped=kernels.skipped + len(copies) - rows.size,
    )
