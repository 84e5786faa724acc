"""A plugin with a proposer that proposes what a file says: for tests of the loop around proposals.

Load it with ``rpl -p rpl_testkit.scripted_proposer`` and choose it with ``--proposer scripted``.
``RPL_SCRIPTED_CANDIDATES`` names a JSON list of ``{"kernel", "summary", "find", "replace"}``: the candidates
of each kernel in order. ``find`` must stand in the source exactly once; ``"refused"`` is a guard's reason.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from rpl_core import hookimpl
from rpl_core.text import counted
from rpl_optimize.interfaces.proposer import ProposalRequest, Proposer
from rpl_optimize.interfaces.transformation import Edit, EditCandidate, GuardVerdict

RPL_API = 2
VARIABLE = "RPL_SCRIPTED_CANDIDATES"


class ScriptedProposer(Proposer):
    """Counts the attempts on a kernel, so that a resumed session goes on where it stopped."""

    name = "scripted"
    summary = "for tests: proposes what a file says"

    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        script = json.loads(Path(os.environ[VARIABLE]).read_text(encoding="utf-8"))
        mine = [entry for entry in script if entry["kernel"] == request.source.kernel]
        number = len(request.attempts)
        return _candidate(mine[number], request.source.text, number) if number < len(mine) else None


def _candidate(entry: dict[str, Any], text: bytes, number: int) -> EditCandidate:
    find = entry["find"].encode()
    if text.count(find) != 1:
        raise ValueError(f"{entry['find']!r} stands {counted(text.count(find), 'time')} in the source")
    begin = text.index(find)
    refused = entry.get("refused")
    return EditCandidate(
        id=f"scripted-{entry['kernel']}-{number}",
        kernel=entry["kernel"],
        line=text.count(b"\n", 0, begin) + 1,
        summary=entry["summary"],
        edits=(Edit(begin, begin + len(find), entry["replace"].encode()),),
        guards=(GuardVerdict("scripted", refused is None, refused or "the test says so"),),
    )


@hookimpl
def rpl_proposers() -> tuple[Proposer, ...]:
    return (ScriptedProposer(),)
