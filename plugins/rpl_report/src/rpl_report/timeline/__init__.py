"""The timeline as pictures take it. All times in ns after the first begin on their machine.

Every node is counted in the bins of every level; only ``kept`` nodes can be told apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: In ``BinLevel.symbol`` where nothing ran.
NO_SYMBOL = 0xFFFF


@frozen
class TimelineLane:
    """A stream (or a queue where ``by_queue``) and what ran in it. ``busy_ns`` is the union of its nodes."""

    machine: str
    process: int  # OS pid
    agent: int | None
    id: int | None
    name: str | None
    by_queue: bool
    nodes: int
    busy_ns: int
    on_path_ns: int
    begin_ns: int
    end_ns: int


@frozen
class TimelineSymbol:
    """A kernel or copy direction; ``name`` is as recorded."""

    name: str
    kind: str  # "kernel" or "copy"
    nodes: int
    total_ns: int
    on_path_ns: int


@frozen(eq=False, kw_only=True)
class KeptNodes:
    """Nodes that stay individually visible, by (lane, begin). ``identity`` is the dispatch id, -1 for copies.

    Columns of shape (k,); ``lane`` and ``symbol`` index the timeline's tables.
    """

    lane: NDArray[np.uint16]
    symbol: NDArray[np.uint16]
    begin_ns: NDArray[np.int64]
    duration_ns: NDArray[np.int64]
    slack_ns: NDArray[np.int64]
    on_path: NDArray[np.bool_]
    identity: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.lane.shape[0])


@frozen(eq=False, kw_only=True)
class BinLevel:
    """Bins of ``width_ns`` from 0 on, shape (lanes, bins).

    ``busy`` and ``on_path`` are shares of the bin in 255ths (anything above 0 is at least 1), ``symbol`` the
    one with most time in the bin, ``count`` the nodes that begin in it.
    """

    width_ns: int
    busy: NDArray[np.uint8]
    on_path: NDArray[np.uint8]
    symbol: NDArray[np.uint16]
    count: NDArray[np.uint32]

    @property
    def bins(self) -> int:
        return int(self.busy.shape[1])


@frozen(eq=False, kw_only=True)
class PathLinks:
    """Where the path changes lanes: columns of shape (m,) in time order."""

    source_lane: NDArray[np.uint16]
    target_lane: NDArray[np.uint16]
    source_end_ns: NDArray[np.int64]
    target_begin_ns: NDArray[np.int64]
    left_out: int

    def __len__(self) -> int:
        return int(self.source_lane.shape[0])


@frozen
class RangeLane:
    """Ranges of one thread (or process) at one depth of nesting; ``label`` says which."""

    machine: str
    process: int  # OS pid
    label: str


@frozen(eq=False, kw_only=True)
class TimelineRanges:
    """What the application marked: columns of shape (n,), by (lane, begin). Begins may lie before 0."""

    lanes: tuple[RangeLane, ...]
    lanes_left_out: int
    names: tuple[str, ...]
    lane: NDArray[np.uint16]
    name: NDArray[np.uint16]
    begin_ns: NDArray[np.int64]
    duration_ns: NDArray[np.int64]
    left_out: int

    def __len__(self) -> int:
        return int(self.lane.shape[0])


@frozen(eq=False, kw_only=True)
class Timeline:
    """One timing run. ``levels`` ascend by bin width; ``complete``: every node of the lanes is kept."""

    span_ns: int
    nodes: int
    lanes: tuple[TimelineLane, ...]
    lanes_left_out: int
    nodes_left_out: int  # nodes in the lanes that were left out
    symbols: tuple[TimelineSymbol, ...]  # by total time; the last may stand for all the rest
    symbols_merged: int  # how many stand behind the last one
    kept: KeptNodes
    complete: bool
    levels: tuple[BinLevel, ...]
    links: PathLinks
    ranges: TimelineRanges
    critical_path_ns: int
    machines: int
