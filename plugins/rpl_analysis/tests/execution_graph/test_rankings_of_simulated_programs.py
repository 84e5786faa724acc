"""What the document makes of paths and edges: dominance, gains, near paths, edges between kernels, entries.

Each is computed again from the simulator's own order of the work: the longest chain is walked anew for every
speed-up, and edges that others imply are found by comparing all with all.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from math import ceil, floor, inf
from typing import Any

import attrs
import pytest

from rpl_analysis.execution_graph.build import execution_graph
from rpl_analysis.execution_graph.graph import Confidence, EdgeKind
from rpl_testkit.simulation import figures
from rpl_testkit.simulation.runtime import Costs, Played, beside, play

from .conftest import FoundEdges
from .simulated_programs import TELLING, apart, named_alike, random_program, unlike

_SPEEDUPS = (1.25, 1.5, 2.0, inf)
_PROGRAMS = 100
#: A kernel or a direction of copies.
Symbol = tuple[str, str]


@attrs.frozen
class _Run:
    played: Played
    graph: Any
    work: list[int]

    def duration(self, piece: int) -> int:
        return self.played.work[piece].end_ns - self.played.work[piece].begin_ns

    def symbol(self, piece: int) -> Symbol:
        recorded = self.played.recording.work[piece]
        return recorded.name, "copy" if recorded.is_copy else "kernel"

    def lane(self, piece: int) -> tuple[int, int, int]:
        recorded = self.played.recording.work[piece]
        return recorded.process, recorded.gpu, recorded.stream

    def spent(self, weight: Callable[[int], int]) -> dict[Symbol, int] | None:
        """Time of each symbol on the longest chain; None where several are as long."""
        path = figures.critical_path(self.played, self.work, weight)
        if path is None:
            return None
        found: Counter[Symbol] = Counter()
        for piece in path:
            found[self.symbol(piece)] += weight(piece)
        return +found

    def faster(self, symbol: Symbol, speedup: float) -> Callable[[int], int]:
        """Rounded up to whole ns, as no kernel gains more than its speed-up."""

        def weight(piece: int) -> int:
            whole = self.duration(piece)
            if self.symbol(piece) != symbol:
                return whole
            return 0 if speedup == inf else ceil(whole * 1000 / round(speedup * 1000))

        return weight


def _played(rng: random.Random, *, graphs: bool) -> Played:
    processes = []
    for _ in range(rng.choice((1, 1, 2))):
        threads = rng.choice((1, 1, 2))
        program = random_program(rng, threads, graphs=graphs, gpus=rng.choice((1, 2)), further=TELLING)
        program = unlike(rng, named_alike(rng, program))
        program = apart(program) if threads > 1 else program
        processes.append(play(program, Costs(branch_ns=rng.choice((0, 300)))))
    return beside(processes)


def _run(seed: int, *, graphs: bool) -> _Run | None:
    """None where the recording tells less than the simulator knows: streams that cover several queues."""
    played = _played(random.Random(seed), graphs=graphs)
    if all(work.is_copy for work in played.recording.work):
        return None
    graph = execution_graph(played.recording.trace(), 0, include_copies=True)
    if not graph.order_known or any(edge.kind == "queue" for edge in graph.edges):
        return None
    return _Run(played, graph, list(range(len(played.work))))


@pytest.fixture(scope="module")
def runs() -> list[_Run]:
    found = [_run(seed, graphs=seed % 3 == 0) for seed in range(5_000, 5_000 + _PROGRAMS)]
    kept = [run for run in found if run is not None]
    assert len(kept) > _PROGRAMS // 3
    return kept


def _leader(spent: dict[Symbol, int]) -> tuple[Symbol, int, int] | None:
    """Who has most, how much, and how much the next one has; None of equals."""
    ranked = sorted(spent.items(), key=lambda entry: -entry[1])
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0], ranked[0][1], ranked[1][1] if len(ranked) > 1 else 0


def test_what_dominates_after_a_kernel_became_faster(runs: list[_Run]) -> None:
    compared = shifts = 0
    for run in runs:
        first = run.graph.symbols[0].name, run.graph.symbols[0].kind
        assert [step.speedup for step in run.graph.dominance] == [1.25, 1.5, 2.0, None]
        lost_at: float | None = None
        for speedup, step in zip(_SPEEDUPS, run.graph.dominance, strict=True):
            spent = run.spent(run.faster(first, speedup))
            leader = None if spent is None else _leader(spent)
            if spent == {}:
                assert (step.dominant_symbol, step.fraction) == (None, None)
            if leader is not None:
                compared += 1
                assert step.dominant_symbol == leader[0][0]
                assert step.fraction == pytest.approx(leader[1] / sum((spent or {}).values()))
            if lost_at is None and step.dominant_symbol != first[0]:
                lost_at = speedup
        at = run.graph.dominance_shift_at
        assert (at is None) == (lost_at is None)
        if at is not None and lost_at is not None:
            assert at <= lost_at
            shifts += _check_shift(run, first, at)
    assert compared > len(runs)
    assert shifts > len(runs) // 3


def _check_shift(run: _Run, first: Symbol, at: float) -> bool:
    """Between two steps of 1/1000 the leader changes, where its time on the path is the next one's."""
    if at == inf:
        spent = run.spent(run.faster(first, 64.0))
        assert spent is None or max(spent, key=lambda name: spent[name]) == first
        return True
    for kept in (floor(at * 1000), floor(at * 1000) - 1):
        before, after = (run.spent(run.faster(first, step / 1000)) for step in (kept, kept + 1))
        if kept < 1000 or not before or not after:
            continue
        leader, next_one = _leader(before), _leader(after)
        if leader is None or next_one is None or leader[0] != first or next_one[0] == first:
            continue
        exact = kept * leader[1] / leader[2] if leader[2] else kept + 1
        assert at == pytest.approx(min(max(exact, kept), kept + 1) / 1000, abs=1e-6)
        return True
    return False


