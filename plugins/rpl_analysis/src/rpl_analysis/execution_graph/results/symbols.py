"""Every kernel and copy direction on the graph: weight, slack, ceilings.

The slack of a symbol is how much it may slow down in total, spread evenly over its nodes, before the critical
path grows. The least slack of its nodes is safe but too little: they may lie on different paths. So slower
versions are solved again, and the largest one that left the path alone counts: a lower bound, itself safe.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.contracts.dag import SymbolCriticality, SymbolEdgePart
from rpl_analysis.critical_path.symbols import sum_by
from rpl_analysis.critical_path.weights import shrunk
from rpl_analysis.critical_path.whatif import Scenario, what_if
from rpl_analysis.execution_graph.dependencies.graph_launches import NO_LINK
from rpl_analysis.execution_graph.graph import EdgeKind, number_keys
from rpl_analysis.execution_graph.results.forecasts import at_no_cost
from rpl_analysis.runtime.timing import group_durations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from numpy.typing import NDArray

    from rpl_analysis.contracts.dag import ForecastPart
    from rpl_analysis.critical_path.whatif import SegmentSums
    from rpl_analysis.execution_graph.dependencies.graph_launches import LaneLinks
    from rpl_analysis.execution_graph.graph import EdgeTable
    from rpl_analysis.execution_graph.results.domain import SolvedDomain

    Int64Column = NDArray[np.int64]
    Edges = tuple[Int64Column, Int64Column, NDArray[np.int8]]

#: Slow-downs tried per symbol and round, and rounds (chosen: the bound is then within a few percent).
_TRIES = 6
_ROUNDS = 2
#: The engine's speed-ups are fractions with denominators up to this.
_MOST_DENOMINATOR = 1000
_LARGEST_SLOWDOWN = 1e6


def rank_symbols(solved: SolvedDomain) -> list[int]:
    """Indices into ``solved.sums``: by weight on the path, then total time, then name."""
    sums, names = solved.sums, solved.domain.work.symbol_names
    return sorted(
        range(sums.symbol.size),
        key=lambda i: (-int(sums.on_path_ns[i]), -int(sums.execution_ns[i]), names[sums.symbol[i]]),
    )


def symbol_criticality(
    solved: SolvedDomain,
    order: list[int],
    forecasts: Mapping[int, ForecastPart],
    symbol_slack: Mapping[int, int],
) -> tuple[SymbolCriticality, ...]:
    """All symbols in ``order``; forecasts and slack by symbol number, for those that were solved again."""
    sums, work = solved.sums, solved.domain.work
    length = max(solved.path.critical_path_ns, 1)
    slack = group_durations(work.symbol, solved.slack_ns[: len(work)], len(work.symbol_names))
    static = sums.static_ceiling()
    symbols = []
    for i in order:
        number = int(sums.symbol[i])
        of_symbol = slack.group(number)
        symbols.append(
            SymbolCriticality(
                name=work.symbol_names[number],
                kind="kernel" if number < work.kernel_symbols else "copy",
                nodes=int(sums.nodes[i]),
                total_ns=int(sums.execution_ns[i]),
                on_path_ns=int(sums.on_path_ns[i]),
                criticality_weight=int(sums.on_path_ns[i]) / length,
                min_slack_ns=int(sums.min_slack_ns[i]),
                median_slack_ns=int(of_symbol[(of_symbol.size - 1) // 2]),
                critical_nodes=int(np.searchsorted(of_symbol, 0, side="right")),
                speedup_ceiling=static[i],
                path_ceiling=_path_ceiling(solved, forecasts.get(number)),
                application_ceiling=_application_ceiling(forecasts.get(number)),
                slack_ns=symbol_slack.get(number),
            )
        )
    return tuple(symbols)


def _path_ceiling(solved: SolvedDomain, forecast: ForecastPart | None) -> float | None:
    """Speed-up of the exec-only path if the symbol cost nothing; None if nothing would be left."""
    if forecast is None:
        return None
    left = at_no_cost(forecast).critical_path_ns
    return solved.path.critical_path_ns / left if left else None


def _application_ceiling(forecast: ForecastPart | None) -> float | None:
    """Speed-up of the application, which keeps its launches, host time and waits."""
    return None if forecast is None else at_no_cost(forecast).application_speedup


@attrs.define
class _Search:
    """Slow-down factors between one that is safe (``low``) and one that is not, or not known to be."""

    symbol: int
    execution_ns: Int64Column
    slack_ns: int
    low: float
    high: float

    def factors(self) -> list[Fraction]:
        """Speed-ups below 1 to try, from the smallest slow-down to the largest."""
        from fractions import Fraction  # rarely needed, and dear to import

        steps = np.geomspace(self.low, self.high, _TRIES + 2)[1:]
        exact = {Fraction(1 / factor).limit_denominator(_MOST_DENOMINATOR) for factor in steps.tolist()}
        return sorted((factor for factor in exact if 0 < factor < 1), reverse=True)


def find_symbol_slack(
    solved: SolvedDomain, symbols: list[int], sums: SegmentSums | None = None
) -> dict[int, int]:
    """Slack in ns per symbol of ``symbols``; 0 for those on a critical path."""
    least = dict(zip(solved.sums.symbol.tolist(), solved.sums.min_slack_ns.tolist(), strict=True))
    safe = {symbol: int(least[symbol]) for symbol in symbols}
    searches = [_search(solved, symbol, safe[symbol]) for symbol in symbols if safe[symbol] > 0]
    for _ in range(_ROUNDS):
        open_ones = [search for search in searches if search.high > search.low]
        if not open_ones:
            break
        _try(solved, open_ones, sums)
    return safe | {search.symbol: max(search.slack_ns, safe[search.symbol]) for search in searches}


def _search(solved: SolvedDomain, symbol: int, least_ns: int) -> _Search:
    of_symbol = solved.domain.symbol[solved.graph.order] == symbol
    execution = solved.weights.execution_ns[of_symbol]
    slack = solved.slack_ns[solved.graph.order[of_symbol]]
    total = int(execution.sum())
    # A path through the node that limits most grows by that node's share at least, and by all at most.
    limiting = int(execution[slack == least_ns].max(initial=0))
    low = 1 + least_ns / total if total else 1.0
    high = min(1 + least_ns / limiting, _LARGEST_SLOWDOWN) if limiting else low
    return _Search(symbol, execution, least_ns, low, max(low, high))


def _try(solved: SolvedDomain, searches: list[_Search], sums: SegmentSums | None) -> None:
    """One round: narrow every search by the answers for all its factors."""
    asked = [(search, factor) for search in searches for factor in search.factors()]
    scenarios = [Scenario(search.symbol, float(factor)) for search, factor in asked]
    answers = what_if(solved.graph, solved.weights, solved.domain.symbol, scenarios, sums)
    for (search, factor), answer in zip(asked, answers, strict=True):
        slowdown = float(1 / factor)
        if answer.predicted_ns > answer.recorded_ns:
            search.high = min(search.high, slowdown)
        elif slowdown <= search.high:
            search.low = max(search.low, slowdown)
            longer = shrunk(search.execution_ns, float(factor))
            search.slack_ns = max(search.slack_ns, int((longer - search.execution_ns).sum()))


# Edges between nodes added up to edges between symbols: the kernel-level graph of a recording.

#: dag.json keeps the most frequent ones (chosen).
MOST_SYMBOL_EDGES = 1000
_KINDS = len(EdgeKind)
_BLOCK = 2**17


def sum_symbol_edges(solved: SolvedDomain, links: LaneLinks) -> tuple[tuple[SymbolEdgePart, ...], int]:
    """The most frequent edges, and how many were left out. ``gap_ns`` sums begin minus end, at least 0."""
    # In blocks: with millions of nodes the columns of all edges would be most of the memory.
    blocks = chain(_along_lanes(solved, links), _blocks(*_across(solved)), _blocks(*_through_host(solved)))
    nothing = (np.zeros(0, np.int64),) * 3
    parts = [nothing, *(_summed(solved, *block) for block in blocks)]
    part_keys, part_counts, part_gaps = map(np.concatenate, zip(*parts, strict=True))
    keys, index = number_keys(part_keys)
    count, gap_ns = sum_by(index, part_counts, keys.size), sum_by(index, part_gaps, keys.size)
    # Kernel names ascend with their numbers, so that equal counts come in the order of names.
    chosen = np.argsort(-count, kind="stable")[:MOST_SYMBOL_EDGES]
    names = solved.domain.work.symbol_names
    edges = tuple(
        SymbolEdgePart(
            source=names[key // _KINDS // len(names)],
            target=names[key // _KINDS % len(names)],
            kind=EdgeKind(key % _KINDS).name.lower(),
            count=edge_count,
            gap_ns=edge_gap_ns,
        )
        for key, edge_count, edge_gap_ns in zip(
            *(column[chosen].tolist() for column in (keys, count, gap_ns)), strict=True
        )
    )
    return edges, keys.size - len(edges)


def _summed(
    solved: SolvedDomain, source: Int64Column, target: Int64Column, kind: NDArray[np.int8]
) -> tuple[Int64Column, Int64Column, Int64Column]:
    """The distinct (symbols, kind) as numbers, how many edges each has, and their gaps."""
    domain = solved.domain
    pair = domain.symbol[source].astype(np.int64) * len(domain.work.symbol_names) + domain.symbol[target]
    keys, index = number_keys(pair * _KINDS + kind)
    gaps = np.maximum(domain.begin_ns[target] - domain.end_ns[source], 0)
    return keys, np.bincount(index, minlength=keys.size), sum_by(index, gaps, keys.size)


def _along_lanes(solved: SolvedDomain, links: LaneLinks) -> Iterator[Edges]:
    work, rows = solved.domain.work, solved.domain.work_rows
    lanes = len(work.lanes)
    if lanes > 1:
        by_lane = np.argsort(work.lane.astype(np.uint16) if lanes < 2**16 else work.lane, kind="stable")
    else:
        by_lane = np.arange(len(work))
    for first in range(1, len(work), _BLOCK):
        target = by_lane[first : first + _BLOCK]
        source = by_lane[first - 1 : first - 1 + target.size]
        kind = links.kind[rows[target]]
        linked = kind != NO_LINK
        yield (source, target, kind) if linked.all() else (source[linked], target[linked], kind[linked])


def _blocks(source: Int64Column, target: Int64Column, kind: NDArray[np.int8]) -> Iterator[Edges]:
    for first in range(0, source.size, _BLOCK):
        block = slice(first, first + _BLOCK)
        yield source[block], target[block], kind[block]


def _kept(solved: SolvedDomain) -> EdgeTable:
    return solved.edges.pick(solved.graph.edges.origin[solved.graph.edges.origin >= 0])


def _across(solved: SolvedDomain) -> Edges:
    edges, work = _kept(solved), len(solved.domain.work)
    direct = (edges.source < work) & (edges.target < work)
    return edges.source[direct], edges.target[direct], edges.kind[direct]


def _through_host(solved: SolvedDomain) -> Edges:
    """A host synchronisation stands for the node it waited for that ended last."""
    domain, edges = solved.domain, _kept(solved)
    work = len(domain.work)
    into = (edges.source < work) & (edges.target >= work)
    source, sync = edges.source[into], edges.target[into] - work
    awaited = np.full(domain.size - work, -1, dtype=np.int64)
    by_end = np.argsort(domain.end_ns[source], kind="stable")
    awaited[sync[by_end]] = source[by_end]
    out = (edges.source >= work) & (edges.target < work)
    source, target = awaited[edges.source[out] - work], edges.target[out]
    known = source >= 0
    return source[known], target[known], edges.kind[out][known]
