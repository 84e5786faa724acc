"""One side of a comparison, read from disk: its runs as observations, and facts of where they came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.documents.load import chosen_range
from rpl_analysis.phases import restricted
from rpl_core.documents import artefact_docs
from rpl_core.errors import BadDataError, NoVerdictError
from rpl_core.ingest.load import load_recording
from rpl_core.model.metric import Origin
from rpl_core.model.recording import Recording
from rpl_core.run_directory.layout import is_run_directory
from rpl_core.run_directory.manifest import load_manifest, pass_files
from rpl_core.values import frozen
from rpl_measure.manifest import FOLDERS, complete_pairs, read_manifest
from rpl_measure.samples import Statistic, observe, observe_process

if TYPE_CHECKING:
    from rpl_core.contracts.common import ArtefactDoc
    from rpl_core.contracts.run import PassEntry, RunManifest
    from rpl_core.ingest.claims import Readers  # `host.catalog.readers().contributions`
    from rpl_core.model.diagnostic import Diagnostic
    from rpl_core.model.trace import Agent, Trace
    from rpl_measure.samples import RunObservation


@frozen
class RunFacts:
    """Where one run came from."""

    origin: Origin
    gpus: tuple[Agent, ...]  # those that executed work
    hosts: tuple[str, ...]
    format: str
    copies_traced: bool
    api_traced: bool
    artefacts: tuple[ArtefactDoc, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


@frozen(eq=False)
class Side:
    """Runs and their facts, one each per process run. ``label``: "base", "new" or an entry's name."""

    label: str
    runs: tuple[RunObservation, ...]
    facts: tuple[RunFacts, ...]
    manifests: tuple[RunManifest, ...] = ()
    command: tuple[str, ...] = ()
    incomplete: str | None = None
    range: str | None = None  # only what ranges of this name launched
    diagnostics: tuple[Diagnostic, ...] = ()  # about the recording as a whole

    @property
    def name(self) -> str:
        """As messages write it: BASE, NEW, or the entry."""
        return self.label.upper() if self.label in {"base", "new"} else self.label

    @property
    def origin(self) -> Origin:
        return Origin.weakest([fact.origin for fact in self.facts])

    @property
    def gpus(self) -> tuple[Agent, ...]:
        """The GPUs of all runs, without repeats."""
        return tuple(dict.fromkeys(gpu for fact in self.facts for gpu in fact.gpus))


@frozen(eq=False)
class Loaded:
    """A side as it was read: the recording with its traces, the manifests of its run directories."""

    recording: Recording
    manifests: tuple[RunManifest, ...] = ()
    root: Path | None = None
    range: str | None = None  # only what ranges of this name launched


def timed_traces(recording: Recording) -> tuple[Trace, ...]:
    """The runs that time may be taken from. Counter passes stretch dispatches and never take part."""
    return tuple(trace for trace in recording.timing_runs if len(trace.dispatches))


def copies_everywhere(sides: Sequence[Loaded]) -> bool:
    """Whether every run of every side recorded copies, so that they may take part in the graph."""
    return all(trace.copies is not None for side in sides for trace in timed_traces(side.recording))


def make_side(label: str, loaded: Loaded, statistic: Statistic, *, include_copies: bool) -> Side:
    """Observe all runs. Raises ``NoVerdictError`` for a recording that holds no measured time."""
    recording = loaded.recording
    traces = timed_traces(recording)
    if traces:
        runs = tuple(observe(trace, statistic, include_copies=include_copies) for trace in traces)
        facts = tuple(facts_of(trace, loaded.root) for trace in traces)
    elif recording.process_ms:
        runs = tuple(observe_process(ms) for ms in recording.process_ms)
        facts = (process_facts(),) * len(runs)
    else:
        raise NoVerdictError(
            f"{label.upper()} holds no kernel-trace run, so no time can be compared",
            cause="only counter passes were recorded, and their times are estimates"
            if recording.counter_passes
            else "no kernel dispatch was recorded",
            next_step="record timing runs: `rpl profile --runs 10 -- ./app`",
        )
    return Side(
        label=label,
        runs=runs,
        facts=facts,
        manifests=loaded.manifests,
        command=recording.command,
        incomplete=recording.incomplete,
        range=loaded.range,
        diagnostics=recording.diagnostics,
    )


