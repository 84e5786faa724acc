"""The optimizer's check on inputs that nobody supplied: both kernels on variations of a captured launch."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import RplError
from rpl_core.values import frozen
from rpl_optimize.interfaces.equivalence import EquivalenceCheck, EquivalenceReport, EquivalenceVerdict
from rpl_vmreplay.compare.optimizer_options import CAPTURE, SANITIZE, VARY_INPUTS, VARY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_codeobject.instructions.disassembly import Instruction
    from rpl_optimize.interfaces.equivalence import EquivalenceRequest
    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.compare.judge import Subjects
    from rpl_vmreplay.inputs.choose import Chosen
    from rpl_vmreplay.inputs.verdict import Tally, Tolerance
    from rpl_vmreplay.interfaces.replayer import Replayer

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
        from rpl_vmreplay.compare.optimizer_check import replayer_of_the_command, same_kernel
        from rpl_vmreplay.compare.subjects import subjects_of
        from rpl_vmreplay.inputs.verdict import Tolerance

        plugins = request.options.plugins
        folder = plugins[CAPTURE]
        if folder is None:
            return _not_compared("no capture was given (--capture)")
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
        compared = compare_on_varied_inputs(capture, replayer_of_the_command(), subjects, limits, tolerance)
        return report(compared, limits)


def compare_on_varied_inputs(
    capture: Capture, replayer: Replayer, subjects: Subjects, limits: Limits, tolerance: Tolerance
) -> Compared:
    """Raises as ``Replayer.replay`` does, and ``BadDataError`` for code that can't be read."""
    from rpl_vmreplay.inputs.verdict import Tally, take
    from rpl_vmreplay.interfaces.replayer import InputsRequest, ReplayError

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
        for one, answer in zip(some, result.answers, strict=False):
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
    from rpl_codeobject.instructions.disassembly import disassemble_all
    from rpl_codeobject.reading.read import read_code_objects
    from rpl_vmreplay.capture.plain_memory import PlainMemory
    from rpl_vmreplay.inputs.arguments import varied_arguments
    from rpl_vmreplay.inputs.choose import Chooser
    from rpl_vmreplay.inputs.dictionary import constants_of

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
            f"{tally.different} ({_told(compared, limits)})",
            crashed=tally.crashed,
        )
    if compared.failure is not None and (compared.broke or not tally.compared):
        behind = (
            f" ({tally.compared} of {compared.wanted} inputs compared until then)" if tally.compared else ""
        )
        return _not_compared(compared.failure + behind)
    if not tally.compared - tally.without_results:
        return _not_compared(f"no input was left to compare on: {_told(compared, limits)}")
    return EquivalenceReport(EquivalenceVerdict.EQUAL, _told(compared, limits))


def _told(compared: Compared, limits: Limits) -> str:
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
