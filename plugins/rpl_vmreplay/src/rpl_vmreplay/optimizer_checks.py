"""The optimizer's checks by a captured launch: both kernels replay it, and varied inputs of it."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import RplError
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_optimize.interfaces.equivalence import (
    EquivalenceCheck,
    EquivalenceReport,
    EquivalenceRequest,
    EquivalenceVerdict,
    KernelPairs,
)
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.capture.wholeness import whole_capture
from rpl_vmreplay.compare.optimizer_options import CAPTURE, SANITIZE, VARY_INPUTS, VARY_SECONDS

if TYPE_CHECKING:
    from rpl_codeobject.disassembly import Instruction
    from rpl_vmreplay.compare.judge import Judgement, Subjects, Yardstick
    from rpl_vmreplay.inputs.choose import Chosen
    from rpl_vmreplay.interfaces import InputAnswer, LaunchEnd, LaunchInput, Replayer, WrittenPair


class CapturedLaunchCheck(EquivalenceCheck):
    """Needs no run of the program. It says nothing about other sizes or launches than the captured one."""

    name = "captured-launch"
    summary = "replays one captured launch with both builds (--capture) and compares what they write"

    def __init__(self) -> None:
        #: By the candidate's program: what its comparison found, for the launches in turns.
        self._compared: dict[Path, tuple[Subjects, Yardstick]] = {}

    def time_kernel(
        self, request: EquivalenceRequest, candidate_first: tuple[bool, ...]
    ) -> KernelPairs | None:
        """On the GPU, where there is one: replays in the emulator have no times."""
        from rpl_vmreplay.compare.pair import TurnsRequest, take_turns

        folder, program = request.options.plugins[CAPTURE], request.candidate_program
        if folder is None or program is None or program not in self._compared:
            return KernelPairs(problem="no comparison of this candidate came before")
        # The one for GPUs, with its settings.
        import click

        from rpl_core.cli.command_options import option_values
        from rpl_core.cli.session import session_of
        from rpl_vmreplay.replay import DEFAULT_REPLAYER, replayer_of

        session = session_of(click.get_current_context())
        replayer, options = replayer_of(session, DEFAULT_REPLAYER), option_values(session, "full-vm", {})
        capture = whole_capture(folder)
        subjects, yardstick = self._compared[program]
        turns = TurnsRequest(capture, subjects, yardstick, candidate_first, request.options.time_limit_s)
        taken = take_turns(turns, replayer, options)
        return KernelPairs(taken.pairs, taken.origin, taken.problem, different=taken.different)

    def check(self, request: EquivalenceRequest) -> EquivalenceReport:
        try:
            return self._check(request)
        except RplError as error:
            return _not_run(error.one_line())

    def _check(self, request: EquivalenceRequest) -> EquivalenceReport:
        from rpl_vmreplay.compare.pair import compare_code, subjects_of

        folder = request.options.plugins[CAPTURE]
        if folder is None:
            return _not_run("no capture was given (--capture)")
        if not request.same_launches:
            return _not_run("the candidate launches the kernel otherwise than it was captured")
        if request.baseline_program is None or request.candidate_program is None:
            return _not_run("no two programs to take kernels from")
        capture = whole_capture(folder)
        subjects = subjects_of(
            capture, request.baseline_program, request.candidate_program, request.candidate_directory
        )
        if same_kernel(subjects):
            return _not_run(f"both builds have the same machine code of the captured {subjects.kernel}")
        replayer = replayer_of_the_command()
        judgement = compare_code(
            capture,
            replayer,
            subjects,
            time_limit_s=request.options.time_limit_s,
            sanitize=request.options.plugins[SANITIZE] or None,
        )
        if judgement.yardstick is not None:
            self._compared[request.candidate_program] = subjects, judgement.yardstick
        return _report(capture, replayer, judgement)


def same_kernel(subjects: Subjects) -> bool:
    from rpl_codeobject.disassembly import disassemble
    from rpl_codeobject.reading import read_code_objects

    (other,) = read_code_objects(subjects.b)
    record = subjects.a_code.kernel(subjects.kernel)
    assert record is not None
    names = {record.name}
    return disassemble(subjects.a_code, kernels=names) == disassemble(other, kernels=names)


def replayer_of_the_command() -> Replayer:
    """Of the running command's plugins."""
    import click

    from rpl_core.cli.session import session_of
    from rpl_vmreplay.replay import logging_replayer

    return logging_replayer(session_of(click.get_current_context()), None)


