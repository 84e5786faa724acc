"""The last self-test, as `rpl doctor` and the provenance of documents name it; it changes no figure.

And the contract of ``selftest.json``, whose model is imported where somebody looks at it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.interfaces.document import DocumentContract
from rpl_core.model.diagnostic import Diagnostic
from rpl_selftest.kept import KeptResult, read_kept

if TYPE_CHECKING:
    from rpl_selftest.contract import SelftestDocument

_REMEDY = "`rpl selftest` says which page rests on each; send its archive to the project"


class SelftestContract(DocumentContract):
    name = "selftest"
    summary = "a self-test of a machine"

    def model(self) -> type[SelftestDocument]:
        from rpl_selftest.contract import SelftestDocument

        return SelftestDocument

    def found_in(self, directory: Path) -> str:
        return f"see it with `rpl selftest --show {directory / 'selftest.tar.gz'}`"


class SelftestCheck(DoctorCheck):
    name = "selftest"
    summary = "what the last self-test of this machine refuted"

    def check(self) -> DoctorReport:
        kept = read_kept().values()
        refuted = [one for one in kept if one.refuted]
        # What a stand-in or an emulator refutes is told, and breaks nothing here.
        broken = any(one.origin == "measured" for one in refuted)
        told = "; ".join(one.line for one in refuted or kept)
        if not broken:
            return DoctorReport(DoctorStatus.OK, told)
        return DoctorReport(DoctorStatus.BROKEN, told, "figures that rest on what was refuted", _REMEDY)


class SelftestAnalyzer(Analyzer):
    """No fact: a remark in the provenance of documents about the device that was tested, and a diagnostic
    where something was refuted.

    It reads the user's own settings, as measured ceilings are read.
    """

    name = "selftest"
    summary = "names the self-test of this machine, and what it refuted"

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        if context.device is None:
            return AnalysisOutcome({})
        try:
            kept = read_kept().get(context.device.name)
        except BadDataError as error:
            unread = Diagnostic("selftest.unreadable", error.fact, cause=error.cause, remedy=error.next_step)
            return AnalysisOutcome({}, (unread,))
        if kept is None or kept.origin != context.recording.origin.value:
            return AnalysisOutcome({})
        return AnalysisOutcome({}, (_refuted(kept),) if kept.refuted else (), (kept.line,))


def _refuted(kept: KeptResult) -> Diagnostic:
    return Diagnostic("selftest.refuted", kept.line, remedy=_REMEDY, count=len(kept.refuted))
