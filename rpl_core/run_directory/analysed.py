"""The manifest of a run that was analysed. Making its model would cost more than a small analysis."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core import __version__
from rpl_core.errors import BadDataError, UsageError
from rpl_core.files import make_directory, read_regular, sha256_of, storage_error, write_atomic
from rpl_core.run_directory import MANIFEST, MAX_MANIFEST_BYTES, RECORDINGS, is_run_directory
from rpl_core.text import encodable

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording


def write_analysed(path: Path, recording: Recording, options: Mapping[str, Any], *, keep: bool) -> None:
    """Make ``path`` a run of ``recording``: where its files lie, or copies of them, and their hashes."""
    if is_run_directory(path) and not _names_recordings(path):
        raise UsageError(f"{path} is the run of another recording", next_step="choose another -o")
    make_directory(path)
    place_of = _kept(path, recording.files) if keep else lambda file: str(file.resolve())
    known = {p: h for t in recording.traces for p, h in zip(t.source.paths, t.source.sha256, strict=False)}
    manifest = {
        "tool_version": __version__,
        "state": "recorded",  # until the documents are written
        "created_utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": [encodable(word) for word in recording.command],
        "collector": "none",
        "options": dict(options),
        "recordings": [
            {
                "path": place_of(f),
                "sha256": known.get(str(f)) or sha256_of(f),
                "bytes": f.stat().st_size,
                "argument": n,
            }
            for n, files in enumerate(recording.files)
            for f in files
        ],
    }
    write_atomic(path / MANIFEST, json.dumps(manifest, indent=2) + "\n")


def mark_complete(path: Path) -> None:
    """Say of a recorded run that its documents are written; any other run stays as it is."""
    _change_state(path, "recorded", "complete")


def mark_recorded(path: Path) -> None:
    """Take back that the documents are written: others are about to take their places, one by one."""
    _change_state(path, "complete", "recorded")


def _change_state(path: Path, before: str, after: str) -> None:
    """As plain JSON: who analyses recordings needs no model of their manifest."""
    manifest = json.loads((path / MANIFEST).read_bytes())
    if manifest["state"] == before:
        changed = {**manifest, "state": after}
        write_atomic(path / MANIFEST, json.dumps(changed, indent=2, ensure_ascii=False) + "\n")


def _names_recordings(directory: Path) -> bool:
    with suppress(ValueError, LookupError, TypeError, RecursionError, BadDataError):  # the model says more
        plain = json.loads(read_regular(directory / MANIFEST, MAX_MANIFEST_BYTES))
        if plain["tool_version"] == __version__ and plain["recordings"]:
            return True
    from rpl_core.run_directory.manifest import load_manifest

    return bool(load_manifest(directory).recordings)


def _kept(directory: Path, groups: Iterable[Iterable[Path]]) -> Callable[[Path], str]:
    """Copies in the folders of before. Gives the place of each file in ``directory``."""
    files = [file.resolve() for group in groups for file in group]
    if any(file.name == MANIFEST for file in files):
        raise UsageError("--keep keeps recordings, not run directories", next_step="leave out --keep")
    root = Path(os.path.commonpath([file.parent for file in files])).parent

    def place_of(file: Path) -> str:
        return (Path(RECORDINGS) / file.resolve().relative_to(root)).as_posix()

    for file in files:
        place = directory / place_of(file)
        make_directory(place.parent)
        for one in (file, *file.parent.glob(f"{escape(file.name)}-*")):  # journals of databases, too
            copy = place.with_name(one.name)
            try:
                if copy.resolve() != one:  # kept by an earlier analysis
                    shutil.copyfile(one, copy)
            except OSError as error:
                raise storage_error(copy, error) from error
    return place_of
