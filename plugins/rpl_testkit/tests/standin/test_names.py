"""Output names: keys, defaults, and who overwrites whom."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rpl_testkit.rocprofv3_standin.result_files import NameKeys, expand_name, output_file

KEYS = NameKeys.of_process(
    42, (7, 8, 9), ["./bin/my app", "-n", "5"], {"JOBNAME": "nightly", "SLURM_PROCID": "3"}, "2026-01-02 x"
)
HOST = socket.gethostname()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("run_%pid%", "run_42"),
        ("%hostname%/%pid%", f"{HOST}/42"),
        ("%p-%h", f"42-{HOST}"),
        ("{pid}_{ppid}_{pgid}_{psid}", "42_7_8_9"),
        ("%env{JOBNAME}%/$ENV{JOBNAME}/%q{JOBNAME}", "nightly/nightly/nightly"),
        ("%env{ABSENT}%x", "x"),
        ("%rank%-%r-%nid%", "3-3-3"),
        ("%arg1%%arg2%", "-n5"),
        ("%arg0%", "bin_my app"),
        ("%tag%", "my app"),
        ("%launch_date%", "2026-01-02"),
        ("100%", "100%"),
        ("%unknown%", "%unknown%"),
    ],
)
def test_keys_expand(pattern: str, expected: str) -> None:
    assert expand_name(pattern, KEYS) == expected


def test_default_name_is_host_and_process() -> None:
    assert output_file("d", None, "results.db", KEYS) == Path("d") / HOST / "42_results.db"


def test_directory_is_expanded_too() -> None:
    assert output_file("d_%pid%", "n", "results.db", KEYS) == Path("d_42/n_results.db")


def test_existing_result_is_replaced(profiler, results) -> None:
    old = profiler.directory / "out" / "x_results.db"
    old.parent.mkdir()
    old.write_text("not a database")
    profiler("--kernel-trace", "-d", "out", "-o", "x", "--", "true")
    with closing(sqlite3.connect(f"file:{old}?mode=ro", uri=True)) as connection:
        assert connection.execute("SELECT count(*) > 0 FROM kernels").fetchone() == (1,)


def test_pid_in_the_name_is_the_one_the_application_sees(profiler, results) -> None:
    done = profiler("--kernel-trace", "-d", "out", "-o", "run_%pid%", "--", "sh", "-c", "echo $$")
    (found,) = results("*_results.db")
    assert found.name == f"run_{done.stdout.strip()}_results.db"


def test_children_write_databases_of_their_own_on_their_own_gpu(profiler, results, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"children": 2}')
    profiler("--kernel-trace", "-d", "out", "--", "true", RPL_STANDIN_SCENARIO=str(tmp_path / "s.json"))
    found = results("*_results.db")
    assert len(found) == 3
    agents = set()
    for path in found:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            agents |= set(connection.execute("SELECT DISTINCT agent_abs_index FROM kernels"))
    assert agents == {(2,), (3,), (4,)}


def test_fixed_name_makes_children_overwrite_each_other(profiler, results, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"children": 2}')
    scenario = str(tmp_path / "s.json")
    profiler("--kernel-trace", "-d", "out", "-o", "x", "--", "true", RPL_STANDIN_SCENARIO=scenario)
    assert len(results("*_results.db")) == 1
