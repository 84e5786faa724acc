"""Hashes of what was read, and whether a run directory still holds what was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.files.digest import sha256_of
from rpl_core.model.diagnostic import Diagnostic

if TYPE_CHECKING:
    from rpl_core.contracts.run import PassEntry
    from rpl_core.model.trace import Trace


def with_hashes(trace: Trace) -> Trace:
    """``trace`` with the SHA-256 of every file that it was read from."""
    hashes = tuple(sha256_of(Path(path)) for path in trace.source.paths)
    return attrs.evolve(trace, source=attrs.evolve(trace.source, sha256=hashes))


def artefact_problems(
    entry: PassEntry, root: Path, present: Iterable[Path], traces: Iterable[Trace]
) -> tuple[Diagnostic, ...]:
    """What a complete pass has lost, or holds with other bytes than were recorded."""
    found = {path.relative_to(root.resolve()).as_posix() for path in present}
    actual = _hashes(root, traces)
    problems = []
    for artefact in entry.artefacts:
        if artefact.path not in found:
            problems.append(_problem("missing", f"{artefact.path} of pass {entry.name} is missing", entry))
        elif actual.get(artefact.path, artefact.sha256) != artefact.sha256:
            fact = f"{artefact.path} of pass {entry.name} was changed after it was recorded"
            problems.append(_problem("changed", fact, entry))
    return tuple(problems)


def _hashes(root: Path, traces: Iterable[Trace]) -> Mapping[str, str]:
    resolved = root.resolve()
    return {
        Path(path).resolve().relative_to(resolved).as_posix(): sha256
        for trace in traces
        for path, sha256 in zip(trace.source.paths, trace.source.sha256, strict=True)
        if Path(path).resolve().is_relative_to(resolved)
    }


def _problem(kind: str, fact: str, entry: PassEntry) -> Diagnostic:
    return Diagnostic(
        f"run.artefact_{kind}", fact, where=entry.directory, remedy="profile again if this was not meant"
    )
