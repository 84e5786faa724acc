"""The result goes to stdout and the conversation to stderr, whatever these are connected to."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys

import pytest

from rpl_core.cli.output import Output
from rpl_testkit.fixtures import Launch

START = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"
RPL = (sys.executable, "-c", START)
LONG_ANSWERS = [("--version",), ("--help",), ("schema", "profile"), ("config", "show", "--json")]


def rpl(*words, buffered, **options):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    if not buffered:
        environment["PYTHONUNBUFFERED"] = "1"
    return subprocess.run([*RPL, *words], text=True, check=False, env=environment, **options)


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("words", LONG_ANSWERS)
def test_full_disk_behind_stdout_is_one_line_and_69(words, buffered):
    with open("/dev/full", "w", encoding="ascii") as full:  # noqa: PTH123
        done = rpl(*words, buffered=buffered, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 69
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("rpl: ")


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("words", LONG_ANSWERS)
def test_a_reader_that_goes_away_is_no_failure(words, buffered):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = rpl(*words, buffered=buffered, stdout=pipe, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", LONG_ANSWERS)
def test_closed_stdout_and_stderr_are_survived(words):
    done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *RPL, *words], check=False)
    assert done.returncode == 0


def test_error_keeps_stdout_empty_and_stderr_without_traceback(rpl_cli):
    outcome = rpl_cli.process("analyze", "nowhere").assert_exit(69)
    assert outcome.stdout == ""
    assert outcome.stderr == "rpl: nowhere does not exist. Next: check the path.\n"


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {}])
def test_no_terminal_means_no_escape_sequences(profiled, variable):
    outcome = profiled("./kernel_binary", env=variable).assert_ok()
    assert "\x1b" not in outcome.stdout + outcome.stderr


def test_no_color_keeps_colours_off_a_terminal(workplace, rpl_standin_rocprofv3):
    shown = _on_terminal("profile", "--runs", "1", "./kernel_binary", NO_COLOR="1")
    assert "kernel time" in shown
    assert not any(f"\x1b[{code}m" in shown for code in range(30, 50))


def test_progress_goes_to_stderr_only(profiled):
    outcome = profiled("./kernel_binary").assert_ok()
    assert "profile: run_1 (1 of " in outcome.stderr
    assert "run_1" not in outcome.stdout


def test_q_silences_notes_and_keeps_warnings(rpl_cli, rpl_make_rocpd, tmp_path):
    recording = rpl_make_rocpd([("gemm", 0, 50)])
    loud = rpl_cli("analyze", recording, "-o", tmp_path / "a").assert_ok()
    silent = rpl_cli("-q", "analyze", recording, "-o", tmp_path / "b").assert_ok()
    assert "info: " in loud.stderr
    assert "documents: " in loud.stderr
    assert silent.stdout == loud.stdout
    warnings = [line for line in loud.stderr.splitlines() if line.startswith("warning: ")]
    assert silent.stderr.splitlines() == warnings


def test_the_bar_knows_how_many_passes_there_are_and_what_time_is_left(monkeypatch):
    shown = _shown_by_bar(monkeypatch, ["run_1 (1 of 2)", "pass_1 (2 of 4)"])
    assert re.search(r"pass_1 \(2 of 4\).* 25% -:--:-- 0:00:00", shown)


def _shown_by_bar(monkeypatch, steps, note=None):
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    written = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", Terminal(written, encoding="utf-8", write_through=True))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    output = Output()
    with output.progress("optimize", total=None) as step:
        for one in steps:
            step(one)
        if note:
            output.note(note)
    if note:
        output.note("after")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.getvalue().decode())


def test_a_note_stands_above_the_bar_on_a_line_of_its_own(monkeypatch):
    note = "candidate 1: [red] rejected"
    lines = re.split(r"[\r\n]+", _shown_by_bar(monkeypatch, ["run_1"], note))
    assert note in lines
    assert lines[-2:] == ["after", ""]


def test_names_in_recordings_do_not_steer_the_terminal(rpl_cli, rpl_make_rocpd, workplace):
    recording = rpl_make_rocpd([("evil\x1b[2J\r\nname", 0, 1000)])
    outcome = rpl_cli("analyze", recording).assert_ok()
    assert "\x1b" not in outcome.stdout
    assert "\r" not in outcome.stdout
    assert "evil\\x1b[2J" in outcome.stdout


def test_command_with_bytes_that_are_no_text_is_recorded_readably(workplace, rpl_cli, latest):
    rpl_cli("profile", "--no-rocprof", "--runs", "1", "./kernel_binary", "a\udcffb").assert_ok()
    assert latest("run")["command"] == ["./kernel_binary", "a\\udcffb"]
    assert (workplace / "arguments").read_bytes() == b"a\xffb\n"


def test_internal_error_is_one_line_and_the_traceback_is_one_switch_away(rpl_cli, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("rpl_core.cli.installation.session_of", broken)
    outcome = rpl_cli("plugins", "list").assert_exit(70)
    assert outcome.stderr.count("\n") == 1
    assert "ZeroDivisionError: two lines" in outcome.stderr
    shown = rpl_cli("plugins", "list", env={"RPL_TRACEBACK": "1"})
    assert shown.exit_code == 70
    assert "Traceback (most recent call last)" in shown.stderr


def _on_terminal(*words, start=START, **environment):
    """Everything that a terminal gets; stdin, stdout and stderr are one."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", start, *words],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, **environment},
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            block = os.read(controller, 65536)
        except OSError:  # how Linux says that the last writer has gone
            break
        if not block:
            break
        shown += block
    os.close(controller)
    assert process.wait() == 0
    return shown.decode()


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("analyze",), "analyze: "),
        (("what-if", "k=2", "--run"), "what-if: "),
        (("export", "--format", "csv", "-o", "out.csv"), "export: "),
        (("profile", "-o", "out", "--from"), "profile: "),
        (("analyze", "--quiet"), ""),
    ],
)
def test_long_work_shows_on_a_terminal_that_it_goes_on(words, shown, rpl_make_rocpd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recording = str(rpl_make_rocpd([Launch("kernel", 1000, 2000)]))
    all_is_long = f"import rpl_core.cli.output as o; o._LARGE_BYTES = 1; {START}"
    answer = _on_terminal(*words, recording, start=all_is_long)
    assert (" MiB" in answer) == bool(shown)
    assert shown in answer
    assert " MiB" not in _on_terminal(*(w.replace("out", "other") for w in words), recording)


def test_json_on_a_terminal_follows_the_bar_and_is_whole(workplace, rpl_standin_rocprofv3):
    shown = _on_terminal("profile", "--json", "--no-rocprof", "--runs", "1", "./kernel_binary", TERM="xterm")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "profile: run_1" in plain
    document, _ = json.JSONDecoder().raw_decode(plain[plain.index("{") :])
    assert document["stability"]["runs"] == 1
    assert shown.rfind("\x1b[?25l") < shown.rfind("\x1b[?25h"), "the cursor is still hidden"
