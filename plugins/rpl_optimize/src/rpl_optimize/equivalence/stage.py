"""Run every equivalence check on a candidate, and show each that says "equal" two wrong kernels."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.values import frozen
from rpl_optimize.contracts import CheckPart, ControlPart
from rpl_optimize.interfaces.builder import BuildFailure
from rpl_optimize.interfaces.equivalence import (
    EquivalenceCheck,
    EquivalenceOptions,
    EquivalenceReport,
    EquivalenceRequest,
    EquivalenceVerdict,
    KernelPairs,
)
from rpl_optimize.interfaces.proposer import InstalledTransformation
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_optimize.transform import able_to_read, apply_edits, ask

if TYPE_CHECKING:
    from rpl_core.plugins.catalog import NamedContributions
    from rpl_optimize.build.builders import BuiltProgram, ProgramBuilder


@frozen
class EquivalenceSubject:
    """One candidate beside its baseline.

    ``source`` is the text that ``baseline`` was built from, with the name of the changed kernel;
    ``command`` is the user's whole command line, ``original`` the source whose host code all builds have;
    ``None``: that of ``source``. ``same_launches`` and ``same_barriers`` as in ``EquivalenceRequest``.
    """

    source: KernelSource
    baseline: BuiltProgram
    candidate: BuiltProgram
    command: tuple[str, ...]
    original: bytes | None = None
    same_launches: bool = True
    same_barriers: bool = True


ControlName = Literal["empty", "broken"]
#: In the order in which they are shown: a check that misses the first needs no second.
CONTROLS: tuple[ControlName, ...] = ("empty", "broken")


@frozen
class NoControl:
    """Why there is no program to show."""

    reason: str


class ControlBuilds:
    """Makes each control of a kernel once; ``build`` gives the same answer for the same baseline."""

    def __init__(self, transformations: Sequence[InstalledTransformation], builder: ProgramBuilder) -> None:
        self._transformations = transformations
        self._builder = builder
        self._made: dict[tuple[str, str | None, str], BuiltProgram | NoControl] = {}

    def build(
        self, control: ControlName, subject: EquivalenceSubject, directory: Path
    ) -> BuiltProgram | NoControl:
        """The wrong program, built in ``directory`` (which must not exist) unless it was built before.

        Raises ``InterruptedRunError``.
        """
        key = (subject.baseline.binary_sha256, subject.source.kernel, control)
        kept = self._made.get(key)
        if isinstance(kept, NoControl) or (kept is not None and kept.binary.is_file()):
            return kept
        self._made[key] = made = self._make(control, subject, directory)
        return made

    def _make(
        self, control: ControlName, subject: EquivalenceSubject, directory: Path
    ) -> BuiltProgram | NoControl:
        text = self._text_of(control, subject.source)
        if isinstance(text, NoControl):
            return text
        try:
            directory.mkdir(parents=True)
            built = self._builder.build(text, directory, subject.original)
        except InterruptedRunError:
            raise
        except (RplError, OSError) as error:
            return NoControl(f"the {control} kernel can't be built: {error}")
        if isinstance(built, BuildFailure):
            return NoControl(f"the {control} kernel does not build: {built.reason}")
        if built.host_code is not None and not built.host_code.passed:
            return NoControl(f"the {control} kernel is refused: {built.host_code.reason}")
        if built.code_sha256 == subject.baseline.code_sha256:
            return NoControl(f"the {control} kernel compiles to the baseline's own code")
        return built

    def _text_of(self, control: ControlName, source: KernelSource) -> bytes | NoControl:
        """The source with the kernel made wrong by the first transformation that can."""
        problems = []
        for one in able_to_read(source, self._transformations):
            answer = ask(one, "controls", partial(_changed_by, one, control, source))
            if isinstance(answer, bytes):
                return answer
            if answer is not None:
                problems.append(answer.fact)
        why = f": {'; '.join(problems)}" if problems else ""
        return NoControl(f"no plugin can make the {control} version of kernel {source.kernel}{why}")


def _changed_by(one: InstalledTransformation, control: ControlName, source: KernelSource) -> bytes | None:
    """The source as the transformation's control makes it, if it has one that changes something."""
    for offered in one.transformation.controls(source):
        if offered.kernel == source.kernel is not None and offered.id == control and offered.edits:
            changed = apply_edits(source.text, offered.edits)
            if changed == source.text:
                raise ValueError("the edits change nothing")
            return changed
    return None


