"""The legacy null stream and blocking streams wait for each other."""

from __future__ import annotations

from rpl_testkit.programs import RecordedProgram


def test_null_stream_work_waits_for_blocking_streams_and_they_for_it(program, edges_of):
    for stream in (1, 2):
        program.call("hipStreamCreate", stream=stream)
    program.launch("a1", 0, 10, stream=1)
    program.launch("b1", 0, 12, stream=2)
    program.launch("null", 20, 30, stream=0)
    program.launch("a2", 40, 50, stream=1)
    program.launch("a3", 50, 60, stream=1)
    program.launch("b2", 40, 50, stream=2)
    found = edges_of(program)
    assert found.of_kind("null_stream") == {("a1", "null"), ("b1", "null"), ("null", "a2"), ("null", "b2")}
    assert {sure for *_, sure in found.all()} == {"probable"}


def test_non_blocking_streams_are_exempt(program, edges_of):
    program.call("hipStreamCreateWithFlags", stream=1, flags=1)
    program.call("hipStreamCreateWithFlags", stream=2, flags=0)
    program.launch("free", 0, 10, stream=1)
    program.launch("bound", 0, 10, stream=2)
    program.launch("null", 20, 30, stream=0)
    assert edges_of(program).of_kind("null_stream") == {("bound", "null")}


def test_flags_of_creations_that_match_no_stream_speak_for_all_when_they_agree(program, edges_of):
    # The profiler may print the address of the handle instead of the handle.
    program.call("hipStreamCreateWithFlags", handle=0x7FFC_0000, flags=1)
    program.launch("side", 0, 10, stream=1)
    program.launch("null", 20, 30, stream=0)
    assert edges_of(program).all() == []


def test_creations_that_match_no_stream_and_differ_give_no_edges(program, edges_of):
    program.call("hipStreamCreateWithFlags", handle=0x7FFC_0000, flags=1)
    program.call("hipStreamCreateWithFlags", handle=0x7FFC_0008, flags=0)
    program.launch("side", 0, 10, stream=1)
    program.launch("null", 20, 30, stream=0)
    assert edges_of(program).all() == []


def test_a_stream_that_ran_beside_the_null_stream_was_not_blocking(program, edges_of):
    program.launch("side", 0, 100, stream=1)
    program.launch("null", 20, 30, stream=0)
    program.launch("null 2", 110, 120, stream=0)
    assert edges_of(program).all() == []


def test_null_streams_of_two_devices_are_apart(edges_of):
    program = RecordedProgram(gpus=2)
    program.call("hipStreamCreate", stream=1)
    program.launch("on 0", 0, 10, stream=1, gpu=0)
    program.call("hipSetDevice", device=1)
    program.launch("null of 1", 20, 30, stream=0, gpu=1)
    assert edges_of(program).of_kind("null_stream") == set()


def test_a_threads_own_default_stream_is_not_the_null_stream(program, edges_of):
    program.call("hipStreamCreate", stream=1)
    program.launch("null", 0, 10, stream=0)
    program.launch("own", 20, 30, stream=7, handle=0, function="hipLaunchKernel_spt")
    program.record(0xE, 1)
    program.call("hipStreamSynchronize_spt", handle=0, until_us=31)
    program.launch("after", 40, 50, stream=1)
    found = edges_of(program)
    assert ("own", "after") in found.between_work()


def test_edges_stay_linear_when_null_and_blocking_work_alternates(edges_of):
    program = RecordedProgram()
    for stream in (1, 2, 3):
        program.call("hipStreamCreate", stream=stream)
    begin = 0
    for turn in range(50):
        program.launch(f"null {turn}", begin, begin + 1, stream=0)
        for stream in (1, 2, 3):
            program.launch(f"{stream} {turn}", begin + 10, begin + 20, stream=stream)
        begin += 100
    found = edges_of(program)
    assert len(found.all()) == 50 * 3 + 49 * 3


def test_null_stream_synchronisation_waits_for_blocking_streams_too(program, edges_of):
    program.call("hipStreamCreate", stream=1)
    program.launch("null", 0, 10, stream=0)
    program.launch("blocking", 12, 20, stream=1)
    program.call("hipStreamSynchronize", stream=0, until_us=25)
    program.call("hipStreamCreateWithFlags", stream=2, flags=1)
    program.launch("after", 30, 40, stream=2)
    assert ("blocking", "after") in edges_of(program).between_work()


def test_without_api_calls_the_rule_is_a_guess(program, edges_of):
    program.launch("side", 0, 10, stream=1)
    program.launch("null", 20, 30, stream=0)
    assert edges_of(program.trace(with_calls=False)).all() == [("side", "null", "null_stream", "guess")]
