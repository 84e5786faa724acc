"""rocprofiler-compute workload folders, against plain csv."""

from __future__ import annotations

import csv
import json

import pytest

from rpl_core.model.trace import TraceRole

pytestmark = pytest.mark.data

WIDE = (
    "path_MI300X_A1",
    "kernel_MI300X_A1",
    "path_MI300A_A1",
    "ipblocks_SQ_SPI_TA_TCC_CPF_MI300X_A1",
    "ipblocks_TCC_MI300A_A1",
    "path_MI200",
)


@pytest.fixture
def counters(rpl_shared_data):
    return rpl_shared_data / "counters_gfx942"


def table(path):
    with path.open(newline="") as text:
        return list(csv.DictReader(text))


COUNTER_BLOCKS = ("SQ_", "SQC_", "TCC_", "TCP_", "TA_", "TD_", "CPC_", "CPF_", "GRBM_", "SPI_")


def value(trace, dispatch_id, name):
    """Sum over instances, as a user of the trace would take it; None when not recorded."""
    if name not in trace.counter_names:
        return None
    v = trace.counters
    row = trace.dispatches.dispatch_id.tolist().index(dispatch_id)
    chosen = (v.counter == trace.counter_names.index(name)) & (v.dispatch == row)
    return float(v.value[chosen].sum())


@pytest.mark.parametrize("folder", WIDE)
def test_every_counter_of_a_wide_table_is_read_per_dispatch(counters, folder, read):
    traces = read(counters / folder)
    (main,) = [t for t in traces if t.source.paths[0].endswith("pmc_perf.csv")]
    for record in table(counters / folder / "pmc_perf.csv"):
        sums: dict[str, float] = {}
        for column, text in record.items():
            name = column.partition("[")[0]
            if name.startswith(COUNTER_BLOCKS):
                sums[name] = sums.get(name, 0.0) + float(text)
        assert set(main.counter_names) == set(sums)
        assert {name: value(main, int(record["Dispatch_ID"]), name) for name in sums} == sums


@pytest.mark.parametrize("folder", WIDE)
def test_the_timestamps_table_is_the_only_source_of_time(counters, folder, read):
    traces = read(counters / folder)
    assert [t.role for t in traces] == [TraceRole.TIMING] + [TraceRole.COUNTERS] * (len(traces) - 1)
    expected = json.loads((counters / "expected.json").read_text())["files"][folder]
    rows = table(counters / folder / "timestamps.csv")
    timing = traces[0].dispatches
    assert dict(zip(timing.dispatch_id.tolist(), timing.duration_ns().tolist(), strict=True)) == {
        int(r["Dispatch_ID"]): int(r["End_Timestamp"]) - int(r["Start_Timestamp"]) for r in rows
    }
    assert sorted(timing.duration_ns().tolist()) == sorted(entry["duration_ns"] for entry in expected)
    # In wide tables the passes lost their own times.
    assert all(set(t.counters.duration_ns.tolist()) == {-1} for t in traces[1:])


def test_names_and_geometry_agree_between_tables(counters, read):
    for trace in read(counters / "path_MI200"):
        (kernel,) = trace.kernels
        assert kernel.name == "vecCopy(double*, double*, double*, int, int)"
        assert trace.shapes.grid.tolist() == [[1048576, 1, 1]]
        assert trace.shapes.workgroups().tolist() == [4096]


def test_instances_are_those_of_the_column_names(counters, read):
    trace = read(counters / "path_MI300A_A1")[-1]
    v = trace.counters
    chosen = (v.counter == trace.counter_names.index("TCC_HIT")) & (v.dispatch == 0)
    assert v.instance[chosen].tolist() == list(range(96))
    assert table(counters / "path_MI300A_A1" / "pmc_perf.csv")[0]["TCC_HIT[95]"] == str(v.value[chosen][95])


def test_the_gpu_is_described_by_sysinfo(counters, read):
    agent = read(counters / "path_MI300X_A1")[0].agents[0]
    assert (agent.architecture, agent.product) == ("gfx942", "MI300X_A1")
    assert (agent.compute_units, agent.xcd_count, agent.max_waves_per_simd) == (304, 8, 8)
    assert (agent.compute_partition, agent.memory_partition) == ("SPX", "NPS1")
    assert (agent.chip_id, agent.lds_bytes_per_cu) == (None, None)
    mi200 = read(counters / "path_MI200")[0].agents[0]
    assert (mi200.compute_partition, mi200.xcd_count) == (None, 1)


def test_long_form_keeps_the_duration_of_every_pass(counters, read):
    (trace,) = read(counters / "vcopy_MI300X_A1_rocpd")
    assert trace.role is TraceRole.COUNTERS
    assert trace.agents[0].chip_id == 29857
    expected = json.loads((counters / "expected.json").read_text())["files"]["vcopy_MI300X_A1_rocpd"]
    v = trace.counters
    for entry in expected:
        (row,) = [i for i, n in enumerate(trace.dispatches.dispatch_id.tolist()) if n == entry["dispatch"]]
        durations = sorted(set(v.duration_ns[v.dispatch == row].tolist()))
        assert durations == entry["duration_ns_by_pass"]
        assert value(trace, entry["dispatch"], "SQ_INSTS_VALU") == entry["sq_insts_valu"]


