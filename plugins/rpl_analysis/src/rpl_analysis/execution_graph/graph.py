"""What a graph is made of: work nodes, the lanes they run in, edges, and dense numbers for keys."""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Copies, Trace

    Int32Column = NDArray[np.int32]
    Int64Column = NDArray[np.int64]

# Dense numbers for keys: the array form of a dictionary, by table where keys lie close together.

#: Rows that are worked on at a time where nothing per row is to be kept: such columns stay in the caches.
BLOCK = 2**16

#: Keys within a span of this size (or four times their count) are counted in a table, wider ones sorted.
_TABLE_SPAN = 2**22


def is_constant(column: NDArray[np.generic]) -> bool:
    """Whether the column is one value for all rows by construction, as readers hand them out."""
    return column.strides == (0,) and column.size > 0


def number_keys(keys: NDArray[np.integer]) -> tuple[Int64Column, NDArray[np.int32]]:
    """The distinct keys ascending, and for each key its index among them."""
    if keys.size == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
    if is_constant(keys):
        return keys[:1].astype(np.int64), np.broadcast_to(np.int32(0), keys.shape)
    low, high = int(keys.min()), int(keys.max())
    if high - low >= max(_TABLE_SPAN, 4 * keys.size):
        distinct, index = np.unique(keys, return_inverse=True)
        return distinct.astype(np.int64), index.reshape(-1).astype(np.int32)
    offset = keys - low
    seen = np.zeros(high - low + 1, dtype=np.bool_)
    seen[offset] = True
    table = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(seen) + low, table[offset]


def join_keys(columns: Iterable[NDArray[np.integer]]) -> Int64Column:
    """One key per row: equal exactly where all columns are equal, ordered like the columns in turn."""
    joined: NDArray[np.integer] | None = None
    for column in columns:
        if joined is None:
            joined = column if is_constant(column) else column.astype(np.int64)
        elif not is_constant(column) and column.size and int(column.min()) != int(column.max()):
            # Numbering both sides keeps the product of the counts inside int64.
            _, before = number_keys(joined)
            distinct, index = number_keys(column)
            joined = before * np.int64(distinct.size) + index
    assert joined is not None, "no columns"
    return joined.astype(np.int64, copy=False)


def first_rows(index: NDArray[np.integer], count: int) -> Int64Column:
    """The first row of each number below ``count`` in ``index``, where each occurs."""
    first = np.full(count, -1, dtype=np.int64)
    for begin in range(0, index.size, BLOCK):
        block = index[begin : begin + BLOCK]
        new = np.flatnonzero(first[block] < 0)[::-1]
        if new.size:
            first[block[new]] = new + begin  # the last assignment counts, which is that of the first row
        if int(first.min()) >= 0:
            break
    return first


def places(keys: NDArray[np.integer], known: NDArray[np.integer]) -> Int64Column:
    """Index of each key in ``known`` (ascending, distinct), -1 where it does not occur."""
    if known.size == 0:
        return np.full(keys.size, -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(known, keys), known.size - 1)
    return np.where(known[place] == keys, place, -1)


# Lanes: what the runtime runs in order. One per stream; per hardware queue only where streams are unknown.
#
# The null stream exists once per device, every other stream belongs to one device
# (docs/reference/execution-graph.md, 2.1). Copies carry no queue, so where queues stand in they keep a lane
# per stream beside the queues.


@frozen(eq=False)
class Lanes:
    """One entry per lane. ``stream`` and ``queue`` index the trace's tables, -1 where not recorded.

    ``agent`` is that of the lane's first node. ``is_null`` marks null streams.
    """

    process: Int32Column
    agent: Int32Column
    stream: Int32Column
    queue: Int32Column
    is_null: NDArray[np.bool_]
    by_queue: bool

    def __len__(self) -> int:
        return int(self.process.shape[0])


def lanes_are_queues(trace: Trace) -> bool:
    """Whether stream ids say nothing, so that hardware queues must stand in.

    True with ``--group-by-queue``, without stream ids, and when one stream covers several queues of a device
    (docs/reference/execution-graph.md, 2.1).
    """
    streams, queues = trace.dispatches.stream, trace.dispatches.queue
    if trace.grouped_by_queue or not np.any(streams >= 0):
        return True
    if bool(streams.min() != streams.max()) or bool(queues.min() == queues.max()):
        return False
    used = queues >= 0
    pairs, _ = number_keys(join_keys((trace.dispatches.agent[used], queues[used])))
    agents, _ = number_keys(trace.dispatches.agent[used])
    return pairs.size > agents.size


