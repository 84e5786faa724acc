"""Load run directories, files and folders into one recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.contracts.run import PassEntry, RunManifest
from rpl_core.errors import BadDataError
from rpl_core.ingest.artefacts import artefact_problems, with_hashes
from rpl_core.ingest.claims import claim_files, require_readable
from rpl_core.ingest.files import expand
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.merge import merge_traces
from rpl_core.model.recording import Recording
from rpl_core.model.trace import Trace, TraceRole
from rpl_core.run_directory.layout import is_run_directory
from rpl_core.run_directory.reader import load_manifest, pass_files

if TYPE_CHECKING:
    from rpl_core.contracts.common import DiagnosticDoc
    from rpl_core.ingest.claims import Readers


def load_recording(paths: Sequence[Path], readers: Readers, *, each_is_a_run: bool = False) -> Recording:
    """Everything in ``paths`` as one recording.

    Run directories contribute their passes. Other files and folders are processes of one run, unless
    ``each_is_a_run`` makes every argument a run of its own.
    """
    run_directories = [path for path in paths if is_run_directory(path)]
    others = [path for path in paths if path not in run_directories]
    parts = [_load_run(path, readers) for path in run_directories]
    groups = [[path] for path in others] if each_is_a_run else [others] if others else []
    parts += [_read(expand(group), group, readers) for group in groups]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: Sequence[Recording]) -> Recording:
    incomplete = [part.incomplete for part in parts if part.incomplete]
    return Recording(
        traces=tuple(trace for part in parts for trace in part.traces),
        process_ms=tuple(ms for part in parts for ms in part.process_ms),
        command=parts[0].command,
        diagnostics=tuple(d for part in parts for d in part.diagnostics),
        incomplete="; ".join(incomplete) or None,
    )


def _load_run(directory: Path, readers: Readers) -> Recording:
    manifest = load_manifest(directory)
    parts = [_load_pass(directory, entry, readers) for entry in manifest.passes if entry.state == "complete"]
    traces = tuple(trace for part in parts for trace in part.traces)
    process_ms = tuple(entry.process_ms for entry in manifest.passes if entry.process_ms is not None)
    if not traces and not process_ms:
        raise BadDataError(
            f"{directory} holds no finished pass",
            cause=manifest.reason or "the run was stopped before its first pass ended",
            next_step="profile again",
        )
    return Recording(
        traces=traces,
        process_ms=process_ms if not traces else (),
        command=manifest.command,
        diagnostics=(*_recorded(manifest.diagnostics), *(d for part in parts for d in part.diagnostics)),
        incomplete=_incomplete(manifest),
    )


def _load_pass(directory: Path, entry: PassEntry, readers: Readers) -> Recording:
    files = pass_files(directory, entry)
    part = _read(files, files, readers) if files else Recording(traces=())
    return attrs.evolve(
        part,
        traces=tuple(_with_role(trace, entry.role) for trace in part.traces),
        diagnostics=(*part.diagnostics, *artefact_problems(entry, directory, files, part.traces)),
    )


def _recorded(diagnostics: Iterable[DiagnosticDoc]) -> Iterable[Diagnostic]:
    """What was found while the run was recorded belongs to every analysis of it."""
    for doc in diagnostics:
        yield Diagnostic(**{**doc.model_dump(), "severity": Severity(doc.severity)})


def _incomplete(manifest: RunManifest) -> str | None:
    if manifest.state == "complete":
        return None
    return manifest.reason or "the run did not finish"


def _with_role(trace: Trace, role: str) -> Trace:
    """A pass that was meant for timing but holds counters is not a source of time."""
    if trace.counters is not None or role == "counters":
        return attrs.evolve(trace, role=TraceRole.COUNTERS)
    return trace


def _read(files: Sequence[Path], named: Sequence[Path], readers: Readers) -> Recording:
    """Traces of ``files``; timing traces of one group are processes of one run and become one trace."""
    claims = claim_files(files, readers)
    require_readable(claims, named, has_readers=bool(readers))
    traces = [trace for claim in claims.readable for trace in claim.read()]
    timing = [trace for trace in traces if trace.role is TraceRole.TIMING]
    rest = [trace for trace in traces if trace.role is not TraceRole.TIMING]
    if len(timing) > 1:
        timing = [merge_traces(timing)]
    return Recording(
        traces=tuple(with_hashes(trace) for trace in (*timing, *rest)), diagnostics=claims.diagnostics
    )