def test_symbols_forecasts_and_gains_are_ranked(runs: list[_Run]) -> None:
    for run in runs:
        graph = run.graph
        keys = [(-s.on_path_ns, -s.total_ns, s.name) for s in graph.symbols]
        assert keys == sorted(keys)
        assert {(s.name, s.kind) for s in graph.symbols} == {run.symbol(i) for i in run.work}
        asked = {(f.name, f.kind) for f in graph.forecasts}
        assert {(s.name, s.kind) for s in graph.symbols[:15]} <= asked
        total = {s.name: s.total_ns for s in graph.symbols}
        gains = {
            (f.name, f.kind): {p.speedup: p.application_gain_ns for p in f.speedups} for f in graph.forecasts
        }
        ranks = [(-gains[f.name, f.kind][2.0], -gains[f.name, f.kind][None]) for f in graph.forecasts]
        ranks = [(*rank, -total[f.name], f.name) for rank, f in zip(ranks, graph.forecasts, strict=True)]
        assert ranks == sorted(ranks)
        _check_gains(graph, gains)
        for symbol in graph.symbols:
            weight = symbol.criticality_weight
            assert symbol.speedup_ceiling == (None if weight == 1 else pytest.approx(1 / (1 - weight)))
        kernel = next(symbol for symbol in graph.symbols if symbol.kind == "kernel")
        assert (graph.dominant_symbol, graph.fraction) == (kernel.name, kernel.criticality_weight)
        assert graph.speedup_ceiling == kernel.speedup_ceiling
        assert graph.application_ceiling == kernel.application_ceiling


def _check_gains(graph: Any, gains: dict[Symbol, dict[float | None, int]]) -> None:
    """Idle time and everything that brings something at no cost, the largest first."""
    machine = max(graph.clock_domains, key=lambda load: load.critical_path_ns)
    expected = {("idle", None): machine.idle_ns} if machine.idle_ns else {}
    expected |= {(kind, name): gain[None] for (name, kind), gain in gains.items() if gain[None] > 0}
    assert {(part.kind, part.name): part.gain_ns for part in graph.gains} == expected
    assert [part.gain_ns for part in graph.gains] == sorted(expected.values(), reverse=True)
    for part in graph.gains:
        left = graph.makespan_ns - part.gain_ns
        assert part.application_speedup == (pytest.approx(graph.makespan_ns / left) if left else None)
        assert part.gain_at_most_ns is None
    for forecast in graph.forecasts:
        for part in forecast.speedups:
            left = part.application_ns
            assert part.application_speedup == (pytest.approx(graph.makespan_ns / left) if left else None)
            assert part.application_gain_at_most_ns is None
    by_name = {(f.name, f.kind): f.speedups[-1].application_speedup for f in graph.forecasts}
    for symbol in graph.symbols:
        assert symbol.application_ceiling == by_name.get((symbol.name, symbol.kind))


