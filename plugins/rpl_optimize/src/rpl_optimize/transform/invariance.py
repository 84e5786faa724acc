"""The transformation that proposes an edit answers for it. What every edit must keep is judged elsewhere
(``rpl_optimize.source_meaning``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rpl_core.errors import PluginError
from rpl_core.model.value_checks import require_value
from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import EditCandidate, GuardVerdict
from rpl_optimize.transform.ask import ask
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
    that fails refuses its own edit. Of an edit that none of them proposes they know nothing.
    """
    offers = collect_offers(source, transformations)
    owner = next((o for o in offers.candidates if o.candidate.edits == candidate.edits), None)
    if owner is None:
        return EditJudgement(None, (), ())
    answer = ask(owner.by, "invariance", partial(_verdicts, owner.by, source, after))
    if isinstance(answer, PluginError):
        refusal = GuardVerdict(GUARD, False, f"nobody could judge the edit: {answer.fact}")
        return EditJudgement(owner, (*owner.candidate.guards, refusal), (answer,))
    return EditJudgement(owner, (*owner.candidate.guards, *answer), ())


def _verdicts(one: InstalledTransformation, source: KernelSource, after: bytes) -> tuple[GuardVerdict, ...]:
    return tuple(require_value(v, GuardVerdict) for v in one.transformation.invariance(source, after))
