"""From replays to a verdict, with the wrong kernels that a comparison must notice to be believed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.capture.plain_memory import size_of
from rpl_vmreplay.compare.experiment import CRASHES, PATTERNS, Answer, Baseline, Experiment, NoBaselineError
from rpl_vmreplay.compare.other_inputs import (
    LEAST_ROUNDED,
    SANITIZED_LONGER,
    DrawnInputs,
    InputOutcome,
    InputResult,
    OtherRuns,
    drawn_inputs,
)
from rpl_vmreplay.compare.outputs import (
    INPUT_DRAWS,
    NOT_A_NUMBER,
    OF_BASELINE,
    OF_CANDIDATE,
    DataType,
    Output,
    as_set,
    bound,
    changed_inputs,
    computes_in_halves,
    distance,
    distances,
    is_record,
    last_places,
    movement,
    name_of,
    numbers_of,
    outputs_of,
    values_of,
    variable_output,
)
from rpl_vmreplay.interfaces import Failure, MemoryRange

if TYPE_CHECKING:
    from rpl_codeobject.kernel_code import CodeObject
    from rpl_vmreplay.compare.mutants import Mutant

#: Wrong kernels that are shown, how many there have to be, and how many may pass unnoticed.
MUTANTS, LEAST_MUTANTS, MOST_SURVIVORS = 12, 8, 2
#: Edits that the replayer refuses, or that change nothing here, are replaced, up to so many.
_MOST_TRIED = 60
#: A few runs see a part of what other orders can do.
SPREAD_FACTOR = 2


class Verdict(str, Enum):
    EQUAL = "equal"
    ROUNDING = "differs by rounding only"
    DIFFERENT = "different"
    BLIND = "blind"
    UNDECIDED = "undecided"


#: The candidate may take the baseline's place.
ACCEPTED = frozenset({Verdict.EQUAL, Verdict.ROUNDING})


class ControlOutcome(str, Enum):
    BY_RESULTS = "noticed"
    CRASHED = "crashed"
    SURVIVED = "survived"
    NO_EFFECT = "no effect"  # it leaves the same bits with this input: nothing that could be noticed
    ROUNDING = "rounding"  # no input shows more than rounding: not known to be wrong
    REFUSED = "refused"  # the replayer does not run it, so nothing was shown


#: They say nothing about whether wrong kernels are noticed.
NOT_SHOWN = frozenset({ControlOutcome.REFUSED, ControlOutcome.NO_EFFECT, ControlOutcome.ROUNDING})


@frozen
class OutputResult:
    """``worst`` and ``tolerance`` in units in the last place; ``NOT_A_NUMBER``: one side is none, or bytes
    differ. ``spread`` is what the baseline's own runs differ by. ``apart`` is the largest difference that
    only
    the bound of rounding allows, and ``allowed`` that bound there; ``None``: no element needs it.
    ``any_order``:
    records are compared as a set."""

    output: Output
    spread: int
    tolerance: int
    differing: int
    worst: int
    first: MemoryRange | None = None
    expected: str | None = None
    found: str | None = None
    apart: float | None = None
    allowed: float | None = None
    any_order: bool = False


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
    inputs: tuple[InputResult, ...] = ()  # other ones than the captured

    @property
    def only_floats(self) -> bool:
        """It ends as the baseline does, and nothing but floating-point numbers differs."""
        wrong = [output for output in self.outputs if output.differing]
        return (
            bool(wrong)
            and not self.outside
            and all(
                one.output.kind is not DataType.BYTES and not one.any_order and one.worst < NOT_A_NUMBER
                for one in wrong
            )
        )

    @property
    def survivors(self) -> tuple[str, ...]:
        return tuple(control.edit for control in self.controls if control.outcome is ControlOutcome.SURVIVED)

    @property
    def found_share(self) -> float | None:
        """Of the changed kernels that change anything with this input, how many are noticed."""
        noticed = sum(
            control.outcome in (ControlOutcome.BY_RESULTS, ControlOutcome.CRASHED)
            for control in self.controls
        )
        passed = (ControlOutcome.SURVIVED, ControlOutcome.ROUNDING)
        changing = noticed + sum(control.outcome in passed for control in self.controls)
        return noticed / changing if changing else None

    @property
    def covers(self) -> str:
        """What the verdict is about."""
        if self.tried_inputs == 0:
            return "for the captured input only: other sizes, values or launches were not tried"
        return (
            f"for the captured input and {self.tried_inputs} others in its place: other sizes or launches "
            f"were not "
            "tried"
        )

    @property
    def tried_inputs(self) -> int:
        return sum(one.outcome is not InputOutcome.DROPPED for one in self.inputs)


@frozen
class Subjects:
    """``a`` and ``b`` as files and as what was read of them, with the kernel's name."""

    a: Path
    b: Path
    a_code: CodeObject
    kernel: str