def _report(capture: Capture, replayer: Replayer, judgement: Judgement) -> EquivalenceReport:
    from rpl_vmreplay.compare.judge import Verdict

    verdicts = {
        Verdict.EQUAL: EquivalenceVerdict.EQUAL,
        # Its bound is far below what a wrong term changes; the evidence says so.
        Verdict.ROUNDING: EquivalenceVerdict.EQUAL,
        Verdict.DIFFERENT: EquivalenceVerdict.DIFFERENT,
        Verdict.BLIND: EquivalenceVerdict.BLIND,
        Verdict.UNDECIDED: EquivalenceVerdict.NOT_RUN,
    }
    words = "differs by rounding only: " if judgement.verdict is Verdict.ROUNDING else ""
    noticed = sum(control.outcome.value in ("noticed", "crashed") for control in judgement.controls)
    shown = f"; {noticed} of {len(judgement.controls)} wrong kernels noticed" if judgement.controls else ""
    evidence = (
        f"{words}{judgement.reason}; {counted(judgement.replays, 'replay')} of the captured "
        f"{capture.dispatch.demangled_name} "
        f"by {replayer.name}{shown}{_sanitizer_words(judgement)}; {judgement.covers}"
    )
    return EquivalenceReport(verdicts[judgement.verdict], evidence, crashed=judgement.crashed)


def _sanitizer_words(judgement: Judgement) -> str:
    if judgement.findings is None:
        return ""
    usual = (
        f", but for {' and '.join(judgement.usual_findings)} of the baseline"
        if judgement.usual_findings
        else ""
    )
    return "" if judgement.findings else f"; no race and no read of what nobody wrote{usual}"


def _not_run(reason: str) -> EquivalenceReport:
    return EquivalenceReport(EquivalenceVerdict.NOT_RUN, reason)


# The optimizer's check on inputs that nobody supplied: both kernels on variations of a captured launch.

#: What no right kernel does; an input on which the baseline does it says nothing about another kernel.
RACES = (
    "lds-race",
    "memory-race",
    "memory-race-between-workgroups",
    "barrier-partial-exec",
    "barrier-different",
)
#: Distance of 1 to the next float, and how many of them results may be apart: on inputs of small integers,
#: and on others. Sums in another order differ; wrong results show on the small integers.
_FLOATS: Mapping[str, tuple[float, float, float]] = {
    "f2": (2.0**-10, 16, 16), "bf": (2.0**-7, 8, 8),
    "f4": (2.0**-23, 256, 4096), "f8": (2.0**-52, 4096, 65536),
}  # fmt: skip
_SMALLEST = {  # and the least denormal
    "f2": (2.0**-14, 2.0**-24), "bf": (2.0**-126, 2.0**-133), "f4": (2.0**-126, 2.0**-149),
    "f8": (2.0**-1022, 2.0**-1074)
}  # fmt: skip
_EXACT = ("exact", "zero", "one", "negative")


class Dropped(str, Enum):
    """Why an input says nothing: because of the baseline itself."""

    FAULT = "faults or leaves its memory"
    LIMIT = "takes too many instructions"
    RACES = "races"
    UNWRITTEN = "reads LDS that nobody wrote"
    ORDER = "gives other results in another order"


@frozen
class Tolerance:
    """The user's own, which counts where it is larger."""

    relative: float = 0.0
    absolute: float = 0.0


@attrs.define
class Tally:
    """``different`` ends the comparison. ``not_numbers``: inputs on which only NaN, infinities and denormals
    are otherwise, ``not_watched`` those whose order of synchronisation or LDS could not be compared."""

    compared: int = 0
    watched: int = 0
    synchronised: int = 0
    without_results: int = 0
    dropped: Counter[Dropped] = attrs.field(factory=Counter)
    not_numbers: int = 0
    not_watched: int = 0
    different: str | None = None
    crashed: bool = False

    @property
    def seen(self) -> int:
        return self.compared + sum(self.dropped.values())


