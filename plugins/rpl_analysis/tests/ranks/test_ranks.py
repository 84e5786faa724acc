"""GPUs and ranks beside each other: two recorded ranks against plain SQL, small cases by hand."""

from __future__ import annotations

import gzip
import json
import sqlite3

import attrs
import numpy as np
import pytest

from rpl_analysis.ranks.analyzer import MANY_RANKS
from rpl_analysis.ranks.report import (
    builtin_collective_rules,
    collectives_among,
    compare_arrivals,
    rank_report,
)
from rpl_core.model.recording import merge_traces
from rpl_testkit.fixtures import Launch
from rpl_testkit.traces import TracedDispatch, make_trace, mi300x_agent

_COLLECTIVES = ("twoShotAllReduceKernel", "oneShotAllReduceKernel")
_COPIES = ("CopyDeviceToDevice", "CopyHostToDevice", "CopyDeviceToHost")


def _rows(path):
    """(function, operation, begin, end) of a recorded rank."""
    sql = """SELECT d.string, t.string, o.start, o.end FROM rocpd_op o
             JOIN rocpd_string d ON d.id = o.description_id
             JOIN rocpd_string t ON t.id = o.opType_id ORDER BY o.start"""
    with sqlite3.connect(path) as connection:
        return connection.execute(sql).fetchall()


@pytest.fixture(scope="module")
def two_ranks(rpl_shared_data, tmp_path_factory):
    """Two of the eight ranks of a recorded inference, unpacked."""
    folder = tmp_path_factory.mktemp("ranks")
    for number in (0, 1):
        packed = rpl_shared_data / "rocpd" / "vllm-mi300x-8gpu-rpd" / f"trace_{number}.rpd.gz"
        (folder / f"{number}.rpd").write_bytes(gzip.decompress(packed.read_bytes()))
    return folder / "0.rpd", folder / "1.rpd"


@pytest.mark.data
def test_two_recorded_ranks_agree_with_plain_sql(two_ranks, rpl_cli, tmp_path):
    text = rpl_cli("analyze", *two_ranks, "--device", "MI300X", "-o", tmp_path / "out").assert_ok().stdout
    profile = json.loads((tmp_path / "out" / "profile.json").read_text())
    found, recorded = profile["ranks"], [_rows(path) for path in two_ranks]
    kernels = [[row for row in rows if row[1] not in _COPIES] for rows in recorded]
    sums = [sum(end - begin for *_, begin, end in rows) for rows in kernels]
    assert [rank["kernel_ns"] for rank in found["ranks"]] == sums == [g["kernel_ns"] for g in found["gpus"]]
    assert found["runtime_ns"] == sum(sums)
    spans = [max(row[3] for row in rows) - min(row[2] for row in rows) for rows in recorded]
    assert [rank["makespan_ns"] for rank in found["ranks"]] == spans
    everything = [row for rows in recorded for row in rows]
    assert found["makespan_ns"] == max(r[3] for r in everything) - min(r[2] for r in everything)
    for collective in found["collectives"]:
        launches = [[(b, e) for name, _, b, e in rows if name == collective["name"]] for rows in kernels]
        late = [max(begins) for begins in zip(*([b for b, _ in own] for own in launches), strict=True)]
        for share, own in zip(collective["shares"], launches, strict=True):
            assert (share["calls"], share["total_ns"]) == (256, sum(e - b for b, e in own))
            assert share["wait_ns"] == sum(last - b for last, (b, _) in zip(late, own, strict=True))
            assert share["last_arrivals"] == sum(b == last for last, (b, _) in zip(late, own, strict=True))
        assert (collective["operation"], collective["exactness"]) == ("all_reduce", "lower_bound")
    named = [c["name"].partition("<")[0].rpartition("::")[2] for c in found["collectives"]]
    assert named == list(_COLLECTIVES)
    (worst, *_) = found["kernels"]
    own = [sum(e - b for name, _, b, e in rows if name == worst["name"]) for rows in kernels]
    assert (worst["max_ns"], worst["slowest_rank"]) == (max(own), own.index(max(own)))
    assert worst["imbalance"] == pytest.approx(max(own) / (sum(own) / 2) - 1)
    assert "2 x AMD Instinct MI300X (GPU 0, 1)" in text
    assert ">=5.732 ms" in text