@frozen
class Allowance:
    """``ulps`` more than the baseline's spread allows; ``unknown``: the type of what has none.
    ``other_inputs``: numbers in the place of the captured ones are tried, too."""

    ulps: int = 0
    unknown: DataType = DataType.BYTES
    other_inputs: bool = True


def judge(experiment: Experiment, subjects: Subjects, allowance: Allowance) -> Judgement:
    """Everything is replayed here; what can't be expected to work ends as ``UNDECIDED``."""
    try:
        baseline = experiment.baseline(subjects.a)
        scale = scale_of(experiment.capture, baseline, allowance, strict=experiment.replayer.rounds)
    except NoBaselineError as error:
        return Judgement(Verdict.UNDECIDED, str(error), replays=experiment.replays)
    drawn = DrawnInputs()
    if experiment.replayer.rounds:
        drawn = drawn_inputs(experiment.capture, baseline.read, allowance.unknown)
    judgement, scale = _of_captured_input(experiment, subjects, baseline, scale, drawn)
    any_order = frozenset(one.output.base for one in scale if one.any_order)
    others = OtherRuns(experiment, subjects.a, baseline, drawn, allowance.unknown, any_order, allowance.ulps)
    if judgement.verdict in ACCEPTED and allowance.other_inputs:
        judgement = _with_other_inputs(others, subjects.b, judgement)
    if judgement.verdict is Verdict.ROUNDING and judgement.tried_inputs == 0:
        reason = (
            f"{judgement.reason}, but no other input could be tried on which a wrong term would show "
            f"more: the "
            "types of what it reads are not known (--type), or the baseline runs on none of them"
        )
        judgement = attrs.evolve(judgement, verdict=Verdict.UNDECIDED, reason=reason)
    if judgement.verdict in ACCEPTED and experiment.sanitize is not False:
        judgement = _sanitized(experiment, subjects, baseline, judgement)
    controls: tuple[Control, ...] = ()
    if judgement.verdict in ACCEPTED:
        more = others if allowance.other_inputs else None
        controls = tuple(_controls(experiment, subjects, baseline, more, scale))
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
    """One output, what its numbers may differ by, and which ranges of the write set are its own.

    ``spread`` and ``tolerance`` are the largest in units in the last place. ``moves`` is what each element
    may
    differ by, as the baseline's own runs do, and ``bound`` by rounding (``None``: not known).
    """

    output: Output
    places: tuple[int, ...]
    spread: int
    tolerance: int
    moves: Any = attrs.field(default=None, eq=False)
    bound: Any = attrs.field(default=None, eq=False)
    any_order: bool = False

    def bytes_of(self, contents: Sequence[bytes]) -> bytes:
        return b"".join(contents[place] for place in self.places)


@frozen
class Yardstick:
    """What the baseline writes, and how far results may be from it."""

    baseline: Baseline
    scale: tuple[Measure, ...]

    def compared(self, answer: Answer) -> Judgement:
        """On another device, too, so by the largest tolerance of an output."""
        return compared(answer, self.baseline, [attrs.evolve(one, moves=None) for one in self.scale])


