"""The two built-in checks: what runs write is compared, or a command of the user's says that it is right."""

from __future__ import annotations

import math
import re
import shlex
import shutil
from itertools import zip_longest
from pathlib import Path

from rpl_core.errors import InterruptedRunError, RplError, UsageError
from rpl_core.values import frozen
from rpl_optimize.equivalence.outputs import (
    Comparison,
    OutputSpec,
    Tolerance,
    blocks_of,
    compare_npy,
    compare_raw,
    compare_text,
    looks_like_text,
    output_paths,
    read_outputs,
)
from rpl_optimize.equivalence.program_run import (
    ProgramRun,
    RunPlan,
    fresh_place,
    make_working_copy,
    program_of,
    run_in,
    run_program,
    shown,
)
from rpl_optimize.interfaces.equivalence import (
    EquivalenceCheck,
    EquivalenceReport,
    EquivalenceRequest,
    EquivalenceVerdict,
)
from rpl_optimize.running.sandbox import how_to_do_without


@frozen
class _Reference:
    """A run of the unchanged program; ``spread`` says how far its second run departed."""

    run: ProgramRun
    spread: str | None


class OutputFilesCheck(EquivalenceCheck):
    """Compares the outputs that the user names: bytes, or numbers within the tolerance."""

    name = "output-files"
    summary = "compares the files that the program writes (--output-file), or its standard output"

    def __init__(self) -> None:
        self._references: dict[object, _Reference] = {}

    def check(self, request: EquivalenceRequest) -> EquivalenceReport:
        try:
            return self._check(request)
        except InterruptedRunError:
            raise
        except RplError as error:
            return _not_run(error.one_line())
        except OSError as error:
            return _not_run(f"an output can't be read: {error}")

    def _check(self, request: EquivalenceRequest) -> EquivalenceReport:
        problem = _request_problem(request)
        if problem is not None:
            return _not_run(problem)
        specs = read_outputs(request.options.outputs)
        reference = self._reference(request, specs)
        if isinstance(reference, str):
            return _not_run(reference)
        place = fresh_place(request.candidate_directory, "run")
        run = run_program(_plan(request, request.candidate_command, "the program"), place)
        report = _judge(specs, reference, run, _tolerance(request))
        if report.verdict is not EquivalenceVerdict.DIFFERENT:  # kept for a look at what differs
            shutil.rmtree(place, ignore_errors=True)
        return report

    def _reference(self, request: EquivalenceRequest, specs: tuple[OutputSpec, ...]) -> _Reference | str:
        """The unchanged program's outputs, or why there are none to compare with."""
        key = (request.baseline_directory, request.baseline_command, request.options.outputs)
        kept = self._references.get(key)
        if kept is not None and kept.run.copy.directory.is_dir():
            return kept
        made = _run_baseline(request, specs)
        if isinstance(made, _Reference):
            self._references[key] = made
        return made


def _request_problem(request: EquivalenceRequest) -> str | None:
    options = request.options
    if not options.outputs:
        return "no outputs were named (--output-file)"
    if not request.baseline_command or not request.candidate_command:
        return "there are no two programs to run"
    if request.baseline_command == request.candidate_command:
        return "both command lines run the same program"
    if not all(math.isfinite(limit) and limit >= 0 for limit in (options.relative, options.absolute)):
        return "a tolerance must be a number that is not negative"
    return None


def _tolerance(request: EquivalenceRequest) -> Tolerance:
    return Tolerance(request.options.relative, request.options.absolute)


def _plan(request: EquivalenceRequest, command: tuple[str, ...], what: str) -> RunPlan:
    return RunPlan(
        command=command,
        original=request.working_directory or Path.cwd(),
        outputs=output_paths(request.options.outputs),
        time_limit_s=request.options.time_limit_s,
        what=what,
    )


def _run_baseline(request: EquivalenceRequest, specs: tuple[OutputSpec, ...]) -> _Reference | str:
    plan = _plan(request, request.baseline_command, "the unchanged program")
    runs: list[ProgramRun] = []
    for _ in range(2):
        run = run_program(plan, fresh_place(request.baseline_directory, "run"))
        problem = _baseline_problem(specs, run)
        if problem is not None:
            return problem
        runs.append(run)
    compared = [(spec, _compare(spec, runs[0], runs[1], _tolerance(request))) for spec in specs]
    shutil.rmtree(runs[1].stdout.parent, ignore_errors=True)
    for spec, comparison in compared:
        if not comparison.equal:
            return f"two runs of the unchanged program differ in {spec.name}: {comparison.detail}"
    spread = [f"{spec.name}: {comparison.detail}" for spec, comparison in compared if comparison.spread]
    return _Reference(runs[0], "; ".join(spread) or None)


