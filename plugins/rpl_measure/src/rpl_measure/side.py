"""One side of a comparison, read from disk: its runs as observations, and facts of where they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.documents.load import chosen_range
from rpl_analysis.phases import restricted
from rpl_core.documents import artefact_docs
from rpl_core.errors import BadDataError, DeviceMismatchError, NoVerdictError
from rpl_core.ingest import load_recording
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.metric import Origin
from rpl_core.model.recording import Recording
from rpl_core.run_directory import is_run_directory, load_manifest, pass_files
from rpl_core.values import frozen
from rpl_measure.manifest import FOLDERS, complete_pairs, read_manifest
from rpl_measure.samples import ItemKey, Kind, RunObservation, Statistic, observe, observe_process

if TYPE_CHECKING:
    from rpl_core.contracts.common import ArtefactDoc, PassEntry, RunManifest
    from rpl_core.ingest.claims import Readers
    from rpl_core.model.trace import Agent, Trace


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
    runs = [entry for entry in folder.iterdir() if not entry.is_symlink() and is_run_directory(entry)]
    return tuple(sorted(runs, key=lambda run: (load_manifest(run).created_utc, run.name)))


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


# Whether two sides may be compared at all, and what their reader should know about differences.

#: The switch for rpl's own tests and demos; documented in docs/compare.md.
SYNTHETIC_VARIABLE = "RPL_ALLOW_SYNTHETIC_GATES"

#: What makes a GPU the same device: a difference in any of these is another machine.
_IDENTITY = ("architecture", "product", "compute_units", "compute_partition", "memory_partition")


@frozen
class Comparability:
    """``blocking`` reasons leave no verdict; ``incomparable`` items are shown without one."""

    blocking: tuple[str, ...]
    incomparable: Mapping[ItemKey, str]
    diagnostics: tuple[Diagnostic, ...]


def check_comparable(base: Side, new: Side, *, allow_synthetic: bool, forced: bool) -> Comparability:
    """Raises ``DeviceMismatchError`` for recordings of different GPUs."""
    for field in _IDENTITY:
        left, right = _values(base, field), _values(new, field)
        if left and right and left != right:
            raise DeviceMismatchError(
                f"{base.name} and {new.name} were recorded on different devices: {field.replace('_', ' ')} "
                f"{_listed(left)} against {_listed(right)}",
                next_step="compare recordings of the same GPU in the same partition mode",
            )
    blocking = [*_origin_reasons(base, new, allow_synthetic=allow_synthetic)]
    if not forced:
        blocking += [*_extent_reasons(base, new), *_loss_reasons(base), *_loss_reasons(new)]
    return Comparability(tuple(blocking), _incomparable(base, new), tuple(_differences(base, new)))


def _values(side: Side, field: str) -> tuple[object, ...]:
    values = {getattr(gpu, field) for gpu in side.gpus} - {None}
    return tuple(sorted(values, key=str))


def _listed(values: tuple[object, ...]) -> str:
    return ", ".join(str(value) for value in values)


def _origin_reasons(base: Side, new: Side, *, allow_synthetic: bool) -> Iterator[str]:
    """Only measured data pass a gate."""
    for side in (base, new):
        if side.origin is Origin.MEASURED or (side.origin is Origin.SYNTHETIC and allow_synthetic):
            continue
        yield f"{side.name} is {side.origin.value} data, and only measured data give a verdict"


def _extent_reasons(base: Side, new: Side) -> Iterator[str]:
    """A lost process or GPU makes every sum smaller and would look like a gain."""
    for what, of in (("processes", _process_counts), ("GPUs", _gpu_counts)):
        left, right = of(base), of(new)
        for side, counts in ((base, left), (new, right)):
            if len(counts) > 1:
                yield f"the runs of {side.name} differ in {what} ({_listed(tuple(counts))})"
        if len(left) == len(right) == 1 and left != right:
            yield f"{base.name} ran with {left[0]} {what} and {new.name} with {right[0]}"


def _loss_reasons(side: Side) -> Iterator[str]:
    """Rows that a reader had to leave out make sums smaller; readers report such losses as errors."""
    of_runs = (diagnostic for fact in side.facts for diagnostic in fact.diagnostics)
    for diagnostic in dict.fromkeys((*side.diagnostics, *of_runs)):
        if diagnostic.severity is Severity.ERROR:
            yield f"{side.name} lost data: {diagnostic.fact}"


def _process_counts(side: Side) -> tuple[int, ...]:
    return tuple(sorted({run.processes for run in side.runs}))


def _gpu_counts(side: Side) -> tuple[int, ...]:
    """Without runs that do not name their GPU."""
    return tuple(sorted({len(fact.gpus) for fact in side.facts} - {0}))


def _incomparable(base: Side, new: Side) -> Mapping[ItemKey, str]:
    reasons = {}
    left, right = {run.sync_info for run in base.runs}, {run.sync_info for run in new.runs}
    if left != right:
        key = ItemKey(Kind.CRITICAL_PATH, Kind.CRITICAL_PATH.value)
        reasons[key] = "the sides hold different kinds of synchronisation records"
    with_calls = {fact.api_traced for side in (base, new) for fact in side.facts}
    if len(with_calls) > 1:
        key = ItemKey(Kind.MAKESPAN, Kind.MAKESPAN.value)
        reasons[key] = "some runs recorded API calls, which takes time between kernels, and some did not"
    return reasons


def _differences(base: Side, new: Side) -> Iterator[Diagnostic]:
    names = f"{base.name} and {new.name}"
    for code, what, of in _FACTS:
        left, right = of(base), of(new)
        if left and right and left != right:
            yield Diagnostic(code, f"{names} differ in {what}: {_listed(left)} against {_listed(right)}")
    for key, reason in _incomparable(base, new).items():
        remedy = "record both alike, with `rpl profile` or with `rpl profile --no-api`, or name --kernel NAME"
        of_calls = key.kind is Kind.MAKESPAN
        fact = f"no verdict about {key.name}: {reason}"
        yield Diagnostic("compare.incomparable", fact, remedy=remedy if of_calls else None)
    if not base.gpus or not new.gpus:
        side = base if not base.gpus else new
        yield Diagnostic(
            "compare.device_unknown",
            f"{side.name} does not say which GPU it ran on, so equal devices can't be checked",
            severity=Severity.INFO,
        )
    if _runs_by_files(base) & _runs_by_files(new):
        yield Diagnostic("compare.same_files", f"{names} share recorded files")
    for side in (base, new):
        yield from _damage(side)


def _damage(side: Side) -> Iterator[Diagnostic]:
    zero = sum(run.zero_durations for run in side.runs)
    unnamed = sum(run.unnamed for run in side.runs)
    if zero:
        fact = f"{zero} dispatches of {side.name} have a duration of zero"
        yield Diagnostic("dispatch.zero_duration", fact, where=side.label, count=zero)
    if unnamed:
        fact = f"{unnamed} dispatches of {side.name} name no kernel and count for none"
        yield Diagnostic("dispatch.unnamed", fact, where=side.label, count=unnamed)
    if side.incomplete:
        fact = f"{side.name} is incomplete: {side.incomplete}"
        yield Diagnostic("compare.incomplete", fact, where=side.label)


def _runs_by_files(side: Side) -> set[frozenset[str]]:
    """Every run as all of its files: what describes the GPUs is equal for all runs of a machine."""
    runs = (frozenset(doc.sha256 for doc in fact.artefacts if doc.sha256) for fact in side.facts)
    return {files for files in runs if files}


def _options(*names: str) -> Callable[[Side], tuple[object, ...]]:
    def of(side: Side) -> tuple[object, ...]:
        given = {
            f"{name}={manifest.options[name]}"
            for manifest in side.manifests
            for name in names
            if manifest.options.get(name) is not None
        }
        return tuple(sorted(given)) or (("none",) if side.manifests else ())

    return of


def _of_manifests(*fields: str) -> Callable[[Side], tuple[object, ...]]:
    def of(side: Side) -> tuple[object, ...]:
        texts = {
            " ".join(str(value) for value in (getattr(m, field) for field in fields) if value)
            for m in side.manifests
        }
        return tuple(sorted(texts))

    return of


def _of_facts(read: Callable[[Side], set[object]]) -> Callable[[Side], tuple[object, ...]]:
    return lambda side: tuple(sorted(read(side) - {None}, key=str))


def _clock(gpu: Agent) -> str | None:
    return None if gpu.clock_mhz is None else f"{gpu.clock_mhz} MHz"


#: Differences worth a warning: code, what to call it, how to read it. An empty value means "unknown".
_FACTS: tuple[tuple[str, str, Callable[[Side], tuple[object, ...]]], ...] = (
    ("compare.clock_differs", "the highest engine clock", _of_facts(lambda s: {_clock(g) for g in s.gpus})),
    ("compare.machine_differs", "the machine", _of_facts(lambda s: {h for f in s.facts for h in f.hosts})),
    ("compare.format_differs", "the recorded format", _of_facts(lambda s: {f.format for f in s.facts})),
    (
        "compare.tracing_differs",
        "what was traced besides kernels",
        _of_facts(lambda s: {_traced(f.copies_traced, f.api_traced) for f in s.facts}),
    ),
    ("compare.collector_differs", "the collector", _of_manifests("collector", "collector_version")),
    ("compare.tool_version_differs", "the version of rpl that recorded", _of_manifests("tool_version")),
    ("compare.overrides_differ", "device overrides", _options("clock_mhz", "memory_bandwidth_gbps")),
)


def _traced(copies: bool, api: bool) -> str:
    return " and ".join(name for name, on in (("copies", copies), ("HIP API", api)) if on) or "nothing"
