"""Random host programs played with the rules of HIP: the edges found must imply the same order, no more.

The player keeps plain sets of what each stream, event and thread waits for; nothing of the analysis is used.
"""

from __future__ import annotations

import random

import attrs
import networkx as nx
import numpy as np
import pytest

from rpl_analysis.execution_graph.build import execution_graph
from rpl_testkit.programs import RecordedProgram

_STREAMS = (0, 1, 2, 3)
_NON_BLOCKING = 3
_EVENTS = (0xE1, 0xE2, 0xE3)


@attrs.define
class Player:
    """Plays calls on one device. ``after`` holds the direct dependences of every piece of work."""

    rng: random.Random
    program: RecordedProgram = attrs.field(factory=RecordedProgram)
    after: dict[str, set[str]] = attrs.field(factory=dict)
    end: dict[str, float] = attrs.field(factory=dict)
    last: dict[int, str] = attrs.field(factory=dict)
    pending: dict[int, set[str]] = attrs.field(factory=dict)
    recorded: dict[int, str | None] = attrs.field(factory=dict)
    known: dict[int, set[str]] = attrs.field(factory=dict)

    def create_streams(self) -> None:
        for stream in _STREAMS[1:]:
            flags = 1 if stream == _NON_BLOCKING else 0
            self.program.call("hipStreamCreateWithFlags", stream=stream, flags=flags)

    def blocking(self) -> list[int]:
        return [stream for stream in _STREAMS[1:] if stream != _NON_BLOCKING]

    def launch(self, thread: int) -> None:
        stream = self.rng.choice(_STREAMS)
        name = f"w{len(self.after)}"
        waits = {self.last[stream]} if stream in self.last else set()
        waits |= self.pending.pop(stream, set()) | self.known.get(thread, set())
        beside = self.blocking() if stream == 0 else [0] if stream in self.blocking() else []
        waits |= {self.last[other] for other in beside if other in self.last}
        called = self.program.now_us
        begin = max([called + 1, *(self.end[work] for work in waits)]) + self.rng.choice([0.0, 1.0, 40.0])
        end = begin + self.rng.choice([1.0, 5.0, 60.0])
        self.program.launch(name, begin, end, stream=stream, thread=thread, is_copy=self.rng.random() < 0.2)
        self.after[name], self.end[name], self.last[stream] = waits, end, name

    def record(self, thread: int) -> None:
        # Not in the null stream: there a record would itself wait for the blocking streams.
        event, stream = self.rng.choice(_EVENTS), self.rng.choice(_STREAMS[1:])
        self.program.record(event, stream, thread=thread)
        self.recorded[event] = self.last.get(stream)

    def wait(self, thread: int) -> None:
        event, stream = self.rng.choice(_EVENTS), self.rng.choice(_STREAMS)
        self.program.wait(stream, event, thread=thread)
        if self.recorded.get(event):
            self.pending.setdefault(stream, set()).add(self.recorded[event])

    def forget(self, thread: int) -> None:
        event = self.rng.choice(_EVENTS)
        self.program.call("hipEventDestroy", event=event, thread=thread)
        self.recorded.pop(event, None)

    def sync_stream(self, thread: int) -> None:
        stream = self.rng.choice(_STREAMS[1:])
        self._sync("hipStreamSynchronize", thread, {self.last.get(stream)}, stream=stream)

    def sync_event(self, thread: int) -> None:
        event = self.rng.choice(_EVENTS)
        self._sync("hipEventSynchronize", thread, {self.recorded.get(event)}, event=event)

    def sync_device(self, thread: int) -> None:
        self._sync("hipDeviceSynchronize", thread, set(self.last.values()))

    def _sync(self, function: str, thread: int, waits: set[str | None], **arguments: int) -> None:
        work = {name for name in waits if name}
        returns = max([self.program.now_us + 0.5, *(self.end[name] for name in work)])
        self.program.call(function, thread=thread, until_us=returns + 2, **arguments)
        self.known.setdefault(thread, set()).update(work)


