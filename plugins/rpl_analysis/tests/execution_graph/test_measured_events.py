"""Event records and waits that the GPU executed, with hardware queues instead of streams."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rpl_core.model.recording import merge_traces
from rpl_core.model.trace import DeviceEvents, Trace

EVENT = 0xE1


def _with_events(trace: Trace, rows: list[tuple[bool, int, int, int]]) -> Trace:
    """``rows``: (is a wait, queue id, event, correlation id)."""
    queues = [queue.id for queue in trace.queues]
    count = len(rows)
    return attrs.evolve(
        trace,
        device_events=DeviceEvents(
            process=np.zeros(count, dtype=np.int32),
            agent=np.zeros(count, dtype=np.int32),
            queue=np.array([queues.index(row[1]) for row in rows], dtype=np.int32),
            source_queue=np.full(count, -1, dtype=np.int32),
            is_wait=np.array([row[0] for row in rows]),
            event_handle=np.array([row[2] for row in rows], dtype=np.uint64),
            correlation_id=np.array([row[3] for row in rows], dtype=np.int64),
            begin_ns=np.arange(count, dtype=np.int64),
            end_ns=np.arange(count, dtype=np.int64),
        ),
    )


@pytest.fixture
def recorded(program):
    """Work on two queues with room for ids of event calls between the launches."""
    program.launch("a", 0, 10, stream=1, queue=1)  # id 1
    record = program.call("hipEventRecord")
    program.launch("later", 10, 90, stream=1, queue=1)
    wait = program.call("hipStreamWaitEvent")
    program.launch("b", 20, 30, stream=2, queue=2)
    return program, [(False, 1, EVENT, record), (True, 2, EVENT, wait)]


@pytest.mark.parametrize("with_call_names", [False, True])
def test_a_measured_wait_joins_queues_in_order_of_submission(recorded, edges_of, with_call_names) -> None:
    program, rows = recorded
    program.calls = [attrs.evolve(call, stream=None) for call in program.calls]
    found = edges_of(_with_events(program.trace(with_calls=with_call_names), rows))
    assert found.all() == [("a", "b", "measured_event", "certain")]
    assert found.found.sync_info == "measured_events"


def test_queues_of_several_streams_make_the_edge_probable(program, edges_of) -> None:
    program.launch("other", 0, 5, stream=3, queue=1)
    program.launch("a", 5, 10, stream=1, queue=1)
    record = program.call("hipEventRecord")
    wait = program.call("hipStreamWaitEvent")
    program.launch("b", 20, 30, stream=2, queue=2)
    rows = [(False, 1, EVENT, record), (True, 2, EVENT, wait)]
    found = edges_of(_with_events(program.trace(with_calls=False), rows))
    assert found.all() == [("a", "b", "measured_event", "probable")]


def test_api_calls_with_arguments_go_before_measured_events(program, edges_of) -> None:
    program.launch("a", 0, 10, stream=1, queue=1)
    program.record(EVENT, 1)
    program.wait(2, EVENT)
    program.launch("b", 20, 30, stream=2, queue=2)
    found = edges_of(_with_events(program.trace(), [(False, 1, EVENT, 2), (True, 2, EVENT, 3)]))
    assert found.all() == [("a", "b", "event", "certain")]


def test_measured_waits_without_a_record_are_counted(recorded, edges_of) -> None:
    program, rows = recorded
    found = edges_of(_with_events(program.trace(with_calls=False), rows[1:]))
    assert found.of_kind("measured_event") == set()
    assert found.found.unresolved.waits == 1


def test_measured_events_of_several_processes_keep_their_process_when_merged(recorded, edges_of) -> None:
    program, rows = recorded
    one = _with_events(program.trace(with_calls=False), rows)
    merged = merge_traces([one, attrs.evolve(one, device_events=None)])
    found = edges_of(merged)
    assert len(found.of_kind("measured_event")) == 1
    assert merged.device_events.process.tolist() == [0, 0]
    both = merge_traces([one, one])
    assert both.device_events.process.tolist() == [0, 1, 0, 1]
    assert len(edges_of(both).found.edges) == 2


@pytest.mark.parametrize("recorded_event", [EVENT - 1, EVENT + 1])
def test_a_measured_wait_takes_no_record_of_another_event(program, edges_of, recorded_event) -> None:
    program.launch("a", 0, 10, stream=1, queue=1)
    record = program.call("hipEventRecord")
    wait = program.call("hipStreamWaitEvent")
    program.launch("b", 20, 30, stream=2, queue=2)
    rows = [(False, 1, recorded_event, record), (True, 2, EVENT, wait)]
    found = edges_of(_with_events(program.trace(with_calls=False), rows))
    assert found.of_kind("measured_event") == set()
    assert found.found.unresolved.waits == 1


def test_a_measured_wait_takes_the_record_of_its_own_event_among_several(program, edges_of) -> None:
    rows = []
    for queue, event in ((1, EVENT - 1), (2, EVENT), (3, EVENT + 1)):
        program.launch(f"of {event - EVENT}", 0, 10, stream=queue, queue=queue)
        rows.append((False, queue, event, program.call("hipEventRecord")))
    rows.append((True, 4, EVENT, program.call("hipStreamWaitEvent")))
    program.launch("b", 20, 30, stream=4, queue=4)
    found = edges_of(_with_events(program.trace(with_calls=False), rows))
    assert found.of_kind("measured_event") == {("of 0", "b")}
