"""From replays to a verdict, with the wrong kernels that a comparison must notice to be believed."""

from __future__ import annotations

import tempfile
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.interfaces.options import Options
from rpl_core.values import frozen
from rpl_vmreplay.capture.ranges import size_of
from rpl_vmreplay.compare.data_types import NOT_A_NUMBER, DataType, distances, values_of
from rpl_vmreplay.compare.experiment import CRASHES, PATTERNS, Experiment, NoBaselineError
from rpl_vmreplay.compare.outputs import Output, outputs_of, variable_output
from rpl_vmreplay.interfaces.replayer import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rpl_codeobject.values import CodeObject
    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.compare.experiment import Answer, Baseline
    from rpl_vmreplay.compare.mutants import Mutant
    from rpl_vmreplay.interfaces.replayer import MemoryRange, Replayer

#: Wrong kernels that are shown, how many there have to be, and how many may pass unnoticed.
MUTANTS, LEAST_MUTANTS, MOST_SURVIVORS = 12, 8, 2
#: Edits that the replayer refuses are replaced, up to so many.
_MOST_TRIED = 60
#: A few runs see a part of what other orders can do.
SPREAD_FACTOR = 2
#: Looking for races takes longer than running.
SANITIZED_LONGER = 10


class Verdict(str, Enum):
    EQUAL = "equal"
    DIFFERENT = "different"
    BLIND = "blind"
    UNDECIDED = "undecided"


class ControlOutcome(str, Enum):
    BY_RESULTS = "noticed"
    CRASHED = "crashed"
    SURVIVED = "survived"
    REFUSED = "refused"  # the replayer does not run it, so nothing was shown


@frozen
class OutputResult:
    """``worst`` and ``tolerance`` in units in the last place; ``NOT_A_NUMBER``: one side is none, or bytes
    differ. ``spread`` is what the baseline's own runs differ by."""

    output: Output
    spread: int
    tolerance: int
    differing: int
    worst: int
    first: MemoryRange | None = None
    expected: str | None = None
    found: str | None = None


@frozen
class Control:
    edit: str
    outcome: ControlOutcome


@frozen
class Judgement:
    """``controls`` begin with the empty kernel; none were shown where the verdict does not need them.
    ``yardstick`` judges later runs of the same code."""

    verdict: Verdict
    reason: str
    outputs: tuple[OutputResult, ...] = ()
    outside: tuple[MemoryRange, ...] = ()
    controls: tuple[Control, ...] = ()
    poisoned_bytes: int | None = None
    read_first_bytes: int | None = None
    replays: int = 0
    crashed: bool = False  # different, because the candidate did not come to its end
    yardstick: Yardstick | None = None
    findings: tuple[str, ...] | None = None  # of the candidate alone; None: not looked for
    usual_findings: tuple[str, ...] = ()  # kinds that the baseline has, so that they count for nothing

    @property
    def survivors(self) -> tuple[str, ...]:
        return tuple(one.edit for one in self.controls if one.outcome is ControlOutcome.SURVIVED)


@frozen
class Subjects:
    """``a`` and ``b`` as files and as what was read of them, with the kernel's name."""

    a: Path
    b: Path
    a_code: CodeObject
    kernel: str


@frozen
class Allowance:
    """``ulps`` more than the baseline's spread allows; ``unknown``: the type of what has none."""

    ulps: int = 0
    unknown: DataType = DataType.BYTES


def judge(experiment: Experiment, subjects: Subjects, allowance: Allowance) -> Judgement:
    """Everything is replayed here; what can't be expected to work ends as ``UNDECIDED``."""
    try:
        baseline = experiment.baseline(subjects.a)
        scale = _scale(experiment.capture, baseline, allowance)
    except NoBaselineError as error:
        return Judgement(Verdict.UNDECIDED, str(error), replays=experiment.replays)
    judgement = _of_candidate(experiment, subjects.b, baseline, scale)
    if judgement.verdict is Verdict.EQUAL and experiment.sanitize:
        judgement = _sanitized(experiment, subjects, baseline, judgement)
    controls: tuple[Control, ...] = ()
    if judgement.verdict is Verdict.EQUAL:
        controls = tuple(_controls(experiment, subjects, baseline, scale))
        if blind := blindness(controls):
            judgement = attrs.evolve(judgement, verdict=Verdict.BLIND, reason=blind)
    return attrs.evolve(
        judgement,
        controls=controls,
        poisoned_bytes=size_of(baseline.writes.poisoned),
        read_first_bytes=size_of(baseline.writes.read_first),
        replays=experiment.replays,
        yardstick=Yardstick(baseline, scale),
    )