def take(
    tally: Tally,
    one: LaunchInput,
    answer: InputAnswer,
    elements: Mapping[int, str],
    tolerance: Tolerance,
    strict: bool,
) -> None:
    """``strict``: differences in NaN and denormals count too. ``elements`` is by where buffers begin."""
    if (why := _dropped(answer)) is not None:
        tally.dropped[why] += 1
        return
    other = answer.other
    assert other is not None
    tally.compared += 1
    tally.watched += answer.watched
    tally.synchronised += answer.watched and answer.stable and bool(answer.barriers or answer.atomics)
    tally.not_watched += answer.watched and (not answer.stable or answer.lds_unlike)
    tally.without_results += answer.written_bytes == 0
    tally.different, tally.crashed = _behaviour(answer.baseline, other, answer)
    if tally.different is None and answer.differing:
        kind = one.name.rpartition(", ")[2].removesuffix(" contents")
        worst, special = _worst(answer.differing, elements, kind, tolerance)
        if worst is not None:
            tally.different = worst
        elif special is not None and strict and kind != "huge":  # a rounding more or less may overflow
            tally.different = special
        elif special is not None:
            tally.not_numbers += 1
    if tally.different is not None:
        tally.different = f"{tally.different}; input: {one.name}"


def _dropped(answer: InputAnswer) -> Dropped | None:
    if answer.baseline.outcome == "limit":
        return Dropped.LIMIT
    if answer.baseline.outcome != "ended":
        return Dropped.FAULT
    if any(finding.kind in RACES for finding in answer.baseline.findings):
        return Dropped.RACES
    if any(finding.kind == "lds-unwritten" for finding in answer.baseline.findings):
        return Dropped.UNWRITTEN
    return None if answer.same_results else Dropped.ORDER


def _behaviour(baseline: LaunchEnd, other: LaunchEnd, answer: InputAnswer) -> tuple[str | None, bool]:
    if other.outcome != "ended":
        return f"the candidate does not end as the baseline does: {other.reason or other.outcome}", True
    usual = {finding.kind for finding in baseline.findings}
    new = next((finding for finding in other.findings if finding.kind not in usual), None)
    if new is not None:
        return f"it does what the baseline does not: {new.text}", False
    if answer.outside is not None:
        place = f"0x{answer.outside.address:x}"
        return (
            f"it writes {answer.outside.size} bytes that the baseline does not, the first at {place}",
            False,
        )
    if answer.variables:
        return f"it leaves the variable {answer.variables[0]} otherwise", False
    if answer.cooperation is not None:
        return f"its waves work together otherwise: {answer.cooperation}", False
    return None, False


def _worst(
    pairs: Sequence[WrittenPair], elements: Mapping[int, str], content: str, tolerance: Tolerance
) -> tuple[str | None, str | None]:
    """The first difference that counts, and the first in what is no number or nearly zero."""
    special = None
    begins = sorted(elements)
    for begin, many in _by_buffer(pairs, begins).items():
        kind = elements.get(begin, "u1")
        scale = _scale(kind, many)
        for pair in many:
            counts, strange = _difference(pair, kind, scale, content, tolerance)
            if counts is not None:
                return counts, special
            special = special or strange
    return None, special


def _by_buffer(pairs: Sequence[WrittenPair], begins: Sequence[int]) -> dict[int, list[WrittenPair]]:
    from bisect import bisect_right

    found: dict[int, list[WrittenPair]] = {}
    for pair in pairs:
        place = bisect_right(begins, pair.address) - 1
        found.setdefault(begins[place] if place >= 0 else 0, []).append(pair)
    return found


def _scale(kind: str, pairs: Sequence[WrittenPair]) -> float:
    import numpy as np

    if kind not in _FLOATS:
        return 0.0
    largest = 0.0
    for pair in pairs:
        values = _numbers(pair.baseline, kind)
        finite = values[np.isfinite(values)]
        largest = max(largest, float(np.abs(finite).max()) if len(finite) else 0.0)
    return largest


