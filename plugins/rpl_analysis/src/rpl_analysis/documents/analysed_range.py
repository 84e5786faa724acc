"""Which range of the application a run was analysed for, so that what is made from it speaks of the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.documents.kinds import DagKind
from rpl_analysis.documents.load import load_document
from rpl_core.errors import UsageError
from rpl_core.run_directory.layout import is_run_directory
from rpl_core.run_directory.manifest import load_manifest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["chosen_range"]


def chosen_range(paths: Sequence[Path], asked: str | None = None) -> str | None:
    """The range that was ``asked`` for; else the one that the runs at ``paths`` were analysed for.

    ``None`` means all work. Raises ``UsageError`` where they were analysed for different ones.
    """
    if asked is not None:
        return asked or None
    names = {_analysed_range(path): path for path in paths}
    if len(names) > 1:
        whose = " and ".join(
            f"{path} for {'all work' if name is None else f'the range {name[:60]!r}'}"
            for name, path in list(names.items())[:2]
        )
        raise UsageError(
            f"the runs were analysed for different work: {whose}",
            next_step="say --range NAME for all of them, or --range '' for all work",
        )
    return next(iter(names), None)


def _analysed_range(path: Path) -> str | None:
    """What the documents of a run speak of; without them, what it was recorded with."""
    if not is_run_directory(path):
        return None
    if (path / f"{DagKind.name}.json").is_file():
        name = getattr(load_document(path, DagKind()), "range", None)
    else:
        name = load_manifest(path).options.get("range")
    return name if isinstance(name, str) and name else None
