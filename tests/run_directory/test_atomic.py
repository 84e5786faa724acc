"""A file holds its old content or its new one, never a part, whatever interrupts the writing."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys

import pytest

from rpl_core.files.atomic import write_atomic
from rpl_core.files.digest import sha256_of


def test_content_replaces_the_old_one(tmp_path):
    path = tmp_path / "file"
    write_atomic(path, "old")
    write_atomic(path, "né")
    assert path.read_bytes() == "né".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "file", b"")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_failing_write_leaves_the_old_content_and_no_litter(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    write_atomic(path, "old")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(step, fail)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomic(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_interrupted_write_leaves_the_old_content_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomic(path, "old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_kill_in_the_middle_leaves_the_old_content(tmp_path):
    path = tmp_path / "file"
    write_atomic(path, "old")
    code = (
        "import os, signal, sys, pathlib\n"
        "from rpl_core.files.atomic import write_atomic\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomic(pathlib.Path(sys.argv[1]), 'new' * 100000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_hash_is_that_of_the_bytes(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256_of(tmp_path / "file").startswith("ba7816bf8f01cfea414140de5dae2223")  # FIPS 180-2, B.1
