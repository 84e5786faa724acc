"""One run of one build in a stand-in for the user's working directory."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import TimeLimitError
from rpl_core.process import ProcessRequest
from rpl_core.process.outcome import describe_exit
from rpl_core.values import frozen
from rpl_optimize.equivalence.working_copy import levels_up, make_working_copy
from rpl_optimize.isolation.application import run_application

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import PurePosixPath

    from rpl_core.process import ProcessResult
    from rpl_optimize.equivalence.working_copy import WorkingCopy

#: A shell reports a child ended by signal n as 128 + n; 255 is what a program that returns -1 gives.
_SHELL_SIGNALS = range(129, 129 + signal.SIGRTMAX)
_SHOWN_CHARACTERS = 200


@frozen
class ProgramRun:
    """``failure`` says how it failed, ``None`` for exit status 0; ``crashed``: by a signal or a time limit.

    ``stdout_problem`` says why the file at ``stdout`` is incomplete. ``last_line`` is the last of its
    output that is not empty, without control characters.
    """

    copy: WorkingCopy
    stdout: Path
    failure: str | None = None
    crashed: bool = False
    stdout_problem: str | None = None
    last_line: str = ""

    def explained(self) -> str:
        """The failure with the program's last words."""
        return f"{self.failure}: {self.last_line}" if self.last_line else f"{self.failure}"


@frozen
class RunPlan:
    """``outputs`` are left out of the stand-in. ``what`` names the program in messages."""

    command: tuple[str, ...]
    original: Path
    outputs: tuple[PurePosixPath, ...]
    time_limit_s: float
    what: str
    split_output: bool = True

    @property
    def readable(self) -> tuple[Path, ...]:
        """The user's working directory and the parents that a stand-in leads to, as far as they are near."""
        original = self.original.resolve()
        return (original, *tuple(original.parents)[: levels_up(self.command)])


def run_program(plan: RunPlan, place: Path) -> ProgramRun:
    """Run inside ``place``, which must be new. A program that fails is a result, not an error.

    Raises ``MissingError`` or ``UsageError`` when it can't be started or ``place`` can't be written, and
    ``InterruptedRunError``.
    """
    copy = make_working_copy(plan.original, place / "work", plan.outputs, plan.command)
    return run_in(copy, plan, place)


def run_in(copy: WorkingCopy, plan: RunPlan, place: Path) -> ProgramRun:
    """As ``run_program``, in a stand-in that exists."""
    stdout, last = place / "stdout", _LastLine()
    request = ProcessRequest(
        command=plan.command,
        log_path=place / "log",
        time_limit_s=plan.time_limit_s,
        what=plan.what,
        working_directory=copy.directory,
        stdout_path=stdout if plan.split_output else None,
    )
    try:
        result = run_application(request, last.take, place.absolute(), plan.readable)
    except TimeLimitError as error:
        return ProgramRun(copy, stdout, error.fact, crashed=True, last_line=last.line)
    run = ProgramRun(copy, stdout, stdout_problem=result.stdout_problem, last_line=last.line or _tail(stdout))
    if result.succeeded:
        return run
    return attrs.evolve(run, failure=f"{plan.what} {describe_exit(result)}", crashed=_crashed(result))


def _crashed(result: ProcessResult) -> bool:
    return result.exit_status is None or result.exit_status in _SHELL_SIGNALS


class _LastLine:
    def __init__(self) -> None:
        self.line = ""

    def take(self, line: str) -> None:
        self.line = shown(line) or self.line


def shown(text: str) -> str:
    """Foreign text as a short part of a sentence."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _SHOWN_CHARACTERS]).split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..."


def _tail(path: Path) -> str:
    """The last line of a file that is not empty, out of its last block."""
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - 4096))
        lines = stream.read().decode("utf-8", "replace").splitlines()
    return next((line for line in map(shown, reversed(lines)) if line), "")


def program_of(command: Iterable[str], built: Iterable[str]) -> str:
    """The built program in a command line: the word that differs from the user's own."""
    original, changed = tuple(command), tuple(built)
    pairs = zip(original, changed)  # noqa: B905 - lengths may differ
    return next((new for old, new in pairs if old != new), changed[0])