# Run every equivalence check on a candidate, and show each that says "equal" two wrong kernels.
#
# A check that calls a wrong kernel equal says nothing about the candidate: it is blind. So is one to which
# no wrong kernel could be shown, or that only saw wrong kernels crash.

_EQUAL, _DIFFERENT = EquivalenceVerdict.EQUAL, EquivalenceVerdict.DIFFERENT
_NOT_RUN, _BLIND = EquivalenceVerdict.NOT_RUN, EquivalenceVerdict.BLIND
#: A control that hangs must not cost the user's whole time limit: it gets this many times what the
#: candidate's check took, and at least so many seconds.
CONTROL_TIME_FACTOR = 10.0
CONTROL_TIME_S = 60.0


@frozen
class _Shown:
    """What a check said about one control."""

    control: ControlName
    report: EquivalenceReport

    @property
    def noticed(self) -> bool:
        return self.report.verdict is _DIFFERENT

    def part(self) -> ControlPart:
        return ControlPart(
            control=self.control, verdict=self.report.verdict.value, evidence=self.report.evidence
        )


class EquivalenceStage:
    """Checks candidates of one session; what controls showed is kept for later candidates.

    ``runner`` makes of a command the words that run it on the session's device.
    """

    def __init__(
        self,
        checks: NamedContributions[EquivalenceCheck],
        transformations: Sequence[InstalledTransformation],
        builder: ProgramBuilder,
        options: EquivalenceOptions,
        runner: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda command: command,
    ) -> None:
        self._checks = checks
        self._builder = builder
        self._options = options
        self._runner = runner
        self._controls = ControlBuilds(transformations, builder)
        self._baseline_places: dict[tuple[str, str], Path] = {}
        self._seen: dict[tuple[str, str | None, str, str], _Shown] = {}

    def run(self, subject: EquivalenceSubject, directory: Path) -> tuple[CheckPart, ...]:
        """One part per check, in the order of the checks. Everything is written inside ``directory``.

        All checks see the candidate before any control is built; the first ``different`` ends the work.
        Raises ``InterruptedRunError`` only; any other failure of a check counts as ``not_run``.
        """
        reports: dict[str, EquivalenceReport] = {}
        seconds: dict[str, float] = {}
        for name in self._checks.names:
            begin = time.monotonic()
            reports[name] = self._ask(name, self._request(name, subject, subject.candidate, directory))
            seconds[name] = time.monotonic() - begin
            if reports[name].verdict is _DIFFERENT:
                break
        decided = next((name for name, found in reports.items() if found.verdict is _DIFFERENT), None)
        parts = []
        for name in self._checks.names:
            if name not in reports:
                part = _part(name, _not_run(f"not needed: {decided} calls the candidate different"))
            elif reports[name].verdict is _EQUAL and decided is None:
                limit_s = max(CONTROL_TIME_S, CONTROL_TIME_FACTOR * seconds[name])
                part = self._with_controls(name, reports[name], subject, directory, limit_s)
            else:
                part = _part(name, reports[name])
            parts.append(part)
        return tuple(parts)

    def timing(self, parts: Sequence[CheckPart]) -> str | None:
        """The first check that called the candidate equal, is not blind, and can run the kernel alone."""
        for part in parts:
            check = self._checks.get(part.check)
            if part.verdict == "equal" and type(check).time_kernel is not EquivalenceCheck.time_kernel:
                return part.check
        return None

    def time_kernel(
        self, name: str, subject: EquivalenceSubject, directory: Path, candidate_first: tuple[bool, ...]
    ) -> KernelPairs:
        """Pairs by that check; whatever goes wrong in it is a problem."""
        request = self._request(name, subject, subject.candidate, directory)
        try:
            for folder in (request.baseline_directory, request.candidate_directory):
                folder.mkdir(parents=True, exist_ok=True)
            with plugin_boundary(self._checks.plugin_of(name), f"equivalence check {name}"):
                pairs = self._checks.get(name).time_kernel(request, candidate_first)
                return require_value(pairs or KernelPairs(problem="it gave no pairs"), KernelPairs)
        except InterruptedRunError:
            raise
        except RplError as error:
            return KernelPairs(problem=error.one_line())
        except OSError as error:
            return KernelPairs(problem=f"no directory to work in: {error}")

    def _with_controls(
        self,
        name: str,
        report: EquivalenceReport,
        subject: EquivalenceSubject,
        directory: Path,
        limit_s: float,
    ) -> CheckPart:
        shown: list[_Shown] = []
        for control in CONTROLS:
            shown.append(self._show(control, name, subject, directory, limit_s))
            if not shown[-1].noticed:
                break
        problem = _blindness(shown)
        if problem is not None:
            report = EquivalenceReport(_BLIND, f"{problem}; of the candidate it says: {report.evidence}")
        return _part(name, report, tuple(shown))

    def _show(
        self, control: ControlName, name: str, subject: EquivalenceSubject, directory: Path, limit_s: float
    ) -> _Shown:
        key = (subject.baseline.binary_sha256, subject.source.kernel, name, control)
        if key in self._seen:
            return self._seen[key]
        built = self._controls.build(control, subject, _unused(directory / f"control-{control}"))
        if isinstance(built, NoControl):
            return _Shown(control, _not_run(built.reason))
        request = self._request(name, subject, built, directory)
        limit_s = min(limit_s, request.options.time_limit_s)
        options = attrs.evolve(request.options, time_limit_s=limit_s)
        shown = _Shown(control, self._ask(name, attrs.evolve(request, options=options)))
        shutil.rmtree(request.candidate_directory, ignore_errors=True)
        if shown.report.verdict is not _NOT_RUN:  # a full disk may be over the next time
            self._seen[key] = shown
        return shown

    def _request(
        self, name: str, subject: EquivalenceSubject, build: BuiltProgram, directory: Path
    ) -> EquivalenceRequest:
        folder = directory.absolute() / re.sub(r"[^\w.-]", "_", name)
        # One for all candidates of a baseline: what its runs gave need not be made again.
        kept = self._baseline_places.setdefault((subject.baseline.binary_sha256, name), folder / "baseline")
        return EquivalenceRequest(
            baseline_directory=kept,
            candidate_directory=_unused(folder / f"candidate-{build.binary_sha256[:12]}"),
            command=subject.command,
            baseline_command=self._command(subject.baseline),
            candidate_command=self._command(build),
            options=self._options,
            baseline_program=subject.baseline.binary.absolute(),
            candidate_program=build.binary.absolute(),
            same_launches=subject.same_launches or build is not subject.candidate,
            same_barriers=subject.same_barriers or build is not subject.candidate,
        )

    def _command(self, build: BuiltProgram) -> tuple[str, ...]:
        """With an absolute program: checks run it in other directories."""
        program, absolute = str(build.binary), str(build.binary.absolute())
        words = self._builder.command_for(build)
        return self._runner(tuple(absolute if word == program else word for word in words))

    def _ask(self, name: str, request: EquivalenceRequest) -> EquivalenceReport:
        """The check's answer; whatever goes wrong in it is ``not_run``, never ``equal``."""
        try:
            for folder in (request.baseline_directory, request.candidate_directory):
                folder.mkdir(parents=True, exist_ok=True)
            with plugin_boundary(self._checks.plugin_of(name), f"equivalence check {name}"):
                return require_value(self._checks.get(name).check(request), EquivalenceReport)
        except InterruptedRunError:
            raise
        except RplError as error:
            return _not_run(error.one_line())
        except OSError as error:
            return _not_run(f"no directory to work in: {error}")


def _blindness(shown: list[_Shown]) -> str | None:
    """Why the check can't be trusted, or ``None``: it noticed every control, one by its results."""
    missed = next((entry for entry in shown if not entry.noticed), None)
    if missed is not None and missed.report.verdict is _NOT_RUN:
        return f"it could not be shown a wrong kernel: {missed.report.evidence}"
    if missed is not None:
        return f"it does not notice a kernel that {_WRONG[missed.control]}"
    if all(entry.report.crashed for entry in shown):
        return "every wrong kernel crashed, so nobody knows whether it notices wrong results"
    return None


_WRONG: dict[ControlName, str] = {"empty": "does nothing", "broken": "stores wrong values"}


def _part(name: str, report: EquivalenceReport, shown: tuple[_Shown, ...] = ()) -> CheckPart:
    return CheckPart(
        check=name,
        verdict=report.verdict.value,
        evidence=report.evidence,
        controls=tuple(entry.part() for entry in shown),
    )


def _not_run(reason: str) -> EquivalenceReport:
    return EquivalenceReport(_NOT_RUN, reason)


def _unused(path: Path) -> Path:
    """``path``, or with a number behind it where it exists."""
    number, candidate = 1, path
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate
