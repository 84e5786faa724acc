"""The profiler that is kept ready does what the usual one does, and nothing of it stays behind."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from rpl_testkit.requirements import require
from rpl_testkit.rocprofv3_standin.ready import ready_standin

pytestmark = pytest.mark.clang


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    with ready_standin(tmp_path_factory.mktemp("programs"), require("clang-22")) as program:
        yield program


def run(program: Path, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **environment}
    return subprocess.run(
        [program, *arguments], cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )


def contents(path: Path) -> list[tuple]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        kernels = connection.execute("SELECT name, start, end FROM kernels ORDER BY start").fetchall()
        return kernels + connection.execute("SELECT name, start, end FROM regions ORDER BY start").fetchall()


def test_it_records_what_the_usual_one_records(ready, tmp_path: Path) -> None:
    options = ("--kernel-trace", "--hip-runtime-trace", "-f", "rocpd", "-d", "o", "-o", "x")
    found = []
    for name, program in (("ready", ready), ("usual", ready.parent / "usual" / "rocprofv3")):
        folder = tmp_path / name
        folder.mkdir()
        done = run(program, *options, "--", "sh", "-c", "echo $A; pwd; cat; exit 3", cwd=folder, A="1 2")
        assert done.returncode == 3
        assert done.stdout == f"1 2\n{folder}\n"
        found.append(contents(folder / "o" / "x_results.db"))
    assert found[0] == found[1]
    assert len(found[0]) > 100


def test_a_wrong_command_line_is_2(ready, tmp_path: Path) -> None:
    done = run(ready, "--nonsense", cwd=tmp_path)
    assert done.returncode == 2
    assert "unrecognized arguments: --nonsense" in done.stderr


def test_death_by_a_signal_is_seen(ready, tmp_path: Path) -> None:
    done = run(ready, "--kernel-trace", "--", "sh", "-c", "kill -SEGV $$", cwd=tmp_path)
    assert done.returncode == -signal.SIGSEGV


def started(program: Path, cwd: Path) -> tuple[subprocess.Popen[str], int]:
    """A profiled application that sleeps, with its process id."""
    command = [program, "--kernel-trace", "--", "sh", "-c", "echo $$; exec sleep 60"]
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process, int(process.stdout.readline())


def is_running(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_reaches_the_application(ready, tmp_path: Path, number: signal.Signals) -> None:
    process, application = started(ready, tmp_path)
    assert is_running(application)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == -number
    assert gone(application)


OWNER = """
import sys
from pathlib import Path
from rpl_testkit.rocprofv3_standin.ready import ready_standin
with ready_standin(Path(sys.argv[1]), Path(sys.argv[2])) as program:
    print(program, flush=True)
    sys.stdin.readline()
"""


def test_it_ends_with_its_owner_and_the_usual_one_takes_over(tmp_path: Path) -> None:
    words = [sys.executable, "-c", OWNER, str(tmp_path / "bin"), str(require("clang-22"))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        program = Path(owner.stdout.readline().strip())
        (server,) = map(int, Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text().split())
        owner.kill()
    assert gone(server)
    assert run(program, "--version", cwd=tmp_path).returncode == 0
