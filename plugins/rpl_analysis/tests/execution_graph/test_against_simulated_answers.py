"""The document of simulated programs, field by field, against what the simulator knows.

Programs are several processes on one or two machines, each with one host thread that uses everything, or
with several that share nothing: of those the calls tell the whole order, so that every figure has one value.
What threads that share streams prove and what they don't is in ``test_against_simulated_programs``.
"""

from __future__ import annotations

import random
from itertools import combinations, groupby
from typing import Any

import attrs
import networkx as nx
import pytest

from rpl_analysis.execution_graph.build import execution_graph
from rpl_analysis.execution_graph.graph import Confidence, EdgeKind, lanes_are_queues
from rpl_rocprofv3.readers.catalog import RocpdReader
from rpl_testkit.programs import write_database
from rpl_testkit.simulation import figures
from rpl_testkit.simulation.figures import proven_order
from rpl_testkit.simulation.runtime import Costs, Played, beside, play

from .conftest import FoundEdges
from .simulated_programs import TELLING, apart, named_alike, random_program, sparse, unlike

#: Three processes on two machines: what one calls says nothing of the others.
_MACHINES = ("a", "a", "b")
_FIRST_PID = 100


def _programs(first: int, count: int) -> list[tuple[int, Played]]:
    """The programs of some seeds, without those of which a stream covers several queues (2.1)."""
    found = []
    for seed in range(first, first + count):
        rng = random.Random(seed)
        processes = [_process(rng) for _ in range(rng.choice((1, 2, 3)))]
        played = beside(processes, [rng.choice(_MACHINES) for _ in processes])
        kernels = any(not work.is_copy for work in played.recording.work)
        if kernels and not lanes_are_queues(played.recording.trace()):
            found.append((seed, played))
    return found


def _process(rng: random.Random) -> Played:
    threads = rng.choice((1, 1, 2, 3))
    program = random_program(rng, threads, graphs=True, gpus=rng.choice((1, 2)), further=TELLING)
    program = sparse(rng, program) if rng.random() < 0.4 else program
    program = unlike(rng, named_alike(rng, program))
    return play(apart(program) if threads > 1 else program, Costs(branch_ns=rng.choice((0, 300))))


@attrs.frozen
class _Answer:
    """A program, its graph, the work of each machine, and of the one that the document is about.

    That is the one with the longest path; ``None`` where several are as long.
    """

    played: Played
    graph: Any
    on: dict[str, list[int]]
    longest: list[int] | None

    def duration(self, piece: int) -> int:
        return self.played.work[piece].end_ns - self.played.work[piece].begin_ns

    def of(self, symbol: Any) -> set[int]:
        """The work of a kernel, or of a direction of copies."""
        recorded = self.played.recording.work
        asked = symbol.name, symbol.kind == "copy"
        return {i for i in self.longest or () if (recorded[i].name, recorded[i].is_copy) == asked}


def _answer(played: Played, recorded: Any = None) -> _Answer:
    graph = execution_graph((recorded or played.recording).trace(), 0, include_copies=True)
    machines = {m: figures.on_machine(played, m) for m in played.recording.machines}
    machines = {m: work for m, work in machines.items() if work}
    answer = _Answer(played, graph, machines, None)
    paths = {m: figures.longest_ns(played, work, answer.duration) for m, work in machines.items()}
    first = [m for m, path in paths.items() if path == max(paths.values())]
    return attrs.evolve(answer, longest=machines[first[0]] if len(first) == 1 else None)


