"""Which CSV files belong together, and sets of several processes."""

from __future__ import annotations

import json

import pytest

from rpl_core.model.trace import CallKind

TRACE = (
    "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,"
    "End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z\n"
)


@pytest.fixture
def write(tmp_path):
    def written(name, *times):
        rows = (
            f"KERNEL_DISPATCH,Agent 2,1,0,7,{n},1,k{n},{n},{begin},{end},64,1,1,256,1,1\n"
            for n, (begin, end) in enumerate(times, 1)
        )
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(TRACE + "".join(rows))
        return path

    return written


def test_ranks_of_one_run_become_one_trace(write, tmp_path, read):
    write("100_kernel_trace.csv", (10, 20), (50, 60))
    write("200_kernel_trace.csv", (15, 55))
    (trace,) = read(tmp_path)
    assert [p.pid for p in trace.processes] == [100, 200]
    d = trace.dispatches
    assert list(zip(d.process.tolist(), d.begin_ns.tolist(), strict=True)) == [(0, 10), (1, 15), (0, 50)]


def test_runs_one_after_the_other_stay_apart(write, tmp_path, claim):
    write("100_kernel_trace.csv", (10, 20), (50, 60))
    write("200_kernel_trace.csv", (60, 70))
    write("other/300_kernel_trace.csv", (10, 60))
    assert [len(found.paths) for found in claim(tmp_path)] == [1, 1, 1]


def test_other_traces_and_statistics_come_along_unread(write, tmp_path, claim):
    write("100_kernel_trace.csv", (10, 20))
    for kind in ("hsa_api_trace", "kernel_stats", "memory_allocation_trace"):
        (tmp_path / f"100_{kind}.csv").write_text("not even a table")
    (tmp_path / "200_domain_stats.csv").write_text("alone")
    (found,) = claim(tmp_path)
    assert found.refusal is None
    assert len(found.paths) == 4


CALLS = '"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n'


def test_calls_of_every_domain_and_interface_are_kept(write, tmp_path, read):
    write("100_kernel_trace.csv", (10, 20))
    (tmp_path / "100_hip_api_trace.csv").write_text(
        f'{CALLS}"HIP_COMPILER_API","__hipPushCallConfiguration",100,7,1,1,2\n'
        '"HIP_API","hipLaunchKernel",100,7,2,3,4\n'
    )
    (tmp_path / "100_hsa_api_trace.csv").write_text(
        CALLS + '"HSA_CORE_API","hsa_signal_store_relaxed",100,7,3,5,6\n'
    )
    (trace,) = read(tmp_path)
    names = [trace.api_functions[code] for code in trace.api_calls.function.tolist()]
    assert names == ["__hipPushCallConfiguration", "hipLaunchKernel", "hsa_signal_store_relaxed"]
    assert [meaning.kind for meaning in trace.meanings()] == [CallKind.OTHER] * 3


@pytest.mark.parametrize("kind", ["hip_api_trace", "hsa_api_trace"])
def test_an_api_of_which_only_other_domains_were_traced_is_not_called_untraced(
    write, tmp_path, rpl_cli, kind
):
    write("100_kernel_trace.csv", (10, 20), (50, 60))
    (tmp_path / f"100_{kind}.csv").write_text(
        CALLS + '"HIP_COMPILER_API","__hipPopCallConfiguration",100,7,1,1,2\n'
    )
    outcome = rpl_cli("analyze", tmp_path, "-o", tmp_path / "out").assert_ok()
    assert "was not traced" not in outcome.stdout + outcome.stderr
    dag = json.loads((tmp_path / "out" / "dag.json").read_text())
    assert dag["sync_info"] == "api_names"


def test_counters_of_a_traced_run_join_its_dispatches(write, tmp_path, read, codes):
    write("100_kernel_trace.csv", (10, 20), (50, 60))
    head = "Dispatch_Id,Agent_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp\n"
    (tmp_path / "100_counter_collection.csv").write_text(
        head + "2,Agent 2,k2,SQ_WAVES,4,50,60\n1,Agent 2,k1,SQ_WAVES,4,10,20\n9,Agent 2,k9,SQ_WAVES,1,1,2\n"
    )
    (trace,) = read(tmp_path)
    v = trace.counters
    assert trace.dispatches.dispatch_id[v.dispatch].tolist() == [1, 2]
    assert trace.shapes.grid.tolist() == [[256, 1, 1]]
    assert codes(trace) == {"counter.unknown_dispatch": 1}


def test_copies_are_read_with_normal_directions(write, tmp_path, read):
    write("100_kernel_trace.csv", (10, 20))
    (tmp_path / "100_memory_copy_trace.csv").write_text(
        "Kind,Direction,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n"
        "MEMORY_COPY,HOST_TO_DEVICE,Agent 0,Agent 2,5,1,4\n"
    )
    (trace,) = read(tmp_path)
    assert trace.copy_directions == ("MEMORY_COPY_HOST_TO_DEVICE",)
    assert (trace.copies.begin_ns.tolist(), trace.copies.size_bytes.tolist()) == ([1], [-1])


def test_a_counter_that_was_read_twice_is_not_doubled(tmp_path, read, codes):
    head = "Dispatch_Id,Agent_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp\n"
    (tmp_path / "100_counter_collection.csv").write_text(
        head
        + "1,Agent 2,k,SQ_WAVES,4,10,20\n1,Agent 2,k,SQ_WAVES,5,110,130\n1,Agent 2,k,GRBM_COUNT,9,110,130\n"
    )
    (trace,) = read(tmp_path)
    assert trace.counter_names == ("GRBM_COUNT", "SQ_WAVES")
    assert trace.counters.value.tolist() == [9, 4]
    assert trace.counters.duration_ns.tolist() == [20, 10]
    assert codes(trace)["counter.read_again"] == 1


def test_rows_of_one_pass_that_share_a_counter_are_instances(tmp_path, read, codes):
    head = "Dispatch_Id,Agent_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp\n"
    (tmp_path / "100_counter_collection.csv").write_text(
        head + "1,Agent 2,k,TCC_HIT,4,10,20\n1,Agent 2,k,TCC_HIT,5,10,20\n"
    )
    (trace,) = read(tmp_path)
    assert trace.counters.instance.tolist() == [0, 1]
    assert codes(trace)["counter.several_rows"] == 1


def test_a_renamed_kernel_trace_is_known_by_its_header(write, tmp_path, read, claim):
    write("run A.csv", (10, 20), (50, 60))
    (trace,) = read(tmp_path)
    assert trace.dispatches.begin_ns.tolist() == [10, 50]
    (tmp_path / "other.csv").write_text("kind,name\nKERNEL_DISPATCH,k\n")
    (found,) = claim(tmp_path)
    assert [path.name for path in found.paths] == ["run A.csv"]


def test_a_renamed_counter_table_is_known_by_its_header(tmp_path, read):
    (tmp_path / "waves.csv").write_text(
        '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id",'
        '"Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","SGPR_Count","Counter_Name",'
        '"Counter_Value","Start_Timestamp","End_Timestamp"\n'
        '1,1,"Agent 4",1,9,9,64,1,"k",64,0,0,8,16,"SQ_WAVES",1.0,100,200\n'
    )
    (trace,) = read(tmp_path)
    assert (trace.counter_names, trace.counters.value.tolist()) == (("SQ_WAVES",), [1.0])
