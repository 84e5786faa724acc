"""Real CSV sets of rocprofv3, both generations, against plain csv."""

from __future__ import annotations

import csv
import gzip
from collections import Counter

import pytest

from rpl_core.model.trace import TraceRole

pytestmark = pytest.mark.data


@pytest.fixture
def sets(rpl_shared_data):
    return rpl_shared_data / "rocpd"


def table(path):
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(csv.DictReader(data.decode().splitlines()))


KERNEL_TRACES = (
    "csc-mi250x-csv/kernel_trace.csv",
    "hipkittens-mi325x-csv/66960_kernel_trace.csv",
    "wave-mi350x-csv/3785403_kernel_trace.csv.gz",
    "llama-gfx1151-csv/decode_kernel_trace.csv",
)


@pytest.mark.parametrize("name", KERNEL_TRACES)
def test_times_grids_and_names_equal_the_csv(sets, name, read):
    (trace,) = read(sets / name)
    rows = sorted(table(sets / name), key=lambda r: (int(r["Start_Timestamp"]), int(r["End_Timestamp"])))
    d, s = trace.dispatches, trace.shapes
    assert d.begin_ns.tolist() == [int(r["Start_Timestamp"]) for r in rows]
    assert d.end_ns.tolist() == [int(r["End_Timestamp"]) for r in rows]
    assert d.dispatch_id.tolist() == [int(r["Dispatch_Id"]) for r in rows]
    assert d.correlation_id.tolist() == [int(r["Correlation_Id"]) for r in rows]
    assert s.grid[d.shape].tolist() == [[int(r[f"Grid_Size_{a}"]) for a in "XYZ"] for r in rows]
    assert s.workgroup[d.shape].tolist() == [[int(r[f"Workgroup_Size_{a}"]) for a in "XYZ"] for r in rows]
    assert [trace.kernels[k].name for k in d.kernel] == [r["Kernel_Name"] for r in rows]
    lds = "LDS_Block_Size" if "LDS_Block_Size" in rows[0] else "Group_Segment_Size"
    assert s.lds_bytes[d.shape].tolist() == [int(r[lds]) for r in rows]


def test_agents_of_both_generations_are_found(sets, read):
    (old,) = read(sets / "hipkittens-mi325x-csv")
    (new,) = read(sets / "wave-mi350x-csv")
    for trace, architecture in ((old, "gfx942"), (new, "gfx950")):
        used = {trace.agents[i] for i in trace.dispatches.agent}
        assert [(a.index, a.architecture) for a in used] == [(2, architecture)]
        assert len(trace.agents) == 10
    (agent,) = {old.agents[i] for i in old.dispatches.agent}
    (row,) = [
        r for r in table(sets / "hipkittens-mi325x-csv" / "66960_agent_info.csv") if r["Node_Id"] == "2"
    ]
    assert (agent.chip_id, agent.compute_units, agent.xcd_count) == (
        int(row["Device_Id"]),
        int(row["Cu_Count"]),
        int(row["Num_Xcc"]),
    )


def test_a_kernel_trace_alone_is_enough(sets, read):
    (trace,) = read(sets / "csc-mi250x-csv" / "kernel_trace.csv")
    assert [(a.index, a.kind, a.architecture) for a in trace.agents] == [(4, "GPU", None)]
    assert trace.role is TraceRole.TIMING


def test_streams_are_known_only_where_the_generation_records_them(sets, read):
    (old,) = read(sets / "hipkittens-mi325x-csv")
    (new,) = read(sets / "llama-gfx1151-csv" / "decode_kernel_trace.csv")
    assert old.streams == ()
    assert set(old.dispatches.stream.tolist()) == {-1}
    assert [s.id for s in new.streams] == [2]


def test_registers_recorded_by_halves_are_given_as_they_stand(sets, read):
    # Whether they can be true is a fact of the architecture, which no reader knows.
    (trace,) = read(sets / "wave-mi350x-csv")
    rows = table(sets / "wave-mi350x-csv" / "3785403_kernel_trace.csv.gz")
    assert {k.arch_vgpr for k in trace.kernels} == {int(row["VGPR_Count"]) for row in rows}


@pytest.mark.parametrize(
    "name",
    [
        "hipkittens-mi350x-pmc-csv/hit_rate_counter_collection.csv",
        "hipkittens-mi350x-pmc-csv/lds_conflict_counter_collection.csv",
        "llama-gfx1151-csv/decode_fetch_counter_collection.csv",
        "llama-gfx1151-csv/decode_stall_counter_collection.csv",
    ],
)
def test_counters_equal_the_csv(sets, name, read):
    (trace,) = read(sets / name)
    rows = table(sets / name)
    assert trace.role is TraceRole.COUNTERS
    v = trace.counters
    got = {
        (int(trace.dispatches.dispatch_id[d]), trace.counter_names[c]): (value, duration)
        for d, c, value, duration in zip(v.dispatch, v.counter, v.value, v.duration_ns, strict=True)
    }
    assert got == {
        (int(r["Dispatch_Id"]), r["Counter_Name"]): (
            float(r["Counter_Value"]),
            int(r["End_Timestamp"]) - int(r["Start_Timestamp"]),
        )
        for r in rows
    }
    assert set(v.instance.tolist()) == {-1}
    # Grid_Size of this table is the total number of work-items.
    totals = {int(r["Dispatch_Id"]): int(r["Grid_Size"]) for r in rows}
    shape = trace.dispatches.shape
    assert (
        dict(
            zip(
                trace.dispatches.dispatch_id.tolist(),
                trace.shapes.grid[shape].prod(axis=1).tolist(),
                strict=True,
            )
        )
        == totals
    )


def test_graph_launches_cover_many_dispatches_and_calls_of_all_domains_are_kept(sets, read):
    (trace,) = read(
        sets / "llama-gfx1151-csv" / "decode_kernel_trace.csv",
        sets / "llama-gfx1151-csv" / "decode_hip_api_trace.csv",
    )
    rows = table(sets / "llama-gfx1151-csv" / "decode_hip_api_trace.csv")
    runtime = [r for r in rows if r["Domain"].startswith("HIP_RUNTIME_API")]
    assert len(trace.api_calls) == len(rows) > len(runtime)
    per_call = Counter(trace.dispatches.correlation_id.tolist())
    assert sorted(per_call.values())[-5:] == [1, 24, 24, 24, 24]
    # The recording is cut to a time window that holds one of the four graph launches.
    (graph,) = [int(r["Correlation_Id"]) for r in runtime if r["Function"] == "hipGraphLaunch"]
    assert per_call[graph] == 24
    assert trace.processes[0].pid == int(rows[0]["Process_Id"])
