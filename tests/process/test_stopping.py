"""Time limits, Ctrl-C and SIGTERM: the whole session is gone, whatever its processes do about signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rpl_core.errors import InterruptedRunError, TimeLimitError
from rpl_core.process import ProcessRequest, run_command, supervision

if TYPE_CHECKING:
    from collections.abc import Callable

#: PARENT starts CHILD in the same session; both print their process id, and CHILD then "ready".
CHILD = (
    "import os, signal, sys, time\n"
    "for name in sys.argv[1:]: signal.signal(signal.Signals[name], signal.SIG_IGN)\n"
    "print(os.getpid(), flush=True)\n"
    "print('ready', flush=True)\n"
    "time.sleep(600)\n"
)
PARENT = (
    "import os, signal, subprocess, sys, time\n"
    "for name in sys.argv[2:]: signal.signal(signal.Signals[name], signal.SIG_IGN)\n"
    "print(os.getpid(), flush=True)\n"
    "subprocess.Popen([sys.executable, '-c', sys.argv[1], *sys.argv[2:]])\n"
    "time.sleep(600)\n"
)


def family(*ignored_signals: str) -> tuple[str, ...]:
    return (sys.executable, "-c", PARENT, CHILD, *ignored_signals)


class Sink:
    """Collects process ids and calls ``on_ready`` (in the thread that runs the command) at "ready"."""

    def __init__(self, on_ready: Callable[[], None] = lambda: None) -> None:
        self.pids: list[int] = []
        self.lines: list[str] = []
        self._on_ready = on_ready

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if line.isdigit():
            self.pids.append(int(line))
        elif line == "ready":
            self._on_ready()


def raise_here(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


@pytest.fixture
def short_graces(monkeypatch: pytest.MonkeyPatch) -> None:
    sequence = ((signal.SIGINT, 0.3), (signal.SIGTERM, 0.3), (signal.SIGKILL, 10.0))
    monkeypatch.setattr(supervision, "STOP_SEQUENCE", sequence)
    monkeypatch.setattr(supervision, "_ORPHAN_SEQUENCE", sequence[1:])
    monkeypatch.setattr(supervision, "ORPHAN_GRACE_S", 0.3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_command_and_its_child(number: signal.Signals, processes) -> None:
    sink = Sink(raise_here(number))
    with pytest.raises(InterruptedRunError, match=number.name):
        run_command(ProcessRequest(family()), sink)
    assert len(sink.pids) == 2
    processes.assert_gone(sink.pids)


def test_processes_that_ignore_polite_signals_are_killed(short_graces, processes) -> None:
    sink = Sink(raise_here(signal.SIGINT))
    with pytest.raises(InterruptedRunError):
        run_command(ProcessRequest(family("SIGINT", "SIGTERM")), sink)
    processes.assert_gone(sink.pids)


def test_a_second_interrupt_does_not_wait_for_the_graces(processes) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    sink = Sink(twice)
    begin = time.monotonic()
    with pytest.raises(InterruptedRunError):
        run_command(ProcessRequest(family("SIGINT", "SIGTERM")), sink)
    assert time.monotonic() - begin < supervision.STOP_SEQUENCE[0][1]
    processes.assert_gone(sink.pids)


def test_the_application_may_finish_its_work_on_sigint(tmp_path) -> None:
    log = tmp_path / "log"
    code = (
        "import signal, sys, time\n"
        "def last_words(*_): print('flushed ' + 'x' * 100_000); sys.exit(0)\n"
        "signal.signal(signal.SIGINT, last_words)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(InterruptedRunError):
        run_command(
            ProcessRequest((sys.executable, "-c", code), log_path=log), Sink(raise_here(signal.SIGINT))
        )
    assert log.read_text().endswith("x\n")


def test_the_previous_signal_handlers_are_back_afterwards() -> None:
    def handlers() -> list[object]:
        return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]

    before = handlers()
    during: list[list[object]] = []
    run_command(ProcessRequest(("echo", "ready")), Sink(lambda: during.append(handlers())))
    assert handlers() == before
    assert all(inside != outside for inside, outside in zip(during[0], before, strict=True))


def test_a_signal_that_rpl_ignores_stays_ignored() -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        result = run_command(ProcessRequest(("echo", "ready")), Sink(raise_here(signal.SIGHUP)))
    finally:
        signal.signal(signal.SIGHUP, previous)
    assert result.succeeded


def test_the_time_limit_ends_the_whole_session(processes) -> None:
    sink = Sink()
    with pytest.raises(TimeLimitError, match=r"the demo did not end within 1\.5 s"):
        run_command(ProcessRequest(family(), time_limit_s=1.5, what="the demo"), sink)
    assert len(sink.pids) == 2
    processes.assert_gone(sink.pids)


def test_an_interrupt_while_the_time_limit_is_enforced_is_an_interrupt(monkeypatch, processes) -> None:
    stop = supervision.Supervision.stop

    def stop_interrupted(self: supervision.Supervision) -> tuple[int, ...]:
        os.kill(os.getpid(), signal.SIGINT)
        return stop(self)

    monkeypatch.setattr(supervision.Supervision, "stop", stop_interrupted)
    with pytest.raises(InterruptedRunError):
        run_command(ProcessRequest(("sleep", "600"), time_limit_s=0.2))


def test_a_time_limit_that_is_not_reached_changes_nothing() -> None:
    assert run_command(ProcessRequest(("true",), time_limit_s=30)).succeeded


def test_orphans_are_ended_and_counted(short_graces, processes) -> None:
    sink = Sink()
    result = run_command(ProcessRequest(("sh", "-c", "sleep 600 & echo $!; sleep 601 & echo $!")), sink)
    assert (result.exit_status, result.orphans) == (0, 2)
    processes.assert_gone(sink.pids)


def test_an_orphan_with_a_group_of_its_own_is_ended_too(short_graces, processes) -> None:
    sink = Sink()
    result = run_command(ProcessRequest(("bash", "-c", "set -m; sleep 600 & echo $!")), sink)
    assert result.orphans == 1
    processes.assert_gone(sink.pids)


def test_an_orphan_that_is_about_to_end_may_finish(tmp_path) -> None:
    log = tmp_path / "log"
    result = run_command(ProcessRequest(("sh", "-c", "(sleep 0.4; echo written) & exit 0"), log_path=log))
    assert result.orphans == 0
    assert log.read_text() == "written\n"


def test_a_daemon_that_left_the_session_does_not_hold_rpl_up(processes) -> None:
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); print(os.getpid(), flush=True); time.sleep(60)\n"
        "time.sleep(0.3)\n"
    )
    sink = Sink()
    begin = time.monotonic()
    result = run_command(ProcessRequest((sys.executable, "-c", code)), sink)
    assert (result.orphans, len(sink.pids)) == (0, 1)
    assert time.monotonic() - begin < 10
    os.kill(sink.pids[0], signal.SIGKILL)
    processes.wait_for_end(sink.pids[0])


def test_a_sink_that_raises_at_every_line_does_not_keep_the_command_alive(short_graces, processes) -> None:
    pids: list[int] = []
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGINT, lambda *_: print('not yet', flush=True))\n"
        "print(os.getpid(), flush=True)\n"
        "while True: time.sleep(600)\n"
    )

    def broken(line: str) -> None:
        pids.extend([int(line)] if line.isdigit() else [])
        raise BrokenPipeError("stderr is closed")

    with pytest.raises(BrokenPipeError):
        run_command(ProcessRequest((sys.executable, "-c", code)), broken)
    processes.assert_gone(pids)


def open_descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def children() -> set[str]:
    """Ids of the direct children, zombies included; other tests of this process may keep a browser."""
    tasks = Path("/proc/self/task").iterdir()
    return {pid for task in tasks for pid in (task / "children").read_text().split()}


def test_no_zombie_and_no_descriptor_is_left() -> None:
    descriptors, known = open_descriptors(), children()
    for _ in range(3):
        run_command(ProcessRequest(("true",)))
    assert open_descriptors() == descriptors
    assert children() <= known


def test_commands_run_outside_the_main_thread_too() -> None:
    results = []
    thread = threading.Thread(target=lambda: results.append(run_command(ProcessRequest(("true",)))))
    thread.start()
    thread.join(30)
    assert results[0].succeeded


def test_ctrl_c_of_a_whole_rpl_like_process_leaves_nothing(processes) -> None:
    script = (
        "import sys\n"
        "from rpl_core.process import ProcessRequest, run_command\n"
        "from rpl_core.errors import InterruptedRunError\n"
        "try: run_command(ProcessRequest(tuple(sys.argv[1:])), lambda line: print(line, flush=True))\n"
        "except InterruptedRunError: sys.exit(130)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, *family()], stdout=subprocess.PIPE, text=True
    ) as rpl:
        assert rpl.stdout is not None
        pids = [int(rpl.stdout.readline()) for _ in range(2)]
        assert rpl.stdout.readline() == "ready\n"
        rpl.send_signal(signal.SIGINT)
        assert rpl.wait(30) == 130
    processes.assert_gone(pids)