@frozen
class Measure:
    """One output, what its numbers may differ by, and which ranges of the write set are its own."""

    output: Output
    places: tuple[int, ...]
    spread: int
    tolerance: int

    def bytes_of(self, contents: Sequence[bytes]) -> bytes:
        return b"".join(contents[place] for place in self.places)


@frozen
class Yardstick:
    """What the baseline writes, and how far results may be from it."""

    baseline: Baseline
    scale: tuple[Measure, ...]

    def compared(self, answer: Answer) -> Judgement:
        return _compared(answer, self.baseline, self.scale)


def _scale(capture: Capture, baseline: Baseline, allowance: Allowance) -> tuple[Measure, ...]:
    place_of = {one: place for place, one in enumerate(baseline.writes.written)}
    outputs = [
        (one, tuple(place_of[part] for part in one.ranges))
        for one in outputs_of(capture, baseline.writes.written, allowance.unknown)
    ]
    for number, name in enumerate(baseline.writes.variables, len(place_of)):
        outputs.append((variable_output(name, baseline.contents[0][number], allowance.unknown), (number,)))
    measures = []
    for output, places in outputs:
        plain = Measure(output, places, 0, 0)
        usual, *others = (plain.bytes_of(contents) for contents in baseline.contents)
        spread = max((int(distances(output.kind, usual, one).max()) for one in others), default=0)
        if spread == NOT_A_NUMBER:
            raise NoBaselineError(
                f"the baseline itself gives other {_name(output)} when its workgroups change their order "
                "or memory differs that it never reads"
            )
        exact = output.kind is DataType.BYTES
        tolerance = 0 if exact else max(SPREAD_FACTOR * spread, allowance.ulps)
        measures.append(Measure(output, plain.places, spread, tolerance))
    return tuple(measures)


def _name(output: Output) -> str:
    return f"values behind {output.argument}" if output.argument else f"bytes at 0x{output.base:x}"


