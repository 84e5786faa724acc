"""Where a command starts, and directories in which none can start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rpl_core.errors import MissingError, UsageError
from rpl_core.process import ProcessRequest, run_command

_WHERE = (sys.executable, "-c", "import os; print(os.getcwd())")


def lines_of(request: ProcessRequest) -> list[str]:
    lines: list[str] = []
    run_command(request, lines.append)
    return lines


def test_a_command_starts_where_it_is_told(tmp_path: Path) -> None:
    assert lines_of(ProcessRequest(_WHERE, working_directory=tmp_path)) == [str(tmp_path.resolve())]
    assert lines_of(ProcessRequest(_WHERE)) == [str(Path.cwd())]


def test_a_relative_program_is_looked_up_there(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    assert lines_of(ProcessRequest(("./tool",), working_directory=tmp_path)) == ["found"]
    with pytest.raises(MissingError, match="no such program"):
        run_command(ProcessRequest(("./tool",)))


def test_a_missing_directory_and_a_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "file").chmod(0o755)
    with pytest.raises(UsageError, match=r"absent: there is no such directory"):
        run_command(ProcessRequest(_WHERE, working_directory=tmp_path / "absent"))
    with pytest.raises(UsageError, match=r"file: it is not a directory"):
        run_command(ProcessRequest(_WHERE, working_directory=tmp_path / "file"))


def test_a_missing_program_is_still_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no such program"):
        run_command(ProcessRequest(("/nowhere/tool",), working_directory=tmp_path))
