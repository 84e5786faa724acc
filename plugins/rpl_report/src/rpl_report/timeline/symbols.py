"""Symbols of the timeline by total time; beyond a limit they share one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_report.timeline.model import TimelineSymbol

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]

__all__ = ["SymbolChoice", "choose_symbols"]

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
    own, rest = order[:MOST_SYMBOLS], order[MOST_SYMBOLS:]
    symbols = [
        TimelineSymbol(
            name=names[i],
            kind="kernel" if i < nodes.kernel_symbols else "copy",
            nodes=int(count[i]),
            total_ns=int(total[i]),
            on_path_ns=int(on_path[i]),
        )
        for i in own
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
    place = np.full(len(names), len(own), dtype=np.int64)
    place[own] = np.arange(len(own))
    return SymbolChoice(tuple(symbols), place, len(rest))


def _sums(symbol: NDArray[np.int32], duration: Int64Column, symbols: int) -> Int64Column:
    sums = np.zeros(symbols, dtype=np.int64)
    np.add.at(sums, symbol, duration)
    return sums
