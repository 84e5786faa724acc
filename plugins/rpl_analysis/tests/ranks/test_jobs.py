"""Jobs from summaries: against the report of merged traces, by hand, and a job whose truth is known."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import shutil
import zipfile

import attrs
import numpy as np
import pytest

from rpl_analysis.contracts.rank_job import RankJob
from rpl_analysis.ranks.answer import answer_of
from rpl_analysis.ranks.gather import numbers_in
from rpl_analysis.ranks.job import JobSummary, find_waits, merge_jobs
from rpl_analysis.ranks.page import job_page
from rpl_analysis.ranks.report import builtin_collective_rules, rank_report
from rpl_analysis.ranks.summary import summarise
from rpl_analysis.ranks.summary_file import (
    RecordedFile,
    SavedSummary,
    is_of,
    load_summary,
    save_summary,
)
from rpl_analysis.ranks.text import job_text
from rpl_core.errors import BadDataError
from rpl_core.ingest import load_recording
from rpl_core.model.recording import merge_traces
from rpl_core.model.trace import COLLECTIVES, CollectiveLaunch
from rpl_testkit.traces import TracedDispatch, make_trace, mi300x_agent

RULES = builtin_collective_rules()
ALL = "oneShotAllReduceKernel"


def _trace(number, dispatches, node="node"):
    trace = make_trace(dispatches, agent=attrs.evolve(mi300x_agent(node), index=number), machines=(node,))
    (process,) = trace.processes
    return attrs.evolve(trace, processes=(attrs.evolve(process, guid=f"g{number}", pid=number),))


def _job(*traces):
    return JobSummary.of(rank for trace in traces for rank in summarise(trace, "r", RULES))


def _answer(*traces) -> RankJob:
    job = _job(*traces)
    return answer_of(job, range(len(job.ranks)))


def _steps(*steps, shift=0):
    """Of one rank: (work, end) per all-reduce: kernels of ``work`` ns right before it begins at the first."""
    rows = []
    for begin, kernel, end in steps:
        rows += [("gemm", begin - kernel + shift, begin + shift), (ALL, begin + shift, end + shift)]
    return rows


# Real ranks.


@pytest.fixture(scope="module")
def two_ranks(rpl_shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixtral")
    for number in (0, 1):
        packed = rpl_shared_data / "rocpd" / "vllm-mi300x-8gpu-rpd" / f"trace_{number}.rpd.gz"
        (folder / f"rank_{number}.rpd").write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


@pytest.mark.data
def test_recorded_ranks_come_to_the_same_by_summaries(two_ranks, rpl_cli, tmp_path):
    rpl_cli("analyze", two_ranks, "--ranks", "-o", tmp_path / "merged").assert_ok()
    merged = json.loads((tmp_path / "merged" / "profile.json").read_text())["ranks"]
    dag = json.loads((tmp_path / "merged" / "dag.json").read_text())
    job = rpl_cli("ranks", two_ranks, "-o", tmp_path / "job", "--json").assert_ok().json()["job"]
    for field in ("node", "process", "agent", "launches", "kernel_ns", "makespan_ns", "wait_ns"):
        assert [rank[field] for rank in job["by_rank"]] == [rank[field] for rank in merged["ranks"]]
    assert job["job_ns"] == merged["makespan_ns"]
    assert job["critical_path_ns"] == dag["critical_path_ns"]
    paths = {path["process"]: path["critical_path_ns"] for path in dag["processes"]}
    assert {rank["process"]: rank["critical_path_ns"] for rank in job["by_rank"]} == paths
    assert job["imbalances"] == merged["kernels"]
    assert [c["name"] for c in job["collectives"]] == [c["name"] for c in merged["collectives"]]
    for here, there in zip(job["collectives"], merged["collectives"], strict=True):
        assert here["total_ns"] == sum(share["total_ns"] for share in there["shares"])
        assert here["wait_ns"] == sum(share["wait_ns"] for share in there["shares"])
        assert here["exactness"] == there["exactness"]
    gpus = {gpu["agent"]: gpu for gpu in merged["gpus"]}
    for rank in job["by_rank"]:
        gpu, whole = gpus[rank["agent"]], job["job_ns"]
        assert whole - rank["host_ns"] == gpu["busy_ns"]
        exposed = gpu["communication_ns"] - gpu["overlapped_ns"]
        assert rank["communication_ns"] <= exposed <= rank["communication_ns"] + rank["wait_ns"]
    assert sum(job["shares"].values()) == pytest.approx(1.0)


@pytest.mark.data
def test_a_second_analysis_reads_summaries_only(two_ranks, rpl_cli, tmp_path):
    folder = tmp_path / "recordings"
    shutil.copytree(two_ranks, folder)
    first = rpl_cli("ranks", folder, "-o", tmp_path / "job", "--json").assert_ok()
    assert "2 recordings read, 0 summed up before" in first.stderr
    second = rpl_cli("ranks", folder, "-o", tmp_path / "job", "--json").assert_ok()
    assert "0 recordings read, 2 summed up before" in second.stderr
    os.utime(folder / "rank_0.rpd")  # another time, the same bytes
    assert "0 recordings read" in rpl_cli("ranks", folder, "-o", tmp_path / "job").assert_ok().stderr
    shutil.rmtree(folder)
    third = rpl_cli("ranks", tmp_path / "job", "--json").assert_ok()
    assert first.stdout == second.stdout == third.stdout


# By hand.


def test_one_clock_is_today_s_report():
    traces = [
        _trace(4, _steps((30, 20, 60), (100, 30, 125))),
        _trace(5, _steps((50, 40, 61), (90, 20, 126))),
    ]
    today, job = rank_report(merge_traces(traces), 0, RULES), _answer(*traces)
    assert [rank.wait_ns for rank in job.by_rank] == [rank.wait_ns for rank in today.ranks] == [20, 10]
    assert [rank.last for rank in job.by_rank] == [rank.last_arrivals for rank in today.ranks] == [1, 1]
    assert [rank.late_ns for rank in job.by_rank] == [10, 20]
    assert (job.job_ns, job.imbalances) == (today.makespan_ns, today.kernels)
    # By intervals: computing 50 and 60 of 116 each; nothing but collectives 55 and 47.
    assert [rank.computing_ns for rank in job.by_rank] == [50, 60]
    assert [rank.host_ns for rank in job.by_rank] == [116 - 50 - 55, 116 - 60 - 47]
    assert [rank.communication_ns for rank in job.by_rank] == [55 - 20, 47 - 10]


def test_who_is_late_by_kernels_and_who_by_the_host():
    # Collectives end at 100 and 200. Usual: 50 of kernels right before. Rank 2: 80 of kernels. Rank 3: begins
    # at 190 after 50 of kernels, and 40 of nothing.
    usual = [(50, 50, 100), (150, 50, 200)]
    traces = [_trace(n, _steps(*usual)) for n in (0, 1, 4)]
    traces.append(_trace(2, _steps((80, 80, 100), (150, 50, 200))))
    traces.append(_trace(3, _steps((50, 50, 100), (190, 50, 200))))
    job = _answer(*traces)
    assert [(r.last, r.last_by_kernel, r.last_by_host) for r in job.by_rank] == [
        (0, 0, 0),
        (0, 0, 0),
        (1, 1, 0),
        (1, 0, 1),
        (0, 0, 0),
    ]
    assert [r.late_ns for r in job.by_rank] == [0, 0, 30, 40, 0]
    # Without rank 3's 40 the second step begins at 150, without rank 2's 30 the first at 50.
    assert [one.gain_ns for one in job.what_if] == [40, 70, 70]
    assert (job.what_if[1].job_ns, job.what_if[1].speedup) == (200 - 70, 200 / 130)


def test_two_clocks_are_bounded_by_what_no_rank_can_leave_early():
    # True times; machine b's clock shows 1000 more. a: begins 50, 160; b: 60, 150; all end at 100 and 200.
    a = _trace(1, _steps((50, 10, 100), (160, 10, 200)), "a")
    b = _trace(1, _steps((60, 10, 100), (150, 10, 200), shift=1000), "b")
    job = _job(a, b)
    # What is added to b: at least begin a - end b (160 - 1200 and 50 - 1100), at most end a - begin b.
    assert (job.clocks.least_ns.tolist(), job.clocks.most_ns.tolist()) == ([0, -1040], [0, -960])
    (match,) = job.matches
    waits = find_waits(match, job.node, job.clocks)
    # Under -1000, where the ends coincide, b comes at 60 and 150: a waits 10, b 10.
    assert waits.wait_ns.tolist() == [10, 10]
    # Under -1040 b comes at 20 and 110, under -960 at 100 and 190.
    assert waits.least_ns.tolist() == [0, 0]
    assert waits.most_ns.tolist() == [50 + 30, 30 + 50]
    assert waits.settled.tolist() == [False, False]
    answer = answer_of(job, range(2))
    assert [(r.last, r.last_or_clock) for r in answer.by_rank] == [(0, 1), (0, 1)]
    assert (answer.clock.width_ns, answer.job_ns) == (80, 160)


def test_a_rank_that_is_late_by_less_than_clocks_are_known_is_slow_by_its_own_clock():
    # Two machines of two ranks. Usual: 50 of kernels before 100; the slow one: 60 before 110. All leave at
    # 300: clocks are known to (300 - 110) + (300 - 100), and nobody is last for sure.
    usual = [(1000 * k + 100, 50, 1000 * k + 300) for k in range(12)]
    slow = [(1000 * k + 110, 60, 1000 * k + 300) for k in range(12)]
    answer = _answer(
        _trace(1, _steps(*usual), "a"),
        _trace(2, _steps(*usual), "a"),
        _trace(3, _steps(*slow, shift=-7_000), "b"),
        _trace(4, _steps(*usual, shift=-7_000), "b"),
    )
    assert answer.clock.width_ns == 390
    assert [rank.last for rank in answer.by_rank] == [0, 0, 0, 0]
    assert sum(rank.last_or_clock for rank in answer.by_rank) == 12
    assert [rank.open_longest for rank in answer.by_rank] == [0, 0, 12, 0]
    assert [rank.open_excess_ns for rank in answer.by_rank] == [0, 0, 120, 0]
    # Before the first collective 60 instead of 50, before each other one 810 instead of 800.
    assert [one.gain_ns for one in answer.what_if] == [120, 120, 120]
    told = " ".join(job_text(answer).split())
    assert "r is slow: its kernels took longest before 12 of 12 operations that no clock decides" in told
    assert max(map(len, job_text(answer).splitlines())) <= 100
    page = job_page(answer)
    assert "<th>open longest</th><th>open excess ns</th>" in page
    assert page.count("<td>12</td><td>120</td></tr>") == 1
    assert page.count("<td>0</td><td>0</td></tr>") == 3


@pytest.mark.parametrize("often", [6, 8])
def test_of_ranks_that_take_turns_none_is_called_slow(often):
    # Of two equal ranks one is longest 8 of 12 times by chance more often than not.
    def steps(slow):
        return [(1000 * k + 100 + 10 * s, 50 + 10 * s, 1000 * k + 300) for k, s in enumerate(slow)]

    one = [k < often for k in range(12)]
    first, second = _steps(*steps(one)), _steps(*steps([not s for s in one]), shift=500)
    answer = _answer(_trace(1, first, "a"), _trace(2, second, "b"))
    assert [rank.open_longest for rank in answer.by_rank] == [often, 12 - often]
    assert "is slow" not in job_text(answer)


def test_clocks_without_a_common_collective_tell_nothing_of_each_other():
    job = _answer(_trace(1, [("gemm", 0, 10)], "a"), _trace(1, [("gemm", 0, 10)], "b"))
    assert (job.job_ns, job.shares, job.clock.width_ns) == (None, None, None)
    assert "not bounded" in job.job_reason


def test_operations_of_unknown_meaning_bound_clocks_as_an_assumption():
    rows = [("gemm", 0, 40), ("ncclDevKernel_Generic", 50, 100)]
    job = _answer(_trace(1, rows, "a"), _trace(1, [(n, b + 7, e + 7) for n, b, e in rows], "b"))
    assert job.clock.assumed
    assert job.collectives[0].exactness == "estimate"


def test_launches_that_no_clock_puts_together_are_refused():
    # Each ends before the other begins, in opposite order: no offset helps.
    a = _trace(1, [(ALL, 0, 10), (ALL, 1000, 1010)], "a")
    b = _trace(1, [(ALL, 500, 510), (ALL, 600, 610)], "b")
    job = _answer(a, b)
    assert "drift" in job.job_reason
    assert job.by_rank[0].wait_ns is None


def test_ranks_that_launch_differently_often_are_not_paired():
    job = _answer(_trace(1, _steps((10, 5, 20))), _trace(2, _steps((10, 5, 20), (30, 5, 40))))
    assert "1 to 2 times" in job.collectives[0].wait_reason
    assert job.what_if_reason is not None


def _in_group(trace, group, elements=(1, 2)):
    """The trace with what a library would say of its collectives, in order: communicator and size."""
    names = [trace.kernels[kernel].name for kernel in trace.dispatches.kernel.tolist()]
    numbers = trace.dispatches.correlation_id[[ALL in name or "nccl" in name for name in names]].tolist()
    (process,) = trace.processes
    launches = tuple(
        CollectiveLaunch(process.guid, process.pid, number, "_allreduce_base", group, size)
        for number, size in zip(numbers, elements, strict=True)
    )
    return attrs.evolve(trace, extras={COLLECTIVES: launches})


def test_communicators_are_kept_apart():
    # Two pairs of ranks: one operates while the other has long left, so that no order of all four is right.
    early, late = ((10, 5, 40), (50, 5, 90)), ((500, 5, 540), (550, 5, 590))
    traces = [_trace(n, _steps(*(early if n < 2 else late), shift=0)) for n in range(4)]
    by_order = _answer(*traces)
    assert by_order.collectives[0].matched_by == "launch_order"
    assert "ended before another began" in by_order.collectives[0].wait_reason
    grouped = _answer(*(_in_group(trace, f"tp {n // 2}") for n, trace in enumerate(traces)))
    parts = grouped.collectives
    assert [(c.communicator, c.elements, c.ranks, c.operations) for c in sorted(parts, key=str)] == [
        ("tp 0", 1, 2, 1),
        ("tp 0", 2, 2, 1),
        ("tp 1", 1, 2, 1),
        ("tp 1", 2, 2, 1),
    ]
    assert {c.matched_by for c in parts} == {"communicator"}
    assert [rank.wait_ns for rank in grouped.by_rank] == [0, 0, 0, 0]


def test_a_recorded_operation_tells_what_the_name_of_a_kernel_does_not():
    rows = [("gemm", 0, 40), ("ncclDevKernel_Generic", 50, 100)]
    one, other = _trace(1, rows, "a"), _trace(1, [(n, b + 7, e + 7) for n, b, e in rows], "b")
    job = _answer(_in_group(one, "all", (8,)), _in_group(other, "all", (8,)))
    (part,) = job.collectives
    assert (part.operation, part.exactness, job.clock.assumed) == ("_allreduce_base", "lower_bound", False)


# A job whose truth is known.


@pytest.fixture(scope="module")
def simulated(simulated_job):
    job = simulated_job(24, 1000)
    return job, JobSummary.of(job.summary(rank) for rank in range(job.ranks))


def test_planted_faults_are_found(simulated):
    truth, job = simulated
    answer = answer_of(job, range(24), group_of=lambda _rank, number: str(number % 8))
    ranks = answer.by_rank
    latest = sorted(range(24), key=lambda rank: -ranks[rank].late_ns)[:2]
    assert set(latest) == {truth.slow, truth.slow_host}
    assert ranks[truth.slow].last_by_kernel > 9 * ranks[truth.slow].last_by_host
    assert ranks[truth.slow_host].last_by_host > 9 * ranks[truth.slow_host].last_by_kernel
    outliers = {(one.what, one.of, one.rank, one.kernel) for one in answer.outliers}
    assert ("computing", "rank", truth.slow, "gemm(float*)") in outliers
    assert ("host", "rank", truth.slow_host, None) in outliers
    assert ("computing", "group", str(truth.uneven)) in {(o.what, o.of, o.name) for o in answer.outliers}
    skew = truth.skew_ns - truth.skew_ns[0]
    assert (job.clocks.least_ns <= skew).all()
    assert (skew <= job.clocks.most_ns).all()
    waits = truth.waits_ns.tolist()
    assert all(r.wait_least_ns <= wait <= r.wait_most_ns for r, wait in zip(ranks, waits, strict=True))
    assert abs(answer.job_ns - truth.job_ns) <= answer.clock.width_ns


def test_no_order_and_no_grouping_changes_the_answer(simulated):
    _, job = simulated
    ranks = list(job.ranks)
    asked = answer_of(job, range(24))
    draw = random.Random(33)
    for _ in range(3):
        draw.shuffle(ranks)
        parts = [JobSummary.of(ranks[i : i + 5]) for i in range(0, 24, 5)]
        merged = merge_jobs([merge_jobs(parts[:2]), merge_jobs([*parts[2:], parts[0]])])  # one comes twice
        assert answer_of(merged, range(24)) == asked


@pytest.mark.parametrize("times", [1, 1000])
def test_operations_in_blocks_of_any_size_give_the_same(simulated, monkeypatch, times):
    _, job = simulated
    whole = answer_of(job, range(24))
    monkeypatch.setattr("rpl_analysis.ranks.job._BLOCK_TIMES", times)
    assert answer_of(JobSummary.of(job.ranks), range(24)) == whole


def test_recordings_are_read_as_they_were_simulated(simulated, tmp_path):
    from rpl_core.cli.session import Session

    truth, job = simulated
    readers = Session().host.catalog.readers().contributions
    for rank in (0, 13):
        recording = load_recording([truth.write_recording(tmp_path, rank)], readers)
        (read,) = summarise(recording.timing_runs[0], "", RULES)
        expected = next(one for one in job.ranks if one.identity.process == 1000 + rank)
        assert read.kernels.names == expected.kernels.names
        for part in ("kernels", "operations"):
            for field in attrs.fields(type(getattr(read, part))):
                one, other = (getattr(getattr(side, part), field.name) for side in (read, expected))
                assert np.array_equal(one, other), field.name
        for field in ("computing_ns", "communicating_ns", "busy_ns", "begin_ns", "end_ns", "hostname"):
            assert getattr(read, field) == getattr(expected, field), field
        assert read.critical_path_ns == expected.critical_path_ns


@pytest.fixture(scope="module")
def recordings(simulated, tmp_path_factory):
    truth, _ = simulated
    folder = tmp_path_factory.mktemp("job")
    for rank in range(8):
        truth.write_recording(folder, rank)
    return folder


def test_one_process_two_and_shuffled_files_give_the_same(recordings, rpl_cli, tmp_path):
    words = ("--json", "--group-by", "host")
    one = rpl_cli("ranks", recordings, "-o", tmp_path / "one", "--jobs", "1", *words).assert_ok()
    two = rpl_cli("ranks", recordings, "-o", tmp_path / "two", "--jobs", "2", *words).assert_ok()
    files = sorted(recordings.iterdir())
    random.Random(1).shuffle(files)
    shuffled = rpl_cli("ranks", *files, "-o", tmp_path / "files", *words).assert_ok()
    assert one.stdout == two.stdout == shuffled.stdout
    assert one.json()["job"]["groups"][0]["ranks"] == 8
    text = rpl_cli("ranks", tmp_path / "one").assert_ok().stdout
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 100
    page = (tmp_path / "one" / "ranks.html").read_text()
    assert "data:image/png;base64," in page
    assert "<script" not in page


def test_a_damaged_rank_costs_itself_and_a_missing_one_is_named(recordings, rpl_cli, tmp_path):
    folder = tmp_path / "recordings"
    shutil.copytree(recordings, folder)
    (folder / "rank_00003.db").unlink()
    damaged = folder / "rank_00005.db"
    damaged.write_bytes(damaged.read_bytes()[: 5 * 4096])
    (folder / "rank_00006.db").write_bytes(b"")
    first = rpl_cli("ranks", folder, "-o", tmp_path / "out", "--json").assert_ok()
    job = first.json()["job"]
    assert job["ranks"] == 5
    missing = {one["recording"]: one["reason"] for one in job["missing"]}
    assert set(missing) == {"number 3", "rank_00005.db", "rank_00006.db"}
    assert [rank["number"] for rank in job["by_rank"]] == [0, 1, 2, 4, 7]
    again = rpl_cli("ranks", folder, "-o", tmp_path / "out", "--json").assert_ok()
    assert again.stdout == first.stdout
    assert "0 recordings read" in again.stderr
    assert "number 3" in again.stderr
    named = rpl_cli("ranks", *folder.iterdir(), "-o", tmp_path / "two", "--jobs", "2", "--json").assert_ok()
    assert named.stdout == first.stdout


def test_a_rank_that_lies_there_twice_counts_once(recordings, rpl_cli, tmp_path):
    folder = tmp_path / "recordings"
    shutil.copytree(recordings, folder)
    once = rpl_cli("ranks", folder, "-o", tmp_path / "out", "--json").assert_ok().json()["job"]
    shutil.copy(folder / "rank_00002.db", folder / "rank_00008.db")
    for read in ("1 recording read, 8 summed up", "0 recordings read, 9 summed up"):
        twice = rpl_cli("ranks", folder, "-o", tmp_path / "out", "--json").assert_ok()
        assert read in twice.stderr
        assert "rank_00008.db is missing: it repeats rank_00002.db" in twice.stderr
        job = twice.json()["job"]
        assert {**job, "missing": []} == once


def test_a_folder_of_something_else_is_refused(recordings, rpl_cli, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    rpl_cli("ranks", recordings, "-o", tmp_path).assert_exit(64)
    rpl_cli("ranks", recordings, "--group-by", "colour").assert_exit(64)
    rpl_cli("ranks", recordings, "--cluster", "tcp://127.0.0.1:1").assert_exit(64)
    rpl_cli("ranks", tmp_path / "nowhere").assert_exit(69)


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["a/rank_3.db", "a/rank_1.db"], [3, 1]),
        (["rank_1_of_8_pid_4711.db", "rank_2_of_8_pid_9.db"], [1, 2]),
        (["host0/12_results.db", "host1/12_results.db"], [0, 1]),
        (["one.db", "two.db"], []),
        (["rank_1.db", "rank.db"], []),
    ],
)
def test_numbers_of_ranks_are_where_names_differ(names, numbers):
    assert numbers_in(names) == numbers


# Files of summaries.


@pytest.fixture
def saved(simulated):
    _, job = simulated
    return SavedSummary((RecordedFile("/r.db", 10, 20, "ab"),), job.ranks[:2])


def test_a_summary_survives_its_file(saved, tmp_path):
    save_summary(tmp_path / "s.npz", saved)
    again = load_summary(tmp_path / "s.npz")
    save_summary(tmp_path / "again.npz", again)
    assert (tmp_path / "s.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    assert again.files == saved.files
    one, other = (answer_of(JobSummary.of(side.ranks), range(2)) for side in (saved, again))
    assert one == other


def test_a_changed_recording_rejects_its_summary(tmp_path):
    path = tmp_path / "r.db"
    path.write_bytes(b"0123456789")
    status = path.stat()
    digest = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
    kept = SavedSummary((RecordedFile(str(path), 10, status.st_mtime_ns, digest),), ())
    assert is_of(kept, [path])
    os.utime(path, ns=(1, 1))
    assert is_of(kept, [path])
    path.write_bytes(b"012345678X")
    assert not is_of(kept, [path])
    path.write_bytes(b"01234567890")
    assert not is_of(kept, [path])


def _rewritten(path, change):
    """The npz with its parts changed by ``change(about, columns)``."""
    with np.load(path) as parts:
        about, columns = json.loads(parts["about"].tobytes()), parts["columns"].copy()
    columns = change(about, columns)
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(path, about=text, columns=columns)


def _kept(columns, about, change):
    change(about)
    return columns


@pytest.mark.parametrize(
    "change",
    [
        lambda a, c: _kept(c, a, lambda a: a.update(version=99)),
        lambda a, c: _kept(c, a, lambda a: a["ranks"][0]["sizes"].__setitem__(0, -1)),
        lambda a, c: _kept(c, a, lambda a: a["ranks"][0]["sizes"].__setitem__(0, 10**12)),
        lambda a, c: _kept(c, a, lambda a: a["ranks"][0]["kernels"].reverse()),
        lambda a, c: _kept(c, a, lambda a: a["ranks"][0].update(busy_ns="many")),
        lambda a, c: _kept(c, a, lambda a: a.update(ranks=7)),
        lambda a, c: c[:-1],
        lambda a, c: c + 10**9,
        lambda a, c: c.astype(np.float64),
        lambda a, c: np.array([{}], dtype=object),
    ],
)
def test_a_summary_that_says_something_impossible_is_refused(saved, tmp_path, change):
    path = tmp_path / "s.npz"
    save_summary(path, saved)
    _rewritten(path, change)
    with pytest.raises(BadDataError):
        load_summary(path)


def test_a_summary_that_unpacks_to_more_than_it_is_is_refused(tmp_path):
    stream = io.BytesIO()
    np.savez_compressed(stream, about=np.zeros(10**6, np.uint8), columns=np.zeros(10**6, np.int64))
    (tmp_path / "s.npz").write_bytes(stream.getvalue())
    with pytest.raises(BadDataError, match="compressed"):
        load_summary(tmp_path / "s.npz")
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("about.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'shape': (10**15,)}")
    with pytest.raises(BadDataError):
        load_summary(tmp_path / "t.npz")
    for content in (b"", b"PK\x03\x04", b"x" * 1000):
        (tmp_path / "u.npz").write_bytes(content)
        with pytest.raises(BadDataError):
            load_summary(tmp_path / "u.npz")


def test_work_beside_a_collective_is_no_waiting():
    # A kernel runs beside rank 0's collective from 10 to 30, which comes at 0, rank 1 at 20: what is exposed
    # are 0 to 10 and 30 to 40.
    rows = [TracedDispatch(ALL, 0, 40), TracedDispatch("gemm", 10, 30, stream=1, queue=2)]
    job = _answer(_trace(0, rows), _trace(1, [(ALL, 20, 40)]))
    first = job.by_rank[0]
    assert (first.wait_ns, first.computing_ns) == (20, 20)
    assert first.communication_ns == 20 - 20
