"""Bins of the timeline, from fine to coarse: how busy, how critical, with what, how many.

All levels are summed up exactly from the nodes; only the shares are rounded, to 255ths, at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen
from rpl_report.timeline.model import NO_SYMBOL, BinLevel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rpl_report.timeline.pieces import LanePieces

    Int64Column = NDArray[np.int64]

__all__ = ["bin_levels"]

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
