"""``ranks.json`` as a document."""

from __future__ import annotations

from pydantic import Field

from rpl_analysis.contracts.rank_job import RankJob
from rpl_core.contracts.common import Part


class RanksDocument(Part):
    """What `rpl ranks` prints with ``--json``, and writes with ``-o``."""

    schema_version: str = Field(pattern=r"^1\.[0-9]+$")
    job: RankJob