def test_near_paths_are_the_longest_ones_through_what_is_nearly_critical(runs: list[_Run]) -> None:
    compared = 0
    for run in runs:
        slack = figures.slack_ns(run.played, run.work, run.duration)
        least: dict[Symbol, int] = {}
        for piece in run.work:
            least[run.symbol(piece)] = min(slack[piece], least.get(run.symbol(piece), inf))
        beside_it = sorted((ns, symbol) for symbol, ns in least.items() if ns > 0)
        near = run.graph.near_paths
        assert [(path.slack_ns, path.through) for path in near] == [(ns, s[0]) for ns, s in beside_it[:5]]
        longest = figures.longest_ns(run.played, run.work, run.duration)
        for path, (ns, symbol) in zip(near, beside_it, strict=False):
            assert path.length_ns == longest - ns
            own = [i for i in run.work if run.symbol(i) == symbol and slack[i] == ns]
            spent = _spent_through(run, own[0], int(longest)) if len(own) == 1 else None
            if spent is None:
                continue
            compared += 1
            assert sum(spent.values()) == path.length_ns
            ranked = sorted(spent.items(), key=lambda entry: (-entry[1], entry[0][0]))[:3]
            assert [(share.name, share.on_path_ns) for share in path.shares] == [
                (name, time) for (name, _), time in ranked
            ]
    assert compared > len(runs)


def _spent_through(run: _Run, piece: int, longest: int) -> dict[Symbol, int] | None:
    """On the longest chain with this piece: the longest of all if that piece outweighs the rest."""
    spent = run.spent(lambda i: run.duration(i) + (longest + 1 if i == piece else 0))
    if spent is None:
        return None
    return spent | {run.symbol(piece): spent[run.symbol(piece)] - longest - 1}


@attrs.frozen
class _Edge:
    """``source`` and ``target`` are (stream or thread, place in it)."""

    source: tuple[int, int]
    target: tuple[int, int]
    rows: tuple[int, int]
    kind: str
    confidence: str
    lag_ns: int


def _needed(edges: list[_Edge]) -> list[_Edge]:
    """Without those that say less than another one between the same two streams, or the same again.

    What a thread took by itself stays: no other edge tells it.
    """
    kept: list[_Edge] = []
    for number, edge in enumerate(edges):
        (of, at), (to, place) = edge.source, edge.target
        said = any(
            other.source[0] == of
            and other.target[0] == to
            and other.source[1] >= at
            and other.target[1] <= place
            and ((other.source, other.target) != (edge.source, edge.target) or earlier < number)
            for earlier, other in enumerate(edges)
        )
        if edge.lag_ns or not (said or (of == to and at < place)):
            kept.append(edge)
    return kept


def _edges(found: FoundEdges) -> list[_Edge]:
    """All edges of a recording, with where their ends stand in their stream or thread."""
    nodes, syncs, table = found.nodes, found.found.syncs, found.found.edges
    lanes = [*nodes.lane.tolist(), *(-1 - thread for thread in syncs.thread.tolist())]
    begins = [*nodes.begin_ns.tolist(), *syncs.time_ns.tolist()]
    place, held = [0] * len(lanes), Counter[int]()
    for row in sorted(range(len(lanes)), key=lambda row: (lanes[row], begins[row], row)):
        place[row] = held[lanes[row]]
        held[lanes[row]] += 1

    def end(row: int) -> tuple[int, int]:
        return lanes[row], place[row]

    columns = (
        table.source.tolist(),
        table.target.tolist(),
        table.kind,
        table.confidence,
        table.lag_ns.tolist(),
    )
    return [
        _Edge(end(u), end(v), (u, v), EdgeKind(k).name.lower(), Confidence(c).name.lower(), lag)
        for u, v, k, c, lag in zip(*columns, strict=True)
    ]


