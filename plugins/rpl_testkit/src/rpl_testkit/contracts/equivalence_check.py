"""The contract of an equivalence check: it never says "equal" without having compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_testkit.contracts.violation import demand, demand_kind

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_optimize.interfaces.equivalence import EquivalenceCheck, EquivalenceReport, EquivalenceRequest


def assert_equivalence_check(
    check: EquivalenceCheck, scratch: Path, *, different: EquivalenceRequest | None = None
) -> None:
    """Two empty builds must be ``not_run``; ``different``, two builds that differ, must not be equal."""
    from rpl_optimize.interfaces.equivalence import EquivalenceRequest, EquivalenceVerdict

    subject = demand_kind("rpl_equivalence_checks", check)
    folders = [scratch / "empty-baseline", scratch / "empty-candidate"]
    for folder in folders:
        folder.mkdir()
    nothing = _verdict(check, EquivalenceRequest(folders[0], folders[1], ("./no-such-program",)), subject)
    demand(
        nothing.verdict is EquivalenceVerdict.NOT_RUN,
        subject,
        f"two empty builds are not_run, not {nothing.verdict.value}",
    )
    if different is not None:
        verdict = _verdict(check, different, subject).verdict
        demand(verdict is not EquivalenceVerdict.EQUAL, subject, "calls two different programs equal")


def _verdict(check: EquivalenceCheck, request: EquivalenceRequest, subject: str) -> EquivalenceReport:
    from rpl_optimize.interfaces.equivalence import EquivalenceReport, EquivalenceVerdict

    report = check.check(request)
    demand(isinstance(report, EquivalenceReport), subject, "check() returns an EquivalenceReport")
    demand(isinstance(report.verdict, EquivalenceVerdict), subject, "the verdict is an EquivalenceVerdict")
    demand(bool(report.evidence.strip()), subject, "a verdict comes with its evidence")
    crashed_only = not report.crashed or report.verdict is EquivalenceVerdict.DIFFERENT
    demand(crashed_only, subject, "crashed explains a verdict of different, and no other")
    return report
