"""Tasks in processes of this machine: what comes back, who dies, and what is left."""

from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path

import pytest

from rpl_core.errors import BadDataError
from rpl_core.executors import MOST_LOSSES, LocalExecutor
from rpl_core.interfaces.executor import ExecutorRequest, Task


def shout(argument, place):
    return f"{argument.upper()} in {os.environ.get('PLACE')}" if place else ""


def refuse(argument, _place):
    raise BadDataError(f"{argument} is broken", next_step="throw it away")


def stumble(argument, _place):
    return argument.nothing


def die(argument, _place):
    """The first times only: ``argument`` names a file that counts, and how often."""
    path, times = argument.split("|")
    log = Path(path)
    log.write_text((log.read_text() if log.exists() else "") + "x")
    if len(log.read_text()) <= int(times):
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def sleep(argument, _place):
    Path(argument).write_text(str(os.getpid()))
    time.sleep(600)
    return ""


def look_at_own_process(_argument, _place):
    import numpy  # noqa: F401, ICN001 - what it starts is looked at

    threads = len(list(Path("/proc/self/task").iterdir()))
    return f"{threads} {gc.get_threshold()[0]} {os.environ.get('OPENBLAS_NUM_THREADS')}"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Workers import the functions above by the name that this module has here."""
    root = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))))
    for function in (shout, refuse, stumble, die, sleep, look_at_own_process):
        monkeypatch.setattr(function, "__module__", "test_local")


def _done(workers, tasks):
    for task in tasks:
        workers.submit(task)
    answers = []
    while len(answers) < len(tasks):
        answers += workers.wait(60)
    return {answer.number: answer for answer in answers}


def test_every_task_is_answered_once():
    with LocalExecutor().open(ExecutorRequest(jobs=2)) as workers:
        assert len(workers.places()) == 2
        tasks = [Task(n, shout, f"task {n}") for n in range(5)]
        answers = _done(workers, [*tasks, Task(5, refuse, "five"), Task(6, stumble, "six")])
    assert [answers[n].text for n in range(5)] == [f"TASK {n} in None" for n in range(5)]
    assert (answers[5].error, answers[5].exit_code) == ("five is broken. Next: throw it away.", 65)
    assert (answers[6].exit_code, answers[6].lost) == (70, False)
    assert "AttributeError" in answers[6].error


def test_a_worker_is_as_cheap_as_a_command_and_tells_its_application_nothing_of_it(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with LocalExecutor().open(ExecutorRequest(jobs=1)) as workers:
        told = _done(workers, [Task(1, look_at_own_process, "")])[1].text
    assert told == "1 200000 None"


def test_a_device_has_a_process_that_knows_it():
    request = ExecutorRequest(devices=("a", "b"), device_variables=("PLACE", "OTHER"))
    with LocalExecutor().open(request) as workers:
        first, second = workers.places()
        tasks = [Task(1, shout, "x", second), Task(2, shout, "x", first), Task(3, shout, "x", second)]
        answers = _done(workers, tasks)
    assert [answers[n].text for n in (1, 2, 3)] == ["X in b", "X in a", "X in b"]
    assert [answers[n].place for n in (1, 2, 3)] == [second, first, second]


def test_a_task_whose_worker_dies_is_done_again(tmp_path):
    with LocalExecutor().open(ExecutorRequest()) as workers:
        answers = _done(
            workers, [Task(1, die, f"{tmp_path / 'log'}|{MOST_LOSSES - 1}"), Task(2, shout, "next")]
        )
    assert (answers[1].text, answers[2].text) == ("alive", "NEXT in None")


def test_a_task_that_kills_its_workers_is_given_up(tmp_path):
    with LocalExecutor().open(ExecutorRequest()) as workers:
        answers = _done(workers, [Task(1, die, f"{tmp_path / 'log'}|1000"), Task(2, shout, "next")])
    assert answers[1].lost
    assert "memory" in answers[1].error
    assert (tmp_path / "log").read_text() == "x" * MOST_LOSSES
    assert answers[2].text == "NEXT in None"


def test_leaving_ends_what_runs(tmp_path):
    with LocalExecutor().open(ExecutorRequest()) as workers:
        workers.submit(Task(1, sleep, str(tmp_path / "pid")))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert workers.wait(0.05) == ()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