def _check_loads(answer: _Answer) -> None:
    """Machines, GPUs and processes: busy and idle time, what idle time was for, and the longest path."""
    played, graph = answer.played, answer.graph
    recorded = played.recording
    assert {load.node for load in graph.clock_domains} == set(answer.on)
    for load in graph.clock_domains:
        work = answer.on[load.node]
        agents = {recorded.work[i].gpu for i in work}
        _check_busy(answer, load, work)
        assert load.makespan_ns == figures.busy(played, work).makespan_ns
        assert load.critical_path_ns == figures.longest_ns(played, work, answer.duration)
        by_call = {part.name: part.idle_ns for part in load.idle_calls}
        assert by_call in [figures.idle_calls(played, group) for group in (work, work[::-1])]
        of_gpus = [[i for i in work if recorded.work[i].gpu == gpu] for gpu in agents]
        overlap = load.total_ns - sum(figures.busy(played, own).busy_ns for own in of_gpus)
        assert load.overlap_ns == overlap
        assert load.overlap_potential_ns == load.busy_ns - load.critical_path_ns
        assert load.parallelism == pytest.approx(load.total_ns / load.critical_path_ns)
        assert load.concurrency == pytest.approx(load.total_ns / (load.total_ns - overlap))
    for load in graph.devices:
        work = [i for i in answer.on[load.node] if recorded.work[i].gpu == load.agent - 2]
        _check_busy(answer, load, work)
        assert load.nodes == len(work)
        assert load.concurrency == pytest.approx(load.total_ns / load.busy_ns)
    paths = {}
    for process, machine in enumerate(recorded.machines):
        own = [i for i, work in enumerate(recorded.work) if work.process == process]
        if own:
            longest = figures.longest_ns(played, own, answer.duration)
            makespan = figures.busy(played, own).makespan_ns
            paths[machine, _FIRST_PID + process] = (len(own), longest, makespan)
    assert paths == {
        (part.node, part.process): (part.nodes, part.critical_path_ns, part.makespan_ns)
        for part in graph.processes
    }


def _check_busy(answer: _Answer, load: Any, work: list[int]) -> None:
    busy = figures.busy(answer.played, work)
    assert (load.kernel_ns, load.copy_ns, load.total_ns) == (busy.kernel_ns, busy.copy_ns, busy.total_ns)
    assert load.busy_ns == busy.busy_ns
    assert load.idle_ns == busy.makespan_ns - busy.busy_ns
    # Of work that began at once either may count as what ended the idle time.
    ends = [(both, group) for both in (False, True) for group in (work, work[::-1])]
    _check_parts(load.idle, [figures.idle(answer.played, group, redundant=both) for both, group in ends])


def _check_parts(found: Any, answers: list[dict[str, int]]) -> None:
    """A wait for what had been waited for before may count as the host's time or as a wait."""
    for name, value in attrs.asdict(found).items():
        ends = [answer.get(name, 0) for answer in answers]
        assert min(ends) <= value <= max(ends), (name, found, answers)
    assert sum(attrs.astuple(found)) == sum(answers[0].values())


def _check_path(answer: _Answer) -> None:
    """The longest path: its length, what it runs through, and what the time went by on the executed one."""
    played, graph, work = answer.played, answer.graph, answer.longest
    if work is None:
        return
    assert graph.critical_path_ns == figures.longest_ns(played, work, answer.duration)
    assert graph.makespan_ns == figures.busy(played, work).makespan_ns
    _check_breakdown(answer, work)
    # What marks carry of a thread's waits to others need not be found (2.11).
    proven = (proven_order(played.recording, marks_carry=marks_carry) for marks_carry in (False, True))
    least, most = (figures.longest_ns(played, work, answer.duration, order) for order in proven)
    assert least <= graph.bounds.certain_only_ns <= most
    assert graph.bounds.all_edges_ns >= graph.critical_path_ns
    recorded = played.recording
    lane = {i: (recorded.work[i].process, recorded.work[i].gpu, recorded.work[i].stream) for i in work}
    assert graph.lanes == len(set(lane.values()))
    path = figures.critical_path(played, work, answer.duration)
    assert (graph.critical_path_count == "one") == (path is not None)
    if path is None:
        return
    # A segment ends where a thread's wait or branches of a graph join on the way, in one stream too.
    by_lane = groupby(graph.segments, key=lambda segment: (segment.process, segment.agent, segment.stream))
    found = [
        (*key, sum(segment.nodes for segment in run), sum(segment.busy_ns for segment in run))
        for key, run in ((key, list(run)) for key, run in by_lane)
    ]
    runs = [(key, list(run)) for key, run in groupby(path, key=lambda i: lane[i])]
    assert found == [
        (_FIRST_PID + process, 2 + gpu, stream, len(run), sum(map(answer.duration, run)))
        for (process, gpu, stream), run in runs
    ]
    _check_path_edges(graph, len(path))
    on_path = {(part.name, part.kind): part.on_path_ns for part in graph.symbols}
    for symbol in graph.symbols:
        own = sum(answer.duration(i) for i in answer.of(symbol) & set(path))
        assert on_path[symbol.name, symbol.kind] == own
        assert symbol.criticality_weight == pytest.approx(own / graph.critical_path_ns)
    assert graph.dominant_work.fraction == max(part.criticality_weight for part in graph.symbols)


