"""Host synchronisation: what a thread submits after a wait returned depends on what it waited for."""

from __future__ import annotations

from types import SimpleNamespace

import attrs
import numpy as np
import pytest

from rpl_analysis.execution_graph.dependencies import device_waits
from rpl_analysis.execution_graph.graph import Confidence
from rpl_core.model.trace import CallKind
from rpl_testkit.programs import RecordedProgram

EVENT = 0xE1


def test_work_after_a_stream_synchronisation_depends_on_the_streams_last_work(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.launch("other", 0, 90, stream=3)
    program.call("hipStreamSynchronize", stream=1, until_us=12)
    program.launch("b", 20, 30, stream=2)
    found = edges_of(program)
    assert found.between_work() == {("a", "b")}
    # The host took 0.5 us from the return to the launch call.
    (out,) = [i for i, edge in enumerate(found.all()) if edge[1] == "b"]
    assert found.found.edges.lag_ns[out] == 500


def test_only_the_first_work_of_a_stream_after_the_wait_gets_an_edge(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.call("hipStreamSynchronize", stream=1, until_us=12)
    for i in range(5):
        program.launch(f"b{i}", 20 + 10 * i, 30 + 10 * i, stream=2)
    assert [v for u, v in edges_of(program).of_kind("host_sync") if u != "a"] == ["b0"]


def test_only_the_thread_that_waited_is_held_back(program, edges_of):
    program.launch("a", 0, 10, stream=1, thread=1)
    program.call("hipStreamSynchronize", stream=1, until_us=12, thread=1)
    program.launch("b", 20, 30, stream=2, thread=2)
    assert edges_of(program).between_work() == set()


def test_event_synchronisation_waits_for_what_was_recorded(program, edges_of):
    program.launch("recorded", 0, 10, stream=1)
    program.record(EVENT, 1)
    program.launch("after", 10, 90, stream=1)
    program.call("hipEventSynchronize", event=EVENT, until_us=12)
    program.launch("b", 20, 30, stream=2)
    assert edges_of(program).between_work() == {("recorded", "after"), ("recorded", "b")}


def test_device_synchronisation_costs_two_edges_per_stream(edges_of):
    program = RecordedProgram()
    streams = range(1, 9)
    for stream in streams:
        program.launch(f"a{stream}", 0, 10, stream=stream)
    program.call("hipDeviceSynchronize", until_us=12)
    for stream in streams:
        program.launch(f"b{stream}", 30, 40, stream=stream)
    found = edges_of(program)
    assert found.between_work() == {(f"a{u}", f"b{v}") for u in streams for v in streams}
    assert len(found.of_kind("host_sync")) == 2 * len(streams)


def test_a_synchronisation_that_brings_no_news_is_no_node(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.call("hipStreamSynchronize", stream=1, until_us=12)
    program.call("hipDeviceSynchronize", until_us=14)
    program.call("hipStreamSynchronize", stream=1, until_us=16)
    program.launch("b", 20, 30, stream=2)
    found = edges_of(program)
    assert len(found.of_kind("host_sync")) == 2
    assert found.between_work() == {("a", "b")}


def test_what_was_awaited_before_stays_awaited(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.launch("b", 0, 20, stream=2)
    program.call("hipStreamSynchronize", stream=1, until_us=12)
    program.call("hipStreamSynchronize", stream=2, until_us=22)
    program.launch("c", 30, 40, stream=3)
    assert edges_of(program).between_work() == {("a", "c"), ("b", "c")}


def test_device_synchronisation_covers_the_current_device_only(edges_of):
    program = RecordedProgram(gpus=2)
    program.call("hipSetDevice", device=0)
    program.launch("on 0", 0, 10, stream=1, gpu=0, queue=1)
    program.call("hipSetDevice", device=1)
    program.launch("on 1", 0, 10, stream=2, gpu=1, queue=2)
    program.call("hipDeviceSynchronize", until_us=12)
    program.launch("after", 30, 40, stream=3, gpu=1, queue=2)
    assert edges_of(program).between_work() == {("on 1", "after")}


def test_the_null_stream_exists_once_per_device(edges_of):
    program = RecordedProgram(gpus=2)
    for gpu in (0, 1):
        program.call("hipSetDevice", device=gpu)
        program.launch(f"null {gpu}", 0, 10 + gpu, stream=0, gpu=gpu, queue=gpu)
    program.call("hipSetDevice", device=0)
    program.record(EVENT, 0)
    program.wait(1, EVENT)
    program.launch("after", 30, 40, stream=1, gpu=1, queue=1)
    found = edges_of(program)
    assert found.of_kind("event") == {("null 0", "after")}


@pytest.mark.parametrize("function", ["hipMemcpy", "hipMemcpyWithStream", "hipMemset", "hipMemcpy2D_spt"])
def test_blocking_copies_hold_the_thread_back_probably(program, edges_of, function):
    program.launch("copied", 0, 10, stream=1, function=function, is_copy=True, until_us=12)
    program.launch("b", 20, 30, stream=2)
    found = edges_of(program)
    assert found.between_work() == {("copied", "b")}
    # That the copy was waited for is probable; that the thread went on after the call is certain.
    assert [edge[2:] for edge in found.all() if edge[0] == "copied"] == [("blocking_call", "probable")]
    assert [edge[2:] for edge in found.all() if edge[1] == "b"] == [("blocking_call", "certain")]


def test_a_blocking_copy_that_returned_early_held_nothing_back(program, edges_of):
    program.launch("copied", 0, 90, stream=1, function="hipMemset", is_copy=True, until_us=12)
    program.launch("b", 20, 30, stream=2)
    found = edges_of(program)
    assert found.between_work() == set()
    assert found.found.unresolved.late_syncs == 0


def test_freeing_memory_waits_for_the_device_probably(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.call("hipFree", until_us=12)
    program.launch("b", 20, 30, stream=2)
    assert edges_of(program).between_work() == {("a", "b")}
    assert [edge[2:] for edge in edges_of(program).all() if edge[0] == "a"] == [("blocking_call", "probable")]


@pytest.mark.parametrize(("until_us", "waited"), [(9.9, False), (10, True)])
def test_an_asynchronous_copy_whose_call_returned_after_it_had_ended_was_probably_waited_for(
    program, edges_of, until_us, waited
):
    """HIP copies memory of the host that is not pinned synchronously; whether it was is not recorded."""
    program.copy("HtoD", 0, 10, stream=1, at_us=-1, until_us=until_us)
    program.launch("b", 20, 30, stream=2)
    trace = program.trace()
    found = edges_of(trace)
    assert found.between_work() == ({("HtoD", "b")} if waited else set())
    assert [edge[2:] for edge in found.all() if edge[0] == "HtoD"] == [("blocking_call", "probable")] * waited
    inside_gpus = attrs.evolve(trace.copies, source_agent=trace.copies.destination_agent)
    assert edges_of(attrs.evolve(trace, copies=inside_gpus)).all() == []


def test_a_free_of_memory_hides_nothing_of_what_was_certainly_waited_for(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.call("hipStreamSynchronize", stream=1, until_us=12)
    program.launch("late", 11, 14, stream=3)
    program.call("hipFree", until_us=16)
    program.launch("b", 20, 30, stream=2)
    found = edges_of(program)
    sure = {edge[:2] for edge in found.all() if edge[3] == "certain"}
    first, second = (edge[1] for edge in found.all() if edge[0] in ("a", "late"))
    assert {("a", first), (first, second), (second, "b")} <= sure
    assert ("late", second) not in sure


def test_a_wait_that_returned_before_the_work_ended_is_counted_and_dropped(program, edges_of):
    program.launch("a", 0, 90, stream=1)
    program.call("hipStreamSynchronize", stream=1, until_us=12)
    program.launch("b", 20, 30, stream=2)
    found = edges_of(program)
    assert found.between_work() == set()
    assert found.found.unresolved.late_syncs == 1


def test_an_event_wait_that_the_host_has_done_already_adds_no_edge(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.record(EVENT, 1)
    program.call("hipStreamSynchronize", stream=1, until_us=12)
    program.wait(2, EVENT)
    program.launch("b", 20, 30, stream=2)
    found = edges_of(program)
    assert found.of_kind("event") == set()
    assert found.between_work() == {("a", "b")}


def test_synchronisations_of_unknown_streams_are_counted(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.launch("b", 0, 10, stream=2)
    program.call("hipStreamSynchronize", handle=0xBAD, until_us=12)
    program.launch("c", 20, 30, stream=2)
    assert edges_of(program).found.unresolved.syncs == 1


def test_many_threads_find_their_own_waits(edges_of):
    program = RecordedProgram()
    for thread in range(1, 21):
        program.launch(f"a{thread}", 0, 10, stream=thread, thread=thread)
    for thread in range(1, 21):
        program.call("hipStreamSynchronize", stream=thread, at_us=10, until_us=12, thread=thread)
    for thread in range(1, 21):
        program.launch(f"b{thread}", 30, 40, stream=100 + thread, thread=thread)
    assert edges_of(program).between_work() == {(f"a{t}", f"b{t}") for t in range(1, 21)}


def test_trailing_synchronisation_does_not_stretch_the_graph(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.call("hipDeviceSynchronize", until_us=500)
    assert len(edges_of(program).found.syncs) == 0


def test_synchronisations_beyond_what_may_be_looked_at_are_counted(monkeypatch):
    """Each thread looks at 2^24 nodes: 16 use up the 2^28, the 17th is the last, three are left out."""
    threads = np.arange(20)
    none = np.empty(0, dtype=np.int64)

    class Nodes(SimpleNamespace):
        def __len__(self):
            return 2**24

    class Lanes(SimpleNamespace):
        def __len__(self):
            return 0

    class Calls(SimpleNamespace):
        def rows(self, kind):
            return threads if kind is CallKind.DEVICE_SYNC else none

        def __len__(self):
            return threads.size

    lanes = Lanes(is_null=none == 0, process=none, agent=none)
    program = SimpleNamespace(nodes=Nodes(lanes=lanes), submissions=SimpleNamespace(call=none))
    calls = Calls(thread=threads, table=SimpleNamespace(process=np.zeros(20, dtype=np.int64)))
    streams = SimpleNamespace(device=SimpleNamespace(agent_at=np.zeros_like), is_null=lambda rows: rows == 0)
    nothing = device_waits.AwaitedPairs.made(none, none, Confidence.CERTAIN)
    looked = []
    monkeypatch.setattr(
        device_waits, "_waits_of_thread", lambda _, rows, *__: looked.append(int(rows[0])) or nothing
    )
    _, left_out = device_waits.device_waits(program, calls, streams, none.astype(np.int8))
    assert looked == list(range(17))
    assert left_out == 3
