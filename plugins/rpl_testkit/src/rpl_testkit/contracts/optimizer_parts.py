"""The contracts of what the optimizer asks beside transformations: proposers, equivalence checks, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.interfaces.options import Options
from rpl_testkit.contracts.edits import check_candidate
from rpl_testkit.contracts.violation import demand, demand_kind

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_optimize.interfaces.equivalence import EquivalenceCheck, EquivalenceReport, EquivalenceRequest
    from rpl_optimize.interfaces.metric import Metric
    from rpl_optimize.interfaces.proposer import ProposalRequest, Proposer

_COMMAND = ("./app", "--size", "3 4")


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


def assert_metric(metric: Metric) -> None:
    """Without running anything: what it says of itself, and the words that it would run."""
    subject = demand_kind("rpl_metrics", metric)
    demand(bool(metric.devices), subject, "a metric names the devices that it is for")
    for what in ("unit", "formula", "architecture"):
        demand(bool(str(getattr(metric, what)).strip()), subject, f"a metric says its {what}")
    words = metric.command(_COMMAND, Options())
    demand(words[-len(_COMMAND) :] == _COMMAND, subject, "command() ends with the user's own words")


def assert_proposer(proposer: Proposer, request: ProposalRequest, *, deterministic: bool = True) -> None:
    """Check one proposal; ``deterministic=False`` for proposers that ask a language model."""
    from rpl_optimize.interfaces.transformation import EditCandidate

    subject = demand_kind("rpl_proposers", proposer)
    first = proposer.propose(request)
    demand(
        first is None or isinstance(first, EditCandidate), subject, "propose() returns a candidate or None"
    )
    if first is not None:
        check_candidate(first, request.source, subject)
    if deterministic:
        demand(proposer.propose(request) == first, subject, "the same request gives two different proposals")
