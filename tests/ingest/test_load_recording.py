"""Files, folders and run directories become one recording: what is a run, a process, a counter pass."""

from __future__ import annotations

import hashlib
import json

import attrs
import pytest

from rpl_core.errors import BadDataError, PluginError
from rpl_core.ingest import load_recording
from rpl_core.interfaces.collector import PassOutcome, PlannedPass
from rpl_core.model.trace import TraceRole
from rpl_core.run_directory import RunDirectory


@pytest.fixture
def readers(suffix_reader):
    return [suffix_reader("a", ".x")]


@pytest.fixture
def write(tmp_path):
    """``write("a.x", 5)``: a file of five bytes, which the reader takes for a dispatch of 5 ns."""

    def make(name, size):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"." * size)
        return path

    return make


def planned(name, role):
    return PlannedPass(name, role, f"passes/{name}", ("profiler",))


@pytest.fixture
def run_directory(tmp_path):
    """``run_directory({"run_1": {"a.x": 5}, "run_2": None})``: a run; ``None`` stands for a failed pass."""

    def make(passes, *, options=None, reason=None):
        plans = {
            name: planned(name, TraceRole.COUNTERS if name.startswith("pass") else TraceRole.TIMING)
            for name in passes
        }
        run = RunDirectory.create(
            tmp_path / "run",
            command=("./app",),
            collector="test",
            device=None,
            device_source=None,
            options=options or {},
            plan=plans.values(),
            plugins=(),
        )
        for name, files in passes.items():
            if files is None:
                run.pass_failed(name, f"{name} broke")
                continue
            folder = run.path / "passes" / name
            folder.mkdir(parents=True)
            for file, size in files.items():
                (folder / file).write_bytes(b"." * size)
            paths = tuple(f"passes/{name}/{file}" for file in files)
            run.pass_succeeded(PassOutcome(plans[name], 0, 1.0, files=paths))
        run.finish(reason)
        return run.path

    return make


def durations(recording):
    return [trace.dispatches.duration_ns().tolist() for trace in recording.timing_runs]


def test_sets_that_the_readers_keep_apart_are_repeated_runs(readers, write):
    recording = load_recording([write("1.x", 3), write("2.x", 5)], readers)
    assert durations(recording) == [[3], [5]]


def test_each_is_a_run_makes_them_repetitions(readers, write):
    recording = load_recording([write("1.x", 3), write("2.x", 5)], readers, each_is_a_run=True)
    assert durations(recording) == [[3], [5]]


def test_same_file_named_twice_counts_once(readers, write):
    path = write("1.x", 3)
    assert durations(load_recording([path, path, path.parent], readers)) == [[3]]


def test_counter_recordings_are_no_runs(readers, write):
    recording = load_recording([write("1.x", 3), write("2.pmc.x", 5)], readers)
    assert durations(recording) == [[3]]
    assert len(recording.counter_passes) == 1


def test_where_nobody_else_reads_a_file_the_fault_of_its_reader_is_the_message(
    broken_reader, suffix_reader, write
):
    path = write("a.x", 5)
    with pytest.raises(PluginError, match="plugin-broken"):
        load_recording([path], [broken_reader("read"), suffix_reader("b", ".y")])
    assert durations(load_recording([path], [broken_reader("read"), suffix_reader("a", ".x")])) == [[5]]


def test_every_file_is_hashed(readers, write):
    path = write("1.x", 3)
    (trace,) = load_recording([path], readers).traces
    assert trace.source.sha256 == (hashlib.sha256(b"...").hexdigest(),)


@pytest.mark.parametrize(("trusted", "hashed"), [(False, hashlib.sha256(b"...").hexdigest()), (True, "own")])
def test_only_readers_of_this_project_are_believed_a_hash(suffix_reader, write, trusted, hashed):
    offered = suffix_reader("a", ".x", sha256=("own",))
    reader = attrs.evolve(offered, trusted=trusted)
    (trace,) = load_recording([write("1.x", 3)], [reader]).traces
    assert trace.source.sha256 == (hashed,)


def test_two_files_of_equal_content_keep_a_hash_each(readers, run_directory):
    (trace,) = load_recording([run_directory({"run_1": {"a.x": 3, "b.x": 3}})], readers).traces
    assert len(trace.source.sha256) == len(trace.source.paths) == 2