def test_edges_between_kernels_add_up_those_between_their_work() -> None:
    """Of programs without graphs, whose streams run one piece of work after the other."""
    compared = 0
    for seed in range(7_000, 7_000 + _PROGRAMS // 2):
        run = _run(seed, graphs=False)
        if run is None or len(run.graph.clock_domains) > 1 or run.graph.chain_overlaps:
            continue
        found = FoundEdges(run.played.recording.trace())
        every = _edges(found)
        needed = _needed(every)
        nodes, count = found.nodes, len(found.nodes)
        sums: Counter[tuple[str, str, str]] = Counter()
        gaps: Counter[tuple[str, str, str]] = Counter()
        pairs = [(*edge.rows, edge.kind) for edge in needed if max(edge.rows) < count]
        along = _along_streams(found)
        pairs += [(u, v, "stream") for u, v in along]
        pairs += _through_threads(found, needed)
        for u, v, kind in pairs:
            key = found.name(u), found.name(v), kind
            sums[key] += 1
            gaps[key] += max(0, int(nodes.begin_ns[v] - nodes.end_ns[u]))
        assert {(e.source, e.target, e.kind): e.count for e in run.graph.symbol_edges} == sums
        assert {(e.source, e.target, e.kind): e.gap_ns for e in run.graph.symbol_edges} == gaps
        by_count = [-edge.count for edge in run.graph.symbol_edges]
        assert by_count == sorted(by_count)
        kinds = Counter((edge.kind, edge.confidence) for edge in needed)
        kinds += Counter({("stream", "certain"): len(along)})
        assert {(e.kind, e.confidence): e.count for e in run.graph.edges} == kinds
        assert run.graph.implied_edges == len(every) - len(needed)
        assert (run.graph.inconsistent_edges, run.graph.submission_disagreements) == (0, 0)
        assert (run.graph.nodes, run.graph.host_syncs) == (count, len(found.found.syncs))
        # A stream that waits for an event before its record waits for nothing.
        assert not any(attrs.astuple(attrs.evolve(run.graph.unresolved, waits_without_record=0)))
        compared += len(needed)
    assert compared > _PROGRAMS


def _along_streams(found: FoundEdges) -> Iterable[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    last: dict[int, int] = {}
    for row in sorted(range(len(found.nodes)), key=lambda row: int(found.nodes.begin_ns[row])):
        lane = int(found.nodes.lane[row])
        pairs += [(last[lane], row)] if lane in last else []
        last[lane] = row
    return pairs


def _through_threads(found: FoundEdges, edges: list[_Edge]) -> list[tuple[int, int, str]]:
    """A thread that waited stands for the last to end of the work that it waited for."""
    count = len(found.nodes)
    awaited: dict[int, int] = {}
    for u, v in (edge.rows for edge in edges if edge.rows[0] < count <= edge.rows[1]):
        awaited[v] = max(u, awaited.get(v, u), key=lambda row: int(found.nodes.end_ns[row]))
    out = (edge for edge in edges if edge.rows[1] < count <= edge.rows[0])
    return [(awaited[e.rows[0]], e.rows[1], e.kind) for e in out if e.rows[0] in awaited]


def test_the_path_marks_its_work_and_parts_come_by_their_size(runs: list[_Run]) -> None:
    for run in runs:
        trace, graph, calls = run.played.recording.trace(), run.graph, run.played.recording.calls
        path = figures.critical_path(run.played, run.work, run.duration)
        tables = ((trace.dispatches, graph.on_path.dispatches), (trace.copies, graph.on_path.copies))
        marked = [
            (int(table.begin_ns[row]), int(table.end_ns[row]), int(table.process[row]))
            for table, mask in tables
            for row in mask.nonzero()[0].tolist()
        ]
        if path is not None:
            pieces = ((run.played.work[piece], run.lane(piece)[0]) for piece in path)
            assert sorted(marked) == sorted((work.begin_ns, work.end_ns, process) for work, process in pieces)
        submitting = {(calls[w.call].process, calls[w.call].thread) for w in run.played.work}
        assert graph.host_threads == max(Counter(process for process, _ in submitting).values())
        for sizes in ([p.critical_path_ns for p in graph.processes], [d.total_ns for d in graph.devices]):
            assert sizes == sorted(sizes, reverse=True)
        assert (graph.processes_left_out, graph.devices_left_out, graph.segments_left_out) == (0, 0, 0)
        assert graph.symbol_edges_left_out == 0


def test_the_path_is_entered_by_what_its_work_waited_for(runs: list[_Run]) -> None:
    """Each segment says by which kind of edge it was reached; together they are the edges of the path."""
    compared = 0
    for run in runs:
        path = figures.critical_path(run.played, run.work, run.duration)
        entered = [segment.entered_by for segment in run.graph.segments]
        assert entered[0] is None
        assert None not in entered[1:]
        on_path: Counter[str] = Counter()
        for edge in run.graph.path_edges:
            on_path[edge.kind] += edge.count
        direct = ("event", "null_stream")
        for kind in direct:
            assert entered.count(kind) == on_path[kind]
        waits = on_path["host_sync"] + on_path["blocking_call"]
        assert entered.count("host_sync") + entered.count("blocking_call") == waits // 2
        if path is None:
            continue
        first = 0
        for segment in run.graph.segments:
            after, before = path[first], path[first - 1] if first else None
            assert segment.nodes == len(path[first : first + segment.nodes])
            assert segment.busy_ns == sum(map(run.duration, path[first : first + segment.nodes]))
            if before is not None and segment.entered_by in direct:
                compared += 1
                assert before in run.played.behind_others[after][segment.entered_by]
            if before is not None and segment.entered_by in ("host_sync", "blocking_call"):
                calls = run.played.recording.calls
                launch = calls[run.played.work[after].call]
                told = [
                    wait
                    for wait in run.played.waits
                    if before in wait.awaited
                    and (calls[wait.call].process, calls[wait.call].thread) == (launch.process, launch.thread)
                    and wait.call < run.played.work[after].call
                ]
                assert told, (before, after)
                compared += 1
            if before is not None and segment.entered_by == "stream":
                assert run.lane(before) == run.lane(after)
            first += segment.nodes
        assert first == len(path)
    assert compared > len(runs)
