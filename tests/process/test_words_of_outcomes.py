"""What is said of every way in which a process can end, against POSIX's names and a shell's statuses.

A shell reports a child that signal n ended as status 128 + n (POSIX, Shell Command Language, 2.8.2).
"""

from __future__ import annotations

import signal
from itertools import product

from rpl_core.process import (
    ApplicationExitError,
    ProcessResult,
    describe_exit,
    ended_by,
    process_findings,
)

NAMES = {number.value: number.name for number in signal.Signals}
MEANT = {
    "SIGSEGV": "segmentation fault",
    "SIGBUS": "bus error",
    "SIGABRT": "it aborted",
    "SIGFPE": "arithmetic error",
}


def test_every_status():
    for status in range(256):
        result = ProcessResult(status, None, 1.0)
        said = describe_exit(result)
        assert said.startswith(f"exited with status {status}")
        name = NAMES.get(status - 128) if status > 128 else None
        assert ("as after" in said) == (name is not None), said
        assert name is None or f"(as after {name}" in said
        assert result.succeeded == (status == 0)
        assert [n for n in signal.Signals if ended_by(result, n)] == [
            n for n in signal.Signals if n == status - 128
        ]


def test_every_signal():
    for number in range(1, 70):
        result = ProcessResult(None, number, 1.0)
        said = describe_exit(result)
        assert said.startswith(f"was ended by {NAMES.get(number, f'signal {number}')}")
        meant = MEANT.get(NAMES.get(number, ""))
        assert meant is None or f"({meant})" in said
        assert not result.succeeded
        assert [n for n in signal.Signals if ended_by(result, n)] == [
            n for n in signal.Signals if n == number
        ]
        error = ApplicationExitError(result, what="it", cause="c", next_step="n")
        assert (error.fact, error.signal, error.exit_status) == (f"it {said}", number, None)
        assert (error.cause, error.next_step) == ("c", "n")


def test_findings_of_a_pass():
    for orphans, problem in product((0, 1, 7), (None, "the disk is full")):
        found = {
            one.code: one for one in process_findings("run_1", ProcessResult(0, None, 1.0, orphans, problem))
        }
        assert set(found) == {
            *(["collect.orphans_ended"] if orphans else []),
            *(["collect.log_incomplete"] if problem else []),
        }
        assert {one.where for one in found.values()} <= {"run_1"}
        if orphans:
            assert found["collect.orphans_ended"].count == orphans
        if problem:
            assert problem in found["collect.log_incomplete"].fact