def test_run_directory_gives_a_run_per_timing_pass(readers, run_directory):
    path = run_directory({"run_1": {"a.x": 3}, "run_2": {"a.x": 4}, "pass_1": {"c.pmc.x": 9}})
    recording = load_recording([path], readers)
    assert durations(recording) == [[3], [4]]
    assert len(recording.counter_passes) == 1
    assert recording.command == ("./app",)
    assert recording.incomplete is None
    assert recording.diagnostics == ()


def test_a_counter_pass_without_counters_is_no_source_of_time(readers, run_directory):
    """Its kernels ran under the profiler's counter collection, whatever it could read of them."""
    recording = load_recording([run_directory({"run_1": {"a.x": 3}, "pass_1": {"c.x": 9}})], readers)
    assert durations(recording) == [[3]]
    assert [trace.role for trace in recording.traces] == [TraceRole.TIMING, TraceRole.COUNTERS]


def test_a_timing_run_with_counters_is_no_source_of_time(readers, run_directory):
    recording = load_recording([run_directory({"run_1": {"a.x": 3}, "run_2": {"c.timed.pmc.x": 9}})], readers)
    assert [trace.role for trace in recording.traces] == [TraceRole.TIMING, TraceRole.COUNTERS]


def test_files_of_one_pass_are_processes(readers, run_directory):
    path = run_directory({"run_1": {"a.x": 3, "b.x": 4}})
    assert [sorted(run) for run in durations(load_recording([path], readers))] == [[3, 4]]


def test_counter_pass_is_never_a_source_of_time(readers, run_directory):
    path = run_directory({"run_1": {"a.x": 3}, "pass_1": {"no_counters.x": 9}})
    recording = load_recording([path], readers)
    assert durations(recording) == [[3]]
    assert recording.traces[1].role is TraceRole.COUNTERS


def test_failed_passes_are_left_out_and_the_run_says_so(readers, run_directory):
    path = run_directory({"run_1": {"a.x": 3}, "run_2": None}, reason="run_2 broke")
    recording = load_recording([path], readers)
    assert durations(recording) == [[3]]
    assert recording.incomplete == "run_2 broke"


def test_run_without_a_finished_pass_is_bad_data(readers, run_directory):
    path = run_directory({"run_1": None}, reason="run_1 broke")
    with pytest.raises(BadDataError, match="holds no finished pass") as caught:
        load_recording([path], readers)
    assert caught.value.cause == "run_1 broke"


def test_vanished_artefact_is_reported(readers, run_directory):
    path = run_directory({"run_1": {"a.x": 3}, "run_2": {"a.x": 4}})
    (path / "passes/run_2/a.x").unlink()
    recording = load_recording([path], readers)
    assert durations(recording) == [[3]]
    (diagnostic,) = recording.diagnostics
    assert diagnostic.code == "run.artefact_missing"
    assert "passes/run_2/a.x" in diagnostic.fact


def test_changed_artefact_is_reported(readers, run_directory):
    path = run_directory({"run_1": {"a.x": 3}})
    (path / "passes/run_1/a.x").write_bytes(b"....")
    (diagnostic,) = load_recording([path], readers).diagnostics
    assert diagnostic.code == "run.artefact_changed"


def test_what_was_found_while_recording_belongs_to_the_recording(readers, run_directory):
    path = run_directory({"run_1": {"a.x": 3}})
    manifest = json.loads((path / "run.json").read_text())
    manifest["diagnostics"] = [{"code": "collect.note", "severity": "info", "fact": "seen", "count": 2}]
    (path / "run.json").write_text(json.dumps(manifest))
    (diagnostic,) = load_recording([path], readers).diagnostics
    assert (diagnostic.code, diagnostic.severity.value, diagnostic.count) == ("collect.note", "info", 2)


def test_reason_for_missing_counters_is_that_of_the_first_failed_pass(readers, run_directory):
    path = run_directory({"run_1": {"a.x": 3}, "pass_1": None, "pass_2": None})
    assert load_recording([path], readers).counters_missing == "counter pass pass_1 failed: pass_1 broke"


def test_counters_that_nobody_asked_for_are_not_missing(readers, run_directory):
    assert load_recording([run_directory({"run_1": {"a.x": 3}})], readers).counters_missing is None


def test_counters_that_a_run_never_reached_are_missing(readers, run_directory):
    path = run_directory({"run_1": {"a.x": 3}}, options={"roofline": True}, reason="interrupted")
    assert load_recording([path], readers).counters_missing == "interrupted"


def test_run_directory_and_files_together_are_separate_runs(readers, run_directory, write):
    path = run_directory({"run_1": {"a.x": 3}})
    assert durations(load_recording([path, write("other.x", 7)], readers)) == [[3], [7]]
