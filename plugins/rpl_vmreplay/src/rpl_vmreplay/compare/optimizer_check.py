"""The optimizer's check by one captured launch: both builds' kernels replay it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import RplError
from rpl_core.interfaces.options import Options
from rpl_core.text import counted
from rpl_optimize.interfaces.equivalence import (
    EquivalenceCheck,
    EquivalenceReport,
    EquivalenceRequest,
    EquivalenceVerdict,
    KernelPairs,
)
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.capture.wholeness import whole_capture
from rpl_vmreplay.compare.optimizer_options import CAPTURE, SANITIZE

if TYPE_CHECKING:
    from rpl_vmreplay.compare.judge import Judgement, Subjects, Yardstick
    from rpl_vmreplay.interfaces import Replayer


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
        replayer, options = _timing_replayer()
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
        from rpl_vmreplay.compare.judge import compare_code
        from rpl_vmreplay.compare.pair import subjects_of

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
    from rpl_codeobject.reading.read import read_code_objects

    (other,) = read_code_objects(subjects.b)
    record = subjects.a_code.kernel(subjects.kernel)
    assert record is not None
    names = {record.name}
    return disassemble(subjects.a_code, kernels=names) == disassemble(other, kernels=names)


def replayer_of_the_command() -> Replayer:
    """Of the running command's plugins."""
    import click

    from rpl_core.cli.session import session_of
    from rpl_vmreplay.replayers import logging_replayer

    return logging_replayer(session_of(click.get_current_context()), None)


def _timing_replayer() -> tuple[Replayer, Options]:
    """The one for GPUs, with its settings."""
    import click

    from rpl_core.cli.command_options import option_values
    from rpl_core.cli.session import session_of
    from rpl_vmreplay.replayers import DEFAULT_REPLAYER, replayer_of

    session = session_of(click.get_current_context())
    return replayer_of(session, DEFAULT_REPLAYER), option_values(session, "full-vm", {})


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
