"""From paths to a recording: which files belong together, who reads them, what they stand for."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.errors import BadDataError, MissingError, PluginError, RplError, UsageError
from rpl_core.files import sha256_of
from rpl_core.ingest.claims import claim_files, reader_failed, require_readable
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.recording import Recording, merge_traces
from rpl_core.model.trace import Trace, TraceRole, distinct_values
from rpl_core.run_directory import (
    DOCUMENTS,
    MANIFEST,
    RECORDINGS,
    is_run_directory,
    load_manifest,
    pass_files,
    recorded_files,
)
from rpl_core.text import counted, shorten

if TYPE_CHECKING:
    from rpl_core.contracts.common import PassEntry, RunManifest
    from rpl_core.ingest.claims import Readers

    Life = tuple[str, int, int]  # clock, begin, end

# Which recordings are processes of one run, and which are repeated runs: by evidence, and said.
#
# Processes of one run live at the same time, repeated runs do not. Where lifetimes are not recorded the times
# of the work stand for them. A process id that occurs twice means two runs, and clocks of different machines
# can't be compared; what that leaves open counts as repeated runs until the user says otherwise.


def by_evidence(recording: Recording) -> Recording:
    """``recording`` with the traces of one run as one trace, and a word on what was assumed."""
    runs = recording.timing_runs
    if len(runs) < 2:
        return recording
    lives = [_life(run) for run in runs]
    groups = _groups(runs, lives)
    merged = tuple(merge_traces([runs[i] for i in group]) for group in groups)
    if len(merged) > 1:
        require_one_device(recording)
        _require_repeats([run for run in merged if len(run.dispatches)])
    return _with_runs(recording, merged, _assumed(groups, lives))


def as_ranks(recording: Recording) -> Recording:
    """The user's word: all are processes of one run."""
    return _with_runs(recording, (merge_traces(recording.timing_runs),) if recording.timing_runs else ())


def require_one_device(recording: Recording) -> None:
    """Raise ``BadDataError`` for traces of different GPUs, which nothing makes runs of one program."""
    known = [(trace, architectures) for trace in recording.traces if (architectures := _architectures(trace))]
    first, left = known[0] if known else (None, ())
    for other, right in known:
        if first is not None and left != right:
            raise BadDataError(
                f"{_recorded_in(first)} and {_recorded_in(other)} were recorded on different GPUs"
                f" ({', '.join(left)} and {', '.join(right)}), so they are not runs of one program",
                next_step="analyse each by itself, or compare programs, not GPUs",
            )


def _architectures(trace: Trace) -> tuple[str, ...]:
    """Of the GPUs that executed work."""
    used = distinct_values(trace.dispatches.agent).tolist()
    gpus = (trace.agents[index] for index in used if index >= 0 and trace.agents[index].kind == "GPU")
    names = {gpu.architecture for gpu in gpus}
    return tuple(sorted(name for name in names if name))


def _require_repeats(runs: Sequence[Trace]) -> None:
    """Raise ``BadDataError`` for runs that launch other kernels, or the same another number of times.

    Repeated runs of one program launch the same; what does not is another program, or one of its processes.
    """
    launches = [(run, _launches(run)) for run in runs]
    for other, launched in launches[1:]:
        first, expected = launches[0]
        if launched == expected:
            continue
        only = sorted(expected.keys() ^ launched.keys())
        differing = sorted(
            name for name in expected.keys() & launched.keys() if expected[name] != launched[name]
        )
        name = shorten((only or differing)[0], 60)
        what = (
            f"kernels in one of them only: {name}" + (f" and {len(only) - 1} more" if only[1:] else "")
            if only
            else f"{name} was launched {expected[differing[0]]} and {launched[differing[0]]} times"
        )
        raise BadDataError(
            f"{_recorded_in(first)} and {_recorded_in(other)} are not runs of one program: {what}",
            cause="two programs lie in one folder, or processes of one run whose clocks don't tell",
            next_step="analyse each by itself, or say what they are: --ranks (processes of one run), or"
            " --each-is-a-run (repeated runs of a program that varies)",
        )


def _recorded_in(trace: Trace) -> str:
    return trace.source.paths[0] if trace.source.paths else "a recording"


