"""Where the accepted version goes, and that nothing of the user's is lost."""

from __future__ import annotations

import errno
import os

import pytest

from rpl_core.errors import BadDataError, RplError
from rpl_optimize.loop import session
from rpl_optimize.loop.session import digest, is_changed, unified_diff, write_accepted

from .conftest import OLD

NEW, NEWER = b"new\n", b"newer\n"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_accepted_version_is_written_beside_the_source(request_for, tmp_path):
    written = write_accepted(request_for(), NEW, OLD, None)
    assert written.path == tmp_path / "kernel_opt.hip"
    assert (written.before_sha256, written.backup) == (None, None)
    assert (tmp_path / "kernel.hip").read_bytes() == OLD
    assert names(tmp_path) == ["kernel.hip", "kernel_opt.hip"]


def test_the_next_accepted_version_replaces_the_sessions_own(request_for, tmp_path):
    first = write_accepted(request_for(), NEW, OLD, None)
    second = write_accepted(request_for(), NEWER, OLD, first.sha256)
    assert second.path == first.path
    assert second.before_sha256 == digest(NEW)
    assert first.path.read_bytes() == NEWER


def test_a_file_of_the_user_is_never_replaced(request_for, tmp_path):
    (tmp_path / "kernel_llm_opt.hip").write_bytes(b"mine")
    written = write_accepted(request_for(suffix="_llm_opt"), NEW, OLD, None)
    assert written.path.name == "kernel_llm_opt_2.hip"
    assert (tmp_path / "kernel_llm_opt.hip").read_bytes() == b"mine"


@pytest.mark.parametrize("kind", ["directory", "link to nowhere", "link to the same"])
def test_whatever_has_the_name_already_stays(request_for, tmp_path, kind) -> None:
    taken, real = tmp_path / "kernel_opt.hip", tmp_path / "real.hip"
    if kind == "directory":
        taken.mkdir()
    else:
        taken.symlink_to(real)
    if kind == "link to the same":
        real.write_bytes(NEW)
    written = write_accepted(request_for(), NEW, OLD, None)
    assert written.path.name == "kernel_opt_2.hip"
    assert taken.is_dir() if kind == "directory" else taken.is_symlink()


def test_who_is_quicker_keeps_the_name(request_for, tmp_path, monkeypatch) -> None:
    """Another session makes the file between the look and the writing."""
    monkeypatch.setattr(os.path, "lexists", lambda _path: False)
    (tmp_path / "kernel_opt.hip").write_bytes(b"theirs")
    written = write_accepted(request_for(), NEW, OLD, None)
    assert written.path.name == "kernel_opt_2.hip"
    assert (tmp_path / "kernel_opt.hip").read_bytes() == b"theirs"
    assert names(tmp_path) == ["kernel.hip", "kernel_opt.hip", "kernel_opt_2.hip"]


def test_a_file_system_without_hard_links(request_for, tmp_path, monkeypatch) -> None:
    def refuse(_from, _to):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert write_accepted(request_for(), NEW, OLD, None).path.read_bytes() == NEW
    assert names(tmp_path) == ["kernel.hip", "kernel_opt.hip"]


def test_what_was_written_before_a_crash_is_not_written_twice(request_for, tmp_path) -> None:
    (tmp_path / "kernel_opt.hip").write_bytes(NEW)  # written, but the ledger does not know
    assert write_accepted(request_for(), NEW, OLD, None).path.name == "kernel_opt.hip"


@pytest.mark.parametrize("in_place", [False, True])
def test_what_is_private_stays_private(request_for, tmp_path, in_place) -> None:
    (tmp_path / "kernel.hip").chmod(0o600)
    write_accepted(request_for(in_place=in_place), NEW, OLD, None)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize("kind", ["directory", "link to nowhere"])
def test_a_backup_never_replaces_anything(request_for, tmp_path, kind) -> None:
    taken = tmp_path / "kernel.hip.rpl-backup"
    taken.mkdir() if kind == "directory" else taken.symlink_to(tmp_path / "nowhere")
    written = write_accepted(request_for(in_place=True), NEW, OLD, None)
    assert written.backup == tmp_path / "kernel.hip.rpl-backup2"
    assert written.backup.read_bytes() == OLD
    assert not (tmp_path / "nowhere").exists()


