"""Synthetic traces with a planted answer: ranks, collectives, idle time, attribution, what is refused."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest

from rpl_core.model.metric import Origin
from rpl_testkit.kineto_writer import KinetoTrace
from rpl_torch.analysis import torch_report
from rpl_torch.analysis.collectives import bus_factor
from rpl_torch.model import TORCH
from rpl_torch.reader import TorchReader

STAMP = "rpl_origin"
TOLD = (
    *("Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype"),
    *("Process Group Name", "Process Group Ranks"),
)


def rank_trace(rank, *, late_us=0.0, world_size=4, operations=3, begins=()):
    """One rank of an all-reduce of 1 MiB: it begins ``late_us`` after 100 us, and all end at 400 us."""
    trace = KinetoTrace(rank=rank, world_size=world_size, pid=1000 + rank, device=2 + rank)
    for number in range(operations):
        start = 1000.0 * number
        begin = start + 100.0 + late_us
        trace.kernel(f"compute_{rank}", start + 1.0, start + 5.0, 50.0 + 10.0 * rank)
        trace.collective(
            "allreduce", 1 << 19, range(world_size), (start + 90.0, begin, start + 400.0 - begin)
        )
    return trace


def write_ranks(folder, lateness, **options):
    return [
        rank_trace(rank, late_us=late, **options).write(folder / f"trace_{rank}.json.gz")
        for rank, late in enumerate(lateness)
    ]


def test_ranks_of_a_folder_are_one_run_and_the_wait_for_the_last_is_told(tmp_path, read):
    paths = write_ranks(tmp_path, (0.0, 30.0, 200.0, 10.0))
    trace = read(*paths)
    assert [process.pid for process in trace.processes] == [1000, 1001, 1002, 1003]
    assert trace.origin is Origin.SYNTHETIC
    part = torch_report(trace, 0, None, None)
    assert [rank.rank for rank in part.ranks] == [0, 1, 2, 3]
    (found,) = part.collectives
    # Begins at 100, 130, 300, 110 us of each operation: waits of 200, 170, 0, 190 us.
    assert found.wait_ns == 3 * (200 + 170 + 0 + 190) * 1000
    assert found.transfer_ns == 3 * 100_000
    assert found.last_ranks == {"2": 3}
    assert found.wait_reason is None
    assert (found.ranks_recorded, found.operations, found.message_bytes) == (4, 3, 1 << 20)
    # Size over transfer, and times 2 (n - 1) / n.
    assert found.algorithm_gbps == pytest.approx((1 << 20) / 100_000)
    assert found.bus_gbps == pytest.approx((1 << 20) / 100_000 * 1.5)
    assert found.bandwidth_exactness == "estimate"


def test_one_rank_of_many_has_a_lower_bound_and_no_wait(tmp_path, read):
    (path,) = write_ranks(tmp_path, (0.0,))
    (found,) = torch_report(read(path), 0, None, None).collectives
    assert found.wait_ns is None
    assert found.wait_reason == "1 of 4 ranks are recorded: another one may have come last"
    assert found.bandwidth_exactness == "lower_bound"
    assert found.bus_gbps == pytest.approx((1 << 20) / 300_000 * 1.5)


def test_numbered_operations_belong_together_whoever_saw_more(tmp_path, read):
    traces = [rank_trace(rank, late_us=50.0 * rank, world_size=2) for rank in range(2)]
    for rank, trace in enumerate(traces):
        kernels = [e for e in trace.events if "Collective name" in e["args"]]
        for number, event in enumerate(kernels):
            event["args"]["Seq"] = 7 + number
        # The profiler of rank 1 began one operation later.
        gone = kernels[:rank]
        trace.events = [event for event in trace.events if event not in gone]
    paths = [trace.write(tmp_path / f"{rank}.json") for rank, trace in enumerate(traces)]
    (found,) = torch_report(read(*paths), 0, None, None).collectives
    assert (found.operations, found.wait_ns, found.last_ranks) == (2, 2 * 50_000, {"1": 2})


def test_kernels_that_say_nothing_are_the_collective_of_their_operator(tmp_path, read):
    trace = rank_trace(0)
    for event in trace.events:
        if "Collective name" in event["args"]:
            told = {k: event["args"].pop(k) for k in tuple(event["args"]) if k in TOLD}
            (operator,) = [
                e
                for e in trace.events
                if e["cat"] == "cpu_op" and e["args"]["External id"] == event["args"]["External id"]
            ]
            operator["args"] |= told
    (found,) = torch_report(read(trace.write(tmp_path / "t.json")), 0, None, None).collectives
    assert (found.operation, found.operations, found.message_bytes) == ("allreduce", 3, 1 << 20)


def test_work_of_pytorch_1_names_its_operator_in_small_letters(tmp_path, read):
    trace = KinetoTrace()
    operator = trace.operator("aten::mm", 0.0, 8.0)
    trace.kernel("k", 1.0, 20.0, 5.0, operator=operator, launcher=None)
    args = trace.events[-1]["args"]
    args["external id"] = args.pop("External id")
    trace.events.append({"ph": "s", "cat": "fwdbwd", "id": "0x1", "pid": 1, "tid": 1, "ts": 1.0, "name": "f"})
    part = torch_report(read(trace.write(tmp_path / "t.json")), 0, None, None)
    assert [o.name for o in part.operators] == ["aten::mm"]


def test_older_releases_of_pytorch_and_rocm_are_the_same(tmp_path, read):
    trace = KinetoTrace()
    trace.kernel("k", 1.0, 20.0, 5.0, operator=trace.operator("aten::mm", 0.0, 8.0))
    trace.copy("HtoD", 8, 30.0, 40.0, 2.0)
    new = read(trace.write(tmp_path / "new.json"))
    old_names = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "cuda_runtime": "Runtime", "cpu_op": "Operator"}
    for event in trace.events:
        if event["cat"] == "cuda_runtime":
            event["args"]["stream"] = "0x0"
        event["cat"] = old_names[event["cat"]]
    document = trace.document()
    del document["roctracer_version"]  # calls with a cid are roctracer's
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document))
    old = read(path)
    assert torch_report(old, 0, None, None) == torch_report(new, 0, None, None)
    assert old.shapes.grid.tolist() == new.shapes.grid.tolist() == [[1024, 1, 1]]
    assert old.copy_directions == new.copy_directions
    for call in document["traceEvents"]:
        call["args"].pop("cid", None)
    path.write_text(json.dumps(document) + " ")
    assert {d.code for d in read(path).diagnostics} == {"torch.no_geometry"}


def test_clocks_that_can_not_be_one_are_told(tmp_path, read):
    paths = [rank_trace(0).write(tmp_path / "a.json")]
    other = rank_trace(1)
    other.base_ns += 10_000_000
    paths.append(other.write(tmp_path / "b.json"))
    trace = [TorchReader().read(found)[0] for found in TorchReader().claim(paths)]
    (found,) = torch_report(trace[0], 0, None, None).collectives
    assert "2 of 4 ranks" in found.wait_reason
    pair = [rank_trace(0, world_size=2), rank_trace(1, world_size=2)]
    pair[1].base_ns += 350_000
    paths = [one.write(tmp_path / f"pair{i}.json.gz") for i, one in enumerate(pair)]
    (found,) = torch_report(read(*paths), 0, None, None).collectives
    assert "a rank ended before another began" in found.wait_reason


def test_bus_factors_are_those_of_nccl_tests():
    # https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md.
    factors = {op: bus_factor(op, 8) for op in ("allreduce", "allgather", "reducescatter", "alltoall")}
    assert factors == {"allreduce": 1.75, "allgather": 0.875, "reducescatter": 0.875, "alltoall": 0.875}
    assert (bus_factor("broadcast", 8), bus_factor("reduce", 8), bus_factor("barrier", 8)) == (1.0, 1.0, None)


def test_sizes_of_gathers_are_those_of_the_whole(tmp_path, read):
    trace = KinetoTrace(rank=0, world_size=4)
    trace.collective("_allgather_base", 1000, range(4), (0.0, 10.0, 100.0), gathered=4000)
    trace.collective("_reduce_scatter_base", 4000, range(4), (200.0, 210.0, 100.0), gathered=1000)
    parts = torch_report(read(trace.write(tmp_path / "t.json")), 0, None, None).collectives
    sizes = {part.operation: (part.message_bytes, part.bus_gbps) for part in parts}
    assert sizes == {
        "allgather": (8000, pytest.approx(0.08 * 0.75)),
        "reducescatter": (8000, pytest.approx(0.08 * 0.75)),
    }


def test_ranks_come_from_the_trace_then_the_name_and_else_are_left_to_the_user(tmp_path):
    told = [rank_trace(i).write(tmp_path / f"x{i}.json") for i in range(2)]
    assert [len(found.paths) for found in TorchReader().claim(told)] == [2]
    named = []
    for i in range(2):
        trace = rank_trace(i)
        trace.rank = None
        named.append(trace.write(tmp_path / f"run_rank-{i}.pt.trace.json"))
    (found,) = TorchReader().claim(named)
    (trace,) = TorchReader().read(found)
    assert [process.rank for process in trace.extras[TORCH]] == [0, 1]
    nameless = [path.rename(tmp_path / f"y{i}.json") for i, path in enumerate(named)]
    assert [len(found.paths) for found in TorchReader().claim(nameless)] == [1, 1]


def test_windows_of_ranks_are_runs(tmp_path):
    paths = []
    for window in range(2):
        for rank in range(2):
            trace = rank_trace(rank, world_size=2)
            trace.events = [{**e, "ts": e["ts"] + 1e6 * window} for e in trace.events]
            paths.append(trace.write(tmp_path / f"host_{rank}.{window}.pt.trace.json"))
    sets = [sorted(path.name for path in found.paths) for found in TorchReader().claim(paths)]
    assert sets == [[f"host_{rank}.{window}.pt.trace.json" for rank in range(2)] for window in range(2)]


def test_idle_time_names_the_operator_and_who_kept_it_waiting(tmp_path, read):
    trace = KinetoTrace()
    quick = trace.operator("aten::add", 0.0, 8.0, dims=[[8], [8]], types=["float", "float"])
    slow = trace.operator("aten::mm", 20.0, 80.0, dims=[[8, 8], [8, 8]], types=["float", "float"])
    trace.kernel("add", 1.0, 10.0, 10.0, operator=quick)  # ends at 20
    trace.kernel("mm", 60.0, 70.0, 5.0, operator=slow)  # 40 us before its launch, 10 us queued; ends at 75
    trace.kernel("mm", 90.0, 95.0, 5.0, operator=slow)  # 15 us and 5 us; ends at 100
    trace.kernel("add", 2.0, 100.0, 10.0, operator=quick)
    trace.kernel("lost", 0.0, 130.0, 1.0, launcher=None)  # 20 us of which nobody knows
    trace.kernel("add", 145.0, 141.0, 1.0, operator=quick)  # 10 us, and a clock that contradicts itself
    part = torch_report(read(trace.write(tmp_path / "t.json")), 0, None, None)
    idle = {o.name: (o.idle_host_ns, o.idle_queued_ns, o.idle_unknown_ns) for o in part.operators}
    assert idle == {"aten::mm": (55_000, 15_000, 0), "aten::add": (10_000, 0, 0), None: (0, 0, 20_000)}
    assert part.idle_ns == 100_000
    (stretch,) = part.host_bound
    assert (stretch.operator, stretch.launches, stretch.idle_ns) == ("aten::mm", 2, 70_000)
    assert (stretch.begin_ns, stretch.length_ns) == (10_000, 80_000)


def test_backward_work_is_that_of_the_forward_module_and_line(tmp_path, read):
    trace = KinetoTrace()
    trace.frame("model.py(7): forward", 0.0, 50.0)
    trace.frame("nn.Module: Net_0", 1.0, 48.0)
    trace.frame("nn.Module: Linear_0", 2.0, 40.0)
    trace.frame("torch/nn/modules/linear.py(125): forward", 3.0, 30.0)
    trace.operator("aten::addmm", 5.0, 10.0)
    trace.operator("autograd::engine::evaluate_function: AddmmBackward0", 100.0, 30.0, thread=9)
    inner = trace.operator("aten::mm", 105.0, 10.0, thread=9)
    trace.kernel("mm", 106.0, 120.0, 5.0, operator=inner, thread=9)
    trace.forward_backward((trace.pid, 5.0), (9, 100.0))
    part = torch_report(read(trace.write(tmp_path / "t.json")), 0, None, None)
    times = {m.name: (m.time_ns, m.inside_ns) for m in part.modules}
    assert times == {"Linear_0": (5000, 5000), "Net_0": (0, 5000)}
    assert [line.name for line in part.lines] == ["model.py(7): forward"]


def test_work_without_an_external_id_is_that_of_the_operator_around_its_call(tmp_path, read):
    trace = KinetoTrace()
    trace.annotation("ProfilerStep#1", 0.0, 100.0)
    trace.operator("my::op", 10.0, 20.0)
    trace.kernel("k", 15.0, 40.0, 5.0)
    trace.kernel("k", 60.0, 80.0, 5.0)
    part = torch_report(read(trace.write(tmp_path / "t.json")), 0, None, None)
    assert {o.name: o.time_ns for o in part.operators} == {"my::op": 5000, None: 5000}


def test_a_rate_above_the_peak_is_an_error_and_not_clipped(tmp_path, rpl_cli):
    trace = KinetoTrace()
    operator = trace.operator("aten::mm", 0.0, 8.0, dims=[[8192, 8192]] * 2, types=["c10::BFloat16"] * 2)
    trace.kernel("gemm", 1.0, 10.0, 100.0, operator=operator)  # 11 PFLOP/s
    path = trace.write(tmp_path / "t.json.gz")
    document = rpl_cli("analyze", path, "--json").assert_ok().json()
    (shape,) = document["sections"]["torch"]["shapes"]
    assert shape["above_peak"]
    assert shape["gflops"] == pytest.approx(2 * 8192**3 / 100_000)
    assert shape["compute_share"] > 8
    (told,) = [d for d in document["diagnostics"] if d["code"] == "torch.above_peak"]
    assert told["severity"] == "error"


def test_cuda_has_no_device_plugin_and_says_so(tmp_path, rpl_cli):
    trace = KinetoTrace()
    operator = trace.operator("aten::mm", 0.0, 8.0, dims=[[64, 64]] * 2, types=["c10::Half"] * 2)
    trace.kernel("gemm", 1.0, 10.0, 100.0, operator=operator, launcher="cudaLaunchKernel", grid=(4, 2, 1))
    document = trace.document()
    del document["roctracer_version"], document["hip_runtime_version"]
    document["deviceProperties"][0] |= {"name": "NVIDIA H100", "computeMajor": 9, "computeMinor": 0}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document))
    found = rpl_cli("analyze", path, "--json").assert_ok().json()
    assert any(d["code"] == "device.unknown" and "sm_90" in d["fact"] for d in found["diagnostics"])
    (shape,) = found["sections"]["torch"]["shapes"]
    assert shape["gflops"] == pytest.approx(2 * 64**3 / 100_000)
    assert (shape["compute_share"], shape["above_peak"]) == (None, False)
    assert "no device plugin" in shape["ceiling_reason"]
    assert found["kernel"]["grid"] == [4, 2, 1]


@pytest.mark.data
def test_the_writer_writes_the_keys_of_real_traces(real_named, tmp_path):
    kinds, beside = defaultdict(set), set()
    for name in ("bert-small", "resnet-act-checkpoint", "sglang-prefilldecode"):
        _, document = real_named(name)
        beside |= document.keys()
        for event in document["traceEvents"]:
            kinds[event["ph"], event.get("cat")] |= keys_of(event)
    trace = rank_trace(0)
    trace.annotation("ProfilerStep#0", 0.0, 9.0)
    trace.frame("nn.Module: A_0", 0.0, 9.0)
    trace.copy(
        "HtoD",
        8,
        1.0,
        2.0,
        1.0,
        operator=trace.operator("aten::copy_", 0.0, 1.0, dims=[[2]], types=["float"]),
    )
    trace.forward_backward((1, 0.0), (2, 1.0))
    written = trace.document()
    assert written.keys() - beside == {STAMP}
    for event in written["traceEvents"]:
        assert keys_of(event) <= kinds[event["ph"], event["cat"]], event


def keys_of(event):
    return {*event, *(f"args.{key}" for key in event.get("args", ()))}


@pytest.mark.parametrize("window", [64, 1000, 1 << 18])
def test_however_the_file_is_cut_the_columns_are_the_same(tmp_path, monkeypatch, window):
    from rpl_torch import columns
    from rpl_torch.trace_file import read_trace

    trace = rank_trace(0, operations=20)
    # What looks like the border of two events, and is none.
    trace.operator('a}, {"ph": "X"', 1.0, 2.0, dims=[[1]], types=["}, {"])
    trace.events.append(
        {"ph": "i", "cat": "x", "name": "n", "ts": 1.0, "args": {"l": [{"a": 1}, {"b": [{}, {}]}]}}
    )
    document = trace.document()
    document["deviceProperties"] = [*document["deviceProperties"]] * 2  # objects behind the events too
    document = {key: document[key] for key in (STAMP, "traceEvents", *document)}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document, indent=1 if window == 1000 else None))
    whole = read_trace(path, "r", "f", None)
    monkeypatch.setattr(columns, "_WINDOW_BYTES", window)
    found = read_trace(path, "r", "f", None)
    assert np.array_equal(found.dispatches.begin_ns, whole.dispatches.begin_ns)
    assert len(found.dispatches) == 40
    assert sorted(found.extras[TORCH][0].names) == sorted(whole.extras[TORCH][0].names)
    assert {d.code for d in found.diagnostics} == {"torch.unknown_events"}
