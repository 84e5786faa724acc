"""What a command can reach in the sandbox, with every kind that works on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
from functools import partial
from pathlib import Path

import pytest

from rpl_core.process import ProcessRequest, run_command
from rpl_optimize.running import sandbox
from rpl_optimize.running.sandbox import (
    ApplicationSandbox,
    Reach,
    Sandbox,
    find_sandbox,
    needed_paths,
    refused,
)
from rpl_testkit.requirements import absent


def needs(kind: str | None) -> None:
    """Skip where the machine refuses what the test is about."""
    refusal = None if kind is None else refused(kind)
    if refusal is not None:
        absent(f"{kind}", refusal)


@pytest.fixture(params=["bubblewrap", "namespaces"])
def run(request, tmp_path):
    """Run a shell's words inside, with ``tmp_path/given`` readable and ``tmp_path/own`` writable."""
    needs(request.param)
    for name in ("own", "given", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    own = tmp_path / "own"
    reach = Reach((tmp_path / "given",), (own,), own)

    def inside(text: str) -> subprocess.CompletedProcess[str]:
        command = Sandbox(request.param).wrapped(("sh", "-c", text), own, reach)
        return subprocess.run(command, cwd=own, capture_output=True, text=True, check=False)

    return inside


def test_nothing_but_what_is_named_is_there(run, tmp_path) -> None:
    said = run(
        f"cat file; cat ../given/file; cat {tmp_path}/other/file; cat /etc/passwd; ls /root /home; pwd"
    )
    assert said.stdout == f"owngiven{tmp_path / 'own'}\n"
    assert said.stderr.count("No such file or directory") == 4


def test_it_writes_into_its_own_directory_only(run, tmp_path) -> None:
    again = "mount -o remount,rw /usr; mount -o remount,bind,rw /usr; echo x > /usr/new"
    said = run(f"echo x > ../given/file; echo x > /usr/new; echo changed > file; {again}")
    assert "Read-only file system" in said.stderr
    assert (tmp_path / "given" / "file").read_text() == "given"
    assert (tmp_path / "own" / "file").read_text() == "changed\n"
    assert not Path("/usr/new").exists()


def test_there_is_no_network_and_no_process_of_others(run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = run(
            f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'; ls /proc"
        )
    assert "Error" in said.stderr
    numbers = [int(word) for word in said.stdout.split() if word.isdigit()]
    assert numbers
    assert max(numbers) < 20


def test_memory_and_the_size_of_files_are_limited(run, monkeypatch) -> None:
    monkeypatch.setattr(sandbox, "_LEAST_MEMORY", 300 << 20)
    monkeypatch.setattr(sandbox, "_memory_limit", lambda: 300 << 20)
    monkeypatch.setattr(sandbox, "_MOST_FILE_BYTES", 1 << 20)
    assert run("python3 -c 'bytearray(200 << 20)'").returncode == 0
    assert "MemoryError" in run("python3 -c 'bytearray(400 << 20)'").stderr
    assert run("head -c 2000000 /dev/zero > large").returncode != 0


def test_it_ends_as_the_command_does_and_leaves_nothing(run) -> None:
    assert run("exit 7").returncode == 7
    assert run("kill -9 $$").returncode == 137
    assert run("sleep 1000 & exit 3").returncode == 3


def test_without_one_it_says_why(monkeypatch) -> None:
    found = find_sandbox({"RPL_SANDBOX": "off"})
    assert found.kind is None
    assert "RPL_SANDBOX=off" in found.summary
    monkeypatch.setattr(sandbox, "refused", {"bubblewrap": "not installed", "namespaces": "not allowed"}.get)
    assert find_sandbox({}) == Sandbox(None, "not allowed")
    monkeypatch.setattr(sandbox, "refused", {"bubblewrap": "not installed"}.get)
    assert find_sandbox({}) == Sandbox("namespaces")


def test_what_a_command_and_its_variables_name_is_readable(tmp_path) -> None:
    for name in ("include", "rocm/bin", "home/bin"):
        (tmp_path / name).mkdir(parents=True)
    real = tmp_path / "rocm" / "bin" / "hipcc"
    real.write_text("#!/bin/sh\n")
    real.chmod(0o755)
    (tmp_path / "home" / "bin" / "hipcc").symlink_to(real)
    variables = {
        "PATH": f"{tmp_path}/home/bin:relative",
        "HOME": f"{tmp_path}/home",
        "SECRET_FILE": f"{tmp_path}/secret",
    }
    found = set(needed_paths(("hipcc", f"-I{tmp_path}/include", "-c"), variables))
    assert {tmp_path / "include", tmp_path / "rocm", tmp_path / "home" / "bin"} <= found
    assert tmp_path / "home" not in found
    assert tmp_path not in found


@pytest.mark.parametrize("kind", ["bubblewrap", "namespaces"])
def test_what_a_program_with_a_candidate_can_do(kind, tmp_path, monkeypatch) -> None:
    """It reads what is there, and writes into its run's directory and a copy of where it was started."""
    needs(kind)
    for name in ("home", "work", "copy", "run"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    node = tmp_path / "node"
    node.write_text("")
    monkeypatch.setattr(sandbox, "_DEVICES", (node,))
    seen = ((tmp_path / "work", True, tmp_path / "copy"),)
    inside = ApplicationSandbox(Sandbox(kind), tmp_path / "run", (tmp_path,), seen)
    lines: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server, inside.around(tmp_path / "run"):
        port = server.getsockname()[1]
        connect = f'import socket; socket.create_connection(("127.0.0.1", {port}), 5)'
        text = (
            f"cat file; cat ~/file; echo new > file; echo x > ~/file; echo x > {tmp_path}/run/log; "
            f"echo x > {node}; echo x > /tmp/ours && echo mine; python3 -c '{connect}' 2>&1 | tail -1"
        )
        run_command(ProcessRequest(("sh", "-c", text)), lines.append)
    said = "\n".join(lines)
    assert "copyhome" in said
    assert "Read-only file system" in said
    assert "mine" in lines
    assert "Error" in lines[-1]
    texts = {name: (tmp_path / name / "file").read_text() for name in ("home", "work", "copy")}
    assert texts == {"home": "home", "work": "work", "copy": "new\n"}
    assert (tmp_path / "run" / "log").read_text() == node.read_text() == "x\n"
    assert not Path("/tmp/ours").exists()


_KEYS = (
    "MY_KEY",
    "OPENAI_API_KEY",
    "HF_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "CLIENT_SECRET",
    "my_token",
    "DB_PASSWORD",
)


@pytest.mark.parametrize("kind", ["bubblewrap", "namespaces", None])
@pytest.mark.parametrize("kept", ["nothing", "by variable", "by setting"])
def test_the_run_of_a_candidate_gets_no_keys_but_those_that_are_kept(
    tmp_path, monkeypatch, kind, kept
) -> None:
    needs(kind)
    for name in (*_KEYS, "KEYBOARD", "TOKENS", "PLAIN"):
        monkeypatch.setenv(name, "told")
    if kept == "by variable":
        monkeypatch.setenv("RPL_KEEP_VARIABLES", "HF_TOKEN, CLIENT_SECRET")
    names = ("HF_TOKEN", "CLIENT_SECRET") if kept == "by setting" else ()
    lines: list[str] = []
    (tmp_path / "run").mkdir()
    inside = ApplicationSandbox(Sandbox(kind), tmp_path / "run")
    for environment in (None, dict(os.environ)):
        lines.clear()
        with sandbox.keeping(names), inside.around(tmp_path / "run"):
            run_command(ProcessRequest(("env",), environment=environment), lines.append)
        seen = {line.partition("=")[0] for line in lines if line.endswith("=told")}
        expected = set() if kept == "nothing" else {"HF_TOKEN", "CLIENT_SECRET"}
        assert seen == {"KEYBOARD", "TOKENS", "PLAIN", *expected}


def test_whatever_reads_a_candidate_gets_no_keys_and_shares_one_limit(tmp_path, monkeypatch) -> None:
    """The compiler of a bomb starts others: together they are held to what one may have."""
    from rpl_core.errors import MemoryLimitError
    from rpl_optimize.running import sandbox

    for name in (*_KEYS, "PLAIN"):
        monkeypatch.setenv(name, "told")
    lines: list[str] = []
    reach = Reach((), (tmp_path,), tmp_path)
    run = partial(sandbox.run_confined, place=tmp_path, reach=reach, environment=os.environ, time_limit_s=60)
    run(("env",), sink=lines.append)
    assert [line for line in lines if line.endswith("=told")] == ["PLAIN=told"]
    monkeypatch.setattr(sandbox, "_memory_limit", lambda: 100 << 20)
    bomb = "python3 -c 'import time; x = bytearray(b\"x\") * (40 << 20); time.sleep(60)' & "
    with pytest.raises(MemoryLimitError, match=r"the compiler and its processes held more than 0\.0977 GiB"):
        run(("sh", "-c", f"{bomb * 4} wait"))


def test_the_limit_is_half_of_the_memory_and_at_least_4_gib(monkeypatch) -> None:
    for pages, expected in ((1 << 20, 4 << 30), (1 << 23, 16 << 30)):
        answers = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": pages}
        monkeypatch.setattr(os, "sysconf", answers.__getitem__)
        assert sandbox._memory_limit() == expected
        monkeypatch.undo()


def test_runs_of_programs_may_be_left_out_of_it() -> None:
    found = sandbox.find_application_sandbox({"RPL_SANDBOX": "builds"})
    assert ApplicationSandbox(found).summary == "no sandbox (RPL_SANDBOX=builds)"
