"""Full disks, endless output and places that can't be written."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from rpl_core.errors import MissingError, UsageError
from rpl_core.files import make_directory, storage_error
from rpl_core.process import ProcessRequest, run_command
from rpl_core.process.output import Cover, LogFile


def test_a_full_disk_costs_the_log_but_neither_the_command_nor_its_lines() -> None:
    code = "for number in range(20_000): print(number)"
    lines: list[str] = []
    request = ProcessRequest((sys.executable, "-c", code), log_path=Path("/dev/full"))
    result = run_command(request, lines.append)
    assert result.succeeded
    assert len(lines) == 20_000
    assert result.log_problem == "No space left on device"


def test_output_beyond_the_limit_is_cut_and_said(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log", limit_bytes=10)
    for _ in range(3):
        log.write(b"12345678")
    log.close()
    assert (tmp_path / "log").read_bytes().startswith(b"1234567812\n[rpl: the log ends here")
    assert (tmp_path / "log").stat().st_size < 100
    assert log.problem is not None


def test_a_link_planted_at_the_log_path_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("keep")
    (tmp_path / "log").symlink_to(tmp_path / "target")
    with pytest.raises(UsageError, match="cannot write"):
        run_command(ProcessRequest(("true",), log_path=tmp_path / "log"))
    assert (tmp_path / "target").read_text() == "keep"


def test_a_file_where_a_directory_should_be_names_the_path_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*file/run") as caught:
        make_directory(tmp_path / "file" / "run")
    assert "-o DIR" in caught.value.one_line()


def test_a_full_disk_is_told_from_a_forbidden_place() -> None:
    assert isinstance(storage_error(Path("x"), OSError(errno.ENOSPC, "full")), MissingError)
    assert isinstance(storage_error(Path("x"), OSError(errno.EROFS, "read-only")), UsageError)


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_secret_of_the_command_is_covered_wherever_the_output_is_cut(size) -> None:
    """Also where it comes in pieces, begins twice, or ends the output."""
    command = ("./app", "--token=s3cr3t-value", "--password", "s3cr3tary")
    said = b"run --token=s3cr3t-value s3cr3t-vs3cr3t-value\ns3cr3tary s3cr3 s3cr3tary"
    cover = Cover(command)
    parts = [cover.over(said[at : at + size]) for at in range(0, len(said), size)]
    shown = b"".join([*parts, cover.over(b"", last=True)])
    assert shown == b"run --token=*** s3cr3t-v***\n*** s3cr3 ***"


def test_without_a_secret_nothing_is_held_back() -> None:
    cover = Cover(("./app", "--pad-token", "<s>", "--token=short"))  # shorter ones are ordinary words
    assert cover.over(b"short <s") == b"short <s"
    assert cover.over(b"", last=True) == b""
