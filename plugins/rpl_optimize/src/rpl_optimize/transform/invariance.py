"""Who answers for an edit: the transformation that proposes it, or all where none does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rpl_core.errors import PluginError
from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import EditCandidate, GuardVerdict
from rpl_optimize.transform.ask import able_to_read, ask
from rpl_optimize.transform.candidates import OfferedCandidate, collect_offers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_optimize.interfaces.proposer import InstalledTransformation
    from rpl_optimize.interfaces.transformation import KernelSource

GUARD = "invariance"


@frozen
class EditJudgement:
    """``owner`` proposes this very edit, whoever passed it on; ``failures`` are of transformations asked."""

    owner: OfferedCandidate | None
    verdicts: tuple[GuardVerdict, ...]
    failures: tuple[PluginError, ...]


def judge_edit(
    source: KernelSource,
    candidate: EditCandidate,
    after: bytes,
    transformations: Sequence[InstalledTransformation],
) -> EditJudgement:
    """What transformations say of ``after``, the source with the candidate's edits.

    An owner judges alone, with the guards that it gave the edit itself: a proposer can't leave them out. One
    that fails refuses its own edit. An edit of nobody is judged by all; failing ones don't count as long as
    another one answers.
    """
    offers = collect_offers(source, transformations)
    owner = next((o for o in offers.candidates if o.candidate.edits == candidate.edits), None)
    asked = able_to_read(source, transformations) if owner is None else (owner.by,)
    verdicts: list[GuardVerdict] = [] if owner is None else list(owner.candidate.guards)
    failures: list[PluginError] = []
    for one in asked:
        answer = ask(one, "invariance", partial(_verdicts, one, source, after))
        if isinstance(answer, PluginError):
            failures.append(answer)
        else:
            verdicts += answer
    if failures and (owner is not None or not verdicts):
        verdicts.append(GuardVerdict(GUARD, False, f"nobody could judge the edit: {failures[0].fact}"))
    return EditJudgement(owner, tuple(verdicts), tuple(failures))


def _verdicts(one: InstalledTransformation, source: KernelSource, after: bytes) -> tuple[GuardVerdict, ...]:
    answer = tuple(one.transformation.invariance(source, after))
    for verdict in answer:
        if not isinstance(verdict, GuardVerdict) or not isinstance(verdict.passed, bool):
            raise TypeError(f"returned {verdict!r:.80} where a verdict was expected")
    return answer
