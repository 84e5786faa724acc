"""What every edit candidate must satisfy, whoever proposes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_testkit.contracts.violation import demand

if TYPE_CHECKING:
    from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource


def check_candidate(candidate: EditCandidate, source: KernelSource, subject: str) -> None:
    """Edits lie in the file, do not overlap and change something; refusals say why."""
    subject = f"{subject}, candidate {candidate.id!r}"
    demand(bool(candidate.id) and candidate.id.isprintable(), subject, "id must be printable text")
    demand(bool(candidate.summary.strip()), subject, "summary must say what would change")
    last_line = source.text.count(b"\n") + 1
    demand(1 <= candidate.line <= last_line, subject, f"line {candidate.line} is not in the file")
    demand(source.kernel in {None, candidate.kernel}, subject, f"kernel {source.kernel!r} was asked for")
    for guard in candidate.guards:
        demand(bool(guard.guard), subject, "a guard has a name")
        demand(
            guard.passed or bool(guard.reason.strip()), subject, f"guard {guard.guard} refuses without reason"
        )
    demand(bool(candidate.edits) or not candidate.allowed, subject, "an allowed candidate has edits")
    position = 0
    for edit in sorted(candidate.edits, key=lambda e: (e.begin, e.end)):
        demand(0 <= edit.begin <= edit.end <= len(source.text), subject, f"{edit} leaves the file")
        demand(edit.begin >= position, subject, f"{edit} overlaps the edit before it")
        changes = source.text[edit.begin : edit.end] != edit.replacement
        demand(changes, subject, f"{edit} changes nothing")
        position = max(edit.end, edit.begin + 1)
