"""hipEventRecord and hipStreamWaitEvent as edges between streams."""

from __future__ import annotations

EVENT = 0xE1


def test_a_wait_joins_the_last_work_before_the_record_and_the_next_work_after_the_wait(program, edges_of):
    program.launch("early", 0, 10, stream=1)
    program.launch("recorded", 10, 20, stream=1)
    program.record(EVENT, 1)
    program.launch("later", 20, 90, stream=1)
    program.launch("before", 0, 5, stream=2)
    program.wait(2, EVENT)
    program.launch("waits", 25, 30, stream=2)
    program.launch("follows", 30, 35, stream=2)
    assert edges_of(program).all() == [("recorded", "waits", "event", "certain")]


def test_a_wait_on_an_event_never_recorded_is_no_edge(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.wait(2, EVENT)
    program.launch("b", 20, 30, stream=2)
    found = edges_of(program)
    assert found.all() == []
    assert found.found.unresolved.waits_without_record == 1


def test_the_latest_record_before_the_wait_counts(program, edges_of):
    program.launch("first", 0, 10, stream=1)
    program.record(EVENT, 1)
    program.launch("second", 10, 20, stream=3)
    program.record(EVENT, 3)
    program.wait(2, EVENT)
    program.launch("waits", 30, 40, stream=2)
    program.launch("third", 20, 25, stream=1)
    program.record(EVENT, 1)
    assert edges_of(program).of_kind("event") == {("second", "waits")}


def test_a_destroyed_event_has_no_record_any_more(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.record(EVENT, 1)
    program.call("hipEventDestroy", event=EVENT)
    program.wait(2, EVENT)
    program.launch("b", 20, 30, stream=2)
    assert edges_of(program).all() == []


def test_a_recycled_stream_pointer_means_the_stream_that_has_it_now(program, edges_of):
    handle = 0x7000
    program.launch("old", 0, 10, stream=1, handle=handle)
    program.call("hipStreamDestroy", handle=handle)
    program.call("hipStreamCreateWithFlags", handle=handle, flags=1)
    program.call("hipEventRecord", handle=handle, event=EVENT)  # nothing was submitted to the new one yet
    program.wait(5, EVENT)
    program.launch("free", 12, 20, stream=5)
    program.launch("new", 20, 30, stream=2, handle=handle)
    program.call("hipEventRecord", handle=handle, event=EVENT)
    program.wait(5, EVENT)
    program.launch("waits", 40, 50, stream=5)
    assert edges_of(program).of_kind("event") == {("new", "waits")}


def test_two_streams_that_had_one_pointer_without_a_recorded_destruction_are_told_apart(program, edges_of):
    handle = 0x7000
    program.launch("old", 0, 10, stream=1, handle=handle)
    program.call("hipEventRecord", handle=handle, event=EVENT)
    program.launch("new", 20, 30, stream=2, handle=handle)
    program.call("hipEventRecord", handle=handle, event=EVENT + 1)
    program.wait(5, EVENT)
    program.launch("x", 40, 50, stream=5)
    program.wait(6, EVENT + 1)
    program.launch("y", 40, 50, stream=6)
    assert edges_of(program).of_kind("event") == {("old", "x"), ("new", "y")}


def test_waits_of_unknown_streams_are_counted(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.launch("b", 0, 10, stream=2)
    program.call("hipEventRecord", handle=0xBAD, event=EVENT)
    program.wait(2, EVENT)
    program.launch("c", 20, 30, stream=2)
    found = edges_of(program)
    assert found.all() == []
    assert found.found.unresolved.waits == 1


def test_a_record_in_the_same_stream_adds_nothing(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.record(EVENT, 1)
    program.wait(1, EVENT)
    program.launch("b", 20, 30, stream=1)
    assert edges_of(program).all() == []


def test_calls_captured_into_a_graph_order_nothing(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.call("hipStreamBeginCapture", stream=1)
    program.record(EVENT, 1)
    program.wait(2, EVENT)
    program.call("hipStreamEndCapture", stream=1)
    program.launch("b", 20, 30, stream=2)
    assert edges_of(program).all() == []


def test_streams_of_threads_with_their_own_default_stream_are_told_apart(program, edges_of):
    per_thread = 2  # hipStreamPerThread
    program.launch("of one", 0, 10, stream=1, handle=per_thread, thread=1)
    program.launch("of two", 0, 12, stream=2, handle=per_thread, thread=2)
    program.call("hipEventRecord", handle=per_thread, event=EVENT, thread=2)
    program.wait(3, EVENT)
    program.launch("waits", 20, 30, stream=3)
    assert edges_of(program).of_kind("event") == {("of two", "waits")}


def test_handles_of_two_processes_do_not_mix(edges_of):
    from rpl_testkit.programs import RecordedProgram

    program = RecordedProgram(machines=("node", "node"))
    program.launch("a", 0, 10, stream=1, process=0)
    program.launch("b", 0, 12, stream=1, process=1)
    program.record(EVENT, 1, process=0)
    program.record(EVENT, 1, process=1)
    program.wait(2, EVENT, process=1)
    program.launch("waits", 20, 30, stream=2, process=1)
    program.launch("other", 20, 30, stream=2, process=0)
    assert edges_of(program).of_kind("event") == {("b", "waits")}


def test_records_of_the_null_stream_stand_for_its_own_work(program, edges_of):
    program.call("hipStreamCreateWithFlags", stream=1, flags=1)
    program.launch("null", 0, 10, stream=0)
    program.record(EVENT, 0)
    program.wait(1, EVENT)
    program.launch("side", 20, 30, stream=1)
    assert edges_of(program).all() == [("null", "side", "event", "certain")]


def test_work_whose_call_was_cut_off_keeps_its_place_by_its_id(program, edges_of):
    program.launch("a", 0, 10, stream=1)
    program.launch("b", 10, 20, stream=1)
    program.record(EVENT, 1)
    program.launch("c", 20, 30, stream=1)
    program.wait(2, EVENT)
    program.launch("x", 40, 50, stream=2)
    program.calls = [call for call in program.calls if call.correlation_id != 2]
    found = edges_of(program)
    assert found.of_kind("event") == {("b", "x")}
    assert found.found.unresolved.submissions == 1
