"""What ``rpl ranks`` answers once it has the summaries.

Apart from the command, because workers read while this and all that it needs is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.contracts import plain_values
from rpl_analysis.contracts.rank_job import RanksAnswer, RanksDocument
from rpl_analysis.ranks.answer import answer_of
from rpl_analysis.ranks.gather import numbers_in
from rpl_analysis.ranks.job import JobSummary
from rpl_analysis.ranks.page import job_page
from rpl_analysis.ranks.text import job_text
from rpl_core.contracts import SCHEMA_VERSION
from rpl_core.documents import to_json
from rpl_core.files import write_atomic
from rpl_core.text import counted

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_analysis.ranks.answer import Grouping
    from rpl_analysis.ranks.gather import Gathered
    from rpl_core.cli.session import Session

_DOCUMENT, _PAGE = "ranks.json", "ranks.html"


def answer_ranks(
    session: Session, gathered: Gathered, group_of: Grouping | None, place: Path | None, *, as_json: bool
) -> None:
    """Answer, write to ``place`` where there is one, and show."""
    summary = JobSummary.of(gathered.ranks)
    ranks = summary.ranks
    numbers = numbers_in([rank.identity.recording for rank in ranks]) or list(range(len(ranks)))
    job = answer_of(summary, numbers, missing=gathered.missing, group_of=group_of)
    text = to_json(RanksDocument.model_validate(plain_values(RanksAnswer(SCHEMA_VERSION, job))))
    if place is not None:
        write_atomic(place / _PAGE, job_page(job))
        write_atomic(place / _DOCUMENT, text)
        session.output.note(
            f"{place}: {counted(gathered.read, 'recording')} read, {gathered.kept} summed up before"
        )
    for rank in job.missing:
        session.output.warning(f"{rank.recording} is missing: {rank.reason}")
    session.output.raw(text if as_json else job_text(job))
