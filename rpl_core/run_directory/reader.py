"""Read the manifest of a run directory; it is data from elsewhere, so nothing in it is trusted."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from rpl_core.contracts.run import PassEntry, RunManifest
from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.bounded import read_regular, refuse_countless, refuse_repeats
from rpl_core.files.digest import sha256_of
from rpl_core.run_directory.layout import MANIFEST, MAX_MANIFEST_BYTES

_BY_THEMSELVES = "name the recorded files themselves: `rpl analyze FILE ...`"
_MOST_READINGS = 100  # of one file, as several passes or repeated runs


def load_manifest(directory: Path) -> RunManifest:
    """The manifest of ``directory``. Raises ``BadDataError`` for a broken or newer one."""
    path = directory / MANIFEST
    try:
        content = read_regular(path, MAX_MANIFEST_BYTES)
        refuse_countless(content, path)
    except BadDataError as error:
        error.next_step = "name the recorded files instead"
        raise
    try:
        manifest = RunManifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise BadDataError(
            f"{path} is not a run manifest that this version reads: {place}: {first['msg']}",
            cause="another version of rpl wrote it, or the file is damaged",
            next_step=_BY_THEMSELVES,
        ) from None
    # Else a small manifest could have one file read a hundred thousand times.
    files = [{os.path.normpath(artefact.path) for artefact in one.artefacts} for one in manifest.passes]
    files += [{os.path.normpath(one.path)} for one in manifest.recordings]
    try:
        refuse_repeats((name for named in files for name in named), path, "a file", _MOST_READINGS)
    except BadDataError as error:
        error.next_step = _BY_THEMSELVES
        raise
    return manifest


def pass_files(directory: Path, entry: PassEntry) -> tuple[Path, ...]:
    """The artefacts of a pass that exist. A path that leaves the run directory is refused."""
    root = directory.resolve()
    files = []
    for artefact in entry.artefacts:
        try:
            path = (root / artefact.path).resolve()
            exists = path.is_file()
        except PermissionError:
            raise  # a folder that may not be read misleads nobody
        except (OSError, ValueError, RuntimeError):  # NUL, a name that is too long, a loop of links
            raise _refused(directory, "an impossible path", artefact.path) from None
        if not path.is_relative_to(root):
            raise _refused(directory, "a file outside of the run directory", artefact.path)
        if exists:
            files.append(path)
    return tuple(dict.fromkeys(files))


def recorded_files(directory: Path, manifest: RunManifest) -> tuple[tuple[Path, ...], ...]:
    """The recordings behind an analysis, per argument that was named; only what still is what it was is read.

    A manifest from elsewhere can name any file, so one whose size and hash it does not know stays closed.
    """
    groups: dict[int, list[Path]] = {}
    for entry in manifest.recordings:
        path = directory / entry.path
        again = f"name it where it is now: `rpl analyze RECORDING -o {directory}`"
        if not os.path.isfile(path):  # noqa: PTH113 - impossible names are none, on every Python
            raise MissingError(f"{path}, the recording of {directory}, was moved or deleted", next_step=again)
        if path.stat().st_size != entry.bytes or sha256_of(path) != entry.sha256:
            raise BadDataError(f"{path} has changed since {directory} was made from it", next_step=again)
        groups.setdefault(entry.argument, []).append(path)
    return tuple(map(tuple, groups.values()))


def _refused(directory: Path, what: str, path: str) -> BadDataError:
    return BadDataError(
        f"{directory / MANIFEST} names {what}: {path[:200]!r}",
        cause="the file is damaged, or was made to mislead",
        next_step=_BY_THEMSELVES,
    )
