"""Runtime, occupancy, counters, roofline, execution graph, bottleneck labels, and the four documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from rpl_analysis.documents.load import LoadedRun

__all__ = ["load"]


def load(path: str | PathLike[str]) -> LoadedRun:
    """The documents of the run at ``path``, and its kernels and dispatches as columns, for notebooks.

    Raises ``rpl_core.errors.RplError`` where there is no run, or what is there can't be read.
    """
    from pathlib import Path

    from rpl_analysis.documents.load import LoadedRun

    return LoadedRun(Path(path))