def _launches(trace: Trace) -> Counter[str]:
    counts = np.bincount(trace.dispatches.kernel[trace.dispatches.kernel >= 0], minlength=len(trace.kernels))
    launched: Counter[str] = Counter()
    for kernel, count in zip(trace.kernels, counts.tolist(), strict=True):
        if count:
            launched[kernel.name] += count
    return launched


def require_one_program(recording: Recording) -> None:
    """Raise ``BadDataError`` for counter passes of which one knows less than half of the other's kernels.

    Passes of one program launch the same kernels; without a timing run nothing else connects them.
    """
    passes = [(t, {kernel.name for kernel in t.kernels}) for t in recording.counter_passes if t.kernels]
    for (first, names), (other, others) in itertools.combinations(passes, 2):
        if not recording.timing_runs and 2 * len(names & others) < min(len(names), len(others)):
            raise BadDataError(
                f"{first.source.paths[-1]} and {other.source.paths[-1]} are not of one program: they share"
                f" {len(names & others)} of {len(names)} and {len(others)} kernels",
                next_step="analyse each by itself; if they are of one program, name both files",
            )


def _with_runs(recording: Recording, runs: tuple[Trace, ...], *said: Diagnostic) -> Recording:
    others = tuple(trace for trace in recording.traces if trace.role is not TraceRole.TIMING)
    return attrs.evolve(recording, traces=(*runs, *others), diagnostics=(*recording.diagnostics, *said))


def _groups(runs: Sequence[Trace], lives: Sequence[Life | None]) -> list[list[int]]:
    """Places of traces that overlaps on one clock connect, each group and the groups in their order."""
    groups = [[i] for i, life in enumerate(lives) if life is None]
    clock, latest = None, 0
    for (node, begin, end), i in sorted((life, i) for i, life in enumerate(lives) if life is not None):
        if node == clock and begin < latest:
            groups[-1].append(i)
        else:
            groups.append([i])
            clock, latest = node, 0
        latest = max(latest, end)
    parts = [[[i] for i in group] if _repeats([runs[i] for i in group]) else [group] for group in groups]
    return sorted(sorted(group) for part in parts for group in part)


def _repeats(runs: Sequence[Trace]) -> bool:
    pids = [process.pid for run in runs for process in run.processes if process.pid > 0]
    return len(pids) != len(set(pids))


def _life(run: Trace) -> Life | None:
    clocks = {process.node for process in run.processes}
    if len(clocks) != 1:
        return None
    times = [time for p in run.processes for time in (p.begin_ns, p.end_ns) if time is not None]
    if len(times) < 2 * len(run.processes):
        rows = [rows for rows in (run.dispatches, run.copies) if rows is not None and len(rows)]
        times = [time for r in rows for time in (int(r.begin_ns.min()), int(r.end_ns.max()))]
    return (clocks.pop(), min(times), max(times)) if times else None


def _assumed(groups: Sequence[Sequence[int]], lives: Sequence[Life | None]) -> Diagnostic:
    known = None not in lives and len({life[0] for life in lives if life}) == 1
    runs = "one run" if len(groups) == 1 else counted(len(groups), "run")
    return Diagnostic(
        "ingest.runs_assumed",
        f"{len(lives)} recordings are taken for {runs}: what was made at the same time is one run",
        severity=Severity.INFO if known else Severity.WARNING,
        cause=None if known else "clocks of several machines, or times that are not recorded, tell nothing",
        remedy="`rpl analyze` takes them for one run with --ranks, for repeated runs with --each-is-a-run",
    )


#: Two years (chosen): sums of nanoseconds fit into 64 bits however many passes are added up.
_LONGEST_SUM_NS = 1 << 56
#: Analysing takes half a millisecond and 12 kB for each (measured); applications have some thousands.
_MOST_KERNELS = 100_000

_NOT_CLEANED = Diagnostic(
    "run.not_cleaned",
    "the profile was killed: what its last pass left may hold the environment variables of the application",
    remedy="do not share the run directory, or delete the files of that pass",
)


