"""The run directory: what `rpl profile` leaves behind and every later command reads.

Names first, then a run in progress, whose manifest is true at every moment; then reading a manifest, which is
data from elsewhere; last the run of recordings that were only analysed. The manifest's pydantic model is
imported where it is made: that costs more than a small analysis, which needs none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core import __version__
from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.files import (
    make_directory,
    read_regular,
    refuse_countless,
    refuse_repeats,
    sha256_of,
    storage_error,
    write_atomic,
)
from rpl_core.interfaces.document import DocumentContract
from rpl_core.text import encodable, masked_words

if TYPE_CHECKING:
    from rpl_core.contracts.common import ArtefactEntry, DiagnosticDoc, PassEntry, RunManifest
    from rpl_core.interfaces.collector import PassOutcome, PlannedPass
    from rpl_core.model.recording import Recording

MANIFEST = "run.json"
MAX_MANIFEST_BYTES = 32 << 20
ARTIFACTS = "artifacts"  # counter passes, logs, thread traces
RECORDINGS = "recordings"  # copies of what was analysed
DOCUMENTS = ("profile.json", "roofline.json", "dag.json", "analysis.json")
LATEST = "latest"

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class RunContract(DocumentContract):
    name = "run"
    summary = "the manifest of a run directory"

    def model(self) -> type[RunManifest]:
        from rpl_core.contracts.common import RunManifest

        return RunManifest


def run_name(command: tuple[str, ...], now: datetime) -> str:
    """``<utc>-<application>``, for example ``20261120T104501Z-my_app``; ``now`` is in UTC."""
    program = Path(command[0]).name if command else "run"
    safe = _NAME.sub("_", program).strip("._")[:60] or "run"
    return f"{now:%Y%m%dT%H%M%SZ}-{safe}"


def is_run_directory(path: Path) -> bool:
    return (path / MANIFEST).is_file()


@attrs.define
class RunDirectory:
    """A run in progress. Every change of the manifest is written at once, atomically."""

    path: Path
    manifest: RunManifest
    command: tuple[str, ...] = ()  # as it is run; the manifest's has no secrets
    keep_command: bool = False

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        command: tuple[str, ...],
        collector: str,
        device: str | None,
        device_source: str | None,
        options: Mapping[str, str | int | float | bool | None],
        plan: Iterable[PlannedPass],
        plugins: tuple[str, ...],
        keep_command: bool = False,
    ) -> RunDirectory:
        """Make ``path`` (which must not hold anything) and write a manifest with all passes planned.

        Secrets in the command are masked there, unless ``keep_command``.
        """
        from rpl_core.contracts.common import RunManifest

        make_empty(path)
        manifest = RunManifest(
            tool_version=__version__,
            state="running",
            created_utc=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            command=_command_in_manifest(command, keep=keep_command),
            collector=collector,
            device=device,
            device_source=device_source,
            options=dict(options),
            passes=tuple(_planned_entry(planned, keep=keep_command) for planned in plan),
            plugins=plugins,
        )
        run = cls(path, manifest, tuple(command), keep_command)
        run._save()
        return run

    @classmethod
    def reopen(cls, path: Path) -> RunDirectory:
        """Go on with a run that was interrupted. A pass that was under way is a failed one from now on."""
        run = cls(path, load_manifest(path).model_copy(update={"state": "running", "reason": None}))
        for entry in run.manifest.passes:
            if entry.state == "planned":
                run.pass_failed(entry.name, "interrupted")
        run._save()
        return run

    def add_passes(self, plan: Iterable[PlannedPass], device: str | None, device_source: str) -> None:
        """Add passes that were planned once the device was known."""
        added = (_planned_entry(planned, keep=self.keep_command) for planned in plan)
        passes = (*self.manifest.passes, *added)
        self._update(passes=passes, device=device, device_source=device_source)

    def pass_succeeded(self, outcome: PassOutcome) -> None:
        """Record a finished pass with the hashes of its files."""
        self._replace_pass(
            outcome.planned.name,
            state="complete",
            exit_status=outcome.exit_status,
            wall_s=round(outcome.wall_s, 6),
            process_ms=outcome.process_ms,
            artefacts=tuple(self._artefact(name) for name in outcome.files),
            log=outcome.log,
        )
        if outcome.tool_version and self.manifest.collector_version is None:
            self._update(collector_version=outcome.tool_version)

    def pass_failed(self, name: str, error: str, *, exit_status: int | None = None) -> None:
        """Record a pass that gave nothing usable; its log, if any, stays under ``artifacts/logs``."""
        self._replace_pass(name, state="failed", error=encodable(error), exit_status=exit_status)

    def finish(
        self,
        reason: str | None,
        diagnostics: tuple[DiagnosticDoc, ...] = (),
        *,
        documents_follow: bool = False,
    ) -> None:
        """Mark the run complete, or incomplete with ``reason``; "recorded" where ``documents_follow``."""
        state = ("recorded" if documents_follow else "complete") if reason is None else "incomplete"
        self._update(state=state, reason=reason and encodable(reason), diagnostics=diagnostics)

    def _artefact(self, name: str) -> ArtefactEntry:
        from rpl_core.contracts.common import ArtefactEntry

        path = self.path / name
        return ArtefactEntry(path=name, sha256=sha256_of(path), bytes=path.stat().st_size)

    def _replace_pass(self, name: str, **changes: object) -> None:
        passes = tuple(
            entry.model_copy(update=changes) if entry.name == name else entry
            for entry in self.manifest.passes
        )
        self._update(passes=passes)

    def _update(self, **changes: object) -> None:
        self.manifest = self.manifest.model_copy(update=changes)
        self._save()

    def _save(self) -> None:
        write_atomic(self.path / MANIFEST, self.manifest.model_dump_json(indent=2) + "\n")


def make_empty(path: Path) -> None:
    """Create ``path``; refuse one that already holds something, so that nothing stale is ever read."""
    require_empty(path)
    make_directory(path)


def require_empty(path: Path) -> None:
    """Raise ``UsageError`` if something is at ``path`` already."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(
            f"the output directory {path} exists and is not empty",
            next_step="choose another one with -o, or remove it",
        )


