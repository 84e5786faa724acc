"""Tables of rocprof v1 and Omniperf 1.x, by their headers (docs/reference/formats.md, 6)."""

from __future__ import annotations

import pytest

from rpl_core.model.trace import TraceRole

_PLACE = "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr"
#: Until ROCm 5.1, and after it.
_OLD, _NEW = f"{_PLACE},vgpr,sgpr,fbar,sig,obj", f"{_PLACE},arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj"
_TIMES = "DispatchNs,BeginNs,EndNs,CompleteNs"
_SYSTEM = (
    "workload_name,host_name,date,gpu_soc,numSE,numCU,numSIMD,waveSize,maxWavesPerCU,sclk,mclk,name\n"
    "w,box,Wed Sep 28 20:40:30 2022 (),gfx90a,8,104,4,64,32,1700,1600,mi200\n"
)


def _rows(facts: str, *rests: str) -> str:
    names = ('"void f<float, 2u>(float*) [clone .kd]"', "__amd_rocclr_fillBufferAligned.kd")
    return "".join(
        f"{i},{names[i % 2]},1,0,{2 * i},77,78,{4096 * (i + 1)},256,512,16,{facts},0x0,0x7f{rest}\n"
        for i, rest in enumerate(rests)
    )


def test_times_and_resources_of_a_results_csv(tmp_path, read, codes):
    content = f"{_NEW},{_TIMES},DurationNs\n" + _rows(
        "8,4,16,64", ",90,100,350,360,250", ",400,500,600,610,100"
    )
    (tmp_path / "results.csv").write_text(content)
    (trace,) = read(tmp_path)
    assert trace.role is TraceRole.TIMING
    assert trace.dispatches.duration_ns().tolist() == [250, 100]
    assert trace.dispatches.dispatch_id.tolist() == [0, 1]
    names = [trace.kernels[i].name for i in trace.dispatches.kernel.tolist()]
    assert names == ["void f<float, 2u>(float*)", "__amd_rocclr_fillBufferAligned"]
    assert {(k.arch_vgpr, k.accum_vgpr, k.sgpr) for k in trace.kernels} == {(8, 4, 16)}
    shapes = trace.shapes
    assert sorted(shapes.grid[:, 0].tolist()) == [4096, 8192]
    assert set(shapes.lds_bytes.tolist()) == {512}
    assert set(shapes.scratch_bytes.tolist()) == {16}
    assert [process.pid for process in trace.processes] == [77]
    assert not {"table.no_registers", "table.no_times"} & set(codes(trace))


def test_registers_in_granules_of_another_gpu_are_unknown(tmp_path, read, codes):
    (tmp_path / "results.csv").write_text(f"{_OLD},{_TIMES}\n" + _rows("4,24,14336", ",90,100,350,360"))
    (trace,) = read(tmp_path)
    assert [(k.arch_vgpr, k.accum_vgpr, k.sgpr) for k in trace.kernels] == [(None, None, None)]
    assert codes(trace)["table.no_registers"] == 1


def test_counters_without_times_belong_to_dispatches_of_unknown_duration(tmp_path, read, codes, rpl_cli):
    content = f"{_OLD},TCC_EA_WRREQ_sum,SQ_WAVES\n" + _rows("4,24,0", ",1048576.0000000000,7", ",1.5,8")
    (tmp_path / "results.csv").write_text(content)
    (trace,) = read(tmp_path)
    assert trace.role is TraceRole.COUNTERS
    v = trace.counters
    found = {
        (int(trace.dispatches.dispatch_id[d]), trace.counter_names[c]): x
        for d, c, x in zip(v.dispatch.tolist(), v.counter.tolist(), v.value.tolist(), strict=True)
    }
    assert found == {
        (0, "TCC_EA_WRREQ_sum"): 1048576.0,
        (0, "SQ_WAVES"): 7.0,
        (1, "TCC_EA_WRREQ_sum"): 1.5,
        (1, "SQ_WAVES"): 8.0,
    }
    assert codes(trace)["table.no_times"] == 1
    profile = (
        rpl_cli("analyze", "--json", tmp_path / "results.csv", "-o", tmp_path / "run").assert_ok().json()
    )
    assert profile["runtime_ms"] is None, "no time is no time of 0"


@pytest.fixture
def workload(tmp_path):
    """A folder of Omniperf 1.x."""
    folder = tmp_path / "vcopy" / "mi200"
    folder.mkdir(parents=True)
    times = (",90,100,350,360", ",400,500,600,610")
    (folder / "timestamps.csv").write_text(f"{_OLD},{_TIMES}\n" + _rows("4,24,0", *times))
    merged = "SQ_WAVES,TCC_HIT[0],TCC_HIT[1],KernelName_1,BeginNs_1"
    rests = [f",{i},{10 + i},{20 + i},x,5{end}" for i, end in enumerate(times)]
    (folder / "pmc_perf.csv").write_text(f"{_OLD},{merged},{_TIMES}\n" + _rows("4,24,0", *rests))
    level = (",5,90,1000,1900,1990", ",6,2000,1900,2600,2700")
    (folder / "SQ_LEVEL_WAVES.csv").write_text(f"{_OLD},SQ_LEVEL_WAVES,{_TIMES}\n" + _rows("4,24,0", *level))
    (folder / "sysinfo.csv").write_text(_SYSTEM)
    return folder


def test_a_folder_of_omniperf_is_a_timing_run_with_counter_passes(workload, read):
    timing, *passes = read(workload)
    assert timing.role is TraceRole.TIMING
    assert timing.dispatches.duration_ns().tolist() == [250, 100]
    (main,) = [t for t in passes if t.source.paths[0].endswith("pmc_perf.csv")]
    assert main.counter_names == ("SQ_WAVES", "TCC_HIT")
    hits = main.counters.counter == 1
    assert main.counters.instance[hits].tolist() == [0, 1, 0, 1]
    assert main.counters.value[hits].tolist() == [10, 20, 11, 21]
    assert {name for t in passes for name in t.counter_names} == {"SQ_WAVES", "TCC_HIT", "SQ_LEVEL_WAVES"}


def test_its_system_file_describes_the_gpu(workload, read):
    (agent,) = read(workload)[0].agents
    facts = (agent.architecture, agent.compute_units, agent.simd_per_cu, agent.max_waves_per_simd)
    assert facts == ("gfx90a", 104, 4, 8)
    assert (agent.wave_size, agent.clock_mhz, agent.node) == (64, 1700, "box")


def test_tables_without_any_dispatch_are_named(tmp_path, claim):
    (tmp_path / "pmc_perf.csv").write_text("Index,KernelName\n")
    (tmp_path / "results.csv").write_text(f"{_OLD}\n" + _rows("4,24,0", ""))
    found = claim(tmp_path)
    assert {each.paths[0].name for each in found} == {"pmc_perf.csv", "results.csv"}
    assert all("rocprof v1 or v2, or Omniperf 1.x" in each.refusal for each in found)