def load_recording(
    paths: Sequence[Path], readers: Readers, *, each_is_a_run: bool = False, ranks: bool = False
) -> Recording:
    """Everything in ``paths`` as one recording.

    Run directories contribute their passes. Among other files and folders times tell which are processes of
    one run and which are repeated runs; ``each_is_a_run`` makes every argument a run of its own, and with
    ``ranks`` all are processes of one run.
    """
    run_directories = [path for path in paths if is_run_directory(path)]
    others = [path for path in paths if path not in run_directories]
    parts = [_load_run(path, readers) for path in run_directories]
    if ranks and parts:
        raise UsageError(
            "--ranks is for recordings: a run directory knows its processes", next_step="name what it holds"
        )
    groups = [[path] for path in others] if each_is_a_run else [others] if others else []
    settle = as_ranks if ranks else by_evidence
    for group in groups:
        part = settle(_read(expand(group), group, readers))
        if any(path.is_dir() for path in group):
            require_one_program(part)
        parts.append(part)
    read = [p for part in parts for p in {Path(n).resolve() for t in part.traces for n in t.source.paths}]
    if len(set(read)) < len(read):
        fact = f"{next(path for path in read if read.count(path) > 1)} is named twice"
        raise UsageError(fact, cause="it would count as two runs", next_step="name each recording once")
    joined = _joined(parts)
    if not ranks:
        require_one_device(joined)
    return joined


def _joined(parts: Sequence[Recording]) -> Recording:
    if len(parts) == 1:
        return parts[0]
    incomplete = [part.incomplete for part in parts if part.incomplete]
    return Recording(
        traces=tuple(trace for part in parts for trace in part.traces),
        process_ms=tuple(ms for part in parts for ms in part.process_ms),
        command=parts[0].command,
        diagnostics=tuple(d for part in parts for d in part.diagnostics),
        incomplete="; ".join(incomplete) or None,
        counters_missing=next((part.counters_missing for part in parts if part.counters_missing), None),
        files=tuple(group for part in parts for group in part.files),
    )


def _load_run(directory: Path, readers: Readers) -> Recording:
    manifest = load_manifest(directory)
    if manifest.recordings:
        return _load_analysed(directory, manifest, readers)
    parts = [_load_pass(directory, entry, readers) for entry in manifest.passes if entry.state == "complete"]
    finished = manifest.state in ("complete", "recorded")
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
        diagnostics=(
            # What was found while the run was recorded belongs to every analysis of it.
            *(
                Diagnostic(**{**d.model_dump(), "severity": Severity(d.severity)})
                for d in manifest.diagnostics
            ),
            *([_NOT_CLEANED] if manifest.state == "running" else []),
            *(d for part in parts for d in part.diagnostics),
        ),
        incomplete=None if finished else manifest.reason or "the run did not finish",
        counters_missing=_why_no_counters(manifest),
        files=((directory / MANIFEST,),),
    )


def _load_analysed(directory: Path, manifest: RunManifest, readers: Readers) -> Recording:
    """What the run was made from, wherever it lies; among it may be run directories, by their manifests."""
    settle = as_ranks if manifest.options.get("ranks") else by_evidence
    parts = [
        _load_run(group[0].parent, readers)
        if group[0].name == MANIFEST
        else settle(_read(group, group, readers))
        for group in recorded_files(directory, manifest)
    ]
    return attrs.evolve(_joined(parts), files=((directory / MANIFEST,),))


def _load_pass(directory: Path, entry: PassEntry, readers: Readers) -> Recording:
    files = pass_files(directory, entry)
    part = _read_pass(entry, files, readers) if files else Recording(traces=())
    return attrs.evolve(
        part,
        traces=tuple(_with_role(trace, entry.role) for trace in _one_execution(part.traces)),
        diagnostics=(*part.diagnostics, *artefact_problems(entry, directory, files, part.traces)),
    )


def _read_pass(entry: PassEntry, files: Sequence[Path], readers: Readers) -> Recording:
    """A pass that adds to a profile costs only itself when it can't be read."""
    if entry.role != TraceRole.THREAD_TRACE.value:
        return _read(files, files, readers)
    try:
        return _read(files, (), readers)
    except RplError as error:
        problem = Diagnostic(
            "ingest.pass_not_read",
            f"the thread trace of pass {entry.name} can't be read: {error.fact}",
            cause=error.cause,
            remedy=error.next_step,
            where=entry.directory,
        )
        return Recording(traces=(), diagnostics=(problem,))


