"""The check ``validation-command``: a command of the user's exits 0 when the program is right."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import InterruptedRunError, RplError, UsageError
from rpl_core.values import frozen
from rpl_optimize.equivalence.output_spec import output_paths
from rpl_optimize.equivalence.places import fresh_place
from rpl_optimize.equivalence.program_run import ProgramRun, RunPlan, program_of, run_in, shown
from rpl_optimize.equivalence.working_copy import make_working_copy
from rpl_optimize.interfaces.equivalence import EquivalenceCheck, EquivalenceReport, EquivalenceVerdict
from rpl_optimize.isolation.application import how_to_do_without

if TYPE_CHECKING:
    from rpl_optimize.interfaces.equivalence import EquivalenceRequest

_PLACEHOLDER = re.compile(r"\{(?:program|directory|command)\}")
_NAMES_THE_PROGRAM = ("{program}", "{command}")


@frozen
class _Side:
    """One of the two builds; ``program`` may be unknown to a caller who has a command line only."""

    directory: Path
    command: tuple[str, ...]
    program: str
    what: str


class ValidationCommandCheck(EquivalenceCheck):
    """Runs each command for the baseline, which must pass, and for the candidate.

    ``{program}`` stands for the built program, ``{command}`` for the whole command line and ``{directory}``
    for the scratch directory, a stand-in for the user's own, in which it runs. There is no shell.
    """

    name = "validation-command"
    summary = "runs the user's own validation (--validate), which exits 0 when the program is right"

    def __init__(self) -> None:
        self._passed: set[tuple[Path, str, tuple[str, ...]]] = set()

    def check(self, request: EquivalenceRequest) -> EquivalenceReport:
        try:
            return self._check(request)
        except InterruptedRunError:
            raise
        except RplError as error:
            return _not_run(error.fact)

    def _check(self, request: EquivalenceRequest) -> EquivalenceReport:
        commands = request.options.validate
        if not commands:
            return _not_run("no validation command was given (--validate)")
        if not all(any(name in command for name in _NAMES_THE_PROGRAM) for command in commands):
            return _not_run("the validation names neither {program} nor {command}, so it can't see a change")
        if not request.baseline_command or request.baseline_command == request.candidate_command:
            return _not_run("no two command lines to validate")
        said = []
        for command in commands:
            report = self._one(request, command)
            if report.verdict is not EquivalenceVerdict.EQUAL:
                return report
            said.append(report.evidence)
        return EquivalenceReport(EquivalenceVerdict.EQUAL, "; ".join(said))

    def _one(self, request: EquivalenceRequest, validate: str) -> EquivalenceReport:
        """By one of the commands. Its name is in the evidence where there are several."""
        which = f" ({shown(validate)})" if len(request.options.validate) > 1 else ""
        problem = self._baseline_problem(request, validate)
        if problem is not None:
            return _not_run(f"{problem}{which}")
        run = _validate(request, _candidate(request), validate)
        if run.failure is None:
            words = f": {run.last_line}" if run.last_line else ""
            return EquivalenceReport(EquivalenceVerdict.EQUAL, f"the validation{which} passed{words}")
        return EquivalenceReport(EquivalenceVerdict.DIFFERENT, f"{run.explained()}{which}", run.crashed)

    def _baseline_problem(self, request: EquivalenceRequest, validate: str) -> str | None:
        key = (request.baseline_directory, validate, request.baseline_command)
        if key in self._passed:
            return None
        run = _validate(request, _baseline(request), validate)
        if run.failure is not None:
            return f"it fails for the unchanged program too: {run.explained()}{how_to_do_without()}"
        touched = run.copy.touched()
        if touched is not None:
            return f"it writes to {touched}, which is not named as an output"
        self._passed.add(key)
        return None


def _baseline(request: EquivalenceRequest) -> _Side:
    program = request.baseline_program or program_of(request.command, request.baseline_command)
    what = "the validation of the unchanged program"
    return _Side(request.baseline_directory, request.baseline_command, str(program), what)


def _candidate(request: EquivalenceRequest) -> _Side:
    program = request.candidate_program or program_of(request.command, request.candidate_command)
    return _Side(request.candidate_directory, request.candidate_command, str(program), "the validation")


def _validate(request: EquivalenceRequest, side: _Side, validate: str) -> ProgramRun:
    place = fresh_place(side.directory, "validation")
    outputs = output_paths(request.options.outputs)
    words = _words(validate)
    original = request.working_directory or Path.cwd()
    copy = make_working_copy(original, place / "work", outputs, (*words, *side.command))
    plan = RunPlan(
        command=tuple(part for word in words for part in _filled(word, side, copy.directory)),
        original=original,
        outputs=outputs,
        time_limit_s=request.options.time_limit_s,
        what=side.what,
        split_output=False,
    )
    return run_in(copy, plan, place)


def _words(validate: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(validate))
    except ValueError as error:
        raise UsageError(f"the validation command can't be split into words: {error}") from error
    if not words:
        raise UsageError("the validation command is empty")
    return words


def _filled(word: str, side: _Side, directory: Path) -> tuple[str, ...]:
    """``{command}`` alone becomes several words; inside a longer word it is quoted as for a shell."""
    if word == "{command}":
        return side.command
    values = {
        "{program}": side.program,
        "{directory}": str(directory),
        "{command}": shlex.join(side.command),
    }
    return (_PLACEHOLDER.sub(lambda found: values[found[0]], word),)


def _not_run(reason: str) -> EquivalenceReport:
    return EquivalenceReport(EquivalenceVerdict.NOT_RUN, reason)