def _check_breakdown(answer: _Answer, work: frozenset[int]) -> None:
    """Between both ends of what waits for something known may count as, or exactly what some of them give."""
    played, found = answer.played, answer.graph.breakdown
    try:
        _check_parts(found, [figures.breakdown(played, work, redundant=both) for both in (False, True)])
    except AssertionError:
        calls = sorted({wait.call for wait in played.waits if wait.awaited})
        some = (frozenset(chosen) for count in (1, 2, 3) for chosen in combinations(calls, count))
        counted = (figures.breakdown(played, work, redundant=chosen) for chosen in some)
        if attrs.asdict(found) not in counted:
            raise


def _check_path_edges(graph: Any, nodes: int) -> None:
    """Work follows work in its stream or by an edge; a thread that waited takes one in and one out."""
    direct, waits, certain = 0, 0, 0
    for edge in graph.path_edges:
        direct += edge.count * (edge.kind in ("stream", "event", "null_stream"))
        waits += edge.count * (edge.kind in ("host_sync", "blocking_call"))
        certain += edge.count * (edge.confidence == "certain")
    assert waits % 2 == 0
    assert direct + waits // 2 == nodes - 1
    edges = sum(edge.count for edge in graph.path_edges)
    assert graph.path_confidence == (pytest.approx(certain / edges) if edges else None)


