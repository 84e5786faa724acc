"""Idle time, submissions and the order of lanes of drawn programs, by counting and by walking.

Idle time is counted in slices that are short enough to have one cause each; calls, places and neighbours
are found by going through lists (docs/reference/execution-graph.md, 2.10 and 3.5).
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

from rpl_analysis.contracts.dag import EdgeCount, UnresolvedPart
from rpl_analysis.execution_graph.host_program.submission import (
    Submissions,
    _Ids,
    _match_by_search,
    find_submissions,
    order_lanes,
)
from rpl_analysis.execution_graph.results.confidence import OtherLengths, certain_share
from rpl_analysis.execution_graph.results.findings import graph_diagnostics
from rpl_analysis.execution_graph.results.loads import HostTimeline
from rpl_analysis.execution_graph.results.model import ExecutionGraph
from rpl_analysis.execution_graph.results.time_spent import (
    IDLE_CAUSES,
    Releases,
    idle_intervals,
    sum_idle_time,
)
from rpl_core.model.trace import CallKind, CallMeaning, HostApi

#: Length of a slice: four of them make the millisecond after which queued work did not wait for its launch.
SLICE_NS = 250_000
NAMES = ("copy", "wait", "other", "wait")


def _timeline(
    rng: random.Random, count: int, threads: int
) -> tuple[HostTimeline, list[list[tuple[int, int, int]]]]:
    """Outermost calls of each thread (begin, end, function), which touch or leave room between them."""
    calls = []
    for _ in range(threads):
        own, at = [], rng.randint(0, 3)
        while at < 60:
            end = at + rng.randint(1, 6)
            own.append((at, end, rng.randint(-1, 3)))
            at = end + rng.choice((0, 0, 1, 4))
        calls.append(own)
    table = [call for own in calls for call in own]
    function = np.array([f for _, _, f in table], np.int32)
    first = np.cumsum([0, *map(len, calls)])
    timeline = HostTimeline(
        thread=np.array([rng.randint(-1, threads - 1) for _ in range(count)], np.int32),
        returned_ns=np.zeros(count, np.int64),
        first=first,
        begin_ns=np.array([b for b, _, _ in table], np.int64) * SLICE_NS,
        end_ns=np.array([e for _, e, _ in table], np.int64) * SLICE_NS,
        function=function,
        copies=function == 0,
        waits=np.isin(function, (0, 1, 3)),
        names=NAMES,
    )
    return timeline, calls


def _cause(node: int, at: int, begin: int, since: int, facts: Any) -> str:
    """Of the slice that begins ``at``, in a gap from ``since`` on that ``node`` ended at ``begin``."""
    submitted = facts.submitted[node]
    if submitted < 0:
        return "unattributed"
    called = min(max(submitted, since), begin)
    if at < called:
        for start, end, function in facts.calls[facts.thread[node]] if facts.thread[node] >= 0 else ():
            if start <= at < end:
                return {0: "copying", 1: "sync", 3: "sync"}.get(function, "host")
        return "host"
    if facts.held[node]:
        return "sync"
    returned = called if facts.copy[node] else min(max(facts.returned[node], called), begin)
    return "unattributed" if begin - returned >= 4 and at >= returned else "launch"


@pytest.mark.parametrize("seed", range(40))
def test_idle_time_is_what_its_slices_add_up_to(seed: int) -> None:
    rng = random.Random(seed)
    count, threads = rng.randint(1, 9), rng.randint(1, 2)
    begins = sorted(rng.randint(0, 50) for _ in range(count))
    ends = [begin + rng.randint(0, 6) for begin in begins]
    timeline, calls = _timeline(rng, count, threads)
    thread = timeline.thread.tolist()
    submitted, returned = [], []
    for begin, of in zip(begins, thread, strict=True):
        known = of >= 0
        submitted.append(max(0, begin - rng.choice((0, 1, 2, 5, 12))) if known else -1)
        returned.append(submitted[-1] + rng.randint(0, 5) if known else -1)
    facts = SimpleNamespace(
        calls=calls,
        thread=thread,
        submitted=submitted,
        returned=returned,
        held=[of >= 0 and rng.random() < 0.3 for of in thread],
        copy=[rng.random() < 0.3 for _ in thread],
    )

    def scaled(times: list[int]) -> Any:
        return np.array([time * SLICE_NS if time >= 0 else -1 for time in times], np.int64)

    host = attrs.evolve(timeline, returned_ns=scaled(returned))
    releases = Releases(scaled(submitted), np.array(facts.held), np.array(facts.copy), host)

    slices: Counter[str] = Counter()
    in_calls: Counter[str | None] = Counter()
    listed: list[tuple[int, str, int]] = []
    reached = begins[0]
    for node, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        for at in range(reached, begin):
            cause = _cause(node, at, begin, reached, facts)
            slices[cause] += 1
            listed.append((node, cause, at))
            if thread[node] >= 0:
                inside = [f for start, stop, f in calls[thread[node]] if start <= at < stop and f >= 0]
                in_calls[NAMES[inside[0]] if inside else None] += 1
        reached = max(reached, end)
    found = sum_idle_time(scaled(begins), scaled(ends), releases)
    assert dict(zip(IDLE_CAUSES, attrs.astuple(found.idle), strict=True)) == {
        cause: slices[cause] * SLICE_NS for cause in IDLE_CAUSES
    }
    total = sum(end - begin for begin, end in zip(begins, ends, strict=True))
    busy = reached - begins[0] - sum(slices.values())
    assert (found.busy.total_ns, found.busy.busy_ns) == (total * SLICE_NS, busy * SLICE_NS)
    assert found.busy.makespan_ns == (reached - begins[0]) * SLICE_NS
    named = [(part.name, part.idle_ns) for part in found.calls]
    assert dict(named) == {name: n * SLICE_NS for name, n in in_calls.items()}
    assert named == sorted(named, key=lambda part: (-part[1], part[0] or ""))
    for part in found.calls:
        assert part.share == pytest.approx(part.idle_ns / SLICE_NS / sum(slices.values()))

    cut = idle_intervals(scaled(begins), scaled(ends), releases)
    rows = zip(cut.node.tolist(), cut.cause.tolist(), cut.begin_ns.tolist(), cut.end_ns.tolist(), strict=True)
    told = [
        (node, IDLE_CAUSES[cause], at // SLICE_NS)
        for node, cause, start, stop in rows
        for at in range(start, stop, SLICE_NS)
    ]
    assert told == listed
    joined = list(zip(cut.node.tolist(), cut.cause.tolist(), strict=True))
    assert all(one != other for one, other in itertools.pairwise(joined))

    without = attrs.evolve(releases, host=None)
    plain_idle = sum_idle_time(scaled(begins), scaled(ends), without)
    assert plain_idle.calls == ()
    assert plain_idle.idle.copying_ns == 0
    assert sum(attrs.astuple(plain_idle.idle)) == sum(attrs.astuple(found.idle))
    half = sorted(rng.sample(range(count), (count + 1) // 2))
    chosen = sum_idle_time(scaled(begins)[half], scaled(ends)[half], releases, np.array(half))
    alone = attrs.evolve(
        releases,
        submitted_ns=releases.submitted_ns[half],
        held=releases.held[half],
        copies=releases.copies[half],
        host=attrs.evolve(host, thread=host.thread[half], returned_ns=host.returned_ns[half]),
    )
    own = sum_idle_time(scaled(begins)[half], scaled(ends)[half], alone)
    assert (chosen.busy, chosen.idle, chosen.calls) == (own.busy, own.idle, own.calls)


def _calls(rng: random.Random, spread: int) -> Any:
    """A table of calls of two processes; ids repeat, are missing, and lie close or far apart."""
    count = rng.randint(1, 12)
    process = np.array([rng.choice((-1, 0, 0, 1)) for _ in range(count)], np.int32)
    ids = np.array([rng.choice((-1, *range(1, 12))) * spread for _ in range(count)], np.int64)
    ids[ids < 0] = -1
    thread = np.array([rng.randint(0, 3) for _ in range(count)], np.int32)
    table = SimpleNamespace(process=process, correlation_id=ids)

    class Calls(SimpleNamespace):
        def __len__(self) -> int:
            return count

    return Calls(table=table, thread=thread)


@pytest.mark.parametrize("spread", [1, 10**9])
def test_work_is_found_at_the_first_call_with_its_id_else_behind_a_smaller_one(spread: int) -> None:
    rng = random.Random(spread)
    ends = set()
    for _ in range(150):
        calls = _calls(rng, spread)
        pairs = list(zip(calls.table.process.tolist(), calls.table.correlation_id.tolist(), strict=True))
        size = rng.randint(1, 8)
        process = np.array([rng.choice((0, 1)) for _ in range(size)], np.int32)
        ids = np.array([rng.choice((-1, *range(14))) for _ in range(size)], np.int64)
        ids = np.where(ids < 0, -1, ids * spread)
        found = find_submissions(process, ids, calls)
        rows, places = [], []
        for own, number in zip(process.tolist(), ids.tolist(), strict=True):
            same = [row for row, pair in enumerate(pairs) if pair == (own, number) and number >= 0]
            before = [
                (other, row) for row, (of, other) in enumerate(pairs) if of == own and 0 <= other < number
            ]
            unnamed = [row for row, (of, other) in enumerate(pairs) if of == own and other < 0]
            rows.append(same[0] if same else -1)
            if same:
                places.append(2 * same[0])
            elif number >= 0 and before:
                places.append(2 * max(before)[1] + 1)
            elif number >= 0 and unnamed:
                places.append(2 * unnamed[-1] + 1)  # behind calls that have no id
            else:
                places.append(-1)
            ends.add((bool(same), bool(before), number >= 0))
        assert found.call.tolist() == rows, (pairs, ids)
        assert _match_by_search(_Ids(process, ids), calls).tolist() == rows
        assert found.place.tolist() == places, (pairs, process, ids)
        assert found.thread.tolist() == [calls.thread[row] if row >= 0 else -1 for row in rows]
        assert found.unknown() == rows.count(-1)
    assert len(ends) >= 5
    alone = find_submissions(np.zeros(3, np.int32), np.array([5, 2**41, -1]), None)
    assert alone.place.tolist()[2] == -1
    assert alone.place[0] < alone.place[1] < 10  # a damaged id counts by its rank
    small = find_submissions(np.zeros(2, np.int32), np.array([7, 3]), None)
    assert (small.place.tolist(), small.call.tolist(), small.unknown()) == ([7, 3], [-1, -1], 2)


def test_neighbours_in_lanes_are_those_of_a_walk_through_them() -> None:
    rng = random.Random(7)
    for _ in range(120):
        lanes, size = rng.randint(1, 3), rng.randint(1, 10)
        lane = [rng.randrange(lanes) for _ in range(size)]
        place = [rng.choice((-1, 0, 1, 2, 3, 4, 5, 6)) for _ in range(size)]
        end = [rng.randint(1, 9) for _ in range(size)]
        none = np.full(size, -1, np.int64)
        submissions = Submissions(none, none.astype(np.int32), np.array(place, np.int64))
        order = order_lanes(np.array(lane, np.int32), lanes, np.array(end, np.int64), submissions)

        walked: list[list[int]] = []
        known = list(place)
        disagreeing = 0
        for one in range(lanes):
            own = [node for node in range(size) if lane[node] == one]
            latest = -1
            for node in own:  # what is unknown follows all that began before it
                known[node] = max(known[node], latest) if place[node] < 0 else known[node]
                latest = max(latest, known[node])
            pairs = itertools.pairwise(own)
            disagreeing += sum(known[later] < known[earlier] for earlier, later in pairs)
            walked.append(sorted(own, key=lambda node: (known[node], node)))
        assert order.disagreements == disagreeing
        assert order.node.tolist() == [node for own in walked for node in own]
        assert order.in_start_order.tolist() == sorted(range(size), key=lambda node: (lane[node], node))
        assert order.place.tolist() == known

        def last_to_end(nodes: list[int], end=end) -> int:
            """The latest of those that end last."""
            return max(enumerate(nodes), key=lambda entry: (end[entry[1]], entry[0]))[1] if nodes else -1

        for one in range(-1, lanes):
            own = walked[one] if one >= 0 else []
            for at in range(-1, 9):
                asked = np.array([one]), np.array([at])
                earlier = [node for node in own if known[node] < at]
                later = [node for node in own if known[node] > at]
                assert order.last_before(*asked).tolist() == [last_to_end(earlier)], (one, at)
                assert order.first_after(*asked).tolist() == [later[0] if later else -1], (one, at)
        for own in walked:
            for index, node in enumerate(own):
                asked_node = np.array([node])
                assert order.before(asked_node).tolist() == [last_to_end(own[:index])]
                assert order.behind(asked_node).tolist() == [*own[index + 1 :], -1][:1]


def test_shares_and_bounds_of_certain_edges() -> None:
    parts = [EdgeCount("stream", "certain", 3), EdgeCount("event", "probable", 2), EdgeCount("x", "guess", 1)]
    assert certain_share(tuple(parts)) == 0.5
    assert certain_share(()) is None
    for certain, everything, expected in (
        (None, None, (10, 10)),
        (7, None, (7, 10)),
        (12, 9, (10, 10)),  # clipped clocks make no bound cross the length
        (None, 15, (10, 15)),
    ):
        bounds = OtherLengths(certain, everything).bounds(10)
        assert (bounds.certain_only_ns, bounds.all_edges_ns) == expected


def test_what_a_reader_must_know_is_told_with_its_count() -> None:
    """Each cause alone and with all others, in the order of their weight."""
    meanings = (CallMeaning(CallKind.OTHER), CallMeaning(CallKind.UNKNOWN), CallMeaning(CallKind.UNKNOWN))

    def told(function: list[int] | None, graph: ExecutionGraph, api: HostApi | None = None) -> Any:
        trace = SimpleNamespace(
            api_calls=None if function is None else SimpleNamespace(function=np.array(function)),
            meanings=lambda: meanings,
            api_functions=("known", "odd", "strange"),
            source=SimpleNamespace(reader="some reader"),
            host_api=api,
        )
        return graph_diagnostics(graph, trace)

    def graph(**more: Any) -> ExecutionGraph:
        return ExecutionGraph(status="available", **{"sync_info": "api_calls", **more})

    assert told([0, 0], graph()) == told(None, graph()) == ()
    (one,) = told([0, 1], graph())
    assert (one.code, one.count) == ("graph.unknown_calls", 1)
    assert one.fact.startswith("1 API call has no known meaning, such as odd:")
    (two,) = told([2, 0, 2, 2], graph())
    assert two.fact.startswith("3 API calls have no known meaning")

    unresolved = UnresolvedPart(waits=2, syncs=1, submissions=4, late_syncs=5)
    everything = graph(
        unresolved=unresolved,
        inconsistent_edges=3,
        chain_overlaps=1,
        submission_disagreements=6,
        edges=(EdgeCount("stream", "certain", 1), EdgeCount("queue", "probable", 2)),
        sync_info="api_names",
    )
    found = told([1], everything)
    assert [(note.code.removeprefix("graph."), note.count) for note in found] == [
        ("unknown_calls", 1),
        ("no_arguments", None),
        ("queues_for_streams", None),
        ("unresolved_waits", 2),
        ("unresolved_syncs", 1),
        ("unknown_submissions", 4),
        ("inconsistent_edges", 8),
        ("chain_overlap", 1),
        ("submission_order", 6),
    ]
    facts = " | ".join(note.fact for note in found)
    for words in (
        "2 waits for events are no edges: a stream is unknown",
        "1 host synchronisation is no edge: the stream, event or device is unknown",
        "4 dispatches and copies have no API call in the recording",
        "8 dependencies contradict the clock: dropped",
        "1 node overlaps a predecessor in the same stream or queue",
        "6 neighbours in a stream began in another order",
    ):
        assert words in facts
    # Without calls nobody expects to know who submitted.
    found = told(None, attrs.evolve(everything, sync_info="none"), HostApi("CUDA", "a tracer"))
    codes = [note.code.removeprefix("graph.") for note in found]
    assert codes[0] == "no_sync_info"
    assert "unknown_submissions" not in codes
    assert found[0].cause.startswith("the CUDA API was not traced")
    assert found[0].remedy == "rpl profile, without --no-api, or a tracer"
    assert told(None, graph(sync_info="none"))[0].remedy == "rpl profile, without --no-api"
