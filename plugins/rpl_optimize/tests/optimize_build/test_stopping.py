"""A build that hangs or is interrupted leaves no process behind and nothing changed."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from rpl_core.errors import InterruptedRunError, MissingError, UsageError
from rpl_core.process import supervision
from rpl_optimize.build.builders import BuildFailure

#: A time that nobody else sleeps: process ids inside of a sandbox are other ones.
_SLEEP = f"sleep 300.{os.getpid()}"
#: Says that it runs, then hangs. ``exec`` would make one process of the two.
_HANG = f"sh -c '{_SLEEP} & echo yes > \"$0\".runs; wait' {{output}} {{source}}"
_HANG_PROJECT = f"sh -c '{_SLEEP} & echo yes > app.runs; wait'"


@pytest.fixture(autouse=True)
def short_graces(monkeypatch):
    """The background process of a shell ignores SIGINT, and would be given its full time to end."""
    sequence = ((signal.SIGINT, 0.2), (signal.SIGTERM, 2.0), (signal.SIGKILL, 10.0))
    monkeypatch.setattr(supervision, "STOP_SEQUENCE", sequence)


def has_begun(folder: Path) -> bool:
    return any(path.read_text() for path in folder.rglob("*.runs"))


def sleepers() -> list[Path]:
    """Processes of these tests that are not at their end."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().replace(b"\0", b" ")
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if _SLEEP.encode() in words and state not in "ZX":
            found.append(path)
    return found


def hanging(project, way: str, limit_s: float):
    if way == "build_command":
        return project.builder(build_command=_HANG, time_limit_s=limit_s)
    return project.builder(build_command=_HANG_PROJECT, project=project.root, time_limit_s=limit_s)


@pytest.mark.parametrize("way", ["template", "project"])
def test_the_time_limit_ends_a_build_and_its_children(project, tmp_path, way):
    before = project.hash
    failure = hanging(project, way, 2.0).build(b"", tmp_path / "scratch")
    assert isinstance(failure, BuildFailure)
    assert failure.reason == "the build did not end within 2 s and was stopped"
    assert has_begun(tmp_path / "scratch")
    assert not sleepers()
    assert project.hash == before


@pytest.mark.parametrize("way", ["template", "project"])
def test_an_interrupt_ends_a_build_and_its_children(project, tmp_path, way):
    def interrupt() -> None:
        while not has_begun(tmp_path / "scratch") or not sleepers():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    before = project.hash
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(InterruptedRunError, match="the build was stopped"):
        hanging(project, way, 60).build(b"", tmp_path / "scratch")
    thread.join()
    assert not sleepers()
    assert project.hash == before


def test_nothing_is_built_over_what_is_already_there(project, tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "mine").write_text("")
    with pytest.raises(UsageError, match="is not empty"):
        project.builder(build_command="true {source} {output}").build(b"", tmp_path / "scratch")


def test_the_limit_is_for_all_commands_of_a_build_together(project, tmp_path, rpl_require):
    compiler = tmp_path / "slow"
    compiler.write_text('#!/bin/sh\nsleep 0.4\nfor last; do :; done\n: > "$last"\n')
    compiler.chmod(0o755)
    path = project.write_database(project.root / "compile_commands.json")
    path.write_text(path.read_text().replace("hipcc", str(compiler)))
    failure = project.builder(time_limit_s=0.6).build(b"", tmp_path / "scratch")
    assert isinstance(failure, BuildFailure)
    assert "did not end within 0.6 s" in failure.reason
    assert len(failure.commands) == 2


@pytest.mark.parametrize("way", ["template", "project", "database"])
def test_a_full_disk_ends_in_one_clear_line(project, tmp_path, monkeypatch, way):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    database = project.write_database(tmp_path / "database" / "compile_commands.json")
    database.write_text(database.read_text().replace("hipcc", str(compiler)))
    options = {
        "template": {"build_command": "true {source} {output}"},
        "project": {"build_command": "true"},
        "database": {"compile_database": database},
    }
    builder, before = project.builder(**options[way]), project.hash
    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(MissingError, match="no space left"):
        builder.build(b"", tmp_path / "scratch")
    assert project.hash == before