def _check_symbols(answer: _Answer) -> None:
    """Slack of every piece of work, and what faster kernels bring."""
    played, graph, work = answer.played, answer.graph, answer.longest
    if work is None:
        return
    slack = figures.slack_ns(played, work, answer.duration)
    for symbol in graph.symbols:
        own = answer.of(symbol)
        each = sorted(slack[i] for i in own)
        assert symbol.nodes == len(own)
        assert symbol.total_ns == sum(map(answer.duration, own))
        assert symbol.min_slack_ns == each[0]
        assert each[(len(each) - 1) // 2] <= symbol.median_slack_ns <= each[len(each) // 2]
        assert symbol.critical_nodes == each.count(0)
    faster = [figures.application(played, work, redundant=redundant) for redundant in (False, True)]
    by_symbol = {(part.name, part.kind): part for part in graph.symbols}
    for forecast in graph.forecasts:
        own, symbol = answer.of(forecast), by_symbol[forecast.name, forecast.kind]
        for part in forecast.speedups:
            share = 1 if part.speedup is None else 1 - 1 / part.speedup
            _check_forecast(answer, part, {i: answer.duration(i) * share for i in own}, faster)
        free = figures.longest_ns(played, work, lambda i, own=own: 0 if i in own else answer.duration(i))
        assert symbol.path_ceiling == (pytest.approx(graph.critical_path_ns / free) if free else None)
        _check_slack_of_symbol(answer, symbol, own)
    for near in graph.near_paths:
        assert near.length_ns == graph.critical_path_ns - near.slack_ns
        slacks = [part.min_slack_ns for part in graph.symbols if part.name == near.through]
        assert near.slack_ns in slacks


def _check_forecast(answer: _Answer, found: Any, saved: dict[int, float], faster: list[Any]) -> None:
    played, work = answer.played, answer.longest
    assert work is not None
    rounded = 2 * len(work)  # every piece of work is rounded to whole ns
    least = figures.longest_ns(played, work, lambda i: answer.duration(i) - saved.get(i, 0))
    assert abs(found.critical_path_ns - least) <= rounded
    took = [makespan_ns(saved) for makespan_ns in faster]
    if answer.graph.order_known:
        assert min(took) - rounded <= found.application_ns <= max(took) + rounded
    else:
        makespan = answer.graph.makespan_ns
        assert found.application_gain_ns <= makespan - min(took) + rounded
        assert makespan - max(took) <= found.application_gain_at_most_ns + rounded
    assert found.application_gain_ns == answer.graph.makespan_ns - found.application_ns


def _check_slack_of_symbol(answer: _Answer, symbol: Any, own: set[int]) -> None:
    """Slowed down by the same factor all of its work leaves the path alone; by some more it does not.

    The factor is searched for in some 40 steps between what is surely too small and surely too large.
    """
    total, shortest = sum(map(answer.duration, own)), min(map(answer.duration, own))
    least = 1 + symbol.min_slack_ns / total
    step = ((1 + symbol.min_slack_ns / shortest) / least) ** (1 / 30) * 1.01
    factor = 1 + symbol.slack_ns / total
    for slower, grows in ((factor, False), (factor * step, True)):
        longer = figures.longest_ns(
            answer.played,
            answer.longest or [],
            lambda i, slower=slower: answer.duration(i) * (slower if i in own else 1),
        )
        assert (longer > answer.graph.critical_path_ns + len(own)) == grows, (symbol, slower)


def _check_order(answer: _Answer) -> None:
    """Lanes, edges by kind, waits of the host and what each waited for, and what is certain."""
    played = answer.played
    found = FoundEdges(played.recording.trace())
    piece = _pieces_of_rows(played, found)
    _check_lanes(played, found, piece)
    _check_kinds(played, found, piece)
    _check_waits(played, found, piece)


def _check_lanes(played: Played, found: FoundEdges, piece: list[int]) -> None:
    """Which work shares a stream, in the order of submission; branches of a graph were submitted at once."""
    order, call = found.found.program.order, [work.call for work in played.work]
    by_lane = groupby(order.node.tolist(), key=lambda row: int(found.nodes.lane[row]))
    lanes = [tuple(call[piece[row]] for row in rows) for _, rows in by_lane]
    assert sorted(lanes) == sorted(tuple(call[i] for i in lane) for lane in figures.lanes(played))


def _pieces_of_rows(played: Played, found: FoundEdges) -> list[int]:
    """The work of every row: by what it is, since kernels share their names."""
    recorded = played.recording.work
    number = {(w.begin_ns, w.end_ns, w.process, w.name, w.gpu): i for i, w in enumerate(recorded)}
    assert len(number) == len(recorded)
    nodes = found.nodes
    columns = (nodes.begin_ns, nodes.end_ns, nodes.process, map(found.name, range(len(nodes))), nodes.agent)
    return [number[key] for key in zip(*columns, strict=True)]


def _check_kinds(played: Played, found: FoundEdges, piece: list[int]) -> None:
    """Every edge says truly why the one waits for the other, and is certain only where the calls prove it."""
    edges, count = found.found.edges, len(piece)
    proven = proven_order(played.recording)
    table = zip(edges.source.tolist(), edges.target.tolist(), edges.kind, edges.confidence, strict=True)
    for source, target, kind, confidence in table:
        if max(source, target) >= count:
            continue
        before, after = piece[source], piece[target]
        name = EdgeKind(kind).name.lower()
        assert before in played.behind_others[after][name], (name, before, after)
        if confidence == Confidence.CERTAIN:
            assert before in proven[after], EdgeKind(kind).name


def _check_waits(played: Played, found: FoundEdges, piece: list[int]) -> None:
    """Every wait that anything was submitted after: which call, when it ended, and all that it waited for."""
    syncs, calls, count = found.found.syncs, played.recording.calls, len(piece)
    # As a trace orders them.
    place = sorted(
        range(len(calls)), key=lambda i: (calls[i].begin_ns, calls[i].process, calls[i].correlation_id)
    )
    graph = _order_of_rows(played, found, piece)
    last_end = max(work.end_ns for work in played.work)
    found_waits = set()
    for number, row in enumerate(syncs.call.tolist()):
        if row < 0:  # where the thread begins
            continue
        call = place[row]
        found_waits.add(call)
        ended = max(calls[call].end_ns, _begin(played, call))
        assert int(syncs.time_ns[number]) == min(ended, last_end)
        above = {piece[node] for node in nx.ancestors(graph, count + number) if node < count}
        assert above == _told(played, calls[call]), calls[call]
    for work in played.work:
        told = frozenset[int]()
        for wait in played.waits:
            if _one_thread(calls[wait.call], calls[work.call]) and wait.call < work.call:
                assert wait.awaited <= told or wait.call in found_waits, calls[wait.call]
                told |= wait.awaited


def _order_of_rows(played: Played, found: FoundEdges, piece: list[int]) -> Any:
    """All edges, and the order in lanes; branches of a graph have none."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(piece) + len(found.found.syncs)))
    edges = found.found.edges
    graph.add_edges_from(zip(edges.source.tolist(), edges.target.tolist(), strict=True))
    rows = found.found.program.order.node.tolist()
    for _, lane in groupby(rows, key=lambda row: int(found.nodes.lane[row])):
        before: list[int] = []
        for row in lane:
            graph.add_edges_from((b, row) for b in before if piece[b] in played.after[piece[row]])
            before.append(row)
    return graph


def _told(played: Played, call: Any) -> frozenset[int]:
    """All work that a thread had waited for when a call of it returned."""
    calls = played.recording.calls
    waits = (w for w in played.waits if _one_thread(calls[w.call], call))
    return frozenset[int]().union(
        *(w.awaited for w in waits if calls[w.call].correlation_id <= call.correlation_id)
    )


def _begin(played: Played, call: int) -> int:
    """When the clock of a call's machine begins: with the first work."""
    machines = played.recording.machines
    own = machines[played.recording.calls[call].process]
    return min(played.work[i].begin_ns for i in figures.on_machine(played, own))


def _one_thread(one: Any, other: Any) -> bool:
    return (one.process, one.thread) == (other.process, other.thread)


def _check(seed: int, played: Played, *, order_alone: bool = False) -> None:
    answer = _Answer(played, None, {}, None) if order_alone else _answer(played)
    of_figures = () if order_alone else (_check_loads, _check_path, _check_symbols)
    for check in (_check_order, *of_figures):
        try:
            check(answer)
        except AssertionError as error:
            raise AssertionError(f"program {seed}, {check.__name__}: {error}") from error


@pytest.mark.parametrize("first", range(0, 240, 60))
def test_every_field_is_what_the_simulator_knows(first: int) -> None:
    for seed, played in _programs(first, 60):
        _check(seed, played)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(1_000, 11_000, 1_000))