def test_a_change_while_the_backup_was_written_is_not_lost(request_for, tmp_path, monkeypatch) -> None:
    source = tmp_path / "kernel.hip"
    write = session.write_atomic

    def meanwhile(path, text, **options):
        write(path, text, **options)
        source.write_bytes(b"edited\n")

    monkeypatch.setattr(session, "write_atomic", meanwhile)
    with pytest.raises(BadDataError, match="changed by someone else"):
        write_accepted(request_for(in_place=True), NEW, OLD, None)
    assert source.read_bytes() == b"edited\n"


def test_a_source_that_is_gone_is_said_so(request_for, tmp_path) -> None:
    (tmp_path / "kernel.hip").unlink()
    for in_place in (False, True):
        with pytest.raises(RplError, match=r"kernel\.hip"):
            write_accepted(request_for(in_place=in_place), NEW, OLD, None)
    assert names(tmp_path) == []


def test_in_place_keeps_a_backup_and_the_permissions(request_for, tmp_path):
    source = tmp_path / "kernel.hip"
    source.chmod(0o640)
    first = write_accepted(request_for(in_place=True), NEW, OLD, None)
    assert first.path == source
    assert source.read_bytes() == NEW
    assert source.stat().st_mode & 0o777 == 0o640
    assert first.backup is not None
    assert first.backup.read_bytes() == OLD
    second = write_accepted(request_for(in_place=True), NEWER, OLD, first.sha256)
    assert second.backup == first.backup, "the original is kept, not the version in between"
    assert names(tmp_path) == ["kernel.hip", "kernel.hip.rpl-backup"]


def test_in_place_through_a_link_replaces_what_it_points_to(request_for, tmp_path):
    real = tmp_path / "real.hip"
    link = tmp_path / "kernel.hip"
    link.rename(real)
    link.symlink_to(real)
    write_accepted(request_for(in_place=True), NEW, OLD, None)
    assert link.is_symlink()
    assert real.read_bytes() == NEW


def test_a_source_that_changed_meanwhile_is_not_replaced(request_for, tmp_path):
    (tmp_path / "kernel.hip").write_bytes(b"edited\n")
    with pytest.raises(BadDataError, match="changed by someone else"):
        write_accepted(request_for(in_place=True), NEW, OLD, None)
    assert (tmp_path / "kernel.hip").read_bytes() == b"edited\n"
    assert names(tmp_path) == ["kernel.hip"]


def test_an_interrupted_replacement_can_be_repeated(request_for, tmp_path):
    (tmp_path / "kernel.hip").write_bytes(NEW)  # written, but the ledger does not know
    written = write_accepted(request_for(in_place=True), NEW, OLD, None)
    assert written.backup is not None
    assert written.backup.read_bytes() == OLD


def test_a_full_disk_leaves_everything_as_it_was(request_for, tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for in_place in (False, True):
        with pytest.raises(RplError, match="no space left"):
            write_accepted(request_for(in_place=in_place), NEW, OLD, None)
    assert names(tmp_path) == ["kernel.hip"]
    assert (tmp_path / "kernel.hip").read_bytes() == OLD


def test_a_source_that_was_edited_or_removed_is_noticed(tmp_path) -> None:
    source = tmp_path / "kernel.hip"
    assert is_changed(source, OLD)
    source.write_bytes(OLD)
    assert not is_changed(source, OLD)
    source.write_bytes(NEW)
    assert is_changed(source, OLD)


def test_the_diff_names_the_file_and_survives_odd_bytes():
    diff = unified_diff(b"a\nb\n", b"a\nc\xff", "kernel.hip")
    assert diff.splitlines()[:2] == ["--- a/kernel.hip", "+++ b/kernel.hip"]
    assert "-b\n" in diff
    assert "+c\ufffd" in diff
