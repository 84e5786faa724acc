"""A run directory: created, its manifest kept true at every moment, and read without trust."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from pydantic import ValidationError

from rpl_core import __version__
from rpl_core.contracts.common import ArtefactEntry, PassEntry, RunManifest
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
from rpl_core.run_directory import LATEST, MANIFEST, MAX_MANIFEST_BYTES, run_name
from rpl_core.text import encodable, masked_words

if TYPE_CHECKING:
    from rpl_core.contracts.common import DiagnosticDoc
    from rpl_core.interfaces.collector import PassOutcome, PlannedPass


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
        make_empty(path)
        manifest = RunManifest(
            tool_version=__version__,
            state="running",
            created_utc=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            command=_written(command, keep=keep_command),
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


def _written(command: Iterable[str], *, keep: bool) -> tuple[str, ...]:
    words = tuple(command)
    return tuple(encodable(word) for word in (words if keep else masked_words(words)))


def _planned_entry(planned: PlannedPass, *, keep: bool) -> PassEntry:
    return PassEntry(
        name=planned.name,
        role=planned.role.value,
        state="planned",
        directory=planned.directory,
        command=_written(planned.command, keep=keep),
        counters=planned.counters,
    )


# Read the manifest of a run directory; it is data from elsewhere, so nothing in it is trusted.


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
