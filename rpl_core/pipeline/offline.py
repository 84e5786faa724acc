"""Analyse recordings from disk and write the documents where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.ingest.load import load_recording
from rpl_core.pipeline.analyse import AnalysisRequest, analyse
from rpl_core.run_directory.layout import is_run_directory

if TYPE_CHECKING:
    from rpl_core.documents.bundle import Documents
    from rpl_core.plugins.host import PluginHost


def run_directory_of(paths: Sequence[Path]) -> Path | None:
    """The run directory that ``paths`` is, or ``None`` for files, folders and several runs."""
    return paths[0] if len(paths) == 1 and is_run_directory(paths[0]) else None


def analyse_only(
    paths: Sequence[Path], request: AnalysisRequest, host: PluginHost, *, each_is_a_run: bool = False
) -> Documents:
    """Documents for ``paths``; nothing is written."""
    recording = load_recording(paths, host.catalog.readers().contributions, each_is_a_run=each_is_a_run)
    return analyse(recording, attrs.evolve(request, root=run_directory_of(paths)), host)


def analyse_paths(
    paths: Sequence[Path],
    request: AnalysisRequest,
    host: PluginHost,
    *,
    output: Path | None = None,
    each_is_a_run: bool = False,
) -> tuple[Documents, Path | None]:
    """Documents for ``paths`` and where they were written (``None``: nowhere).

    A single run directory keeps its documents inside.
    """
    documents = analyse_only(paths, request, host, each_is_a_run=each_is_a_run)
    directory = output or run_directory_of(paths)
    if directory is not None:
        documents.write(directory)
    return documents, directory
