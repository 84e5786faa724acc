"""Which files make one execution."""

from __future__ import annotations

from pathlib import Path

from rpl_rocprofv3.readers.claims import RecordedFile, execution_groups, repeated_files


def recorded(path, begin=0, end=10, *, node="a/1", hostname=None, pid=None, guids=()):
    pids = frozenset() if pid is None else frozenset({pid})
    return RecordedFile(Path(path), node, hostname, begin, end, frozenset(guids), pids)


def names(groups):
    return [[str(file.path) for file in group] for group in groups]


def test_processes_that_overlap_are_one_execution():
    files = [recorded("run/2", 5, 20), recorded("run/1", 0, 10), recorded("run/3", 18, 30)]
    assert names(execution_groups(files)) == [["run/1", "run/2", "run/3"]]


def test_repeated_runs_stay_apart():
    files = [recorded("run/1", 0, 10), recorded("run/2", 10, 20), recorded("run/3", 25, 30)]
    assert names(execution_groups(files)) == [["run/1"], ["run/2"], ["run/3"]]


def test_times_tell_what_follows_and_not_names():
    files = [recorded("run/a", 100, 200), recorded("run/b", 20, 50)]
    assert names(execution_groups(files)) == [["run/a"], ["run/b"]]


def test_a_short_process_inside_a_long_one_does_not_end_the_group():
    files = [recorded("run/1", 0, 100), recorded("run/2", 10, 20), recorded("run/3", 50, 60)]
    assert names(execution_groups(files)) == [["run/1", "run/2", "run/3"]]


def test_other_folders_are_other_runs():
    assert len(execution_groups([recorded("a/1"), recorded("b/1")])) == 2


def test_hosts_of_the_default_layout_belong_together():
    files = [
        recorded("run/alpha/1", node="alpha/1", hostname="alpha"),
        recorded("run/beta/2", 10**9, 2 * 10**9, node="beta/2", hostname="beta"),
    ]
    assert names(execution_groups(files)) == [["run/alpha/1", "run/beta/2"]]


def test_nodes_with_several_runs_are_not_paired_by_guess():
    files = [
        recorded("run/1", 0, 10, node="alpha/1"),
        recorded("run/2", 20, 30, node="alpha/1"),
        recorded("run/3", 0, 10, node="beta/2"),
    ]
    assert len(execution_groups(files)) == 3


def test_a_pid_that_occurs_twice_means_two_runs():
    files = [recorded("run/1", 0, 10, pid=7), recorded("run/2", 0, 10, pid=7)]
    assert names(execution_groups(files)) == [["run/1"], ["run/2"]]


def test_unknown_lifetimes_stay_alone():
    files = [recorded("run/1", None, None), recorded("run/2", 0, 10), recorded("run/3", None, 5)]
    assert len(execution_groups(files)) == 3


def test_sources_of_a_merged_file_and_copies_are_repetitions():
    files = [
        recorded("a.db", guids=["g1"]),
        recorded("b.db", guids=["g2"]),
        recorded("copy.db", guids=["g3"]),
        recorded("original.db", guids=["g3"]),
        recorded("whole.db", guids=["g1", "g2"]),
    ]
    assert {str(k): str(v) for k, v in repeated_files(files).items()} == {
        "a.db": "whole.db",
        "b.db": "whole.db",
        "original.db": "copy.db",
    }


def test_files_without_guid_never_repeat():
    assert repeated_files([recorded("a"), recorded("b")]) == {}