def default_path(runs_directory: Path, command: tuple[str, ...]) -> Path:
    """A fresh directory name under ``runs_directory``; a counter separates runs of the same second."""
    base = runs_directory / run_name(command, datetime.now(timezone.utc))
    candidate, number = base, 2
    while candidate.exists():
        candidate = base.with_name(f"{base.name}-{number}")
        number += 1
    return candidate


def claim_path(runs_directory: Path, command: tuple[str, ...]) -> Path:
    """``default_path``, made; two profiles that start in the same moment never get the same one."""
    make_directory(runs_directory)
    while True:
        path = default_path(runs_directory, command)
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise storage_error(path, error) from error
        return path


def point_latest(run: Path) -> None:
    """Let ``latest`` beside ``run`` point to it; a file system without links just lacks the pointer."""
    link = run.parent / LATEST
    if link.exists() and not link.is_symlink():
        return
    temporary = run.parent / f".{LATEST}.{run.name}"
    try:
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(run.name, target_is_directory=True)
        temporary.replace(link)
    except OSError:
        temporary.unlink(missing_ok=True)


def _command_in_manifest(command: tuple[str, ...], *, keep: bool) -> tuple[str, ...]:
    return tuple(encodable(word) for word in (command if keep else masked_words(command)))


def _planned_entry(planned: PlannedPass, *, keep: bool) -> PassEntry:
    from rpl_core.contracts.common import PassEntry

    return PassEntry(
        name=planned.name,
        role=planned.role.value,
        state="planned",
        directory=planned.directory,
        command=_command_in_manifest(planned.command, keep=keep),
        counters=planned.counters,
    )


# Reading a manifest. It is data from elsewhere, so nothing in it is trusted.

_BY_THEMSELVES = "name the recorded files themselves: `rpl analyze FILE ...`"
_MOST_READINGS = 100  # of one file, as several passes or repeated runs


def load_manifest(directory: Path) -> RunManifest:
    """The manifest of ``directory``. Raises ``BadDataError`` for a broken or newer one."""
    from pydantic import ValidationError

    from rpl_core.contracts.common import RunManifest

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
    files = [{os.path.normpath(artefact.path) for artefact in entry.artefacts} for entry in manifest.passes]
    files += [{os.path.normpath(recording.path)} for recording in manifest.recordings]
    try:
        refuse_repeats((name for names in files for name in names), path, "a file", _MOST_READINGS)
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


# The run of recordings that were only analysed; its manifest is written and changed as plain JSON.


def write_analysed(path: Path, recording: Recording, options: Mapping[str, Any], *, keep: bool) -> None:
    """Make ``path`` a run of ``recording``: where its files lie, or copies of them, and their hashes."""
    if is_run_directory(path) and not _names_recordings(path):
        raise UsageError(f"{path} is the run of another recording", next_step="choose another -o")
    make_directory(path)
    place_of = _copy_recordings(path, recording.files) if keep else lambda file: str(file.resolve())
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
    manifest = json.loads((path / MANIFEST).read_bytes())
    if manifest["state"] == before:
        changed = {**manifest, "state": after}
        write_atomic(path / MANIFEST, json.dumps(changed, indent=2, ensure_ascii=False) + "\n")


def _names_recordings(directory: Path) -> bool:
    with suppress(ValueError, LookupError, TypeError, RecursionError, BadDataError):  # the model says more
        plain = json.loads(read_regular(directory / MANIFEST, MAX_MANIFEST_BYTES))
        if plain["tool_version"] == __version__ and plain["recordings"]:
            return True
    return bool(load_manifest(directory).recordings)


def _copy_recordings(directory: Path, groups: Iterable[Iterable[Path]]) -> Callable[[Path], str]:
    """Copy the files, with the folders that tell them apart. Gives the path of each within ``directory``."""
    files = [file.resolve() for group in groups for file in group]
    if any(file.name == MANIFEST for file in files):
        raise UsageError("--keep keeps recordings, not run directories", next_step="leave out --keep")
    root = Path(os.path.commonpath([file.parent for file in files])).parent

    def place_of(file: Path) -> str:
        return (Path(RECORDINGS) / file.resolve().relative_to(root)).as_posix()

    for file in files:
        place = directory / place_of(file)
        make_directory(place.parent)
        for source in (file, *file.parent.glob(f"{escape(file.name)}-*")):  # journals of databases, too
            copy = place.with_name(source.name)
            try:
                if copy.resolve() != source:  # an earlier analysis copied it, and reads its own copy again
                    shutil.copyfile(source, copy)
            except OSError as error:
                raise storage_error(copy, error) from error
    return place_of
