"""The result of a session as text."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.text.safety import printable
from rpl_core.text.table import format_table

if TYPE_CHECKING:
    from rpl_core.contracts.optimize import CandidatePart, OptimizeDocument


def optimize_text(document: OptimizeDocument, root: Path) -> str:
    """Candidates, why it ended, and where things are."""
    lines = []
    if document.candidates:
        columns = ("#", "KERNEL", "VERDICT", "KERNEL GAIN", "APP GAIN", "PREDICTED", "CANDIDATE")
        rows = [_row(candidate) for candidate in document.candidates]
        lines += [format_table(columns, rows, right=(0, 3, 4, 5)), ""]
        lines += [_sentence(candidate) for candidate in document.candidates]
        lines.append("")
    end = [f"dominance shift: {sentence}" for sentence in document.dominance_shifts]
    end.append(f"ended: {document.termination_reason}: {document.termination_detail}")
    end.append(f"verdict: {document.verdict}")
    if document.accepted_source is not None:
        end.append(f"accepted source: {document.accepted_source}")
    if document.backup is not None:
        end.append(f"backup: {document.backup}")
    end.append(f"session: {root} (check it with `rpl ledger verify {shlex.quote(str(root))}`)")
    lines += [_line(sentence) for sentence in end]
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    """One line: names and compiler messages come from anywhere."""
    return printable(text).replace("\n", "\\n")


def _sentence(candidate: CandidatePart) -> str:
    found = candidate.judgement
    return _line(f"{candidate.number}: {found.verdict}: {' '.join(found.reason.split())}")


def _row(candidate: CandidatePart) -> tuple[str, ...]:
    verdict = candidate.judgement.verdict
    unverified = verdict == "accepted" and not candidate.judgement.verified
    return (
        str(candidate.number),
        candidate.kernel,
        f"{verdict} (unverified)" if unverified else verdict,
        _percent(candidate.kernel_gain),
        _percent(candidate.measured_gain),
        _percent(candidate.predicted_gain),
        _line(candidate.summary),
    )


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction:+.1%}"