def facts_of(trace: Trace, root: Path | None) -> RunFacts:
    """Facts of one timing run; paths are given relative to ``root``."""
    return RunFacts(
        origin=trace.origin,
        gpus=Recording(traces=(trace,)).gpu_agents,
        hosts=tuple(sorted({process.hostname or process.node for process in trace.processes})),
        format=trace.source.format,
        copies_traced=trace.copies is not None,
        api_traced=trace.api_calls is not None,
        artefacts=tuple(artefact_docs(trace, root)),
        diagnostics=trace.diagnostics,
    )


def process_facts() -> RunFacts:
    """Facts of a run that only has a wall-clock time."""
    return RunFacts(Origin.MEASURED, (), (), "process wall clock", False, False, ())


def load_side(
    path: Path, readers: Readers, *, each_is_a_run: bool = False, within: str | None = None
) -> Loaded:
    """What ranges called ``within`` launched of ``path``, or everything that it holds, as one side.

    A folder that directly holds run directories contributes all of their runs. Other files and folders are
    processes of one run, as in ``rpl analyze``; ``each_is_a_run`` makes every entry of a folder a run.
    """
    loaded = _loaded(path, readers, each_is_a_run=each_is_a_run)
    return attrs.evolve(loaded, recording=restricted(loaded.recording, within), range=within)


def range_of_sides(paths: Iterable[Path], asked: str | None) -> str | None:
    """What ``--range`` asks for, else what all runs were analysed for (``None``: all work)."""
    return chosen_range([run for path in paths for run in run_directories(path) or (path,)], asked)


def _loaded(path: Path, readers: Readers, *, each_is_a_run: bool) -> Loaded:
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


def observe_pass(
    directory: Path,
    entry: PassEntry,
    readers: Readers,
    statistic: Statistic,
    *,
    include_copies: bool,
) -> tuple[RunObservation, RunFacts]:
    """One finished timing pass, read alone so that no trace stays in memory.

    All of its files are processes of one run.
    """
    files = pass_files(directory, entry)
    if files:
        traces = timed_traces(load_recording(files, readers))
        if len(traces) == 1:
            observed = observe(traces[0], statistic, include_copies=include_copies)
            return observed, facts_of(traces[0], directory)
    elif entry.process_ms is not None:
        return observe_process(entry.process_ms), process_facts()
    raise BadDataError(
        f"pass {entry.name} in {directory} holds no kernel trace",
        cause="its files were removed or replaced after the run",
    )


def stored_sides(
    directory: Path, readers: Readers, statistic: Statistic = Statistic.SUM
) -> tuple[Side, Side]:
    """Base and new of a directory of pairs, read from recordings. Raises ``NoVerdictError`` without pairs."""
    manifest = read_manifest(directory)
    pairs = complete_pairs(manifest)
    if not pairs:
        raise NoVerdictError(
            f"{directory} holds no complete pair", cause=manifest.reason, next_step="measure again"
        )
    base, new = (
        _side(label, directory / folder, [pair[label] for pair in pairs], readers, statistic)
        for label, folder in FOLDERS.items()
    )
    return base, new


def _side(label: str, directory: Path, names: Sequence[str], readers: Readers, statistic: Statistic) -> Side:
    if not is_run_directory(directory):
        raise BadDataError(f"{directory} is no run directory", cause="the comparison was moved in parts")
    manifest = load_manifest(directory)
    entries = {entry.name: entry for entry in manifest.passes if entry.state == "complete"}
    missing = [name for name in names if name not in entries]
    if missing:
        raise BadDataError(f"{directory} lacks the run {missing[0]!r} that its comparison names")
    copies = bool(manifest.options.get("focus_critical"))
    observed = [
        observe_pass(directory, entries[name], readers, statistic, include_copies=copies) for name in names
    ]
    return Side(
        label=label,
        runs=tuple(run for run, _ in observed),
        facts=tuple(facts for _, facts in observed),
        manifests=(manifest,),
        command=manifest.command,
    )
