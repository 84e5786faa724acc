"""The limit on memory holds for the sum over all processes of a command, and none of them is left."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from rpl_core.errors import ExitCode, MemoryLimitError
from rpl_core.process import ProcessRequest, run_command, supervision

#: Starts as many of itself as it is told, one behind the other, each with 40 MiB of its own.
CHAIN = """
import os, subprocess, sys, time
left, new_session = int(sys.argv[1]), sys.argv[2] == "new"
held = bytearray(40 << 20)
held[::4096] = b"x" * (len(held) // 4096)
print(os.getpid(), flush=True)
if left:
    again = [sys.executable, "-c", sys.argv[3], str(left - 1), *sys.argv[2:]]
    subprocess.run(again, start_new_session=new_session)
elif sys.argv[4] == "stay":
    time.sleep(600)
"""


def chain(processes: int, sessions: str, then: str) -> tuple[str, ...]:
    return (sys.executable, "-c", CHAIN, str(processes - 1), sessions, CHAIN, then)


@pytest.mark.parametrize("sessions", ["same", "new"])
def test_all_together_may_not_hold_more(processes, sessions):
    """Each of the four holds 40 MiB and its interpreter, which is allowed; all of that is not."""
    lines: list[str] = []
    request = ProcessRequest(chain(4, sessions, "stay"), memory_limit_bytes=160 << 20, what="the build")
    with pytest.raises(
        MemoryLimitError, match=r"the build and its processes held more than 0\.156 GiB"
    ) as raised:
        run_command(request, lines.append)
    assert raised.value.exit_code == ExitCode.TIME_LIMIT
    assert len(lines) >= 3
    processes.assert_gone(list(map(int, lines)))


def test_what_stays_below_ends_by_itself(processes):
    lines: list[str] = []
    request = ProcessRequest(chain(2, "new", "end"), memory_limit_bytes=1 << 30)
    assert run_command(request, lines.append).succeeded
    processes.assert_gone(list(map(int, lines)))


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A tree that looks like cgroup v2 with rpl in ``user/own``, and what each group held when it went."""
    own = tmp_path / "tree" / "user" / "own"
    own.mkdir(parents=True)
    (own / "cgroup.subtree_control").write_text("")
    (own.parent / "cgroup.subtree_control").write_text("cpu memory pids\n")
    process = tmp_path / "proc" / "self"
    process.mkdir(parents=True)
    (process / "mountinfo").write_text(f"30 23 0:26 / {tmp_path}/tree rw - cgroup2 cgroup2 rw\n")
    (process / "cgroup").write_text("1:name=other:/\n0::/user/own\n")
    around = supervision._groups_around
    removed: list[dict[str, str]] = []

    def groups_around():
        with monkeypatch.context() as patch:
            patch.setattr(supervision, "_PROC", tmp_path / "proc")
            return around()

    def rmdir(folder):
        assert folder.parent == own.parent
        removed.append({path.name: path.read_text().strip() for path in folder.iterdir()})
        shutil.rmtree(folder)

    monkeypatch.setattr(supervision, "_groups_around", groups_around)
    monkeypatch.setattr(Path, "rmdir", rmdir)
    return own.parent, removed


def test_where_groups_may_be_made_the_kernel_holds_it(groups):
    """The command enters before it starts, and the group goes with it."""
    parent, removed = groups
    lines: list[str] = []
    request = ProcessRequest(("sh", "-c", "echo $0 $1", "a", "b c"), memory_limit_bytes=1 << 30)
    assert run_command(request, lines.append).succeeded
    assert lines == ["a b c"]
    limits = {"memory.max": f"{1 << 30}", "memory.oom.group": "1", "memory.swap.max": "0"}
    assert removed == [{**limits, "cgroup.procs": "0"}]
    assert sorted(path.name for path in parent.iterdir()) == ["cgroup.subtree_control", "own"]
    killed = f"cd {parent}/rpl-* && echo 'oom_kill 3' > memory.events; kill -9 $$"
    with pytest.raises(MemoryLimitError, match="the build and its processes held more than 1 GiB"):
        run_command(ProcessRequest(("bash", "-c", killed), memory_limit_bytes=1 << 30, what="the build"))


@pytest.mark.parametrize("refused", ["memory", "folder", "limit"])
def test_where_none_may_be_made_memory_is_watched(groups, monkeypatch, processes, refused):
    parent, removed = groups
    if refused == "memory":
        (parent / "cgroup.subtree_control").write_text("cpu\n")
    elif refused == "folder":
        shutil.rmtree(parent)
    else:
        monkeypatch.setattr(Path, "write_text", lambda _path, _text: (_ for _ in ()).throw(PermissionError()))
    lines: list[str] = []
    with pytest.raises(MemoryLimitError):
        run_command(ProcessRequest(chain(2, "new", "stay"), memory_limit_bytes=60 << 20), lines.append)
    processes.assert_gone(list(map(int, lines)))
    assert removed == ([{}] if refused == "limit" else [])


def test_the_kernel_ends_all_of_a_real_group(processes, monkeypatch):
    with supervision.memory_group(1 << 30) as group:
        if group is None:
            pytest.skip("no writable cgroup v2 that hands memory limits down: few machines delegate one")
    monkeypatch.setattr(supervision, "memory_of", lambda _pids: 0)  # nobody but the kernel looks
    lines: list[str] = []
    with pytest.raises(MemoryLimitError):
        run_command(ProcessRequest(chain(4, "new", "stay"), memory_limit_bytes=100 << 20), lines.append)
    processes.assert_gone(list(map(int, lines)))
