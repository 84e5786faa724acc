"""Marks that a writer which is not a profiler leaves in what it writes: ``rpl_origin``.

rocpd files hold it as a metadata tag, JSON files in ``metadata``, CSV sets in ``<prefix>_rpl_origin.json``.
One in ``rpl_origin.json`` is for all rocpd files and CSV sets of the folder.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rpl_core.model.origin import ORIGIN_MARK, Origin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["mark_beside", "mark_of_folder", "origin_of"]

_MAX_SIDECAR_BYTES = 4096


def origin_of(marks: Sequence[str], findings: Findings) -> Origin:
    """Measured, unless a mark says otherwise. An unknown mark is not trusted."""
    if not marks:
        return Origin.MEASURED
    known = {origin.value: origin for origin in Origin}
    unknown = [mark for mark in marks if mark not in known]
    findings.add(
        "origin.unknown_mark",
        len(unknown),
        f"mark of origin is unknown ({', '.join(unknown)}); the recording counts as synthetic",
        f"marks of origin are unknown ({', '.join(unknown)}); the recording counts as synthetic",
    )
    return Origin.weakest([known.get(mark, Origin.SYNTHETIC) for mark in marks])


def mark_of_folder(folder: Path) -> tuple[str, ...]:
    """The mark of everything in the folder."""
    return mark_beside(folder, "")


def mark_beside(folder: Path, prefix: str) -> tuple[str, ...]:
    """The mark in the file beside a CSV set; one that can't be read is a mark nobody knows."""
    path = folder / f"{prefix}_{ORIGIN_MARK}.json" if prefix else folder / f"{ORIGIN_MARK}.json"
    if not path.is_file():
        return ()
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MAX_SIDECAR_BYTES))
        return (str(content.get(ORIGIN_MARK, "absent")) if isinstance(content, dict) else "unreadable",)
    except (OSError, ValueError, RecursionError):
        return ("unreadable",)
