"""Section on what was tried before and why it was not kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.prompt.model import Section
from rpl_llm_unroll.prompt.quoting import fenced, sentence, without_folders

if TYPE_CHECKING:
    from rpl_core.interfaces.proposer import Attempt

_LONGEST_REASON = 800


def attempts_section(attempts: tuple[Attempt, ...]) -> Section:
    if not attempts:
        return Section("Tried before", "Nothing yet.")
    rows = [f"{number}. {_row(attempt)}" for number, attempt in enumerate(attempts, 1)]
    return Section("Tried before", f"Try something else than this:\n\n{fenced(chr(10).join(rows))}")


def _row(attempt: Attempt) -> str:
    reason = sentence(without_folders(attempt.reason), _LONGEST_REASON)
    return f"{sentence(attempt.summary)}: {sentence(attempt.verdict)}: {reason}"
