"""The collector by CUPTI: a stand-in for libcupti gives records; the recorder and the reader are real."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from nsight_writer import program

from rpl_core.errors import BadDataError, MissingError
from rpl_core.interfaces.collector import CollectRequest
from rpl_core.interfaces.reader import InputSet
from rpl_core.process import ApplicationExitError
from rpl_sm90.activity import MAGIC, ActivityFile
from rpl_sm90.collector import CuptiCollector, find_cuda
from rpl_sm90.reader import CuptiReader, NsightReader
from rpl_testkit.contracts import assert_reader

SOURCE = Path(__file__).with_name("fake_cupti.cpp")
_FIELDS = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "runtime start end correlationId nameId",
    "CUPTI_ACTIVITY_KIND_KERNEL": "kernel start end contextId streamId correlationId gridX blockX"
    " staticSharedMemory dynamicSharedMemory registersPerThread demangledName",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "copy start end contextId streamId correlationId bytes copyKind",
    "CUPTI_ACTIVITY_KIND_MEMSET": "fill start end contextId streamId correlationId bytes",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "synchronization start end contextId streamId correlationId"
    " eventId syncType",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "event contextId streamId correlationId eventId",
    "TARGET_INFO_CUDA_STREAM": "stream contextId streamId flag",
    "TARGET_INFO_CUDA_CONTEXT_INFO": "context contextId nullStreamId",
}
_MANGLED = {"saxpy(float*)": "_Z5saxpyPf", "gemm(half*)": "_Z4gemmP4half", "tail(float*)": "_Z4tailPf"}


def lines(session):
    """The records of an Nsight session as CUPTI gives them: the driver's calls inside of the runtime's."""
    texts = {number: _MANGLED.get(text, text) for text, number in session.strings.items()}
    found = [f"device {session.rows['TARGET_INFO_GPU'][0]['name']}"]
    for table, fields in _FIELDS.items():
        word, *names = fields.split()
        for row in session.rows[table]:
            values = [texts[row[n]] if n in ("nameId", "demangledName") else row[n] for n in names]
            found.append(" ".join(map(str, (word, *values))))
    calls = session.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]
    inner = (f"driver {row['start'] + 1} {row['end'] - 1} {row['correlationId']} cuInner" for row in calls)
    return [*found, *inner]


@pytest.fixture(scope="session")
def fakes(tmp_path_factory):
    """A program that uses "CUDA", and the library that records are taken from."""
    try:
        cuda = find_cuda()
    except MissingError as error:
        if os.environ.get("CI") == "true" and "cuda" not in os.environ.get("RPL_ALLOW_SKIP", ""):
            raise
        pytest.skip(error.fact)
    folder = tmp_path_factory.mktemp("cuda")
    words = ["g++", "-std=c++17", "-Wall", "-Wextra", *(f"-I{place}" for place in cuda.include), str(SOURCE)]
    subprocess.run([*words, "-shared", "-fPIC", "-o", folder / "libcupti.so.13"], check=True)
    subprocess.run([*words, "-DFAKE_PROGRAM", "-o", folder / "app", "-ldl"], check=True)
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def record(fakes, cache, tmp_path, monkeypatch):
    """Record what ``session`` says and give the trace and the folder of the run."""
    records = tmp_path / "records"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("FAKE_CUPTI_RECORDS", str(records))
    cuda = find_cuda()
    monkeypatch.setattr(
        "rpl_sm90.collector.find_cuda", lambda: type(cuda)(cuda.include, fakes / "libcupti.so.13")
    )

    def run(session, *, word="runs", dependencies=True):
        records.write_text("\n".join(lines(session)))
        command = (str(fakes / "app"), word)
        collector = CuptiCollector()
        plan = collector.plan(CollectRequest(command, runs=1, trace_dependencies=dependencies))
        outcome = collector.run(plan.passes[0], tmp_path / "run", lambda line: None)
        return tmp_path / "run" / outcome.files[0]

    return run


def read(path):
    (inputs,) = CuptiReader().claim([path])
    (trace,) = CuptiReader().read(inputs)
    return trace


def same(ours, theirs, names):
    return all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in names)


def test_it_reads_what_nsight_says_of_the_same_program(record, tmp_path):
    session = program()
    session.fill(12_000, 12_100, 12_200)
    export = session.write(tmp_path / "report.sqlite")
    (theirs,) = NsightReader().read(InputSet("nsight-systems", "", (export,)))
    ours = read(record(session))
    assert [kernel.name for kernel in ours.kernels] == [kernel.name for kernel in theirs.kernels]
    assert ours.kernels[0].symbol == "_Z5saxpyPf"
    times = ("begin_ns", "end_ns", "stream")
    assert same(ours.dispatches, theirs.dispatches, (*times, "kernel", "dispatch_id"))
    assert same(ours.copies, theirs.copies, (*times, "size_bytes", "source_agent", "destination_agent"))
    assert same(ours.shapes, theirs.shapes, ("grid", "workgroup", "lds_bytes"))
    assert (ours.api_functions, ours.copy_directions) == (theirs.api_functions, theirs.copy_directions)
    calls = ("begin_ns", "end_ns", "function", "stream_handle", "event_handle", "flags")
    assert same(ours.api_calls, theirs.api_calls, calls)
    assert [attr.product for attr in ours.agents] == ["NVIDIA H100 80GB HBM3"]
    assert ours.agents == tuple(
        type(agent)(**{**_fields(agent), "node": ours.agents[0].node}) for agent in theirs.agents
    )
    assert ours.diagnostics == ()


def _fields(agent):
    import attrs

    return attrs.asdict(agent)


def test_without_calls_only_kernels_are_recorded(record):
    trace = read(record(program(), dependencies=False))
    assert (len(trace.dispatches), len(trace.copies), trace.api_calls) == (3, 0, None)


def test_records_come_in_many_buffers(record, monkeypatch):
    monkeypatch.setenv("FAKE_CUPTI_BUFFER", "1000")
    session = program()
    for i in range(200):
        session.kernel("tail(float*)", 20_000 + 100 * i, 20_010 + 100 * i, 20_050 + 100 * i, stream=13)
    trace = read(record(session))
    assert len(trace.dispatches) == 203
    assert trace.dispatches.duration_ns().sum() == 2_000 + 4_400 + 500 + 200 * 40


def test_what_was_lost_is_said(record, monkeypatch):
    monkeypatch.setenv("FAKE_CUPTI_DROPPED", "12")
    (diagnostic,) = read(record(program())).diagnostics
    assert (diagnostic.code, diagnostic.count) == ("cupti.dropped", 12)


def test_a_file_cut_anywhere_is_read_so_far_or_refused(record, tmp_path):
    whole = record(program()).read_bytes()
    for size in range(len(MAGIC), len(whole), 37):
        path = tmp_path / "cut.rplcupti"
        path.write_bytes(whole[:size])
        try:
            trace = read(path)
        except BadDataError as error:
            assert "no GPU work" in error.fact or "can't be read" in error.fact  # noqa: PT017
        else:
            assert [found.code for found in trace.diagnostics] == ["cupti.unfinished"]


def test_damaged_files_are_refused_by_their_place(record, tmp_path):
    whole = bytearray(record(program()).read_bytes())
    changed = np.random.default_rng(7)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[int(changed.integers(len(MAGIC), len(whole)))] ^= 1 << int(changed.integers(8))
        path = tmp_path / "damaged.rplcupti"
        path.write_bytes(damaged)
        try:
            ActivityFile(path)
            outcomes["read"] += 1
        except BadDataError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 10


def test_an_application_that_dies_or_uses_no_cuda(record):
    with pytest.raises(BadDataError, match="left no recording"):
        record(program(), word="no-cuda")
    path = record(program(), word="dies")
    assert not ActivityFile(path).complete


def test_an_application_that_fails(fakes, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    collector = CuptiCollector()
    (planned,) = collector.plan(CollectRequest(("false",), runs=1)).passes
    with pytest.raises(ApplicationExitError):
        collector.run(planned, tmp_path / "run", lambda line: None)


def test_the_reader_keeps_the_contract(record, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert_reader(CuptiReader(), record(program()), scratch)


def test_profiles_end_to_end(fakes, cache, tmp_path, rpl_cli):
    """By the command line, with an environment that says where CUDA is."""
    cuda = find_cuda()
    home = tmp_path / "cuda"
    (home / "lib64").mkdir(parents=True)
    (home / "include").symlink_to(cuda.include[0])
    (home / "lib64" / "libcupti.so.13").symlink_to(fakes / "libcupti.so.13")
    records = tmp_path / "records"
    records.write_text("\n".join(lines(program())))
    environment = {
        "XDG_CACHE_HOME": str(cache),
        "FAKE_CUPTI_RECORDS": str(records),
        "CUDA_HOME": str(home),
        "RPL_LOAD_PLUGINS": "rpl-core,rpl-codeobject,rpl-analysis,rpl-report,rpl-sm90",
    }
    words = (
        "profile",
        "--collector",
        "cupti",
        "--device",
        "h100",
        "--focus-critical",
        "-o",
        tmp_path / "out",
    )
    rpl_cli(*words, "--", fakes / "app", "runs", env=environment).assert_ok()
    profile = json.loads((tmp_path / "out" / "profile.json").read_text())
    assert profile["stability"]["runs"] == 3
    assert profile["runtime_ms"] == pytest.approx(6_900e-6)
    dag = json.loads((tmp_path / "out" / "dag.json").read_text())
    assert dag["critical_path_ns"] == 8_100