def _play(seed: int) -> Player:
    player = Player(random.Random(seed))
    player.create_streams()
    actions = [player.launch] * 8 + [player.record, player.wait] * 3
    actions += [player.forget, player.sync_stream, player.sync_event, player.sync_device]
    for _ in range(player.rng.randint(2, 60)):
        player.rng.choice(actions)(player.rng.choice([1, 1, 2]))
    return player


def _share_names(program: RecordedProgram) -> None:
    """Four kernels and four copy directions instead of a name for every piece of work."""
    kinds = ("copy", "kernel")
    program.work = [
        attrs.evolve(work, name=f"{kinds[not work.is_copy]} {i % 4}") for i, work in enumerate(program.work)
    ]


def _closure(edges) -> set[tuple[str, str]]:
    return set(nx.transitive_closure_dag(nx.DiGraph(list(edges))).edges)


@pytest.mark.parametrize("block", range(8))
def test_the_order_found_is_the_order_played(block, edges_of) -> None:
    for seed in range(50 * block, 50 * block + 50):
        player = _play(seed)
        if not player.after:
            continue
        found = edges_of(player.program)
        played = {(u, v) for v, waits in player.after.items() for u in waits}
        assert _closure(found.between_work()) == _closure(played), f"seed {seed}"
        assert found.found.unresolved.late_syncs == 0


@pytest.mark.parametrize("block", range(4))
def test_figures_keep_their_promises(block) -> None:
    for seed in range(1000 + 25 * block, 1025 + 25 * block):
        player = _play(seed)
        if not any(not work.is_copy for work in player.program.work):
            continue
        _share_names(player.program)
        graph = execution_graph(player.program.trace(), 0, include_copies=True)
        assert graph.inconsistent_edges == 0
        assert graph.critical_path_ns <= graph.makespan_ns
        assert sum(attrs.astuple(graph.breakdown)) == graph.makespan_ns
        assert graph.bounds.certain_only_ns <= graph.critical_path_ns <= graph.bounds.all_edges_ns
        for load in (*graph.domains, *graph.devices):
            assert sum(attrs.astuple(load.idle)) == load.idle_ns
        static = {symbol.name: symbol.static_ceiling for symbol in graph.symbols}
        for symbol in graph.symbols:
            if symbol.speedup_ceiling is not None and static[symbol.name] is not None:
                assert symbol.speedup_ceiling <= static[symbol.name] * (1 + 1e-12)
            assert (symbol.slack_ns == 0) == (symbol.critical_nodes > 0)
            assert symbol.slack_ns >= symbol.min_slack_ns
        for forecast in graph.forecasts:
            gains = [answer.application_gain_ns for answer in forecast.speedups]
            assert gains == sorted(gains)
            assert all(gain >= 0 for gain in gains)


def test_the_order_of_rows_and_the_numbering_of_ids_change_nothing(edges_of) -> None:
    for seed in range(30):
        player = _play(2000 + seed)
        program = player.program
        if not any(not work.is_copy for work in program.work):
            continue
        shuffled = np.random.default_rng(seed).permutation(len(program.work)).tolist()
        expected = execution_graph(program.trace(), 0, include_copies=True)
        for call in range(len(program.calls)):
            number = program.calls[call].correlation_id * 7 + 1000
            program.calls[call] = attrs.evolve(program.calls[call], correlation_id=number)
        program.work = [
            attrs.evolve(work, correlation_id=work.correlation_id * 7 + 1000, queue=work.queue + 5)
            for work in program.work
        ]
        found = execution_graph(program.trace(rows=shuffled), 0, include_copies=True)
        # Dispatch ids of the rearranged rows differ, nothing else does.
        ids = {"first_dispatch": None, "last_dispatch": None}
        for graph in (expected, found):
            assert graph.reason is None
        assert [attrs.evolve(s, **ids) for s in found.segments] == [
            attrs.evolve(s, **ids) for s in expected.segments
        ]
        assert attrs.evolve(found, segments=()) == attrs.evolve(expected, segments=())
