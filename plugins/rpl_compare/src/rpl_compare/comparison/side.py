"""One side of a comparison: its runs as observations, and the facts that decide what may be compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_compare.comparison.observe import observe, observe_process
from rpl_core.documents.drafts import artefact_docs
from rpl_core.errors import NoVerdictError
from rpl_core.model.origin import Origin
from rpl_core.model.recording import Recording

if TYPE_CHECKING:
    from rpl_compare.comparison.model import RunObservation, Statistic
    from rpl_core.contracts.common import ArtefactDoc
    from rpl_core.contracts.run import RunManifest
    from rpl_core.model.diagnostic import Diagnostic
    from rpl_core.model.trace import Agent, Trace


@attrs.frozen
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


@attrs.frozen(eq=False)
class Side:
    """Runs and their facts, one each per process run. ``label``: "base", "new" or an entry's name."""

    label: str
    runs: tuple[RunObservation, ...]
    facts: tuple[RunFacts, ...]
    manifests: tuple[RunManifest, ...] = ()
    command: tuple[str, ...] = ()
    incomplete: str | None = None
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


@attrs.frozen(eq=False)
class Loaded:
    """A side as it was read: the recording with its traces, the manifests of its run directories."""

    recording: Recording
    manifests: tuple[RunManifest, ...] = ()
    root: Path | None = None


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
