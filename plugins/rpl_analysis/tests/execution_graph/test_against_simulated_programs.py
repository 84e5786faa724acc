"""Random host programs played by the simulator of the test kit, which knows what really waited for what.

The recorded calls prove a part of it (``rpl_testkit.simulation.figures``): that part must be found and
certain, and nothing that is certain may be untrue. Paths and predictions must be those of a program that is
played again.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import attrs
import networkx as nx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rpl_analysis.execution_graph.build import execution_graph
from rpl_analysis.execution_graph.dependencies.graph_launches import NO_LINK, link_lanes
from rpl_analysis.execution_graph.graph import Confidence, lanes_are_queues
from rpl_analysis.what_if import FasterKernel, ReplayedRun
from rpl_testkit.simulation.figures import proven_order
from rpl_testkit.simulation.runtime import Costs, HostThread, Kind, Played, Step, beside, play

from .conftest import FoundEdges
from .simulated_programs import (
    EVERYTHING,
    TELLING,
    faster,
    hurried,
    kept_busy,
    named_alike,
    random_program,
    sparse,
)

RANDOM = st.randoms(use_true_random=False)
NOTHING_BUT_WORK = Costs(between_calls_ns=0, begin_ns=0, return_ns=0)
#: Work begins, and a thread comes back, at once: what a prediction keeps of the recording is the host's time.
AT_ONCE = Costs(between_calls_ns=100, begin_ns=0, return_ns=0)

Pairs = set[tuple[int, int]]


def _played(*program: Any, **settings: Any) -> Played:
    """``play``; a program without a kernel has no graph."""
    played = play(*program, **settings)
    assume(any(not work.is_copy for work in played.recording.work))
    return played


def _pairs(after) -> Pairs:
    return {(before, work) for work, earlier in enumerate(after) for before in earlier}


def _of_calls(played: Played, pairs: Pairs) -> Pairs:
    """The order of calls instead of the branches of their graphs: of all of them, or it is none."""
    call = _first_pieces(played)
    found = {(call[u], call[v]) for u, v in pairs}
    split = [(u, v) for u in range(len(call)) for v in range(len(call)) if (u, v) not in pairs]
    return found - {(call[u], call[v]) for u, v in split}


def _first_pieces(played: Played) -> list[int]:
    """Per piece of work the first one of its call."""
    first: dict[str, int] = {}
    return [first.setdefault(work.name.partition("/")[0], i) for i, work in enumerate(played.work)]


def _found(played: Played, worst: Confidence, *, by_call: bool = False) -> Pairs:
    """The order of work that edges up to a confidence imply; work by its number in the program.

    ``by_call``: of the calls that launched it. One edge into a graph, or out of it, is one of all branches.
    """
    found = FoundEdges(played.recording.trace())
    nodes, table = found.nodes, found.found.edges
    pieces = _first_pieces(played) if by_call else range(len(played.work))
    number = {work.name: pieces[i] for i, work in enumerate(played.work)}
    graph = nx.DiGraph()
    for u, v, sure in zip(
        table.source.tolist(), table.target.tolist(), table.confidence.tolist(), strict=True
    ):
        if sure <= worst:
            graph.add_edge(u, v)
    links = link_lanes(nodes, found.found.program)
    order = found.found.program.order.in_start_order.tolist()
    for u, v in pairwise(order):
        if links.kind[v] != NO_LINK and links.confidence[v] <= worst:
            graph.add_edge(u, v)
    work = [number[found.name(row)] for row in range(len(nodes))]
    # Nodes beyond those of work are threads that come back.
    named = {row: work[row] if row < len(work) else len(played.work) + row for row in graph}
    closure = nx.transitive_closure_dag(nx.relabel_nodes(graph, named))
    return {(u, v) for u, v in closure.edges if max(u, v) < len(played.work)}


def _process(rng, threads: int, number: int) -> Played:
    """One whose work has names of its own."""
    further = rng.choice(((), EVERYTHING))
    program = random_program(rng, threads, graphs=True, gpus=rng.choice((1, 1, 2)), further=further)
    program = sparse(rng, program) if rng.random() < 0.3 else program
    named = tuple(
        tuple(attrs.evolve(step, name=f"{number}:{step.name}") for step in thread) for thread in program
    )
    return play(named, queues=rng.choice((0, 0, 2)))


def _check_edges(rng, threads: int) -> None:
    played = beside([_process(rng, threads, number) for number in range(rng.choice((1, 1, 2)))])
    if all(work.is_copy for work in played.recording.work):
        return  # Without a kernel there is no graph.
    true = _pairs(played.after)
    of_calls = _pairs(proven_order(played.recording))
    assert of_calls <= true, "the calls prove what is not true"
    assert _found(played, Confidence.CERTAIN) <= of_calls, "a certain edge is not proven"
    if lanes_are_queues(played.recording.trace()):
        return  # A graph in the only stream looks as if streams were not recorded (2.1): no proof.
    certain = _found(played, Confidence.CERTAIN, by_call=True)
    assert certain <= _of_calls(played, true), "a certain order of graphs is not true"
    # What a thread had waited for before it made such a mark is not looked up for other threads.
    proven = _pairs(proven_order(played.recording, marks_carry=False))
    assert _of_calls(played, proven) <= certain, "a proven edge is not certain"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_what_the_calls_prove_is_certain_and_what_is_certain_is_true(threads) -> None:
    for seed in range(60):
        _check_edges(random.Random(1_000 * threads + seed), threads)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_of_thousands_of_programs(threads) -> None:
    for seed in range(500):
        _check_edges(random.Random(100_000 * threads + seed), threads)


def _check_order(rng) -> None:
    played = _played(random_program(rng, 1, gpus=rng.choice((1, 2)), further=TELLING))
    assert _found(played, Confidence.PROBABLE) == _pairs(played.after)


def _check_path(rng) -> None:
    program = random_program(rng, 1, graphs=True, gpus=rng.choice((1, 2)), further=TELLING)
    played = _played(program)
    assume(not lanes_are_queues(played.recording.trace()))
    graph = execution_graph(played.recording.trace(), 0, include_copies=True)
    again = play(hurried(program), NOTHING_BUT_WORK)
    assert graph.critical_path_ns == again.makespan_ns
    assert graph.makespan_ns == played.makespan_ns


@settings(max_examples=60)
@given(rng=RANDOM)
def test_of_one_thread_on_queues_of_its_own_the_whole_order_is_found(rng) -> None:
    """Including that of the null stream and of calls that block as a side effect, which is probable only."""
    _check_order(rng)


@settings(max_examples=60)
@given(rng=RANDOM)
def test_the_critical_path_is_the_time_of_a_host_that_takes_none(rng) -> None:
    _check_path(rng)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("check", [_check_order, _check_path])
@settings(max_examples=1000)
@given(rng=RANDOM)
def test_the_same_of_thousands_of_orders_and_paths(check, rng) -> None:
    check(rng)


def _check_prediction(rng) -> None:
    program = kept_busy(rng)
    played = _played(program, AT_ONCE)
    assume(not lanes_are_queues(played.recording.trace()))
    names = {work.name for work in played.work}
    name = rng.choice(sorted({name.partition("/")[0] for name in names}))
    factor = rng.choice((2, 4))
    predicted = ReplayedRun(played.recording.trace(), include_copies=True).predict(
        [FasterKernel(branch, factor) for branch in sorted(names) if branch.partition("/")[0] == name]
    )
    assert predicted.recorded_ns == played.makespan_ns
    again = play(faster(program, name, factor), AT_ONCE).makespan_ns
    if predicted.together.gain_at_most_ns is None:
        assert predicted.together.application_ns == again
    else:  # a wait that nothing tells the stream of
        gained = played.makespan_ns - again
        assert predicted.together.gain_ns <= gained <= predicted.together.gain_at_most_ns


@settings(max_examples=60)
@given(rng=RANDOM)
def test_a_prediction_is_what_happens_when_the_kernel_is_made_faster(rng) -> None:
    _check_prediction(rng)


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(max_examples=500)
@given(rng=RANDOM)
def test_the_same_of_thousands_of_predictions(rng) -> None:
    _check_prediction(rng)


@settings(max_examples=60)
@given(rng=RANDOM)
def test_where_launches_come_late_a_prediction_is_the_least_that_can_happen(rng) -> None:
    """Waits stay as recorded: a launch that would still come late is not foreseen, only less gain (3.3)."""
    program = named_alike(rng, random_program(rng, 1, further=("memset", "blocking_copy")))
    played = _played(program, AT_ONCE)
    name, factor = rng.choice(sorted({work.name for work in played.work})), rng.choice((2, 5))
    predicted = ReplayedRun(played.recording.trace(), include_copies=True).predict(
        [FasterKernel(name, factor)]
    )
    assert predicted.together.application_ns <= play(faster(program, name, factor), AT_ONCE).makespan_ns


@settings(max_examples=60)
@given(rng=RANDOM)
def test_figures_keep_their_promises(rng) -> None:
    played = _played(named_alike(rng, random_program(rng, rng.choice((1, 2)), graphs=True, gpus=2)))
    graph = execution_graph(played.recording.trace(), 0, include_copies=True)
    assert graph.inconsistent_edges == 0
    assert graph.unresolved.late_syncs == 0
    assert graph.critical_path_ns <= graph.makespan_ns
    assert sum(attrs.astuple(graph.breakdown)) == graph.makespan_ns
    assert graph.bounds.certain_only_ns <= graph.critical_path_ns <= graph.bounds.all_edges_ns
    for load in (*graph.clock_domains, *graph.devices):
        assert sum(attrs.astuple(load.idle)) == load.idle_ns
        assert load.kernel_ns + load.copy_ns == load.busy_ns
    for symbol in graph.symbols:
        if symbol.path_ceiling is not None and symbol.speedup_ceiling is not None:
            assert symbol.path_ceiling <= symbol.speedup_ceiling * (1 + 1e-12)
        assert (symbol.slack_ns == 0) == (symbol.critical_nodes > 0)
        assert symbol.slack_ns >= symbol.min_slack_ns
    for forecast in graph.forecasts:
        gains = [answer.application_gain_ns for answer in forecast.speedups]
        assert gains == sorted(gains)
        assert all(gain >= 0 for gain in gains)


@settings(max_examples=30)
@given(rng=RANDOM)
def test_what_holds_under_any_order_holds_under_the_true_one(rng) -> None:
    """The same program with its calls taken away: the bracket must hold what the calls tell."""
    played = _played(named_alike(rng, random_program(rng, 1)))
    true = execution_graph(played.recording.trace(), 0, include_copies=True)
    blind = execution_graph(played.recording.trace(with_calls=False), 0, include_copies=True)
    assert blind.order_known == (blind.lanes == 1)
    if blind.order_known:
        assert blind.bounds.any_order_ns is None
        return
    assert true.critical_path_ns <= blind.bounds.any_order_ns <= blind.clock_domains[0].busy_ns
    dominant = blind.dominant_work
    (symbol,) = [s for s in true.symbols if (s.name, s.kind) == (dominant.name, dominant.kind)]
    if symbol.application_ceiling is not None and dominant.application_ceiling_at_most is not None:
        assert symbol.application_ceiling <= dominant.application_ceiling_at_most * (1 + 1e-12)


def _blind(played: Played) -> Any:
    """The graph of the same work without its calls; several streams, so that their order is unknown."""
    graph = execution_graph(played.recording.trace(with_calls=False), 0, include_copies=True)
    assume(not graph.order_known)
    return graph


def _at_twice_the_speed(forecast: Any) -> Any:
    (twice,) = (answer for answer in forecast.speedups if answer.speedup == 2)
    return twice


def _check_true_gain(rng) -> None:
    busy = rng.random() < 0.5
    program = kept_busy(rng) if busy else named_alike(rng, random_program(rng, 1, gpus=rng.choice((1, 2))))
    queues = rng.choice((0, 0, 2))
    played = _played(program, AT_ONCE, queues=queues)
    for forecast in _blind(played).forecasts:
        if "/" in forecast.name:
            continue
        twice = _at_twice_the_speed(forecast)
        again = play(faster(program, forecast.name, 2), AT_ONCE, queues=queues)
        gained = played.makespan_ns - again.makespan_ns
        assert twice.application_gain_ns <= gained <= twice.application_gain_at_most_ns, forecast.name


def _check_gain_of_two_threads(rng) -> None:
    """Inside wherever all work still waits for the same work.

    Threads that come back earlier may submit in another order, which no range of one recording foresees
    (docs/reference/execution-graph.md, 3.3).
    """
    program = named_alike(rng, random_program(rng, 2, gpus=rng.choice((1, 2))))
    queues = rng.choice((0, 0, 2))
    played = _played(program, AT_ONCE, queues=queues)
    for forecast in _blind(played).forecasts:
        twice = _at_twice_the_speed(forecast)
        again = play(faster(program, forecast.name, 2), AT_ONCE, queues=queues)
        if again.after == played.after:
            gained = played.makespan_ns - again.makespan_ns
            assert twice.application_gain_ns <= gained <= twice.application_gain_at_most_ns, forecast.name


def _launched_late(played: Played) -> tuple[HostThread, ...]:
    """The program with the same recording whose host launches all work at the time at which it began."""
    work = sorted(played.recording.work, key=lambda w: (w.begin_ns, w.end_ns))
    streams = {lane: n for n, lane in enumerate(dict.fromkeys((w.stream, w.gpu) for w in work), start=1)}
    steps, device, now_ns = [], 0, work[0].begin_ns

    def put(kind: Kind, gpu: int, **about: Any) -> None:
        nonlocal device
        if gpu != device:
            device = gpu
            steps.append(Step("set_device", device=gpu, before_ns=0, after_ns=0))
        steps.append(Step(kind, device=gpu, before_ns=0, after_ns=0, **about))

    for (_, gpu), stream in streams.items():
        put("create_stream", gpu, stream=stream, non_blocking=True)
    for w in work:
        steps.append(Step("think", duration_ns=w.begin_ns - now_ns))
        now_ns = w.begin_ns
        about = {"name": w.name, "duration_ns": w.end_ns - w.begin_ns}
        put("copy" if w.is_copy else "launch", w.gpu, stream=streams[w.stream, w.gpu], **about)
    return (tuple(steps),)


def _check_lower_end_is_reached(rng) -> None:
    """No narrower range would be true: a program of the same recording gains the lower end and no more."""
    played = _played(named_alike(rng, random_program(rng, rng.choice((1, 2)), gpus=rng.choice((1, 2)))))
    graph = _blind(played)
    program = _launched_late(played)
    late = play(program, NOTHING_BUT_WORK)

    def recorded(of: Played) -> list[tuple[str, int, int, int]]:
        first = min(w.begin_ns for w in of.recording.work)
        times = [(w.name, w.begin_ns - first, w.end_ns - first, w.gpu) for w in of.recording.work]
        return sorted(times)

    assert recorded(late) == recorded(played)
    for forecast in graph.forecasts:
        twice = _at_twice_the_speed(forecast)
        again = play(faster(program, forecast.name, 2), NOTHING_BUT_WORK)
        assert twice.application_gain_ns == late.makespan_ns - again.makespan_ns, forecast.name


def _check_told_with_calls(rng) -> None:
    played = _played(named_alike(rng, random_program(rng, 1, gpus=rng.choice((1, 2)))), AT_ONCE)
    told = execution_graph(played.recording.trace(), 0, include_copies=True)
    assume(told.order_known)
    blind = _blind(played)
    known = {(f.name, f.kind, s.speedup): s.application_gain_ns for f in told.forecasts for s in f.speedups}
    assert blind.forecasts
    for forecast in blind.forecasts:
        for answer in forecast.speedups:
            gain = known.get((forecast.name, forecast.kind, answer.speedup))
            if gain is not None:
                assert answer.application_gain_ns <= gain <= answer.application_gain_at_most_ns
    predicted = ReplayedRun(played.recording.trace(with_calls=False), include_copies=True)
    for forecast in blind.forecasts:
        for answer in forecast.speedups:
            asked = [FasterKernel(forecast.name, answer.speedup or float("inf"))]
            alone = predicted.predict(asked).together
            assert (alone.gain_ns, alone.gain_at_most_ns) == (
                answer.application_gain_ns,
                answer.application_gain_at_most_ns,
            )


def _check_upper_ends(rng) -> None:
    """No symbol can save more than the time in which any of it ran; lists stand in the order of this end."""
    played = _played(named_alike(rng, random_program(rng, rng.choice((1, 2)), gpus=2)))
    graph = _blind(played)
    ranked = []
    for forecast in graph.forecasts:
        kinds = forecast.kind == "copy"
        own = [w for w in played.recording.work if (w.name, w.is_copy) == (forecast.name, kinds)]
        times = [(w.begin_ns, 1) for w in own] + [(w.end_ns, -1) for w in own]
        running = union = last = 0
        for time, change in sorted(times):
            union += time - last if running else 0
            running, last = running + change, time
        most = {answer.speedup: answer.application_gain_at_most_ns for answer in forecast.speedups}
        assert most[None] <= union
        ranked.append((-most[2], -most[None], -sum(w.end_ns - w.begin_ns for w in own)))
    assert ranked == sorted(ranked)
    gains = [g.gain_ns if g.gain_at_most_ns is None else g.gain_at_most_ns for g in graph.gains]
    assert gains == sorted(gains, reverse=True)


_OF_RANGES = [
    _check_true_gain,
    _check_gain_of_two_threads,
    _check_lower_end_is_reached,
    _check_told_with_calls,
    _check_upper_ends,
]


@pytest.mark.parametrize("check", _OF_RANGES)
@settings(max_examples=40)
@given(rng=RANDOM)
def test_without_calls_a_gain_is_a_range_that_holds_the_true_one(check, rng) -> None:
    check(rng)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("check", _OF_RANGES)
@settings(max_examples=500)
@given(rng=RANDOM)
def test_the_same_of_thousands_of_ranges(check, rng) -> None:
    check(rng)


@settings(max_examples=30)
@given(rng=RANDOM)
def test_the_order_of_rows_and_the_numbering_of_ids_change_nothing(rng) -> None:
    program = play(named_alike(rng, random_program(rng, 1))).recording
    assume(any(not work.is_copy for work in program.work))
    expected = execution_graph(program.trace(), 0, include_copies=True)
    rows = list(range(len(program.work)))
    rng.shuffle(rows)
    program.calls = [
        attrs.evolve(call, correlation_id=call.correlation_id * 7 + 1000) for call in program.calls
    ]
    program.work = [
        attrs.evolve(work, correlation_id=work.correlation_id * 7 + 1000, queue=work.queue + 5)
        for work in program.work
    ]
    found = execution_graph(program.trace(rows=rows), 0, include_copies=True)
    # Dispatch ids of the rearranged rows differ, nothing else does.
    ids = {"first_dispatch": None, "last_dispatch": None}
    assert [attrs.evolve(s, **ids) for s in found.segments] == [
        attrs.evolve(s, **ids) for s in expected.segments
    ]
    assert attrs.evolve(found, segments=()) == attrs.evolve(expected, segments=())
