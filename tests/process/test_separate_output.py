"""Standard output in a file of its own, beside the log that has the rest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rpl_core.errors import TimeLimitError
from rpl_core.process import ProcessRequest, run_command
from rpl_core.process.output import LogFile


def request(tmp_path: Path, text: str, **options) -> ProcessRequest:
    places = {"log_path": tmp_path / "log", "stdout_path": tmp_path / "stdout"}
    return ProcessRequest((sys.executable, "-c", text), **places, **options)


def test_the_two_streams_do_not_mix(tmp_path: Path) -> None:
    text = "import os\nfor i in range(1000): os.write(1, b'\\x00out\\xff'); os.write(2, b'err\\n')"
    lines: list[str] = []
    result = run_command(request(tmp_path, text), lines.append)
    assert (result.exit_status, result.stdout_problem) == (0, None)
    assert (tmp_path / "stdout").read_bytes() == b"\x00out\xff" * 1000
    assert (tmp_path / "log").read_bytes() == b"err\n" * 1000
    assert lines == ["err"] * 1000


def test_closing_one_of_them_early_does_not_end_the_other(tmp_path: Path) -> None:
    text = "import os, time\nos.close(1); time.sleep(0.1); os.write(2, b'still here')"
    lines: list[str] = []
    run_command(request(tmp_path, text), lines.append)
    assert lines == ["still here"]


def test_an_endless_output_is_cut_and_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogFile.__init__, "__defaults__", (1000,))
    result = run_command(request(tmp_path, "print('x' * 5000)"))
    assert result.stdout_problem == "the output is longer than the log may be"
    assert result.log_problem is None
    assert (tmp_path / "stdout").stat().st_size < 1100


def test_the_time_limit_ends_a_program_that_floods_its_output(tmp_path: Path) -> None:
    text = "import os\nwhile True: os.write(1, bytes(65536))"
    with pytest.raises(TimeLimitError):
        run_command(request(tmp_path, text, time_limit_s=0.5))
