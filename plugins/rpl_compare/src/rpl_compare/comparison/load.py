"""Read one side from disk: a run directory, a folder of run directories, or a plain recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_compare.comparison.side import Loaded
from rpl_core.ingest.load import load_recording
from rpl_core.run_directory.layout import is_run_directory
from rpl_core.run_directory.reader import load_manifest

if TYPE_CHECKING:
    from rpl_core.ingest.claims import Readers  # `host.catalog.readers().contributions`


def load_side(path: Path, readers: Readers, *, each_is_a_run: bool = False) -> Loaded:
    """Everything that ``path`` holds, as one side.

    A folder that directly holds run directories contributes all of their runs. Other files and folders are
    processes of one run, as in ``rpl analyze``; ``each_is_a_run`` makes every entry of a folder a run.
    """
    if is_run_directory(path):
        return Loaded(load_recording((path,), readers), (load_manifest(path),), path)
    runs = run_directories(path)
    if runs:
        return Loaded(load_recording(runs, readers), tuple(load_manifest(run) for run in runs), path)
    if each_is_a_run and path.is_dir():
        entries = tuple(entry for entry in sorted(path.iterdir()) if not entry.name.startswith("."))
        return Loaded(load_recording(entries, readers, each_is_a_run=True), root=path)
    return Loaded(load_recording((path,), readers), root=path if path.is_dir() else path.parent)


def run_directories(folder: Path) -> tuple[Path, ...]:
    """The run directories directly in ``folder``, oldest first; links (``latest``) are not followed."""
    if not folder.is_dir():
        return ()
    found = [entry for entry in folder.iterdir() if not entry.is_symlink() and is_run_directory(entry)]
    return tuple(sorted(found, key=lambda run: (load_manifest(run).created_utc, run.name)))