def _numbers(content: bytes, kind: str) -> Any:
    import numpy as np

    if kind == "bf":
        return (np.frombuffer(content, "<u2").astype("<u4") << np.uint32(16)).view("<f4").astype(np.float64)
    return np.frombuffer(content, f"<{kind}").astype(np.float64)


def _difference(
    pair: WrittenPair, kind: str, scale: float, content: str, tolerance: Tolerance
) -> tuple[str | None, str | None]:
    import numpy as np

    size = 2 if kind == "bf" else int(kind[1])
    where = f"at 0x{pair.address:x}"
    if kind not in _FLOATS or len(pair.baseline) % size:
        if pair.baseline == pair.other:
            return None, None
        left, right = (np.frombuffer(one, np.uint8) for one in (pair.baseline, pair.other))
        first = int(np.flatnonzero(left != right)[0])
        found = f"0x{right[first]:02x} instead of 0x{left[first]:02x}"
        return (
            counted(int((left != right).sum()), "byte differs", "bytes differ")
            + f", the first at 0x{pair.address + first:x}: {found}",
            None,
        )
    left, right = (_numbers(one, kind) for one in (pair.baseline, pair.other))
    ulp, few, many = _FLOATS[kind]
    exact = content in _EXACT
    with np.errstate(invalid="ignore", over="ignore"):
        both = np.isnan(left) & np.isnan(right)
        strange = ~np.isfinite(left) | ~np.isfinite(right)
        tiny = np.maximum(np.abs(left), np.abs(right)) < _SMALLEST[kind][0]
        apart = np.where(left == right, 0.0, np.abs(left - right))
        allowed = np.maximum(
            (few if exact else many) * ulp * np.maximum(np.abs(left), max(scale, 0.0 if exact else 4.0)),
            tolerance.relative * np.abs(left) + tolerance.absolute,
        )
        # Sums and products of small integers are the same in every order.
        whole = exact & (kind in ("f4", "f8")) & (left == np.rint(left)) & (np.abs(left) * ulp < 0.25)
        allowed = np.where(whole & (right == np.rint(right)), tolerance.absolute, allowed)
        wrong = (apart > allowed) & ~strange & ~tiny
        odd = (strange & ~both & (left != right)) | (tiny & (apart > few * _SMALLEST[kind][1]))
    result: list[str | None] = [None, None]
    for number, mask in enumerate((wrong, odd)):
        if mask.any():
            first = int(np.flatnonzero(mask)[0])
            what = f"{right[first]:.9g} instead of {left[first]:.9g}"
            where = f"at 0x{pair.address + first * size:x}"
            differ = counted(int(mask.sum()), "number differs", "numbers differ")
            result[number] = f"{differ}, the first {where}: {what}"
    return result[0], result[1]


# The check itself.

#: Inputs of one process: a difference ends the comparison behind it.
_AT_ONCE = 48
#: Of all waves together in one launch of the baseline: the captured one, and others unless that needs more.
_MOST_AS_CAPTURED, _MOST_INSTRUCTIONS = 2_000_000_000, 1_000_000
_LDS_ATOMIC = re.compile(r"ds_(?!read|write|load|store|bpermute|permute|swizzle|nop)")
_FAST_MATH = ("-ffast-math", "-Ofast", "-ffinite-math-only", "-fno-honor-nans",
              "-fgpu-flush-denormals-to-zero", "-fcuda-flush-denormals-to-zero",
              "-funsafe-math-optimizations")  # fmt: skip


@frozen
class Limits:
    """``strict``: differences in NaN, infinities and denormals refuse, too; ``None``: whether the build
    allows them is unknown, so they are reported."""

    inputs: int
    seconds: float | None
    strict: bool | None = None
    sanitize: bool | None = None


@frozen
class Compared:
    """``failure``: nothing was compared, or not all, and why. ``broke``: not for want of time, so what was
    compared until then is no evidence for what was not."""

    tally: Tally
    wanted: int
    unreached: int = 0
    instructions: int = 0
    cooperates: bool = False
    failure: str | None = None
    broke: bool = False


