"""Apply edits to source bytes: all of them, or an error naming the one that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_optimize.interfaces.transformation import Edit


def edits_problem(edits: Iterable[Edit], size: int) -> str | None:
    """Why ``edits`` don't fit a file of ``size`` bytes, or ``None``."""
    end = 0
    for edit in _ordered(edits):
        if not 0 <= edit.begin <= edit.end <= size:
            return f"an edit of bytes {edit.begin} to {edit.end} leaves the file of {size} bytes"
        if edit.begin < end:
            return f"two edits overlap at byte {edit.begin}"
        # Two insertions at one place have no defined order.
        end = max(edit.end, edit.begin + 1)
    return None


def apply_edits(text: bytes, edits: Iterable[Edit]) -> bytes:
    """``text`` with every edit applied; ``ValueError`` when they don't fit it."""
    ordered = _ordered(edits)
    problem = edits_problem(ordered, len(text))
    if problem is not None:
        raise ValueError(problem)
    parts = []
    position = 0
    for edit in ordered:
        parts += [text[position : edit.begin], edit.replacement]
        position = edit.end
    return b"".join([*parts, text[position:]])


def _ordered(edits: Iterable[Edit]) -> list[Edit]:
    return sorted(edits, key=lambda edit: (edit.begin, edit.end))