@pytest.mark.data
def test_two_gpus_at_work_are_no_work_at_the_same_time(two_ranks, rpl_cli, tmp_path):
    rpl_cli("analyze", *two_ranks, "-o", tmp_path / "out").assert_ok()
    (domain,) = json.loads((tmp_path / "out" / "dag.json").read_text())["clock_domains"]
    inside = 0
    for path in two_ranks:
        reached = 0
        for *_, begin, end in _rows(path):
            inside += max(0, min(reached, end) - begin)
            reached = max(reached, end)
    assert domain["overlap_ns"] == inside < 1000
    assert domain["concurrency"] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "nccl"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl-all-reduce"),
        ("ncclAllReduceRingLLKernel_sum_f16(ncclColl)", "nccl-all-reduce"),
        ("void vllm::cross_device_reduce_2stage<__half, 8>(vllm::RankData*)", "vllm-custom-all-reduce"),
        ("void (anonymous namespace)::allreduce_prototype_twoshot<A, B>(A const*)", "all-reduce"),
        ("_ZN4vllm26cross_device_reduce_1stageI6__halfLi8EEEvPNS_8RankDataE", "vllm-custom-all-reduce"),
        ("void reduce_scatter_cross_device_store<float>(float*)", "reduce-scatter"),
        ("void at::native::reduce_kernel<512, AllReduceConfig>(AllReduceConfig)", None),
        ("void at::native::elementwise_kernel<ncclDevKernel_Generic>(int)", None),
    ],
)
def test_a_collective_is_told_by_the_name_of_its_function(name, rule):
    found = collectives_among(["gemm", name], builtin_collective_rules())
    assert {place: each.id for place, each in found.items()} == ({1: rule} if rule else {})


def _columns(*rows):
    return [np.array(row, dtype=np.int64) for row in rows]


def test_the_time_before_the_last_begin_is_waiting():
    arrivals = compare_arrivals(_columns([0, 100], [30, 90]), _columns([40, 120], [41, 121]))
    assert (arrivals.wait_ns, arrivals.last) == ((30, 10), (1, 1))


@pytest.mark.parametrize(
    ("begins", "ends", "why"),
    [
        ([[0]], [[1]], "one rank alone"),
        ([[0, 10], [0]], [[5, 15], [5]], "1 to 2 times"),
        ([[0], [50]], [[40], [60]], "ended before another began"),
    ],
)
def test_waits_are_unknown_where_launches_do_not_belong_together(begins, ends, why):
    arrivals = compare_arrivals(_columns(*begins), _columns(*ends))
    assert why in (arrivals.reason or "")
    assert arrivals.wait_ns == ()


def _rank(number, dispatches, node="node"):
    trace = make_trace(dispatches, agent=attrs.evolve(mi300x_agent(node), index=number), machines=(node,))
    (process,) = trace.processes
    return attrs.evolve(trace, processes=(attrs.evolve(process, guid=f"g{number}", pid=number),))


def _traffic(begin):
    """A collective of 40 of which 10 run beside a kernel on another stream."""
    return [
        TracedDispatch("gemm", begin, begin + 30),
        TracedDispatch("ncclDevKernel_Generic", begin + 20, begin + 60, stream=1, queue=2),
    ]


def test_communication_beside_kernels_is_counted_per_gpu():
    merged = merge_traces([_rank(4, _traffic(0)), _rank(5, _traffic(5))])
    report = rank_report(merged, 0, builtin_collective_rules())
    hidden = [(gpu.agent, gpu.communication_ns, gpu.overlapped_ns) for gpu in report.gpus]
    assert hidden == [(4, 40, 10), (5, 40, 10)]
    assert [rank.wait_ns for rank in report.ranks] == [5, 0]
    assert [each.exactness for each in report.collectives] == ["estimate"]
    assert report.makespan_ns == 65


def test_machines_have_no_clock_in_common():
    merged = merge_traces([_rank(4, _traffic(0), "a"), _rank(4, _traffic(5), "b")])
    report = rank_report(merged, 0, builtin_collective_rules())
    assert report.makespan_ns is None
    assert [(rank.node, rank.wait_ns) for rank in report.ranks] == [("a", None), ("b", None)]
    assert "clocks differ" in report.collectives[0].wait_reason


_PLUGIN = """
from rpl_analysis.interfaces import CollectiveRule, CollectiveWait
from rpl_core import hookimpl

RPL_API = 2

@hookimpl
def rpl_collective_rules():
    return (CollectiveRule("halo", "halo_exchange", "halo_exchange", CollectiveWait.ALL, "my code"),)
"""


def test_a_plugin_adds_names(rpl_site, rpl_cli, rpl_make_rocpd):
    rpl_site.plugin("halo", _PLUGIN)
    recording = rpl_make_rocpd([Launch("halo_exchange", 0, 50), Launch("stencil", 60, 90)])
    (found,) = rpl_cli("analyze", recording, "--json").json()["ranks"]["collectives"]
    assert (found["rule"], found["operation"], found["wait_reason"]) == (
        "halo",
        "halo_exchange",
        "one rank alone ran it",
    )


@pytest.mark.parametrize(("ranks", "named"), [(MANY_RANKS - 1, False), (MANY_RANKS, True)])
def test_of_many_ranks_one_line_names_the_command_for_them(simulated_job, rpl_cli, tmp_path, ranks, named):
    job, folder = simulated_job(ranks, 60), tmp_path / "recordings"
    folder.mkdir()
    for rank in range(ranks):
        job.write_recording(folder, rank)
    said = rpl_cli("analyze", folder, "--ranks", "-o", tmp_path / "out").assert_ok().stderr.splitlines()
    assert [f"{ranks} ranks" in line for line in said if "rpl ranks FOLDER" in line] == [True] * named