def scale_of(
    capture: Capture, baseline: Baseline, allowance: Allowance, *, strict: bool
) -> tuple[Measure, ...]:
    """``strict``: each number has its own tolerance. Without a bound of rounding behind it that is too
    little."""
    place_of = {one: place for place, one in enumerate(baseline.writes.written)}
    outputs = [
        (one, tuple(place_of[part] for part in one.ranges))
        for one in outputs_of(capture, baseline.writes.written, allowance.unknown)
    ]
    for number, name in enumerate(baseline.writes.variables, len(place_of)):
        outputs.append((variable_output(name, baseline.contents[0][number], allowance.unknown), (number,)))
    unordered = _unordered([Measure(output, places, 0, 0) for output, places in outputs], baseline.contents)
    return tuple(
        Measure(output, places, 0, 0, any_order=True)
        if places in unordered
        else _measure(Measure(output, places, 0, 0), baseline, allowance, strict=strict)
        for output, places in outputs
    )


def _measure(plain: Measure, baseline: Baseline, allowance: Allowance, *, strict: bool) -> Measure:
    kind = plain.output.kind
    usual, *others = (plain.bytes_of(contents) for contents in baseline.contents)
    spread = max((int(distances(kind, usual, one).max()) for one in others), default=0)
    if spread == NOT_A_NUMBER:
        raise NoBaselineError(
            f"the baseline itself gives other {name_of(plain.output)} when its workgroups change their order "
            "or memory differs that it never reads"
        )
    if kind is DataType.BYTES:
        return plain
    tolerance = max(SPREAD_FACTOR * spread, allowance.ulps)
    if not strict:
        return attrs.evolve(plain, spread=spread, tolerance=tolerance)
    moves = SPREAD_FACTOR * movement(kind, usual, others)
    places = allowance.ulps * last_places(kind, numbers_of(kind, usual))
    return attrs.evolve(plain, spread=spread, tolerance=tolerance, moves=moves.clip(min=places))


def _unordered(measures: Sequence[Measure], runs: Sequence[tuple[bytes, ...]]) -> set[tuple[int, ...]]:
    """Places of the outputs whose records the baseline's own runs leave in other orders, and no others."""
    unstable = [
        measure
        for measure in measures
        if is_record(measure.output)
        and any(measure.bytes_of(run) != measure.bytes_of(runs[0]) for run in runs)
    ]
    if not unstable:
        return set()
    sets = {as_set([(one.output, one.bytes_of(run)) for one in unstable]) for run in runs}
    return {one.places for one in unstable} if len(sets) == 1 else set()