def find_lanes(
    trace: Trace,
    process: Int32Column,
    agent: Int32Column,
    stream: Int32Column,
    queue: Int32Column,
    *,
    by_queue: bool,
) -> tuple[Lanes, Int32Column]:
    """The lanes of nodes given as columns of shape (n,), and the lane number of each node."""
    columns = (process, agent, stream, queue)
    if process.size > 1 and all(is_constant(column) for column in columns):
        # All nodes are alike: so is their lane, which costs no memory per node.
        lanes, lane = find_lanes(trace, *(column[:1].copy() for column in columns), by_queue=by_queue)
        return lanes, np.broadcast_to(lane[0], process.shape)
    null = np.array([entry.id == 0 for entry in trace.streams] + [False])  # the last entry stands for -1
    if not by_queue:
        stream = _with_only_stream(process, agent, stream, queue)
    if by_queue:
        columns = (process, agent, queue, np.where(queue < 0, stream, NOT_RECORDED))
    else:
        shared = null[stream] | (stream < 0)
        columns = (process, np.where(shared, agent, NOT_RECORDED), stream, np.zeros_like(stream))
    keys, lane = number_keys(join_keys(columns))
    first = first_rows(lane, keys.size)
    lanes = Lanes(
        process=process[first],
        agent=agent[first],
        stream=np.where(queue[first] >= 0, NOT_RECORDED, stream[first]) if by_queue else stream[first],
        queue=queue[first] if by_queue else np.full(first.size, NOT_RECORDED, dtype=np.int32),
        is_null=np.zeros(first.size, dtype=np.bool_) if by_queue else null[stream[first]],
        by_queue=by_queue,
    )
    return lanes, lane


def _with_only_stream(
    process: Int32Column, agent: Int32Column, stream: Int32Column, queue: Int32Column
) -> Int32Column:
    """``stream`` with unrecorded entries filled where the node's hardware queue serves one stream only.

    Such a node (RPD lacks the launch of memory fills) runs in that queue's order. A lane of its own would
    have no dependency and hold on to its recorded time in every forecast.
    """
    unknown = (stream < 0) & (queue >= 0)
    known = stream >= 0
    if not unknown.any() or not known.any():
        return stream
    _, group = number_keys(join_keys((process, agent, queue)))
    lowest = np.full(int(group.max()) + 1, np.iinfo(np.int32).max, dtype=np.int32)
    highest = np.full(lowest.size, NOT_RECORDED, dtype=np.int32)
    np.minimum.at(lowest, group[known], stream[known])
    np.maximum.at(highest, group[known], stream[known])
    only = np.where(lowest == highest, highest, NOT_RECORDED).astype(np.int32)
    return np.where(unknown, only[group], stream)


# Work nodes of a trace: dispatches and copies in time order, each in a lane and with a symbol.
#
# Who waits for whom across lanes is the knowledge of ``dependencies``.


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


# Edges between nodes as columns: who waits for whom, why, how sure that is, and the lag that stays.


class Confidence(IntEnum):
    """How sure an edge is: from an API rule with all arguments known, from a rule with exceptions, or not."""

    CERTAIN = 0
    PROBABLE = 1
    GUESS = 2


class EdgeKind(IntEnum):
    """Why a node waits (docs/reference/execution-graph.md, 2). The first two are the order inside a lane."""

    STREAM = 0
    QUEUE = 1
    GRAPH_LAUNCH = 2
    EVENT = 3
    MEASURED_EVENT = 4
    HOST_SYNC = 5
    BLOCKING_CALL = 6
    NULL_STREAM = 7
    HOST_ORDER = 8
    INFERRED = 9


@frozen(eq=False)
class EdgeTable:
    """One entry per edge; ``source`` and ``target`` are node rows, ``lag_ns`` is not negative."""

    source: Int64Column
    target: Int64Column
    kind: NDArray[np.int8]
    confidence: NDArray[np.int8]
    lag_ns: Int64Column

    def __len__(self) -> int:
        return int(self.source.shape[0])

    def pick(self, which: NDArray[np.bool_] | Int64Column) -> EdgeTable:
        """The edges that a mask or an index array selects."""
        return EdgeTable(
            source=self.source[which],
            target=self.target[which],
            kind=self.kind[which],
            confidence=self.confidence[which],
            lag_ns=self.lag_ns[which],
        )

    @classmethod
    def of_kind(
        cls,
        source: Int64Column,
        target: Int64Column,
        kind: EdgeKind,
        confidence: Confidence | NDArray[np.int8],
        lag_ns: Int64Column | None = None,
    ) -> EdgeTable:
        """Edges that share a kind, and a confidence unless it comes per edge."""
        return cls(
            source=source.astype(np.int64),
            target=target.astype(np.int64),
            kind=np.full(source.size, kind, dtype=np.int8),
            confidence=np.broadcast_to(np.asarray(confidence, dtype=np.int8), source.shape),
            lag_ns=np.zeros(source.size, dtype=np.int64) if lag_ns is None else lag_ns,
        )


def no_edges() -> EdgeTable:
    """A table without edges."""
    nothing = np.zeros(0, dtype=np.int64)
    return EdgeTable.of_kind(nothing, nothing, EdgeKind.EVENT, Confidence.CERTAIN)


def join_edges(tables: Sequence[EdgeTable]) -> EdgeTable:
    """All edges, in the order of the tables."""
    if not tables:
        return no_edges()
    return EdgeTable(
        source=np.concatenate([table.source for table in tables]),
        target=np.concatenate([table.target for table in tables]),
        kind=np.concatenate([table.kind for table in tables]),
        confidence=np.concatenate([table.confidence for table in tables]),
        lag_ns=np.concatenate([table.lag_ns for table in tables]),
    )