class VariedInputsCheck(EquivalenceCheck):
    """Says nothing about inputs on which the baseline itself does what no right kernel does."""

    name = "varied-inputs"
    summary = "runs both kernels on variations of the captured launch (--capture): scalars, sizes, contents"

    def check(self, request: EquivalenceRequest) -> EquivalenceReport:
        try:
            return self._check(request)
        except RplError as error:
            return _not_compared(error.one_line())

    def _check(self, request: EquivalenceRequest) -> EquivalenceReport:
        from rpl_vmreplay.capture.wholeness import whole_capture
        from rpl_vmreplay.compare.pair import subjects_of

        plugins = request.options.plugins
        folder = plugins[CAPTURE]
        if folder is None:
            return _not_compared("no capture was given (--capture)")
        if not request.same_launches:
            return _not_compared("the candidate launches the kernel otherwise than it was captured")
        if plugins[VARY_INPUTS] == 0:
            return _not_compared("--vary-inputs 0")
        if request.baseline_program is None or request.candidate_program is None:
            return _not_compared("no two programs to take kernels from")
        capture = whole_capture(folder)
        subjects = subjects_of(
            capture, request.baseline_program, request.candidate_program, request.candidate_directory
        )
        if same_kernel(subjects):
            return _not_compared(f"both builds have the same machine code of the captured {subjects.kernel}")
        limits = Limits(plugins[VARY_INPUTS], plugins[VARY_SECONDS], _strict(), plugins[SANITIZE])
        tolerance = Tolerance(request.options.relative, request.options.absolute)
        compared = compare_on_varied_inputs(
            capture,
            replayer_of_the_command(),
            subjects,
            limits,
            tolerance,
            same_barriers=request.same_barriers,
        )
        return report(compared, limits)


def compare_on_varied_inputs(
    capture: Capture,
    replayer: Replayer,
    subjects: Subjects,
    limits: Limits,
    tolerance: Tolerance,
    *,
    same_barriers: bool = True,
) -> Compared:
    """Raises as ``Replayer.replay`` does, and ``BadDataError`` for code that can't be read.

    Without ``same_barriers`` nobody asks whether waves wait for each other as before; races count as ever.
    """
    from rpl_vmreplay.interfaces import InputsRequest, ReplayError

    begin = time.monotonic()
    chosen, cooperates = choose(capture, subjects, limits)
    tally, wanted, unreached, instructions = Tally(), len(chosen.inputs), None, 0
    most = _MOST_AS_CAPTURED
    for first in (0, *range(1, wanted, _AT_ONCE)):
        left = None if limits.seconds is None else limits.seconds - (time.monotonic() - begin)
        if left is not None and left <= 0:
            break
        some = chosen.inputs[first : first + _AT_ONCE] if first else chosen.inputs[:1]
        request = InputsRequest(
            capture.folder, subjects.a, subjects.b, some, chosen.beside, most, time_limit_s=left
        )
        result = replayer.compare_inputs(request)
        if result is None:
            return Compared(tally, wanted, failure=f"the replayer {replayer.name} takes no other inputs")
        for one, told in zip(some, result.answers, strict=False):
            otherwise = told.cooperation is not None and not same_barriers
            answer = attrs.evolve(told, cooperation=None, lds_unlike=True) if otherwise else told
            take(tally, one, answer, chosen.elements, tolerance, bool(limits.strict))
            if tally.different is not None:
                return Compared(tally, wanted, cooperates=cooperates)
        if result.failure is not None:
            broke = result.failure.kind is not ReplayError.TIME_LIMIT
            return Compared(tally, wanted, 0, 0, cooperates, result.failure.fact, broke)
        if not first and result.answers:
            most = max(_MOST_INSTRUCTIONS, 4 * result.answers[0].baseline.instructions)
        unreached = min(result.unreached, result.unreached if unreached is None else unreached)
        instructions = result.instructions
        if len(result.answers) < len(some):
            break
    return Compared(tally, wanted, unreached or 0, instructions, cooperates)


