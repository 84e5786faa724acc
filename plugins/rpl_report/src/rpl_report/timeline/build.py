"""From a timing run to its timeline: symbols, bins from fine to coarse, nodes that stay visible.

All levels are summed up exactly from the nodes; only the shares are rounded, to 255ths, at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.phases import restricted
from rpl_core.errors import BadDataError, RplError
from rpl_core.ingest import load_recording
from rpl_core.run_directory import is_run_directory
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_report.timeline import NO_SYMBOL, BinLevel, KeptNodes, PathLinks, Timeline, TimelineSymbol
from rpl_report.timeline.lanes import (
    LanePieces,
    choose_lanes,
    describe_lanes,
    lane_pieces,
    timed_work,
    timeline_ranges,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Int64Column = NDArray[np.int64]
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_analysis.contracts.dag import DagDocument
    from rpl_core.ingest.claims import Readers
    from rpl_core.model.trace import Trace
    from rpl_report.timeline.lanes import LaneChoice, TimedWork

#: Lanes times bins of the finest level, and the fewest bins of a level worth having (chosen for the size
#: of the page: 8 bytes per bin).
MOST_CELLS = 1 << 16
_FEWEST_BINS = 256
#: Bins per node: finer ones would tell nothing that the nodes themselves don't (chosen).
_PER_NODE = 4
_COARSER = 4


@frozen(eq=False)
class _Sums:
    """Time per (cell, symbol), both ascending; ``cell`` is lane times bins plus bin."""

    cell: Int64Column
    symbol: Int64Column
    time_ns: Int64Column


def bin_levels(
    pieces: LanePieces, symbol: Int64Column, path: LanePieces, begins: LanePieces, lanes: int, span_ns: int
) -> tuple[BinLevel, ...]:
    """The levels, finest first, each four times as wide as the one before.

    ``symbol`` is that of each piece; ``path`` holds the disjoint intervals of the critical path, ``begins``
    one entry per node.
    """
    most = max(_FEWEST_BINS * _COARSER, min(MOST_CELLS, _PER_NODE * begins.row.size) // max(1, lanes))
    width = max(1, -(-span_ns // most))
    bins = max(1, -(-span_ns // width))
    work = _spread(pieces, symbol, width, bins)
    critical = _spread(path, np.zeros(path.row.size, dtype=np.int64), width, bins)
    count = np.bincount(
        begins.lane * bins + np.minimum(begins.begin_ns // width, bins - 1), minlength=lanes * bins
    )
    levels = []
    for level_width, level_bins in _widths(width, bins):
        factor = level_width // width
        levels.append(
            _level(
                _coarser(work, bins, level_bins, factor),
                _coarser(critical, bins, level_bins, factor),
                _fold(count.reshape(lanes, bins), level_bins, factor),
                level_width,
            )
        )
    return tuple(levels)


def _widths(width: int, bins: int) -> Iterator[tuple[int, int]]:
    yield width, bins
    finest = bins
    factor = _COARSER
    while -(-finest // factor) >= _FEWEST_BINS:
        yield width * factor, -(-finest // factor)
        factor *= _COARSER


def _spread(pieces: LanePieces, symbol: Int64Column, width: int, bins: int) -> _Sums:
    """Time of disjoint pieces per bin; a long piece has two ends and whole bins between them."""
    first, last = pieces.begin_ns // width, (pieces.end_ns - 1) // width
    inside = first == last
    base = pieces.lane * bins
    head = np.where(inside, pieces.end_ns, (first + 1) * width) - pieces.begin_ns
    spans = np.flatnonzero(~inside)
    tail = pieces.end_ns[spans] - last[spans] * width
    between = last[spans] - first[spans] - 1
    repeated = np.repeat(spans, between)
    step = np.arange(repeated.size) - np.repeat(np.cumsum(between) - between, between)
    cells = np.concatenate(
        [base + first, base[spans] + last[spans], base[repeated] + first[repeated] + 1 + step]
    )
    symbols = np.concatenate([symbol, symbol[spans], symbol[repeated]])
    return _summed(
        cells, symbols, np.concatenate([head, tail, np.full(repeated.size, width, dtype=np.int64)])
    )


def _summed(cell: Int64Column, symbol: Int64Column, time_ns: Int64Column) -> _Sums:
    if not cell.size:
        return _Sums(cell, symbol, time_ns)
    key = cell * np.int64(NO_SYMBOL + 1) + symbol
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    key = key[starts]
    return _Sums(key // (NO_SYMBOL + 1), key % (NO_SYMBOL + 1), np.add.reduceat(time_ns[order], starts))


def _coarser(sums: _Sums, bins: int, level_bins: int, factor: int) -> _Sums:
    if factor == 1:
        return sums
    lane, position = sums.cell // bins, sums.cell % bins
    return _summed(lane * level_bins + position // factor, sums.symbol, sums.time_ns)


def _fold(count: NDArray[np.int64], bins: int, factor: int) -> NDArray[np.int64]:
    """Counts (lanes, n) added up in groups of ``factor``."""
    padded = np.zeros((count.shape[0], bins * factor), dtype=np.int64)
    padded[:, : count.shape[1]] = count
    folded: NDArray[np.int64] = padded.reshape(count.shape[0], bins, factor).sum(axis=2)
    return folded


def _level(work: _Sums, critical: _Sums, count: NDArray[np.int64], width: int) -> BinLevel:
    lanes, bins = count.shape
    symbol = np.full(lanes * bins, NO_SYMBOL, dtype=np.uint16)
    # By (cell, time, symbol descending): the last one of a cell has most time, ties go to the smaller symbol.
    order = np.lexsort((-work.symbol, work.time_ns, work.cell))
    symbol[work.cell[order]] = work.symbol[order]
    return BinLevel(
        width_ns=width,
        busy=_share(work, lanes, bins, width),
        on_path=_share(critical, lanes, bins, width),
        symbol=symbol.reshape(lanes, bins),
        count=np.minimum(count, 0xFFFF_FFFF).astype(np.uint32),
    )


def _share(sums: _Sums, lanes: int, bins: int, width: int) -> NDArray[np.uint8]:
    time = np.zeros(lanes * bins, dtype=np.int64)
    np.add.at(time, sums.cell, sums.time_ns)
    share = np.clip(np.rint(time * (255 / width)), 0, 255)
    share[(time > 0) & (share < 1)] = 1
    shares: NDArray[np.uint8] = share.astype(np.uint8).reshape(lanes, bins)
    return shares


#: Kernels with a name of their own on the timeline (chosen); a page tells fewer apart.
MOST_SYMBOLS = 1000


@frozen(eq=False)
class SymbolChoice:
    """``place[symbol]`` is the index in ``symbols``; ``merged`` of them share the last one."""

    symbols: tuple[TimelineSymbol, ...]
    place: Int64Column
    merged: int


def choose_symbols(work: TimedWork) -> SymbolChoice:
    """The symbols that occur, longest total first; ties in the order of their names."""
    nodes = work.nodes
    names = nodes.symbol_names
    duration, path = nodes.duration_ns(), work.path_rows
    count = np.bincount(nodes.symbol, minlength=len(names))
    total = _sums(nodes.symbol, duration, len(names))
    on_path = _sums(nodes.symbol[path], duration[path], len(names))
    occurring = np.flatnonzero(count).tolist()
    order = sorted(occurring, key=lambda i: (-int(total[i]), names[i], i))
    with_colour, rest = order[:MOST_SYMBOLS], order[MOST_SYMBOLS:]
    symbols = [
        TimelineSymbol(
            name=names[i],
            kind="kernel" if i < nodes.kernel_symbols else "copy",
            nodes=int(count[i]),
            total_ns=int(total[i]),
            on_path_ns=int(on_path[i]),
        )
        for i in with_colour
    ]
    if rest:
        symbols.append(
            TimelineSymbol(
                name=counted(len(rest), "other kernel"),
                kind="kernel",
                nodes=int(count[rest].sum()),
                total_ns=int(total[rest].sum()),
                on_path_ns=int(on_path[rest].sum()),
            )
        )
    place = np.full(len(names), len(with_colour), dtype=np.int64)
    place[with_colour] = np.arange(len(with_colour))
    return SymbolChoice(tuple(symbols), place, len(rest))


def _sums(symbol: NDArray[np.int32], duration: Int64Column, symbols: int) -> Int64Column:
    sums = np.zeros(symbols, dtype=np.int64)
    np.add.at(sums, symbol, duration)
    return sums


#: Chosen for the size of the page: 36 bytes per node.
LONGEST_OF_ALL = 24_000
LONGEST_ON_PATH = 16_000
LONGEST_PER_SYMBOL = 8


def kept_nodes(work: TimedWork, lanes: LaneChoice, symbols: SymbolChoice, ends: Int64Column) -> KeptNodes:
    """All nodes of the shown lanes if they are few; otherwise the longest of all, of the critical path and of
    every symbol, and ``ends``: the rows where the critical path enters or leaves a lane.
    """
    nodes = work.nodes
    shown = lanes.place[nodes.lane] >= 0
    if int(shown.sum()) > LONGEST_OF_ALL + LONGEST_ON_PATH:
        shown &= _worth_keeping(work, shown, symbols, ends)
    rows = np.flatnonzero(shown)
    rows = rows[np.argsort(lanes.place[nodes.lane[rows]], kind="stable")]
    begin = work.begin_ns()[rows]
    return KeptNodes(
        lane=lanes.place[nodes.lane[rows]].astype(np.uint16),
        symbol=symbols.place[nodes.symbol[rows]].astype(np.uint16),
        begin_ns=begin,
        duration_ns=nodes.duration_ns()[rows],
        slack_ns=work.slack_ns[rows],
        on_path=work.on_path()[rows],
        identity=_identity(work, rows),
    )


def _worth_keeping(
    work: TimedWork, shown: NDArray[np.bool_], symbols: SymbolChoice, ends: Int64Column
) -> NDArray[np.bool_]:
    nodes = work.nodes
    duration = np.where(shown, nodes.duration_ns(), -1)
    keep = np.zeros(len(nodes), dtype=np.bool_)
    longest = np.argsort(-duration, kind="stable")
    keep[longest[:LONGEST_OF_ALL]] = True
    on_path = work.path_rows[np.argsort(-duration[work.path_rows], kind="stable")[:LONGEST_ON_PATH]]
    keep[on_path[duration[on_path] >= 0]] = True
    symbol = symbols.place[nodes.symbol[longest]]
    # Stable: within a symbol the rows stay in order of length.
    by_symbol = np.argsort(symbol.astype(np.uint16), kind="stable")
    symbol = symbol[by_symbol]
    first = np.searchsorted(symbol, symbol, side="left")
    rank = np.arange(symbol.size) - first
    keep[longest[by_symbol[rank < LONGEST_PER_SYMBOL]]] = True
    keep[ends] = True
    return keep


def _identity(work: TimedWork, rows: Int64Column) -> Int64Column:
    nodes = work.nodes
    is_copy, row = nodes.is_copy[rows], nodes.row[rows]
    identity = np.full(rows.size, -1, dtype=np.int64)
    identity[~is_copy] = work.trace.dispatches.dispatch_id[row[~is_copy]]
    return identity


#: Further changes of lane are not drawn (chosen for the size of the page: 20 bytes each).
_MOST_LINKS = 6_000


def timeline_of(trace: Trace, *, include_copies: bool = True) -> Timeline | None:
    """The timeline of ``trace``; ``None`` if it holds no dispatch with usable times."""
    work = timed_work(trace, include_copies=include_copies)
    if work is None:
        return None
    lanes, symbols = choose_lanes(work), choose_symbols(work)
    links, ends = _path_links(work, lanes)
    kept = kept_nodes(work, lanes, symbols, ends)
    pieces = lane_pieces(work, lanes.place)
    rows = np.flatnonzero(lanes.place[work.nodes.lane] >= 0)
    every = _intervals(work, lanes, rows)
    span = int((every.end_ns).max(initial=0))
    shown = every.row.size
    levels = bin_levels(
        pieces,
        symbols.place[work.nodes.symbol[pieces.row]],
        _of_path(work, lanes),
        every,
        lanes.shown.size,
        span,
    )
    return Timeline(
        span_ns=span,
        nodes=len(work.nodes),
        lanes=describe_lanes(work, lanes, pieces),
        lanes_left_out=lanes.left_out,
        nodes_left_out=len(work.nodes) - shown,
        symbols=symbols.symbols,
        symbols_merged=symbols.merged,
        kept=kept,
        complete=len(kept) == shown,
        levels=levels,
        links=links,
        ranges=timeline_ranges(work, span),
        critical_path_ns=work.critical_path_ns,
        machines=len(work.machines),
    )


def _of_path(work: TimedWork, lanes: LaneChoice) -> LanePieces:
    """Intervals of the path, which are disjoint by what a path is; those without duration show nothing."""
    rows = work.path_rows[lanes.place[work.nodes.lane[work.path_rows]] >= 0]
    intervals = _intervals(work, lanes, rows)
    return intervals.pick(intervals.begin_ns < intervals.end_ns)


def _intervals(work: TimedWork, lanes: LaneChoice, rows: Int64Column) -> LanePieces:
    begin = work.begin_ns()[rows]
    return LanePieces(
        lane=lanes.place[work.nodes.lane[rows]],
        row=rows,
        begin_ns=begin,
        end_ns=begin + work.nodes.duration_ns()[rows],
    )


def _path_links(work: TimedWork, lanes: LaneChoice) -> tuple[PathLinks, Int64Column]:
    """The links between shown lanes, and the nodes at their ends. Too many keep those between long runs."""
    rows, nodes = work.path_rows, work.nodes
    lane = lanes.place[nodes.lane[rows]]
    change = np.flatnonzero((lane[1:] != lane[:-1]) & (lane[1:] >= 0) & (lane[:-1] >= 0))
    change_count = change.size
    if change_count > _MOST_LINKS:
        # Nodes of the shorter one of the two runs that each change lies between.
        bounds = np.concatenate([[-1], change, [rows.size - 1]])
        runs = np.diff(bounds)
        change = np.sort(change[np.argsort(-np.minimum(runs[:-1], runs[1:]), kind="stable")[:_MOST_LINKS]])
    begin = work.begin_ns()
    source, target = rows[change], rows[change + 1]
    links = PathLinks(
        source_lane=lane[change].astype(np.uint16),
        target_lane=lane[change + 1].astype(np.uint16),
        source_end_ns=begin[source] + nodes.duration_ns()[source],
        target_begin_ns=begin[target],
        left_out=int(change_count - change.size),
    )
    return links, np.concatenate([source, target])


@frozen(eq=False)
class RecordedTimeline:
    """The timeline, or why there is none; the hosts and the command that the recording names."""

    timeline: Timeline | None = None
    reason: str | None = None
    hosts: tuple[str, ...] = ()
    command: str | None = None


def recorded_timeline(
    directory: Path, recordings: Sequence[Path], dag: DagDocument, readers: Readers
) -> RecordedTimeline:
    """The timeline behind ``dag``, which was read from ``directory``.

    ``recordings`` name the recording where the directory holds documents alone; they must be the files that
    the documents were computed from. Raises ``BadDataError`` if they are not, and what reading them raises.
    A run directory whose recording can't be read has no timeline, with the reason.
    """
    if dag.status != "available":
        return RecordedTimeline(reason=f"there is no execution graph: {dag.reason}")
    if recordings:
        return _shown(_timing_run(recordings, dag, readers), dag)
    if not is_run_directory(directory):
        return RecordedTimeline(
            reason="the directory holds documents alone; name their recording with --recording to see it"
        )
    try:
        return _shown(_timing_run([directory], dag, readers), dag)
    except RplError as error:
        return RecordedTimeline(reason=f"the recording could not be shown: {error.fact}")


def _shown(trace: Trace, dag: DagDocument) -> RecordedTimeline:
    hosts = tuple(sorted({process.hostname for process in trace.processes if process.hostname}))
    command = next((process.command for process in trace.processes if process.command), None)
    timeline = timeline_of(trace)
    if timeline is None or (timeline.nodes, timeline.critical_path_ns) != (dag.nodes, dag.critical_path_ns):
        raise _other_recording("the recording does not give the critical path that dag.json states")
    return RecordedTimeline(timeline, hosts=hosts, command=command)


def _timing_run(recordings: Sequence[Path], dag: DagDocument, readers: Readers) -> Trace:
    """The run that the documents describe."""
    runs = restricted(load_recording(recordings, readers), dag.range).timing_runs
    number = dag.run or 0
    if number >= len(runs):
        raise _other_recording(f"timing run {number} of the documents is not in the recording")
    known = {artefact.sha256 for artefact in dag.provenance.artefacts} if dag.provenance else set()
    hashes = set(runs[number].source.sha256)
    if known - {None} and hashes - known:
        raise _other_recording("the recording has another SHA-256 than the files behind the documents")
    return runs[number]


def _other_recording(fact: str) -> BadDataError:
    return BadDataError(
        fact,
        cause="the documents were computed from other files or by another version of rpl",
        next_step="analyse the recording again with `rpl analyze`, then report",
    )
