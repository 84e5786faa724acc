"""Ctrl-C and termination at different moments of a profile: 130, nothing left running, the rest kept."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress

import pytest

START = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"


def start(*words, **environment):
    """``rpl`` as a terminal starts it: in a process group of its own, with Ctrl-C enabled."""
    return subprocess.Popen(
        [sys.executable, "-c", START, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_for(condition, timeout_s=30.0):
    """The first true answer of ``condition``; waiting is for another process, so it can only be polled."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


def end(process, number=signal.SIGINT):
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=30)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def run_directory(workplace):
    runs = workplace / "rpl-runs"
    found = [path for path in runs.iterdir() if not path.is_symlink()] if runs.is_dir() else []
    return found[0] if found and (found[0] / "run.json").is_file() else None


def manifest(workplace):
    return json.loads((run_directory(workplace) / "run.json").read_text())


@pytest.fixture
def sleeper(program):
    """An application that notes its process id and then waits."""
    return program("#!/bin/sh\necho $$ > pid.part\nmv pid.part pid\nexec sleep 300\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_in_the_first_run(workplace, rpl_standin_rocprofv3, sleeper, rpl_cli, number):
    process = start("profile", sleeper)
    wait_for((workplace / "pid").is_file)
    code, out, err = end(process, number)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1].startswith("rpl: interrupted; what finished is kept in rpl-runs/")
    assert manifest(workplace)["state"] == "incomplete"
    assert manifest(workplace)["reason"] == "interrupted"
    assert not _is_alive(int((workplace / "pid").read_text()))
    outcome = rpl_cli("analyze", run_directory(workplace)).assert_exit(65)
    assert "holds no finished pass" in outcome.stderr


def test_in_a_later_run_keeps_the_finished_ones(workplace, rpl_standin_rocprofv3, program, rpl_cli):
    second_sleeps = program(
        "#!/bin/sh\nif [ -e once ]; then echo $$ > pid; exec sleep 300; fi\ntouch once\n", "second"
    )
    process = start("profile", "--json", second_sleeps)
    wait_for((workplace / "pid").is_file)
    code, out, _ = end(process)
    assert (code, out) == (130, "")
    # The third run, and the one without API calls, never began.
    states = [entry["state"] for entry in manifest(workplace)["passes"]]
    assert states == ["complete", "failed", "planned", "planned"]
    document = rpl_cli("analyze", "--json", run_directory(workplace)).assert_ok().json()
    assert document["stability"]["runs"] == 1
    assert document["incomplete"] == "interrupted"


def test_in_a_counter_pass_keeps_the_times(workplace, rpl_standin_rocprofv3, rpl_cli):
    process = start(
        "profile", "--runs", "1", "--roofline", "./kernel_binary", RPL_STANDIN_MISBEHAVE="slow=300:counters"
    )
    wait_for(lambda: run_directory(workplace) and (run_directory(workplace) / "artifacts/pass_1").is_dir())
    code, _, _ = end(process)
    assert code == 130
    document = rpl_cli("analyze", "--json", run_directory(workplace)).assert_ok().json()
    assert document["runtime_ms"] > 0
    assert document["roofline"] is None


def test_a_profile_that_ends_before_its_documents_are_written_is_recorded_and_not_complete(
    workplace, rpl_standin_rocprofv3, rpl_cli, monkeypatch
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rpl_core.pipeline.analyse", interrupt)
        outcome = rpl_cli("profile", "--runs", "1", "./kernel_binary").assert_exit(130)
    assert "interrupted" in outcome.stderr
    assert manifest(workplace)["state"] == "recorded"
    rpl_cli("analyze", run_directory(workplace)).assert_ok()
    assert manifest(workplace)["state"] == "complete"
    assert (run_directory(workplace) / "profile.json").is_file()


#: ``rpl`` that is killed when it is about to write the file that the variable names.
KILLED = f"""
import os, signal
from rpl_core import files
write = files._replace
def write_or_die(path, *arguments, **options):
    if path.name == os.environ["KILLED_AT"]:
        os.kill(os.getpid(), signal.SIGKILL)
    write(path, *arguments, **options)
files._replace = write_or_die
{START}
"""
DOCUMENTS = ("profile.json", "roofline.json", "dag.json", "analysis.json")


@pytest.mark.parametrize("recorded_before", [False, True])
@pytest.mark.parametrize(
    "document",
    ["analysis.json", *(pytest.param(name, marks=pytest.mark.long) for name in DOCUMENTS[:-1])],
)
def test_a_profile_that_is_killed_is_not_complete_before_its_documents_are_written(
    workplace, rpl_standin_rocprofv3, rpl_make_rocpd, rpl_cli, document, recorded_before
):
    recording = rpl_make_rocpd([("kernel", 0, 1000)])
    application = ("--from", str(recording)) if recorded_before else ("--runs", "1", "./kernel_binary")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, "profile", "-o", "run", *application],
        env={**os.environ, "KILLED_AT": document},
        capture_output=True,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    run = workplace / "run"
    assert not (run / document).exists()
    assert json.loads((run / "run.json").read_text())["state"] == "recorded"
    rpl_cli("analyze", run).assert_ok()
    assert json.loads((run / "run.json").read_text())["state"] == "complete"
    assert all((run / name).is_file() for name in DOCUMENTS)