def _why_no_counters(manifest: RunManifest) -> str | None:
    """Why the run lacks counters that it was to collect; ``None`` if it was not, or has some."""
    passes = [entry for entry in manifest.passes if entry.role == "counters"]
    if any(entry.state == "complete" for entry in passes):
        return None
    reasons = [f"counter pass {entry.name} failed: {entry.error}" for entry in passes if entry.error]
    reasons += [d.fact for d in manifest.diagnostics if d.code.startswith("collect.no_counter")]
    if not reasons and manifest.options.get("roofline"):
        return manifest.reason or "no counter pass was run"
    return reasons[0] if reasons else None


def _with_role(trace: Trace, role: str) -> Trace:
    """A pass that was meant for timing but holds counters is not a source of time."""
    if role == TraceRole.THREAD_TRACE.value:
        return attrs.evolve(trace, role=TraceRole.THREAD_TRACE)
    if trace.counters is not None or role == "counters":
        return attrs.evolve(trace, role=TraceRole.COUNTERS)
    return attrs.evolve(trace, role=TraceRole.REFERENCE) if role == TraceRole.REFERENCE.value else trace


def _without_slowed_times(traces: Sequence[Trace]) -> list[Trace]:
    """Times that were recorded together with what slows the application down are not used.

    A recording belongs to such a trace when it lies beside the trace's folder or below that place.
    """
    traced = [Path(t.source.paths[0]).resolve().parent for t in traces if t.slows_neighbours]
    places = {folder.parent for folder in traced}
    return [
        attrs.evolve(t, role=TraceRole.THREAD_TRACE)
        if t.role is TraceRole.TIMING
        and any(Path(path).resolve().is_relative_to(place) for path in t.source.paths for place in places)
        else t
        for t in traces
    ]


def _times_not_used(trace: Trace) -> Diagnostic:
    return Diagnostic(
        "ingest.times_not_used",
        "the times of a recording beside a thread trace are not used",
        severity=Severity.INFO,
        cause="tracing instructions slows kernels down",
        remedy="analyse it without the folder of the trace if it was recorded in another run",
        where=trace.source.paths[0],
    )


def _read(files: Sequence[Path], named: Sequence[Path], readers: Readers) -> Recording:
    """Traces of ``files``, the timing runs first.

    A reader that breaks costs what nobody else can read; its error is raised where that was named, or all.
    """
    claims = claim_files(files, readers)
    require_readable(claims, named, has_readers=bool(readers))
    read: list[Trace] = []
    for claim in claims.readable:
        try:
            read += claim.read()
        except (PluginError, BadDataError, MissingError) as error:
            others = [offered for offered in readers if offered.value is not claim.reader]
            if isinstance(error, PluginError):
                return _read_by_others(error, files, named, others)
            if not claim_files(claim.inputs.paths, others).readable:
                raise
            refused = PluginError(claim.plugin, f"reader {claim.reader.name!r}", error.one_line())
            return _read_by_others(refused, files, named, others)
    _require_countable(read)
    if len({kernel.name for trace in read for kernel in trace.kernels}) > _MOST_KERNELS:
        raise BadDataError(
            f"{read[0].source.paths[0]} names more than {_MOST_KERNELS:,} kernels, each of which is analysed",
            next_step="record fewer kernels, by name or in parts of the application",
        )
    traces = _without_slowed_times(read)
    slowed = [old for old, new in zip(read, traces, strict=True) if old.role is not new.role]
    timing = [trace for trace in traces if trace.role is TraceRole.TIMING]
    rest = [trace for trace in traces if trace.role is not TraceRole.TIMING]
    claimed = {path for claim in claims.readable for path in claim.inputs.paths}
    return Recording(
        traces=tuple(with_hashes(trace) for trace in (*timing, *rest)),
        diagnostics=(*claims.diagnostics, *map(_times_not_used, slowed)),
        files=(tuple(file for file in files if file in claimed),),
    )