def _of_candidate(
    experiment: Experiment, code: Path, baseline: Baseline, scale: Sequence[Measure]
) -> Judgement:
    judgement = Judgement(Verdict.UNDECIDED, "nothing was compared")
    for number, pattern in enumerate((*PATTERNS, PATTERNS[0])):
        answer = experiment.other(code, baseline, pattern, number // len(PATTERNS))
        judgement = _compared(answer, baseline, scale)
        if judgement.verdict is not Verdict.EQUAL:
            return judgement
    return judgement


def _compared(answer: Answer, baseline: Baseline, scale: Sequence[Measure]) -> Judgement:
    if answer.failure is not None:
        crashed = answer.failure.kind in CRASHES
        verdict = Verdict.DIFFERENT if crashed else Verdict.UNDECIDED
        reason = f"the candidate does not end as the baseline does: {answer.failure.fact}"
        return Judgement(verdict, reason, crashed=crashed)
    outputs = tuple(_output_result(one, baseline, answer.contents) for one in scale)
    outside = answer.outside
    wrong = [one for one in outputs if one.differing]
    if wrong:
        worst = wrong[0]
        where = "" if worst.first is None else f", the first at 0x{worst.first.address:x}"
        reason = f"{worst.differing} {_name(worst.output)} differ beyond the tolerance{where}"
        return Judgement(Verdict.DIFFERENT, reason, outputs, outside)
    if outside:
        reason = f"it writes {size_of(outside)} bytes that the baseline does not write"
        return Judgement(Verdict.DIFFERENT, reason, outputs, outside)
    return Judgement(Verdict.EQUAL, "all that the baseline writes is the same within the tolerance", outputs)


def _sanitized(
    experiment: Experiment, subjects: Subjects, baseline: Baseline, judgement: Judgement
) -> Judgement:
    """Right results by luck are none: B may have no kind of finding that A has not."""
    try:
        ours = experiment.findings(subjects.a)
        theirs = experiment.findings(subjects.b, SANITIZED_LONGER * baseline.limit_s)
    except NoBaselineError as error:
        return attrs.evolve(judgement, verdict=Verdict.UNDECIDED, reason=str(error))
    if isinstance(ours, Failure):
        reason = f"the baseline does not replay with checks: {ours.fact}"
        return attrs.evolve(judgement, verdict=Verdict.UNDECIDED, reason=reason)
    if isinstance(theirs, Failure):
        crashed = theirs.kind in CRASHES
        verdict = Verdict.DIFFERENT if crashed else Verdict.UNDECIDED
        reason = f"the candidate does not end as the baseline does: {theirs.fact}"
        return attrs.evolve(judgement, verdict=verdict, reason=reason, crashed=crashed)
    usual = {one.kind for one in ours}
    new = tuple(one for one in theirs if one.kind not in usual)
    told = attrs.evolve(
        judgement, findings=tuple(dict.fromkeys(one.text for one in new)), usual_findings=tuple(sorted(usual))
    )
    if not new:
        return told
    return attrs.evolve(
        told, verdict=Verdict.DIFFERENT, reason=f"it does what the baseline does not: {new[0].text}"
    )


def _output_result(one: Measure, baseline: Baseline, contents: Sequence[bytes]) -> OutputResult:
    expected, given = one.bytes_of(baseline.contents[0]), one.bytes_of(contents)
    if len(given) != len(expected):  # other code without the variable
        return OutputResult(one.output, one.spread, one.tolerance, 1, NOT_A_NUMBER)
    apart = distances(one.output.kind, expected, given)
    beyond = (apart > one.tolerance).nonzero()[0]
    worst = int(apart.max())
    if not len(beyond):
        return OutputResult(one.output, one.spread, one.tolerance, 0, worst)
    from rpl_vmreplay.interfaces.replayer import MemoryRange

    first, size = int(beyond[0]), one.output.kind.size
    pair = (
        values_of(one.output.kind, side[first * size : (first + 1) * size])[0] for side in (expected, given)
    )
    place = MemoryRange(one.output.address_of(first), size)
    return OutputResult(one.output, one.spread, one.tolerance, len(beyond), worst, place, *pair)


def _controls(
    experiment: Experiment, subjects: Subjects, baseline: Baseline, scale: Sequence[Measure]
) -> Iterable[Control]:
    from rpl_vmreplay.compare.mutants import can_be_changed, empty_kernel, mutants

    if not can_be_changed(subjects.a_code):
        return
    shown = 0
    with tempfile.TemporaryDirectory(prefix="rpl-mutants-") as folder:
        place = Path(folder) / "mutant.hsaco"
        yield _control(experiment, empty_kernel(subjects.a_code, subjects.kernel), place, baseline, scale)
        for tried, mutant in enumerate(mutants(subjects.a_code, subjects.kernel)):
            if shown == MUTANTS or tried == _MOST_TRIED:
                return
            control = _control(experiment, mutant, place, baseline, scale)
            shown += control.outcome is not ControlOutcome.REFUSED
            yield control


def _control(
    experiment: Experiment, mutant: Mutant, place: Path, baseline: Baseline, scale: Sequence[Measure]
) -> Control:
    place.write_bytes(mutant.code)
    for pattern in PATTERNS:
        answer = experiment.other(place, baseline, pattern)
        compared = _compared(answer, baseline, scale)
        if answer.failure is not None:
            outcome = (
                ControlOutcome.CRASHED if compared.verdict is Verdict.DIFFERENT else ControlOutcome.REFUSED
            )
            return Control(mutant.edit, outcome)
        if compared.verdict is Verdict.DIFFERENT:
            return Control(mutant.edit, ControlOutcome.BY_RESULTS)
    return Control(mutant.edit, ControlOutcome.SURVIVED)


def blindness(controls: Sequence[Control]) -> str | None:
    """Why the comparison can't be believed."""
    if not controls:
        return "no wrong kernels are known for code of this GPU: whether one would be noticed is unknown"
    empty, mutated = controls[0], [one for one in controls[1:] if one.outcome is not ControlOutcome.REFUSED]
    if empty.outcome is not ControlOutcome.BY_RESULTS:
        return f"it does not notice a kernel that does nothing ({empty.outcome.value})"
    if len(mutated) < LEAST_MUTANTS:
        return f"only {len(mutated)} wrong kernels could be shown, {LEAST_MUTANTS} are needed"
    survivors = [one for one in mutated if one.outcome is ControlOutcome.SURVIVED]
    if len(survivors) > MOST_SURVIVORS:
        return f"{len(survivors)} of {len(mutated)} wrong kernels were not noticed with this input"
    if not any(one.outcome is ControlOutcome.BY_RESULTS for one in mutated):
        return "every wrong kernel crashed, so nobody knows whether wrong results are noticed"
    return None


def compare_code(
    capture: Capture,
    replayer: Replayer,
    subjects: Subjects,
    *,
    allowance: Allowance | None = None,
    time_limit_s: float | None = None,
    options: Options | None = None,
    sanitize: bool = False,
) -> Judgement:
    """Whether ``subjects.b`` computes what ``subjects.a`` computes for the captured input.

    ``options`` are those of the replayer. Raises what that raises, and ``BadDataError`` and ``MissingError``
    for code that can't be read.
    """
    experiment = Experiment(capture, replayer, time_limit_s, options or Options(), sanitize)
    return judge(experiment, subjects, allowance or Allowance())
