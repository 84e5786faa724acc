"""A command's output, exit status, environment and input, and commands that can't be started."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rpl_core.errors import MissingError, UsageError
from rpl_core.process import ProcessRequest, run_command
from rpl_core.process.output import OutputStream


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, *arguments)


def run_lines(request: ProcessRequest) -> list[str]:
    lines: list[str] = []
    run_command(request, lines.append)
    return lines


def test_stdout_and_stderr_reach_the_sink_in_order_and_not_rpls_stdout(
    capfd: pytest.CaptureFixture[str],
) -> None:
    code = "import sys; print('a', flush=True); print('b', file=sys.stderr, flush=True); print('c', end='')"
    assert run_lines(ProcessRequest(python(code))) == ["a", "b", "c"]
    assert capfd.readouterr() == ("", "")


def test_the_log_holds_every_byte_even_undecodable_ones(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    code = "import sys; sys.stdout.buffer.write(b'x\\xff\\r\\nlast')"
    assert run_lines(ProcessRequest(python(code), log_path=log)) == ["x\N{REPLACEMENT CHARACTER}", "last"]
    assert log.read_bytes() == b"x\xff\r\nlast"


def test_exit_status_and_wall_time_are_those_of_the_command() -> None:
    result = run_command(ProcessRequest(python("import time; time.sleep(0.2); raise SystemExit(7)")))
    assert (result.exit_status, result.signal, result.succeeded) == (7, None, False)
    assert 0.2 <= result.wall_s < 5


def test_a_killing_signal_is_no_exit_status() -> None:
    result = run_command(ProcessRequest(python("import os; os.abort()")))
    assert (result.exit_status, result.signal) == (None, signal.SIGABRT)


def test_arguments_reach_the_command_unchanged_by_any_shell() -> None:
    odd = ("two words", "$HOME `id` $(id)", "quo'te\"s", "*", "", "new\nline", "--", "{directory}", "ü")
    code = "import sys; print(ascii(tuple(sys.argv[1:])))"
    assert run_lines(ProcessRequest(python(code, *odd))) == [ascii(odd)]


def test_only_the_given_environment_is_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RPL_TEST_INHERITED", "1")
    code = "import os; print('RPL_TEST_INHERITED' in os.environ, os.environ.get('RPL_TEST_GIVEN'))"
    assert run_lines(ProcessRequest(python(code), environment={"RPL_TEST_GIVEN": "2"})) == ["False 2"]
    assert run_lines(ProcessRequest(python(code))) == ["True None"]


def test_the_environment_is_not_shown_by_the_request() -> None:
    assert "secret" not in repr(ProcessRequest(("x",), environment={"TOKEN": "secret"}))


def test_a_very_long_line_comes_in_pieces_and_complete() -> None:
    lines = run_lines(ProcessRequest(python("print('x' * 300_000)")))
    assert len(lines) > 1
    assert "".join(lines) == "x" * 300_000


def test_much_output_after_the_first_process_ended_is_not_lost(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    run_command(ProcessRequest(python("print('y' * 60_000)"), log_path=log))
    assert log.stat().st_size == 60_001


def run_twice_reading_stdin(first_statement: str, **stdin: object) -> list[str]:
    script = (
        "import os, sys\n"
        "from rpl_core.process import ProcessRequest, run_command\n"
        f"{first_statement}\n"
        "command = (sys.executable, '-c', 'import sys; print(repr(sys.stdin.read()))')\n"
        "for _ in range(2): run_command(ProcessRequest(command), print)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, **stdin)  # type: ignore[call-overload]
    return done.stdout.splitlines()


def test_a_file_as_input_is_read_anew_from_its_position_by_every_run(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("skipped\nfirst\n")
    with (tmp_path / "input").open() as stdin:
        seen = run_twice_reading_stdin("os.lseek(0, 8, os.SEEK_SET)", stdin=stdin)
    assert seen == [repr("first\n")] * 2


def test_a_pipe_as_input_is_empty_in_every_run() -> None:
    assert run_twice_reading_stdin("", input="text") == ["''", "''"]


def test_a_closed_input_is_empty() -> None:
    assert run_twice_reading_stdin("os.close(0)", stdin=subprocess.DEVNULL) == ["''", "''"]


def test_a_missing_program_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no such program"):
        run_command(ProcessRequest((str(tmp_path / "no app"),)))


def test_a_file_without_execute_permission_is_refused_with_the_remedy(tmp_path: Path) -> None:
    script = tmp_path / "app"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(UsageError, match="not an executable file") as caught:
        run_command(ProcessRequest((str(script),)))
    assert "chmod +x" in caught.value.one_line()


def test_a_script_without_interpreter_line_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "app"
    script.write_text("\x7fnonsense")
    script.chmod(stat.S_IRWXU)
    with pytest.raises(UsageError, match="not a program for this machine"):
        run_command(ProcessRequest((str(script),)))


def test_a_nul_character_in_an_argument_is_refused() -> None:
    with pytest.raises(UsageError, match="NUL"):
        run_command(ProcessRequest(("echo", "a\0b")))


def test_reading_does_not_wait_for_whoever_looks_at_lines() -> None:
    """Looking at 300 000 lines takes a second, which would count as the command's time."""
    reading, writing = os.pipe()
    heard: list[str] = []
    stream = OutputStream(os.fdopen(reading, "rb"), None, heard.append)
    os.write(writing, b"one\ntwo\nth")
    assert stream.read_available()
    os.write(writing, b"ree\n")
    assert stream.read_available()
    assert (heard, stream.waiting) == ([], 14)
    stream.give_lines()
    assert (heard, stream.waiting) == (["one", "two", "three"], 0)
    os.close(writing)
    stream.finish()


def test_what_nobody_looked_at_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rpl_core.process.output.LOG_LIMIT_BYTES", 1000)
    code = "print('\\n'.join(map(str, range(10000))))"
    assert run_lines(ProcessRequest(python(code))) == [str(number) for number in range(10000)]