def _require_countable(traces: Sequence[Trace]) -> None:
    """Times that a clock could show one by one may still add up to more than the sums of analyses hold."""
    total = 0.0
    for trace in traces:
        for rows in (trace.dispatches, trace.copies, trace.api_calls):
            if rows is not None:
                total += float(np.subtract(rows.end_ns, rows.begin_ns, dtype=np.float64).sum())
        if total > _LONGEST_SUM_NS:
            raise BadDataError(
                f"{trace.source.paths[0]}: the times of its kernels, copies and calls add up to more than "
                f"{_LONGEST_SUM_NS / 3.6e12:,.0f} hours",
                cause="the recording is damaged or was edited",
                next_step="record again",
            )


def _read_by_others(
    error: PluginError, files: Sequence[Path], named: Sequence[Path], others: Readers
) -> Recording:
    try:
        rest = _read(files, named, others)
    except RplError:
        raise error from None
    return attrs.evolve(rest, diagnostics=(reader_failed(error), *rest.diagnostics))


def _one_execution(traces: Sequence[Trace]) -> Iterable[Trace]:
    """A pass runs the application once, so all its timing traces are processes of one run."""
    timing = [trace for trace in traces if trace.role is TraceRole.TIMING]
    yield from [merge_traces(timing)] if len(timing) > 1 else timing
    yield from (trace for trace in traces if trace.role is not TraceRole.TIMING)


def with_hashes(trace: Trace) -> Trace:
    """``trace`` with the SHA-256 of every file that it was read from, where its reader gives none."""
    if len(trace.source.sha256) == len(trace.source.paths):
        return trace
    hashes = tuple(sha256_of(Path(path)) for path in trace.source.paths)
    return attrs.evolve(trace, source=attrs.evolve(trace.source, sha256=hashes))


def artefact_problems(
    entry: PassEntry, root: Path, present: Iterable[Path], traces: Iterable[Trace]
) -> tuple[Diagnostic, ...]:
    """What a complete pass has lost, or holds with other bytes than were recorded."""
    here = {path.relative_to(root.resolve()).as_posix() for path in present}
    actual = _hashes(root, traces)
    problems = []
    for artefact in entry.artefacts:
        if artefact.path not in here:
            problems.append(_problem("missing", f"{artefact.path} of pass {entry.name} is missing", entry))
        elif actual.get(artefact.path, artefact.sha256) != artefact.sha256:
            fact = f"{artefact.path} of pass {entry.name} was changed after it was recorded"
            problems.append(_problem("changed", fact, entry))
    return tuple(problems)


def _hashes(root: Path, traces: Iterable[Trace]) -> Mapping[str, str]:
    known = (pair for trace in traces for pair in zip(trace.source.paths, trace.source.sha256, strict=True))
    return {os.path.relpath(Path(path).resolve(), root.resolve()): sha256 for path, sha256 in known}


def _problem(kind: str, fact: str, entry: PassEntry) -> Diagnostic:
    return Diagnostic(
        f"run.artefact_{kind}", fact, where=entry.directory, remedy="profile again if this was not meant"
    )


# Expand what the user named into files, with bounds, in a fixed order.


#: A folder with more files is not a recording; naming the files still works (chosen).
MAX_FILES = 20_000
_MAX_DEPTH = 8


def expand(paths: Sequence[Path]) -> tuple[Path, ...]:
    """All regular files in ``paths``, folders walked to a bounded depth, sorted within each argument.

    A file that is reached in two ways is taken once: its work must not count twice. Symbolic links inside
    folders are not followed. Raises ``MissingError`` for a path that does not exist.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            for file in _walk(path, 0):
                files.setdefault(file.resolve(), file)
                if len(files) > MAX_FILES:
                    raise BadDataError(
                        f"{path} holds more than {MAX_FILES} files", next_step="name the recording itself"
                    )
        elif path.is_file():
            files.setdefault(path.resolve(), path)
        elif path.exists():
            raise BadDataError(f"{path} is a pipe or a device", next_step="name a file or a folder")
        else:
            raise MissingError(f"{path} does not exist", next_step="check the path")
    return tuple(files.values())


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    if depth > _MAX_DEPTH:
        return
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink():
            continue
        if entry.is_dir() and not (entry.name == RECORDINGS and is_run_directory(folder)):  # copies
            yield from _walk(entry, depth + 1)
        elif entry.is_file() and entry.name not in DOCUMENTS:
            yield entry