def test_an_analysis_that_is_killed_among_its_documents_leaves_nothing_to_report(
    workplace, rpl_make_rocpd, rpl_cli
):
    """The new documents beside those of before would be two analyses on one page."""
    rpl_cli("analyze", rpl_make_rocpd([("kernel", 0, 1000)]), "-o", "run").assert_ok()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, "analyze", "run", "--strict"],
        env={**os.environ, "KILLED_AT": "dag.json"},
        capture_output=True,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert json.loads((workplace / "run/run.json").read_text())["state"] == "recorded"
    for command in (("report", "run"), ("explain", "--run", "run")):
        refused = rpl_cli(*command).assert_exit(69)
        assert "are not all written" in refused.stderr
        assert "rpl analyze run" in refused.stderr
    rpl_cli("analyze", "run").assert_ok()
    assert json.loads((workplace / "run/run.json").read_text())["state"] == "complete"
    rpl_cli("report", "run").assert_ok()


def test_while_the_profiler_ignores_polite_signals(workplace, rpl_standin_rocprofv3):
    process = start("profile", "--runs", "1", "./kernel_binary", RPL_STANDIN_MISBEHAVE="hang_hard")
    wait_for(lambda: run_directory(workplace) and (workplace / "arguments").is_file())
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.5)
    code, _, err = end(process)  # the second Ctrl-C does not wait any longer
    assert code == 130, err


def test_a_signal_that_is_ignored_stays_ignored(workplace, rpl_standin_rocprofv3, program):
    """As under nohup: closing the terminal does not end the profile."""
    short = program("#!/bin/sh\necho $$ > pid\nwhile [ ! -e go ]; do sleep 0.05; done\n")
    process = subprocess.Popen(
        [sys.executable, "-c", START, "profile", "--runs", "1", "--quiet", str(short)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    wait_for((workplace / "pid").is_file)
    os.kill(process.pid, signal.SIGHUP)
    (workplace / "go").touch()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert float(out) > 0


def test_kill_leaves_a_directory_that_can_be_analysed(workplace, rpl_standin_rocprofv3, program, rpl_cli):
    second_sleeps = program(
        "#!/bin/sh\nif [ -e once ]; then echo $$ > pid; exec sleep 300; fi\ntouch once\n", "second"
    )
    process = start("profile", second_sleeps)
    wait_for((workplace / "pid").is_file)
    process.kill()
    process.communicate(timeout=30)
    _kill(int((workplace / "pid").read_text()))
    assert manifest(workplace)["state"] == "running"
    document = rpl_cli("analyze", "--json", run_directory(workplace)).assert_ok().json()
    assert document["incomplete"] == "the run did not finish"
    assert document["stability"]["runs"] == 1
    # What the killed pass left was not emptied: the next command says so.
    assert "run.not_cleaned" in {finding["code"] for finding in document["diagnostics"]}


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="ascii") as stream:  # noqa: PTH123
        return stream.read().rpartition(")")[2].split()[0] != "Z"


def _kill(pid):
    """What a killed rpl could not clean up: the session of its application."""
    try:
        os.killpg(os.getsid(pid), signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_the_key_on_a_terminal(workplace, rpl_standin_rocprofv3, sleeper, words):
    """The terminal itself sends the signal, to the foreground: not to the application, which rpl ends."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", START, "profile", *words, str(sleeper)],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal)
    blocks: list[bytes] = []
    reader = threading.Thread(target=_collect, args=(controller, blocks))
    reader.start()
    wait_for((workplace / "pid").is_file)
    os.write(controller, b"\x03")
    out, _ = process.communicate(timeout=30)
    reader.join()
    shown = b"".join(blocks).decode(errors="replace")  # the terminal forgets what it had not shown yet
    assert (process.returncode, out) == (130, b""), shown
    assert shown.split("rpl: ")[-1].startswith("interrupted")  # in lines as wide as the terminal
    assert shown.rfind("\x1b[?25l") <= shown.rfind("\x1b[?25h"), "the cursor is still hidden"
    assert not _is_alive(int((workplace / "pid").read_text()))


def _collect(controller, shown):
    """What a terminal is sent, until its last writer has gone."""
    with suppress(OSError):  # how Linux says so
        while block := os.read(controller, 65536):
            shown.append(block)
    os.close(controller)