def _baseline_problem(specs: tuple[OutputSpec, ...], run: ProgramRun) -> str | None:
    if run.failure is not None:
        return f"{run.explained()}{how_to_do_without()}"
    touched = run.copy.touched()
    if touched is not None:
        return f"the program writes to {touched}, which is not named as an output"
    missing = [spec.name for spec in specs if _file(spec, run) is None]
    if missing:
        return f"the unchanged program does not write {missing[0]}"
    if run.stdout_problem is not None and any(spec.path is None for spec in specs):
        return f"its standard output can't be compared: {run.stdout_problem}"
    return None


def _judge(
    specs: tuple[OutputSpec, ...], reference: _Reference, run: ProgramRun, tolerance: Tolerance
) -> EquivalenceReport:
    if run.failure is not None:
        detail = f"the unchanged program ends well, but {run.explained()}"
        return EquivalenceReport(EquivalenceVerdict.DIFFERENT, detail, run.crashed)
    found = [(spec, _compare(spec, reference.run, run, tolerance)) for spec in specs]
    verdict = _verdict([comparison for _, comparison in found])
    if verdict is EquivalenceVerdict.EQUAL and _all_empty(specs, run):
        return _not_run("all outputs are empty, in the unchanged program too")
    shown = [(s, c) for s, c in found if verdict is EquivalenceVerdict.EQUAL or not c.equal]
    evidence = "; ".join(f"{spec.name}: {comparison.detail}" for spec, comparison in shown)
    touched = run.copy.touched()
    if touched is not None and verdict is EquivalenceVerdict.EQUAL:
        return _not_run(f"the program writes to {touched}, which is not named as an output")
    if reference.spread is not None:
        evidence += f" (two runs of the unchanged program: {reference.spread})"
    return EquivalenceReport(verdict, evidence)


def _verdict(comparisons: list[Comparison]) -> EquivalenceVerdict:
    if any(comparison.equal is False for comparison in comparisons):
        return EquivalenceVerdict.DIFFERENT
    if any(comparison.equal is None for comparison in comparisons):
        return EquivalenceVerdict.NOT_RUN
    return EquivalenceVerdict.EQUAL


def _compare(spec: OutputSpec, baseline: ProgramRun, other: ProgramRun, tolerance: Tolerance) -> Comparison:
    left, right = _file(spec, baseline), _file(spec, other)
    if left is None:
        return Comparison(None, "the unchanged program's file is gone")
    if right is None:
        return Comparison(False, "it is not written")
    if spec.path is None and other.stdout_problem is not None:
        return Comparison(None, other.stdout_problem)
    return compare_outputs(spec, left, right, tolerance)


def _file(spec: OutputSpec, run: ProgramRun) -> Path | None:
    """The output as a plain file inside the run's own directory, or ``None``.

    A link could lead to a file that another run wrote.
    """
    if spec.path is None:
        return run.stdout
    path = run.copy.directory / spec.path
    parents = [run.copy.directory.joinpath(parent) for parent in spec.path.parents]
    linked = any(part.is_symlink() for part in (path, *parents[:-1]))
    return path if path.is_file() and not linked else None


def _all_empty(specs: tuple[OutputSpec, ...], run: ProgramRun) -> bool:
    files = [_file(spec, run) for spec in specs]
    return all(file is None or file.stat().st_size == 0 for file in files)


def _not_run(reason: str) -> EquivalenceReport:
    return EquivalenceReport(EquivalenceVerdict.NOT_RUN, reason)


def compare_outputs(spec: OutputSpec, baseline: Path, candidate: Path, tolerance: Tolerance) -> Comparison:
    """Compare two existing files. Equal bytes are always equal; a tolerance needs numbers."""
    exact = compare_bytes(baseline, candidate)
    if exact.equal or tolerance.exact:
        return exact
    if spec.number_type is not None:
        return compare_raw(baseline, candidate, spec.number_type, tolerance)
    if spec.name.endswith(".npy"):
        return compare_npy(baseline, candidate, tolerance)
    if looks_like_text(baseline) and looks_like_text(candidate):
        return compare_text(baseline, candidate, tolerance)
    kind = "binary" if not looks_like_text(baseline) else "text in the baseline only"
    return Comparison(
        None,
        f"its bytes differ, and it is {kind}: to apply a tolerance, say what it holds, for example"
        f" {spec.name}:f32",
    )


def compare_bytes(baseline: Path, candidate: Path) -> Comparison:
    """Equal bytes, or where the first difference is."""
    sizes = baseline.stat().st_size, candidate.stat().st_size
    offset, line = 0, 1
    for left, right in zip_longest(blocks_of(baseline), blocks_of(candidate), fillvalue=b""):
        if left != right:
            at = _first_difference(left, right)
            line += left.count(b"\n", 0, at)
            sized = "" if sizes[0] == sizes[1] else f"{sizes[0]} bytes became {sizes[1]}; "
            return Comparison(False, f"{sized}the first difference is at byte {offset + at} (line {line})")
        offset, line = offset + len(left), line + left.count(b"\n")
    return Comparison(True, f"{offset} bytes equal")


def _first_difference(left: bytes, right: bytes) -> int:
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while high - low > 1:  # the first difference is in [low, high)
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


# The check ``validation-command``: a command of the user's exits 0 when the program is right.

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