def _of_captured_input(
    experiment: Experiment,
    subjects: Subjects,
    baseline: Baseline,
    scale: tuple[Measure, ...],
    drawn: DrawnInputs,
) -> tuple[Judgement, tuple[Measure, ...]]:
    """The verdict with the scale by which it was found: a wider one where rounding explains what differs."""
    answers: list[Answer] = []
    refuted: Judgement | None = None
    judgement = Judgement(Verdict.UNDECIDED, "nothing was compared")
    for number, pattern in enumerate((*PATTERNS, PATTERNS[0])):
        answers.append(experiment.other(subjects.b, baseline, pattern, number // len(PATTERNS)))
        judgement = compared(answers[-1], baseline, scale)
        if judgement.verdict is Verdict.EQUAL:
            continue
        if not (experiment.replayer.rounds and judgement.only_floats):
            return judgement, scale
        refuted = refuted or judgement
    if refuted is None:
        return judgement, scale
    widened = _widened(experiment, subjects, baseline, scale, drawn, answers[0])
    if isinstance(widened, str):
        return attrs.evolve(refuted, reason=f"{refuted.reason}; {widened}"), scale
    for answer in answers:
        judgement = compared(answer, baseline, widened)
        if judgement.verdict is not Verdict.EQUAL:
            return judgement, scale
    return attrs.evolve(judgement, verdict=Verdict.ROUNDING, reason=_rounding_words(judgement)), widened


def _rounding_words(judgement: Judgement) -> str:
    parts = [
        f"{name_of(output.output)} differ by at most {output.apart:.3g}, where rounding alone may move them "
        f"by {output.allowed:.3g}"
        for output in judgement.outputs
        if output.apart is not None and output.allowed is not None
    ]
    return "; ".join(parts) or "single results are within what rounding alone moves"


def _widened(
    experiment: Experiment,
    subjects: Subjects,
    baseline: Baseline,
    scale: Sequence[Measure],
    drawn: DrawnInputs,
    usual: Answer,
) -> tuple[Measure, ...] | str:
    """The scale with the bounds of rounding for the captured input, or why there are none."""
    expected = baseline.contents[0]
    ours = [
        answer.contents
        for rounding, variation in OF_BASELINE
        for answer in (experiment.other(subjects.a, baseline, PATTERNS[0], variation, rounding),)
        if answer.failure is None and not answer.outside and _same_integers(scale, expected, answer.contents)
    ]
    if len(ours) < LEAST_ROUNDED:
        return (
            "nobody knows how far rounding moves them: "
            "the baseline does other things when it rounds otherwise"
        )
    up, order = OF_BASELINE[0]
    kept = experiment.other(subjects.a, baseline, PATTERNS[0], order, up, keep_halves=True)
    halves = [
        one.output.base
        for one in scale
        if one.output.kind is not DataType.BYTES and kept.failure is None
        if computes_in_halves(
            one.output.kind, *(one.bytes_of(run) for run in (expected, ours[0], kept.contents))
        )
    ]
    theirs = [
        answer.contents
        for rounding, variation in OF_CANDIDATE
        for answer in (
            experiment.other(subjects.b, baseline, PATTERNS[0], variation, rounding, keep_halves=not halves),
        )
        if answer.failure is None and not answer.outside and _same_integers(scale, expected, answer.contents)
    ]
    changed = [
        answer.contents
        for draw in range(INPUT_DRAWS)
        for edits in (changed_inputs(drawn.floats, draw),)
        for answer in (experiment.other(subjects.a, baseline, PATTERNS[0], edits=edits),)
        if answer.failure is None and not answer.outside and _same_integers(scale, expected, answer.contents)
    ]
    return tuple(
        one
        if one.output.kind is DataType.BYTES or one.any_order
        else attrs.evolve(
            one,
            bound=bound(
                one.output.kind,
                one.bytes_of(expected),
                movement(one.output.kind, one.bytes_of(expected), [one.bytes_of(run) for run in ours]),
                movement(
                    one.output.kind, one.bytes_of(usual.contents), [one.bytes_of(run) for run in theirs]
                ),
                movement(one.output.kind, one.bytes_of(expected), [one.bytes_of(run) for run in changed]),
                rounded=True,
                halves=one.output.base in halves,
            ),
        )
        for one in scale
    )


def _same_integers(scale: Sequence[Measure], left: Sequence[bytes], right: Sequence[bytes]) -> bool:
    exact = [one for one in scale if one.output.kind is DataType.BYTES and not one.any_order]
    return all(one.bytes_of(left) == one.bytes_of(right) for one in exact)


def _with_other_inputs(others: OtherRuns, candidate: Path, judgement: Judgement) -> Judgement:
    results = others.results(candidate)
    judgement = attrs.evolve(judgement, inputs=results)
    for result in results:
        if result.outcome in (InputOutcome.DIFFERENT, InputOutcome.UNKNOWN):
            different = result.outcome is InputOutcome.DIFFERENT
            verdict = Verdict.DIFFERENT if different else Verdict.UNDECIDED
            usual = "the same" if judgement.verdict is Verdict.EQUAL else "within rounding"
            reason = f"with the captured input it is {usual}, but with {result.name}: {result.reason}"
            return attrs.evolve(judgement, verdict=verdict, reason=reason)
    return judgement


def compared(answer: Answer, baseline: Baseline, scale: Sequence[Measure]) -> Judgement:
    if answer.failure is not None:
        crashed = answer.failure.kind in CRASHES
        verdict = Verdict.DIFFERENT if crashed else Verdict.UNDECIDED
        reason = f"the candidate does not end as the baseline does: {answer.failure.fact}"
        return Judgement(verdict, reason, crashed=crashed)
    expected = baseline.contents[0]
    sets = [one for one in scale if one.any_order]
    sides = [[(one.output, one.bytes_of(side)) for one in sets] for side in (expected, answer.contents)]
    same_set = [len(one[1]) for one in sides[0]] == [len(one[1]) for one in sides[1]] and (
        not sets or as_set(sides[0]) == as_set(sides[1])
    )
    outputs = tuple(
        OutputResult(one.output, 0, 0, 0 if same_set else 1, 0 if same_set else NOT_A_NUMBER, any_order=True)
        if one.any_order
        else _output_result(one, baseline, answer.contents)
        for one in scale
    )
    outside = answer.outside
    wrong = [output for output in outputs if output.differing]
    if wrong:
        worst = wrong[0]
        where = "" if worst.first is None else f", the first at 0x{worst.first.address:x}"
        reason = f"{worst.differing} {name_of(worst.output)} differ beyond the tolerance{where}"
        if worst.any_order:
            reason = f"the {name_of(worst.output)} are other ones, in whatever order"
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
        if experiment.sanitize is None:
            return judgement
        return attrs.evolve(judgement, verdict=Verdict.UNDECIDED, reason=str(error))
    if isinstance(ours, Failure):
        reason = f"the baseline does not replay with checks: {ours.fact}"
        return attrs.evolve(judgement, verdict=Verdict.UNDECIDED, reason=reason)
    if isinstance(theirs, Failure):
        crashed = theirs.kind in CRASHES
        verdict = Verdict.DIFFERENT if crashed else Verdict.UNDECIDED
        reason = f"the candidate does not end as the baseline does: {theirs.fact}"
        return attrs.evolve(judgement, verdict=verdict, reason=reason, crashed=crashed)
    usual = {our.kind for our in ours}
    new = tuple(their for their in theirs if their.kind not in usual)
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
    kind = one.output.kind
    places = distances(kind, expected, given)
    worst = int(places.max())
    result = OutputResult(one.output, one.spread, one.tolerance, 0, worst)
    wrong = places > (0 if one.moves is not None else one.tolerance)
    if not wrong.any():
        return result
    if one.moves is not None or one.bound is not None:
        apart = distance(kind, expected, given)
        if one.moves is not None:
            wrong &= apart > one.moves
        if one.bound is not None:
            needing = wrong & (apart <= one.bound)
            wrong &= ~needing
            if needing.any():
                at = int(needing.nonzero()[0][apart[needing].argmax()])
                result = attrs.evolve(result, apart=float(apart[at]), allowed=float(one.bound[at]))
    beyond = wrong.nonzero()[0]
    if not len(beyond):
        return result
    from rpl_vmreplay.interfaces import MemoryRange

    first, size = int(beyond[0]), kind.size
    pair = (values_of(kind, side[first * size : (first + 1) * size])[0] for side in (expected, given))
    place = MemoryRange(one.output.address_of(first), size)
    expected_value, found_value = pair
    return attrs.evolve(
        result, differing=len(beyond), first=place, expected=expected_value, found=found_value
    )


def _controls(
    experiment: Experiment,
    subjects: Subjects,
    baseline: Baseline,
    others: OtherRuns | None,
    scale: Sequence[Measure],
) -> Iterable[Control]:
    from rpl_vmreplay.compare.mutants import can_be_changed, empty_kernel, mutants

    if not can_be_changed(subjects.a_code):
        return
    shown, by_results = 0, False
    with tempfile.TemporaryDirectory(prefix="rpl-mutants-") as folder:
        place = Path(folder) / "mutant.hsaco"
        yield _control(experiment, empty_kernel(subjects.a_code, subjects.kernel), place, baseline, scale)
        for tried, mutant in enumerate(mutants(subjects.a_code, subjects.kernel)):
            # One that only crashes tells nothing of wrong results, so there have to be others.
            if (shown >= MUTANTS and by_results) or tried == _MOST_TRIED:
                return
            control = _control(experiment, mutant, place, baseline, scale)
            if control.outcome is ControlOutcome.SURVIVED and others is not None:
                control = _with_other_numbers(control, others.results(place, longer_chains=False))
            shown += control.outcome not in NOT_SHOWN
            by_results = by_results or control.outcome is ControlOutcome.BY_RESULTS
            yield control


def _control(
    experiment: Experiment, mutant: Mutant, place: Path, baseline: Baseline, scale: Sequence[Measure]
) -> Control:
    place.write_bytes(mutant.code)
    same = True
    for pattern in PATTERNS:
        answer = experiment.other(place, baseline, pattern)
        judgement = compared(answer, baseline, scale)
        if answer.failure is not None:
            outcome = (
                ControlOutcome.CRASHED if judgement.verdict is Verdict.DIFFERENT else ControlOutcome.REFUSED
            )
            return Control(mutant.edit, outcome)
        if judgement.verdict is Verdict.DIFFERENT:
            return Control(mutant.edit, ControlOutcome.BY_RESULTS)
        same = same and answer.contents == baseline.contents[0]
    return Control(mutant.edit, ControlOutcome.NO_EFFECT if same else ControlOutcome.SURVIVED)


def _with_other_numbers(control: Control, results: Sequence[InputResult]) -> Control:
    """What the captured input does not show may show with others, as it would of a candidate. What shows with
    none may be right: softmax with another maximum is."""
    outcomes = {result.outcome for result in results}
    if InputOutcome.DIFFERENT in outcomes:
        return Control(control.edit, ControlOutcome.BY_RESULTS)
    if outcomes <= {InputOutcome.DROPPED} or InputOutcome.UNKNOWN in outcomes:
        return control
    return Control(control.edit, ControlOutcome.ROUNDING)


def blindness(controls: Sequence[Control]) -> str | None:
    """Why the comparison can't be believed."""
    if not controls:
        return "no wrong kernels are known for code of this GPU: whether one would be noticed is unknown"
    empty, mutated = controls[0], [one for one in controls[1:] if one.outcome not in NOT_SHOWN]
    if empty.outcome is not ControlOutcome.BY_RESULTS:
        return f"it does not notice a kernel that does nothing ({empty.outcome.value})"
    if len(mutated) < LEAST_MUTANTS:
        without = sum(control.outcome is ControlOutcome.NO_EFFECT for control in controls)
        return (
            f"only {counted(len(mutated), 'wrong kernel that matters', 'wrong kernels that matter')} "
            f"with this input could be shown, "
            f"{LEAST_MUTANTS} are "
            f"needed; {counted(without, 'other changes', 'others change')} nothing here"
        )
    survivors = [one for one in mutated if one.outcome is ControlOutcome.SURVIVED]
    if len(survivors) > MOST_SURVIVORS:
        return f"{len(survivors)} of {len(mutated)} wrong kernels were not noticed with this input"
    tolerated = sum(control.outcome is ControlOutcome.ROUNDING for control in controls)
    if tolerated > len(mutated):
        within = counted(tolerated, "changed kernel is", "changed kernels are")
        return f"{within} within rounding, and only {len(mutated)} {'is' if len(mutated) == 1 else 'are'} not"
    if not any(one.outcome is ControlOutcome.BY_RESULTS for one in mutated):
        return "every wrong kernel crashed, so nobody knows whether wrong results are noticed"
    return None
