"""Real and provided rocpd databases, against plain sqlite3."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing

import numpy as np
import pytest

from rpl_core.model.metric import Origin
from rpl_core.model.trace import NO_HANDLE, TraceRole

pytestmark = pytest.mark.data


@pytest.fixture
def flydsl(rpl_shared_data):
    return rpl_shared_data / "rocpd" / "flydsl-gfx1250-v3" / "146104_results.db"


@pytest.fixture
def synthetic(rpl_shared_data):
    return rpl_shared_data / "rocpd" / "synthetic-gfx942"


def rows(path, query):
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute(query).fetchall()


def test_dispatch_times_and_sizes_of_the_gfx1250_recording_equal_sql(flydsl, read):
    (trace,) = read(flydsl)
    expected = rows(
        flydsl,
        "SELECT start, end, dispatch_id, grid_size_x, grid_size_y, workgroup_size_x, group_segment_size "
        "FROM rocpd_kernel_dispatch ORDER BY start",
    )
    d, s = trace.dispatches, trace.shapes
    got = list(
        zip(
            d.begin_ns.tolist(),
            d.end_ns.tolist(),
            d.dispatch_id.tolist(),
            s.grid[d.shape, 0].tolist(),
            s.grid[d.shape, 1].tolist(),
            s.workgroup[d.shape, 0].tolist(),
            s.lds_bytes[d.shape].tolist(),
            strict=True,
        )
    )
    assert got == expected


def test_stack_id_and_not_correlation_id_links_a_dispatch_to_its_call(flydsl, read):
    (trace,) = read(flydsl)
    assert trace.dispatches.correlation_id.tolist() == [1, 2, 3, 4, 5]
    assert rows(flydsl, "SELECT DISTINCT correlation_id FROM rocpd_event") == [(0,)]


def test_agent_facts_come_from_the_driver_description(flydsl, read):
    (trace,) = read(flydsl)
    (gpu,) = [agent for agent in trace.agents if agent.kind == "GPU"]
    facts = json.loads(rows(flydsl, "SELECT extdata FROM rocpd_info_agent WHERE type = 'GPU'")[0][0])
    assert (gpu.architecture, gpu.chip_id, gpu.index) == ("gfx1250", facts["device_id"], facts["node_id"])
    assert (gpu.compute_units, gpu.xcd_count, gpu.wave_size) == (256, 8, 32)
    # local_mem_size is 0 in this recording; the memory banks hold the size.
    assert facts["local_mem_size"] == 0
    assert gpu.local_memory_bytes == sum(bank["size_in_bytes"] for bank in facts["mem_banks"])


def test_only_launched_kernels_are_kept_with_names_without_loader_suffix(flydsl, read):
    (trace,) = read(flydsl)
    assert len(trace.kernels) == 3
    assert {k.symbol for k in trace.kernels} == {
        name[: -len(".kd")]
        for (name,) in rows(
            flydsl,
            "SELECT kernel_name FROM rocpd_info_kernel_symbol "
            "WHERE id IN (SELECT kernel_id FROM rocpd_kernel_dispatch)",
        )
    }
    assert not any(k.name.endswith((".kd", "[clone .kd]")) for k in trace.kernels)


def test_a_kernel_trace_has_no_calls_copies_or_counters_and_is_a_source_of_time(flydsl, read):
    (trace,) = read(flydsl)
    assert (trace.api_calls, trace.copies, trace.counters) == (None, None, None)
    assert trace.role is TraceRole.TIMING
    assert trace.origin is Origin.MEASURED
    assert trace.source.format == "rocpd 3.0.0"
    assert not trace.grouped_by_queue


def test_calls_carry_stream_and_event_handles(synthetic, read):
    (trace,) = read(synthetic / "trace_results.db")
    calls = trace.api_calls
    assert calls is not None
    expected = rows(
        synthetic / "trace_results.db",
        "SELECT r.id, s.string, r.start, "
        "(SELECT value FROM rocpd_arg a WHERE a.event_id = r.event_id AND a.name = 'stream'), "
        "(SELECT value FROM rocpd_arg a WHERE a.event_id = r.event_id AND a.name = 'event') "
        "FROM rocpd_region r JOIN rocpd_string s ON s.id = r.name_id ORDER BY r.start",
    )

    def handle(text):
        return int(NO_HANDLE) if text is None else int(text, 16)

    got = list(
        zip(
            calls.correlation_id.tolist(),
            [trace.api_functions[i] for i in calls.function],
            calls.begin_ns.tolist(),
            calls.stream_handle.tolist(),
            calls.event_handle.tolist(),
            strict=True,
        )
    )
    assert got == [
        (i, name, begin, handle(stream), handle(event)) for i, name, begin, stream, event in expected
    ]


def test_copies_know_direction_size_and_agents(synthetic, read):
    (trace,) = read(synthetic / "trace_results.db")
    copies = trace.copies
    assert copies is not None
    assert [trace.copy_directions[i] for i in copies.direction] == [
        "MEMORY_COPY_HOST_TO_DEVICE",
        "MEMORY_COPY_DEVICE_TO_HOST",
    ]
    assert copies.size_bytes.tolist() == [4194304, 4194304]
    kinds = [agent.kind for agent in trace.agents]
    assert [kinds[i] for i in copies.source_agent] == ["CPU", "GPU"]
    assert [kinds[i] for i in copies.destination_agent] == ["GPU", "CPU"]
    assert [trace.streams[i].id for i in copies.stream] == [1, 2]


def test_instances_of_a_counter_stay_apart(synthetic, read):
    (trace,) = read(synthetic / "pmc_results.db")
    assert trace.role is TraceRole.COUNTERS
    values = trace.counters
    assert values is not None
    expected = json.loads((synthetic / "expected.json").read_text())["pmc"]["rows_per_dispatch"]
    per_dispatch = Counter(
        trace.counter_names[i] for i, d in zip(values.counter, values.dispatch, strict=True) if d == 0
    )
    assert per_dispatch == expected
    sums = rows(
        synthetic / "pmc_results.db",
        "SELECT p.name, sum(e.value) FROM rocpd_pmc_event e "
        "JOIN rocpd_info_pmc p ON p.id = e.pmc_id GROUP BY 1",
    )
    for name, total in sums:
        chosen = values.counter == trace.counter_names.index(name)
        assert values.value[chosen].sum() == pytest.approx(total)


def test_a_counter_with_one_row_per_dispatch_is_already_a_sum(synthetic, read):
    (trace,) = read(synthetic / "pmc_results.db")
    values = trace.counters
    single = values.counter == trace.counter_names.index("TCC_HIT_sum")
    assert set(values.instance[single].tolist()) == {-1}
    several = values.counter == trace.counter_names.index("GRBM_GUI_ACTIVE")
    assert sorted(set(values.instance[several].tolist())) == list(range(8))


def test_counter_rows_carry_the_duration_of_their_dispatch(synthetic, read):
    (trace,) = read(synthetic / "pmc_results.db")
    values = trace.counters
    assert np.array_equal(values.duration_ns, trace.dispatches.duration_ns()[values.dispatch])


def test_trace_and_counter_pass_of_one_pid_are_two_executions(synthetic, claim):
    assert [len(found.paths) for found in claim(synthetic)] == [1, 1]
