"""The result of a session as text."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.text.safety import printable
from rpl_core.text.table import format_table, wrap_lines

if TYPE_CHECKING:
    from rpl_optimize.contracts.optimize import CandidatePart, OptimizeDocument


def optimize_text(document: OptimizeDocument, root: Path, width: int | None = None) -> str:
    """Candidates, why it ended, and where things are, in lines of at most ``width`` characters."""
    lines = []
    if document.candidates:
        columns = ("#", "KERNEL", "VERDICT", "KERNEL GAIN", "APP GAIN", "PREDICTED", "CANDIDATE")
        rows = [_row(candidate) for candidate in document.candidates]
        right = ("#", "KERNEL GAIN", "APP GAIN", "PREDICTED")
        lines += [format_table(columns, rows, right=right, width=width), ""]
        lines += [_sentence(candidate) for candidate in document.candidates]
        lines.append("")
    end = [f"dominance shift: {sentence}" for sentence in document.dominance_shifts]
    end.append(f"ended: {document.termination_reason}: {document.termination_detail}")
    end.append(f"verdict: {_verdict(document)}")
    if document.accepted_source is not None:
        end.append(f"accepted source: {document.accepted_source}")
    if document.modelled_source is not None:
        end.append(f"best by the model, not accepted: {root / document.modelled_source}")
    if document.backup is not None:
        end.append(f"backup: {document.backup}")
    end.append(f"session: {root} (check it with `rpl ledger verify {shlex.quote(str(root))}`)")
    lines += [_line(sentence) for sentence in end]
    text = "\n".join(lines) + "\n"
    return text if width is None else wrap_lines(text, width)


def _line(text: str) -> str:
    """One line: names and compiler messages come from anywhere."""
    return printable(text).replace("\n", "\\n")


def _verdict(document: OptimizeDocument) -> str:
    """The session's verdict, with what a reader must not overlook."""
    if not document.candidates:
        return "nothing was accepted: no candidate was judged"
    accepted = [c for c in document.candidates if c.judgement.verdict == "accepted"]
    notes = []
    if any(not candidate.judgement.verified for candidate in accepted):
        notes.append("unverified: no check saw its results")
    if any(candidate.origin not in {None, "measured"} for candidate in accepted):
        notes.append("synthetic times: no measurement of hardware")
    if metrics := {one.metric for one in document.candidates if one.metric is not None}:
        notes.append(f"by the model {' and '.join(sorted(metrics))}; nothing was measured")
    told = f" ({'; '.join(notes)})" if notes else ""
    return f"{document.verdict}{told}"


def _sentence(candidate: CandidatePart) -> str:
    judgement = candidate.judgement
    text = f"{candidate.number}: {judgement.verdict}: {' '.join(judgement.reason.split())}"
    if judgement.verdict in {"no_verdict", "inconclusive"} and candidate.source is not None:
        text += f" (kept: {candidate.source})"
    return _line(text)


def _row(candidate: CandidatePart) -> tuple[str, ...]:
    verdict = candidate.judgement.verdict
    unverified = verdict == "accepted" and not candidate.judgement.verified
    return (
        str(candidate.number),
        candidate.kernel,
        f"{verdict} (unverified)" if unverified else verdict,
        _kernel_gain(candidate),
        _percent(candidate.measured_gain),
        _percent(candidate.predicted_gain),
        _line(candidate.summary),
    )


def _kernel_gain(candidate: CandidatePart) -> str:
    """In brackets where no fresh measurement confirmed it; said where it is a model's."""
    if candidate.modelled_gain is not None:
        return f"{candidate.modelled_gain:+.1%} modelled"
    if candidate.kernel_gain is None and candidate.first_kernel_gain is not None:
        return f"({candidate.first_kernel_gain:+.1%})"
    return _percent(candidate.kernel_gain)


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction:+.1%}"
