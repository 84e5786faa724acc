"""A file holds its old content or its new one, never a part, whatever interrupts the writing."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rpl_core.files import sha256_of, write_atomic


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


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_permissions_of_what_is_replaced_stay(tmp_path, mode):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    write_atomic(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_a_link_that_the_user_named_is_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    path, target = tmp_path / "link", tmp_path / "elsewhere" / "file"
    path.symlink_to(target)
    for text in ("first", "second"):
        write_atomic(path, text, named=True)
        assert path.is_symlink()
        assert target.read_text() == text
    assert [entry.name for entry in target.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_what_a_folder_holds_is_neither_followed_nor_replaced(tmp_path, kind):
    path, target = tmp_path / "profile.json", tmp_path / "of the user"
    target.write_text("kept")
    path.symlink_to(target) if kind == "link" else os.mkfifo(path)
    with pytest.raises(OSError, match="no regular file") as caught:
        write_atomic(path, "new")
    assert caught.value.filename == str(path)
    assert target.read_text() == "kept"
    assert path.is_symlink() or path.is_fifo()


def test_pipes_are_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_atomic(path, "text", named=True)
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert path.is_fifo()


@pytest.mark.parametrize("named", [True, False])
def test_nothing_is_written_to_a_device(named):
    """A disk would be lost. The null device stands for it: every machine has one."""
    with pytest.raises(FileExistsError, match="There is a device"):
        write_atomic(Path("/dev/null"), "text", named=named)
    assert Path("/dev/null").is_char_device()


def test_the_longest_names_can_be_written_and_errors_name_them(tmp_path):
    path = tmp_path / ("n" * 255)
    write_atomic(path, "text")
    assert path.read_text() == "text"
    for wrong in (tmp_path / ("n" * 256), tmp_path / "absent" / "file"):
        with pytest.raises(OSError, match=r"name too long|No such") as caught:
            write_atomic(wrong, "text", named=True)
        assert caught.value.filename == str(wrong)


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
        "from rpl_core.files import write_atomic\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomic(pathlib.Path(sys.argv[1]), 'new' * 100000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_hash_is_that_of_the_bytes(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256_of(tmp_path / "file").startswith("ba7816bf8f01cfea414140de5dae2223")  # FIPS 180-2, B.1
