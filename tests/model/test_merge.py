"""Traces of several processes of one execution as one trace."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rpl_core.model.metric import Origin
from rpl_core.model.recording import merge_traces
from rpl_core.model.trace import (
    NO_HANDLE,
    Agent,
    ApiCalls,
    Copies,
    CounterValues,
    Dispatches,
    Kernel,
    LaunchShapes,
    Process,
    Queue,
    Stream,
    Trace,
    TraceRole,
    TraceSource,
)

GPU = Agent("n", 1, "GPU", "gfx942")


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def trace(pid, begins, *, grid=256, agents=(GPU,), copies=None, calls=None, counters=None, **changes):
    """One process with a dispatch of 5 ns at every begin; the last one without stream."""
    count = len(begins)
    return Trace(
        source=TraceSource("r", "f", (f"{pid}.db",)),
        role=TraceRole.TIMING if counters is None else TraceRole.COUNTERS,
        origin=changes.pop("origin", Origin.MEASURED),
        processes=(Process(f"g{pid}", pid, "n"),),
        agents=agents,
        kernels=(Kernel(f"k{pid}", process=0),),
        dispatches=Dispatches(
            process=np.zeros(count, np.int32),
            agent=np.full(count, len(agents) - 1, np.int32),
            kernel=np.zeros(count, np.int32),
            stream=i32(*([0] * (count - 1)), -1),
            queue=np.zeros(count, np.int32),
            shape=np.zeros(count, np.int32),
            dispatch_id=np.arange(1, count + 1),
            correlation_id=i64(*range(10, 10 + count)),
            begin_ns=i64(*begins),
            end_ns=i64(*begins) + 5,
        ),
        shapes=LaunchShapes(i64([64, 1, 1]), i64([grid, 1, 1]), i64(0), i64(0)),
        streams=(Stream(0, 3, f"s{pid}"),),
        queues=(Queue(0, 1, None),),
        copies=copies,
        copy_directions=("H2D",) if copies is not None else (),
        api_calls=calls,
        api_functions=("hipX",) if calls is not None else (),
        counters=counters,
        counter_names=("B", "A") if counters is not None else (),
        **changes,
    )


def test_a_single_trace_is_returned_unchanged():
    only = trace(1, [0])
    assert merge_traces([only]) is only


def test_nothing_to_merge_is_an_error():
    with pytest.raises(ValueError, match="no trace"):
        merge_traces([])


def test_dispatches_interleave_by_time_and_keep_what_they_point_to():
    merged = merge_traces([trace(1, [0, 20]), trace(2, [10, 30], grid=512)])
    d = merged.dispatches
    assert d.begin_ns.tolist() == [0, 10, 20, 30]
    assert [merged.processes[i].pid for i in d.process] == [1, 2, 1, 2]
    assert [merged.kernels[i].name for i in d.kernel] == ["k1", "k2", "k1", "k2"]
    assert [merged.kernels[i].process for i in d.kernel] == [0, 1, 0, 1]
    assert [merged.streams[i].name if i >= 0 else None for i in d.stream] == ["s1", "s2", None, None]
    assert [merged.streams[i].process for i in (0, 1)] == [0, 1]
    assert merged.shapes.grid[d.shape, 0].tolist() == [256, 512, 256, 512]


def test_the_same_gpu_is_shared_and_others_are_not():
    other = Agent("n", 2, "GPU", "gfx942")
    merged = merge_traces([trace(1, [0]), trace(2, [10], agents=(GPU, other)), trace(3, [20])])
    assert merged.agents == (GPU, other)
    assert merged.dispatches.agent.tolist() == [0, 1, 0]


def test_equal_begins_are_ordered_by_end_process_and_id():
    merged = merge_traces([trace(1, [5, 5]), trace(2, [5])])
    d = merged.dispatches
    assert list(zip(d.process.tolist(), d.dispatch_id.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 1)]


def counters(*rows):
    dispatch, counter, value = zip(*rows, strict=True)
    count = len(rows)
    return CounterValues(
        i64(*dispatch), i32(*counter), np.full(count, -1, np.int32), np.array(value, float), np.full(count, 5)
    )


def test_counters_follow_their_dispatches():
    merged = merge_traces(
        [
            trace(1, [0, 20], counters=counters((0, 0, 1.0), (1, 1, 2.0))),
            trace(2, [10], counters=counters((0, 1, 3.0))),
        ]
    )
    v = merged.counters
    found = [
        (merged.processes[merged.dispatches.process[d]].pid, merged.counter_names[c], value)
        for d, c, value in zip(v.dispatch, v.counter, v.value.tolist(), strict=True)
    ]
    assert found == [(1, "B", 1.0), (2, "A", 3.0), (1, "A", 2.0)]
    assert merged.role is TraceRole.COUNTERS


def test_a_pass_with_counters_makes_the_whole_a_counter_pass():
    merged = merge_traces([trace(1, [0]), trace(2, [10], counters=counters((0, 0, 1.0)))])
    assert merged.role is TraceRole.COUNTERS
    assert merged.counters.dispatch.tolist() == [1]


def copies(begin):
    return Copies(i32(0), i32(-1), i32(0), i32(0), i32(0), i64(64), i64(9), i64(begin), i64(begin + 1))


def calls(begin):
    handles = np.array([NO_HANDLE])
    return ApiCalls(
        i32(0), i64(7), i32(0), i64(9), i64(begin), i64(begin + 1), handles, handles, i64(-1), i64(-1)
    )


def test_copies_and_calls_are_joined_where_they_were_traced():
    merged = merge_traces(
        [
            trace(1, [0], copies=copies(50), calls=calls(60)),
            trace(2, [10]),
            trace(3, [20], copies=copies(40), calls=calls(30)),
        ]
    )
    assert merged.copies.process.tolist() == [2, 0]
    assert merged.copies.source_agent.tolist() == [-1, -1]
    assert [merged.streams[i].name for i in merged.copies.stream] == ["s3", "s1"]
    assert merged.api_calls.process.tolist() == [2, 0]
    assert merged.api_calls.stream_handle.dtype == np.uint64
    assert merge_traces([trace(1, [0]), trace(2, [10])]).copies is None


def test_origin_is_the_weakest_and_grouping_is_remembered():
    merged = merge_traces([trace(1, [0]), trace(2, [10], origin=Origin.SYNTHETIC, grouped_by_queue=True)])
    assert merged.origin is Origin.SYNTHETIC
    assert merged.grouped_by_queue


def test_sources_and_types_are_kept():
    merged = merge_traces([trace(1, [0]), trace(2, [10])])
    assert merged.source.paths == ("1.db", "2.db")
    assert merged.source.format == "f"
    assert {
        getattr(merged.dispatches, n).dtype.name for n in ("process", "agent", "kernel", "stream", "shape")
    } == {"int32"}
    assert merged.dispatches.dispatch_id.dtype == np.int64


def test_an_empty_process_joins():
    empty = trace(2, [0])
    none = Dispatches(
        *(
            np.empty(0, getattr(empty.dispatches, f).dtype)
            for f in (
                "process",
                "agent",
                "kernel",
                "stream",
                "queue",
                "shape",
                "dispatch_id",
                "correlation_id",
                "begin_ns",
                "end_ns",
            )
        )
    )

    merged = merge_traces([trace(1, [0]), attrs.evolve(empty, dispatches=none, agents=(), kernels=())])
    assert len(merged.dispatches) == 1
    assert [p.pid for p in merged.processes] == [1, 2]