def choose(capture: Capture, subjects: Subjects, limits: Limits) -> tuple[Chosen, bool]:
    """The inputs, and whether the kernel's waves work together."""
    from rpl_codeobject.disassembly import disassemble_all
    from rpl_codeobject.reading import read_code_objects
    from rpl_vmreplay.capture.plain_memory import PlainMemory
    from rpl_vmreplay.inputs.arguments import constants_of, varied_arguments
    from rpl_vmreplay.inputs.choose import Chooser

    (other,) = read_code_objects(subjects.b)
    kernels = subjects.a_code.kernel(subjects.kernel), other.kernel(subjects.kernel)
    assert kernels[0] is not None
    assert kernels[1] is not None
    code = [_of_kernel(disassemble_all(one), kernels[0].name) for one in (subjects.a_code, other)]
    cooperates = any(
        one.mnemonic.startswith(("ds_", "s_barrier")) or "_atomic_" in one.mnemonic
        for side in code
        for one in side
    )
    atomics = any(
        "_atomic_" in one.mnemonic or _LDS_ATOMIC.match(one.mnemonic) for side in code for one in side
    )
    watch = cooperates if limits.sanitize is None else limits.sanitize
    with tempfile.TemporaryDirectory(prefix="rpl-captured-") as folder:
        memory = PlainMemory(capture, Path(folder))
        varied = varied_arguments(capture, kernels[0])
        chooser = Chooser(
            capture, memory, varied, (kernels[0], kernels[1]), constants_of(*code), watch, atomics
        )
        return chooser.chosen(limits.inputs), cooperates


def _of_kernel(functions: Mapping[str, tuple[Instruction, ...]], kernel: str) -> tuple[Instruction, ...]:
    """Its own instructions; where it calls, those of all functions that are no kernel."""
    own = functions[kernel]
    if any(one.mnemonic.startswith(("s_swappc", "s_call", "s_setpc")) for one in own):
        own += tuple(one for name, code in functions.items() if name != kernel for one in code)
    return own


def report(compared: Compared, limits: Limits) -> EquivalenceReport:
    """``NOT_RUN`` says that nothing was compared; it is never ``EQUAL`` for want of time or of an opcode."""
    tally = compared.tally
    if tally.different is not None:
        return EquivalenceReport(
            EquivalenceVerdict.DIFFERENT,
            f"{tally.different} ({_summary_of(compared, limits)})",
            crashed=tally.crashed,
        )
    if compared.failure is not None and (compared.broke or not tally.compared):
        behind = (
            f" ({tally.compared} of {compared.wanted} inputs compared until then)" if tally.compared else ""
        )
        return _not_compared(compared.failure + behind)
    if not tally.compared - tally.without_results:
        return _not_compared(f"no input was left to compare on: {_summary_of(compared, limits)}")
    return EquivalenceReport(EquivalenceVerdict.EQUAL, _summary_of(compared, limits))


def _summary_of(compared: Compared, limits: Limits) -> str:
    tally = compared.tally
    parts = [f"{tally.compared} of {compared.wanted} inputs compared"]
    for why, count in tally.dropped.items():
        parts.append(f"{count} dropped because the baseline {why.value}")
    if tally.different is None and (missing := compared.wanted - tally.seen):
        allowed = "" if limits.seconds is None else f" (limit: {limits.seconds:g} s)"
        parts.append(f"{missing} not compared: {compared.failure or 'time'}{allowed}")
    if tally.without_results:
        parts.append(f"on {tally.without_results} nothing is written")
    if compared.cooperates:
        parts.append(
            f"{tally.watched} watched for races, {tally.synchronised} for the order of barriers and atomics"
        )
    if tally.not_watched:
        parts.append(f"on {tally.not_watched} of them how waves work together could not be compared")
    if tally.not_numbers:
        known = "" if limits.strict is not None else "; whether the build allows that is unknown"
        parts.append(f"on {tally.not_numbers} only NaN, infinities or denormals differ{known}")
    if compared.unreached:
        parts.append(
            f"{compared.unreached} of {compared.instructions} instructions of the candidate ran on no input"
        )
    return "; ".join(parts)


def _not_compared(reason: str) -> EquivalenceReport:
    return EquivalenceReport(EquivalenceVerdict.NOT_RUN, f"not compared: {reason}")


def _strict() -> bool | None:
    """Whether the build keeps NaN, infinities and denormals, by the words of ``--build``."""
    import click

    context = click.get_current_context(silent=True)
    build = None if context is None else context.params.get("build")
    if not build:
        return None
    return not any(word in str(build) for word in _FAST_MATH)
