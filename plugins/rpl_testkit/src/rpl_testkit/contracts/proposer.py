"""The contract of a proposer: one candidate that fits the source, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_testkit.contracts.edits import check_candidate
from rpl_testkit.contracts.violation import demand, demand_kind

if TYPE_CHECKING:
    from rpl_optimize.interfaces.proposer import ProposalRequest, Proposer


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