def test_long_form_values_equal_the_csv(counters, read):
    (trace,) = read(counters / "vcopy_MI300X_A1_rocpd")
    rows = table(counters / "vcopy_MI300X_A1_rocpd" / "pmc_perf.csv")
    assert len(trace.counters) == len(rows) == 6027
    total = sum(float(r["Counter_Value"]) for r in rows if r["Counter_Name"].startswith("TCC_READ["))
    chosen = trace.counters.counter == trace.counter_names.index("TCC_READ")
    assert trace.counters.value[chosen].sum() == total


def test_rounded_timestamps_are_reported_as_unusable(counters, read, codes):
    (trace,) = read(counters / "vcopy_rounded_timestamps_MI300X_A1.csv")
    assert len(trace.dispatches) == 3
    assert trace.dispatches.duration_ns().tolist() == [0, 0, 0]
    assert codes(trace)["dispatch.rounded_timestamps"] == 3
    assert codes(trace)["dispatch.zero_duration"] == 3


def test_a_table_given_alone_still_finds_its_machine(counters, read):
    (trace,) = read(counters / "path_MI300X_A1" / "pmc_perf.csv")
    assert trace.agents[0].architecture == "gfx942"


def test_empty_cells_are_absent_and_repeated_columns_left_out(tmp_path, read, codes):
    path = tmp_path / "pmc_perf.csv"
    path.write_text(
        "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,Kernel_Name,SQ_WAVES,SQ_WAVES_1,SQ_WAVES_LT_32,TCC_HIT[0],"
        "TCC_HIT[1],Start_Timestamp,End_Timestamp\n"
        "0,1,256,64,k,4,4,0,5,6,100,200\n"
        "1,1,256,64,k,,,1,7,,300,400\n"
    )
    (trace,) = read(path)
    assert trace.counter_names == ("SQ_WAVES", "SQ_WAVES_LT_32", "TCC_HIT")
    assert (value(trace, 0, "SQ_WAVES"), value(trace, 0, "TCC_HIT")) == (4, 11)
    v = trace.counters
    # Dispatch 1 lost one TCC instance: half a sum would look right, so the counter is unknown there.
    assert set(v.counter[v.dispatch == 1].tolist()) == {trace.counter_names.index("SQ_WAVES_LT_32")}
    assert codes(trace)["counter.repeated_column"] == 1
    assert codes(trace)["counter.not_a_number"] == 1


def _with_fractions(source, target):
    """A copy of a table in which the second row has averaged times, as merging two runs leaves them."""
    rows = table(source)
    for name in ("Start_Timestamp", "End_Timestamp"):
        rows[1][name] += ".5"
    with target.open("w", newline="") as text:
        writer = csv.DictWriter(text, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def test_averaged_times_are_no_rounded_ones_and_are_said_once(counters, tmp_path, read, codes, rpl_cli):
    for name in ("timestamps.csv", "pmc_perf.csv"):
        _with_fractions(counters / "path_MI300X_A1" / name, tmp_path / name)
    (tmp_path / "sysinfo.csv").write_bytes((counters / "path_MI300X_A1" / "sysinfo.csv").read_bytes())
    timing = read(tmp_path)[0]
    assert codes(timing)["dispatch.averaged_timestamps"] == 1
    assert "dispatch.rounded_timestamps" not in codes(timing)
    expected = [
        int(r["End_Timestamp"]) - int(r["Start_Timestamp"])
        for r in table(counters / "path_MI300X_A1" / "timestamps.csv")
    ]
    assert timing.dispatches.duration_ns().tolist() == expected
    told = rpl_cli("analyze", tmp_path).assert_ok().stderr
    assert told.count("with a fraction of a ns") == 1
    assert "and 1 more" in told


def test_passes_that_were_merged_are_no_further_run(counters, tmp_path, rpl_cli):
    source = counters / "vcopy_MI300X_A1_rocpd"
    (tmp_path / "out" / "pmc_1").mkdir(parents=True)
    for name in ("pmc_perf.csv", "pmc_perf_0.csv", "out/pmc_1/results_pmc_perf_0.csv"):
        (tmp_path / name).write_bytes((source / "pmc_perf.csv").read_bytes())
    (tmp_path / "sysinfo.csv").write_bytes((source / "sysinfo.csv").read_bytes())
    alone, merged = (rpl_cli("analyze", path, "--json").assert_ok().json() for path in (source, tmp_path))
    assert merged["stability"]["runs"] == alone["stability"]["runs"] == 1
    assert merged["runtime_ms"] == alone["runtime_ms"]


def test_a_command_that_succeeds_prints_no_error(counters, rpl_cli):
    outcome = rpl_cli("analyze", counters / "vcopy_rounded_timestamps_MI300X_A1.csv").assert_ok()
    assert "rounded timestamps" in outcome.stderr
    assert not any(line.startswith("error:") for line in outcome.stderr.splitlines())


def test_a_pass_may_begin_at_time_zero_and_not_end_before_it_begins(tmp_path, read):
    path = tmp_path / "pmc_perf.csv"
    path.write_text(
        "GPU_ID,Dispatch_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,"
        "SGPR,Kernel_Name,Start_Timestamp,End_Timestamp,Kernel_ID,Counter_Name,Counter_Value\n"
        "2,1,256,64,0,0,4,4,16,k,0,90,12,SQ_WAVES,4\n"
        "2,2,256,64,0,0,4,4,16,k,100,190,12,SQ_WAVES,4\n"
        "2,2,256,64,0,0,4,4,16,k,300,290,12,SQ_INSTS_VALU,4\n"
    )
    (trace,) = read(path)
    found = zip(trace.counters.dispatch.tolist(), trace.counters.duration_ns.tolist(), strict=True)
    assert sorted(found) == [(0, 90), (1, -1), (1, 90)]
