"""The table of GPU-side event records and waits, schema 3.0.4."""

from __future__ import annotations

import attrs
import pytest

from rpl_rocprofv3.readers.catalog import RocpdReader
from rpl_testkit.rocpd_writer import (
    AgentRow,
    DispatchRow,
    HipEventRow,
    KernelRow,
    ProcessRow,
    QueueRow,
    RocpdContents,
    StreamRow,
    guid_from_seed,
    write_rocpd,
)

RECORD, WAIT = "HIP_EVENT_RECORD", "HIP_EVENT_WAIT"


@pytest.fixture
def read(tmp_path):
    def write_and_read(events: list[HipEventRow], schema_version: str = "3.0.4"):
        path = tmp_path / "events.db"
        write_rocpd(
            path,
            RocpdContents(
                guid=guid_from_seed("hip events"),
                process=ProcessRow(7, "./app", 1, 10**6),
                agents=(AgentRow(2, "GPU", "gfx942", "MI300X"),),
                kernels=(KernelRow(1, "k", "k"),),
                dispatches=[
                    DispatchRow(
                        i, 1, 2, i, i, 1000 * i, 1000 * i + 500, (64, 1, 1), (64, 1, 1), stack_id=10 * i
                    )
                    for i in (1, 2)
                ],
                queues=(QueueRow(1, "Queue 0"), QueueRow(2, "Queue 1")),
                streams=(StreamRow(1, "Stream 0"), StreamRow(2, "Stream 1")),
                thread_ids=(7,),
                hip_events=events,
            ),
            synthetic=True,
            schema_version=schema_version,
        )
        reader = RocpdReader()
        (trace,) = reader.read(reader.claim([path])[0])
        return trace

    return write_and_read


def test_records_and_waits_are_read_with_their_queues_and_calls(read) -> None:
    handle = 2**63 + 5  # above what a signed column holds as positive
    events = [
        HipEventRow(RECORD, handle - 2**64, 1, 1, 1500, 1510, stack_id=15, agent=2),
        HipEventRow(WAIT, handle - 2**64, 2, 1, 1600, 1610, stack_id=16, agent=2),
    ]
    trace = read(events)
    found = trace.device_events
    assert found.is_wait.tolist() == [False, True]
    assert [trace.queues[i].id for i in found.queue] == [1, 2]
    assert [trace.queues[i].id for i in found.source_queue] == [1, 1]
    assert found.event_handle.tolist() == [handle, handle]
    assert found.correlation_id.tolist() == [15, 16]
    assert (found.begin_ns.tolist(), found.end_ns.tolist()) == ([1500, 1600], [1510, 1610])
    assert trace.agents[found.agent[0]].index == 2


def test_a_database_without_the_table_has_no_events(read) -> None:
    assert read([], schema_version="3.0.3").device_events is None
    assert read([]).device_events is None


def test_rows_that_are_neither_record_nor_wait_are_counted(read) -> None:
    good = HipEventRow(RECORD, 5, 1, 1, 1500, 1510, stack_id=15)
    trace = read([good, attrs.evolve(good, operation="HIP_EVENT_PONDER"), attrs.evolve(good, end_ns=1400)])
    assert len(trace.device_events) == 1
    (finding,) = [d for d in trace.diagnostics if d.code == "hip_event.unusable"]
    assert finding.count == 2


def test_a_queue_on_which_nothing_ran_is_not_recorded(read) -> None:
    trace = read([HipEventRow(RECORD, 5, 9, 9, 1500, 1510, stack_id=15)])
    assert trace.device_events.queue.tolist() == [-1]