def test_the_same_of_ten_thousand_programs(first: int) -> None:
    for seed, played in _programs(first, 1_000):
        _check(seed, played, order_alone=seed % 6 > 0)  # what is computed on the graph takes most of the time


@pytest.mark.parametrize("apart", [1, 2**24])
def test_work_whose_launch_was_not_recorded_keeps_its_place(apart: int) -> None:
    """A window of a recording lacks calls; ids still tell the order, also those that are far ``apart``."""
    lost_of_all = 0
    for seed, played in _programs(2_000, 24):
        rng = random.Random(seed)
        recorded = played.recording
        waits = {wait.call for wait in played.waits}
        launches = {work.call for work in played.work} - waits
        lost_calls = {call for call in sorted(launches) if rng.random() < 0.3}
        lost = frozenset(i for i, work in enumerate(played.work) if work.call in lost_calls)
        lost_of_all += len(lost)
        window = attrs.evolve(
            recorded,
            calls=[
                attrs.evolve(call, correlation_id=call.correlation_id * apart)
                for i, call in enumerate(recorded.calls)
                if i not in lost_calls
            ],
            work=[attrs.evolve(w, correlation_id=w.correlation_id * apart) for w in recorded.work],
        )
        found = FoundEdges(window.trace())
        piece = _pieces_of_rows(played, found)
        _check_lanes(played, found, piece)
        submitted = found.found.program.submissions.call.tolist()
        assert {piece[row] for row, call in enumerate(submitted) if call < 0} == lost, seed
        answer = _answer(played, window)
        assert answer.graph.unresolved.submissions == len(lost)
        for load in answer.graph.clock_domains:
            # Of work that begins at once either may be taken for what ended a gap, with or without a call.
            work = answer.on[load.node]
            either = [figures.idle(played, group, lost=lost) for group in (work, work[::-1])]
            ends = sorted(idle["unattributed_ns"] for idle in either)
            assert load.idle_ns == sum(either[0].values())
            assert ends[0] <= load.idle.unattributed_ns <= ends[1]
    assert lost_of_all > 50


def test_a_database_of_a_program_gives_the_same_document(tmp_path) -> None:
    """What a profiler writes of it, read back: one process each."""
    for seed in range(8):
        recorded = _process(random.Random(seed)).recording
        if not any(not work.is_copy for work in recorded.work):
            continue
        # As the format names machines and copies.
        recorded.machines = ("node/1",)
        recorded.work = [
            attrs.evolve(work, name=f"MEMORY_COPY_{work.name}" if work.is_copy else work.name)
            for work in recorded.work
        ]
        path = tmp_path / f"{seed}.db"
        write_database(path, recorded)
        reader = RocpdReader()
        (trace,) = reader.read(reader.claim([path])[0])
        expected = execution_graph(recorded.trace(), 0, include_copies=True)
        found = execution_graph(trace, 0, include_copies=True)
        # Which rows they were, and the order of equals, depend on the order in the file.
        for name in (field.name for field in attrs.fields(type(expected)) if field.name != "on_path"):
            fields = getattr(found, name), getattr(expected, name)
            if name == "symbol_edges":
                fields = sorted(fields[0], key=str), sorted(fields[1], key=str)
            assert fields[0] == fields[1], (seed, name)
