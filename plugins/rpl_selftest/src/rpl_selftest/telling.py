"""The last self-test, as `rpl doctor` and the diagnostics of documents name it; it changes no figure."""

from __future__ import annotations

from rpl_core.errors import BadDataError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.model.diagnostic import Diagnostic
from rpl_selftest.kept import KeptResult, read_kept

_REMEDY = "`rpl selftest` says which page rests on each; send its archive to the project"


class SelftestCheck(DoctorCheck):
    name = "selftest"
    summary = "what the last self-test of this machine refuted"

    def check(self) -> DoctorReport:
        kept = read_kept().values()
        refuted = [one for one in kept if one.refuted]
        # What a stand-in or an emulator refutes is told, and breaks nothing here.
        broken = any(one.origin == "measured" for one in refuted)
        told = "; ".join(one.line for one in refuted or kept) or "no self-test of this machine: rpl selftest"
        if not broken:
            return DoctorReport(DoctorStatus.OK, told)
        return DoctorReport(DoctorStatus.BROKEN, told, "figures that rest on what was refuted", _REMEDY)


class SelftestAnalyzer(Analyzer):
    """No fact: a diagnostic beside the provenance of documents about the device that was tested.

    It reads the user's own settings, as measured ceilings are read.
    """

    name = "selftest"
    summary = "names what the self-test of this machine refuted"

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        if context.device is None:
            return AnalysisOutcome({})
        try:
            kept = read_kept().get(context.device.name)
        except BadDataError as error:
            unread = Diagnostic("selftest.unreadable", error.fact, cause=error.cause, remedy=error.next_step)
            return AnalysisOutcome({}, (unread,))
        if kept is None or not kept.refuted or kept.origin != context.recording.origin.value:
            return AnalysisOutcome({})
        return AnalysisOutcome({}, (_refuted(kept),))


def _refuted(kept: KeptResult) -> Diagnostic:
    return Diagnostic("selftest.refuted", kept.line, remedy=_REMEDY, count=len(kept.refuted))
