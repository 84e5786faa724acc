"""The version to beat, and the kernels of it that are worth work.

It is built from source like every candidate, and profiled with the user's command.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_analysis.execution_graph.analyzer import median_run, why_no_graph
from rpl_analysis.execution_graph.results.forecasts import most_gain_ns
from rpl_analysis.what_if import FasterKernel, ReplayedRun
from rpl_codeobject.kernel_names import is_instance, source_name
from rpl_core.documents import Documents
from rpl_core.errors import BadDataError, InterruptedRunError, NoVerdictError, RplError
from rpl_core.ingest import load_recording
from rpl_core.pipeline import analyse_paths
from rpl_core.profiling import ProfileRequest, record_application
from rpl_core.values import frozen
from rpl_optimize.build.builders import BuiltProgram, ProgramBuilder, build_reproducibly
from rpl_optimize.contracts import BuildPart, EvidencePart
from rpl_optimize.equivalence.program_run import stand_in_for
from rpl_optimize.measurement.gains import Gains, gains_of, placement_share
from rpl_optimize.running.sandbox import ApplicationSandbox, Sandbox, find_application_sandbox, in_session
from rpl_optimize.session_layout import ORIGINAL, RUNS, fresh

if TYPE_CHECKING:
    from rpl_analysis.contracts.dag import DagDocument, ForecastPart
    from rpl_core.ingest.claims import Readers
    from rpl_core.plugins.host import PluginHost
    from rpl_optimize.loop.session import OptimizeRequest, Tools


@frozen(eq=False)
class Baseline:
    """``directory`` holds the profile; ``text`` is the source that ``build`` was made of."""

    number: int
    text: bytes
    build: BuiltProgram
    part: BuildPart
    directory: Path
    documents: Documents

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text).hexdigest()

    @property
    def profile_directory(self) -> Path:
        return self.directory / "profile"

    def plain_documents(self) -> Mapping[str, Any]:
        """The documents as JSON values, as proposers take them."""
        return {
            name: json.loads(document.model_dump_json())
            for name, document in self.documents.by_name().items()
        }


def build_baseline(
    builder: ProgramBuilder, text: bytes, directory: Path, root: Path, *, original: bytes
) -> tuple[BuiltProgram, BuildPart]:
    """The version to beat, with the host code of ``original``, the user's own source.

    A build that fails, or that differs the second time, ends the session. So does one of an accepted text
    whose host code is another one.
    """
    accepted = text != original
    built = build_reproducibly(builder, text, directory, root=root, original=original if accepted else None)
    if built.build is None:
        raise BadDataError(
            f"the unchanged source does not build: {built.part.problem}",
            cause=f"it is built by: {builder.summary}",
            next_step="give the program's own build with --build or --compile-database",
        )
    if built.part.reproducible is False:
        raise NoVerdictError(
            "two builds of the unchanged source give different device code, so no change can be told apart",
            cause="the build embeds times, random numbers or paths",
            next_step="make the build reproducible",
        )
    host_code = built.build.host_code
    if accepted and (host_code is None or not host_code.passed):
        raise BadDataError(
            "the accepted version has other host code than the source",
            cause=None if host_code is None else host_code.reason,
            next_step="start a new session",
        )
    return built.build, built.part


def profile_baseline(
    request: OptimizeRequest, tools: Tools, command: tuple[str, ...], directory: Path
) -> Documents:
    """Record and analyse ``command`` as ``rpl profile`` does, in ``directory``."""
    recorded = record_application(
        ProfileRequest(
            command=command,
            runs=request.runs,
            roofline=request.roofline,
            trace_dependencies=request.trace_dependencies,
            time_limit_s=request.time_limit_s,
            allow_dangerous_counters=False,
            output=directory,
            runs_directory=directory.parent,
            analysis=request.analysis,
        ),
        tools.collector,
        tools.host,
        tools.log,
        tools.run_step,
    )
    if recorded.failure is not None:
        raise recorded.failure
    documents, _ = analyse_paths((directory,), attrs.evolve(request.analysis, root=directory), tools.host)
    return documents


# The sandbox of a session's measured runs: tried once, with the program that is the user's own.


@attrs.define(eq=False)
class Confinement:
    """Base and candidate run in it alike, in a copy of the user's working directory that stays.

    ``record`` gets a sentence for the ledger: what the sandbox is, or why there is none.
    """

    request: OptimizeRequest
    tools: Tools
    root: Path
    record: Callable[[str], None]
    _found: ApplicationSandbox | None = None

    def prepare(self, baseline: Baseline) -> None:
        """Find out with one run of the version to beat; later calls do nothing."""
        if self._found is not None:
            return
        sandbox = find_application_sandbox()
        self._found = ApplicationSandbox(sandbox)
        if sandbox.kind is not None:
            self.tools.step("baseline: one run in the sandbox")
            problem = self._tried(sandbox, baseline)
            if problem is not None:
                self._found = ApplicationSandbox(Sandbox(None, problem))
        if self._found.sandbox.kind is None:
            self.tools.note(f"warning: candidates run without a sandbox: {self._found.sandbox.reason}")
        self.record(f"measured runs: {self._found.summary}")

    def _tried(self, sandbox: Sandbox, baseline: Baseline) -> str | None:
        """Why the program does not run there, with all kernels that it has outside."""
        directory = fresh(self.root, RUNS)
        try:
            self._found = self._around_copy(sandbox, directory)
            asked = attrs.evolve(self.request, runs=1, roofline=False)
            command = self.tools.builder.command_for(baseline.build)
            with self.around(directory):
                documents = profile_baseline(asked, self.tools, command, directory / "first")
        except InterruptedRunError:
            raise
        except RplError as error:
            return f"the unchanged program does not run in it: {error.fact}"
        names, wanted = (
            {kernel.name for kernel in found.model("profile").kernels}
            for found in (documents, baseline.documents)
        )
        lost = sorted(wanted - names)
        return f"the unchanged program does not launch {lost[0]} in it" if lost else None

    def _around_copy(self, sandbox: Sandbox, directory: Path) -> ApplicationSandbox:
        user, copy, seen_at = Path.cwd(), directory / "here", directory / "there"
        seen_at.mkdir(parents=True)
        began = (self.root / ORIGINAL).stat().st_mtime_ns
        stand_in_for(user, copy, seen_at, began)
        if self.root.is_relative_to(user):
            _make_way(copy, self.root.relative_to(user))
        seen = ((user, True, copy), (seen_at, False, user))
        devices = self.tools.builder.builder.devices
        return ApplicationSandbox(sandbox, directory, (self.root,), seen, devices)

    @contextmanager
    def around(self, directory: Path) -> Iterator[None]:
        """Within it, the profiler and what it starts write below ``directory`` and into the copy only."""
        if self._found is None:
            yield
            return
        with self._found.around(directory):
            yield

    @contextmanager
    def of_checks(self) -> Iterator[None]:
        """Within it, checks of results run programs as this session does."""
        if self._found is None:
            yield
            return
        with in_session(self._found):
            yield


def _make_way(copy: Path, inside: Path) -> None:
    """Directories in place of links, so that the session can be shown where it is."""
    place = copy
    for part in inside.parts:
        place = place / part
        if place.is_symlink():
            place.unlink()
        place.mkdir(exist_ok=True)


# What a gain is worth to the application: which kernel to work on, and predicted against measured gains.


@frozen
class Target:
    """``recorded`` is the name in the documents, ``kernel`` the one in the source.

    ``ceiling_gain`` is the part of the application's time that would be saved if the kernel cost nothing:
    by solving the graph again, launches, host time and waits included.
    """

    recorded: str
    kernel: str
    ceiling_gain: float


def rank_targets(dag: DagDocument, wanted: str | None = None) -> tuple[Target, ...]:
    """Kernels by ceiling, highest first; ``wanted`` limits them to one source kernel.

    Raises ``NoVerdictError`` when the baseline gave no graph or does not hold the wanted kernel.
    """
    if dag.status != "available":
        raise NoVerdictError(
            f"the baseline has no critical path: {dag.reason or 'no reason given'}",
            next_step="see `rpl doctor`, and profile the program once with `rpl profile`",
        )
    kernels = [f for f in dag.forecasts if f.kind == "kernel"]
    chosen = [f for f in kernels if wanted is None or is_instance(f.name, wanted) or f.name == wanted]
    if not chosen:
        known = ", ".join(sorted({source_name(f.name) for f in kernels})) or "none"
        what = "a kernel" if wanted is None else f"the kernel {wanted!r}"
        raise NoVerdictError(f"the baseline does not launch {what}", cause=f"kernels seen: {known}")
    targets = [Target(f.name, source_name(f.name), ceiling_gain(f)) for f in chosen]
    return tuple(sorted(targets, key=lambda target: (-target.ceiling_gain, target.recorded)))


def ceiling_gain(forecast: ForecastPart) -> float:
    """Part of the application's time that the kernel can give back at most, 0 to 1."""
    for step in forecast.speedups:
        if step.speedup is None:
            whole = step.application_ns + step.application_gain_ns
            return most_gain_ns(step) / whole if whole > 0 else 0.0
    return 0.0


def worthwhile(targets: Sequence[Target], min_improvement: float) -> tuple[Target, ...]:
    """Those whose ceiling lies above what the user asks for."""
    return tuple(target for target in targets if target.ceiling_gain > min_improvement)


def ceiling_sentence(targets: Sequence[Target], min_improvement: float) -> str:
    """Why no kernel is worth it."""
    best = targets[0]
    return (
        f"even if {best.kernel} cost nothing, the application would gain {best.ceiling_gain:.1%}, "
        f"which is not above the {min_improvement:.1%} asked for"
    )


# Predicted against measured gain of a candidate.


@frozen
class PredictedGain:
    """``gain`` is the part of the makespan that would be saved, below 0 for a loss; ``None`` has a reason."""

    gain: float | None
    reason: str | None = None


def predicted_gain(
    paths: Sequence[Path], readers: Readers, kernel: str, ratio: float, *, include_copies: bool = False
) -> PredictedGain:
    """Solve the graph of the baseline's median run again with ``kernel`` at ``ratio`` times its time.

    ``paths`` is the baseline's recording (its run directory), ``kernel`` an exact displayed name and
    ``ratio`` the measured new / base. Modelled, never measured: durations of other kernels stay, launches
    and waits too.
    """
    if ratio <= 0:
        return PredictedGain(None, f"a ratio of {ratio:g} is none of two times")
    recording = load_recording(tuple(paths), readers)
    chosen = median_run(recording)
    if chosen is None:
        return PredictedGain(None, why_no_graph(recording))
    try:
        run = ReplayedRun(chosen[1], include_copies=include_copies)
        if kernel not in run.names:
            return PredictedGain(None, "the kernel is not in the baseline's graph")
        prediction = run.predict((FasterKernel(kernel, 1 / ratio),))
    except BadDataError as error:
        return PredictedGain(None, error.fact)
    if prediction.recorded_ns <= 0:
        return PredictedGain(None, "the baseline's graph has no length")
    return PredictedGain(prediction.together.gain_ns / prediction.recorded_ns)


@frozen
class CandidateGains:
    """Fractions of the time saved. ``predicted`` is modelled: what-if with the kernel's measured ratio."""

    kernel: float | None = None
    kernel_interval: tuple[float, float] | None = None
    measured: float | None = None  # of the application's makespan
    predicted: float | None = None

    def sentence(self) -> str:
        """Both gains of the application, for people."""
        measured = "unknown" if self.measured is None else f"{self.measured:.1%}"
        predicted = "unknown" if self.predicted is None else f"{self.predicted:.1%}"
        return f"gain of the application: {measured} measured, {predicted} predicted by what-if"


def measured_facts(evidence: EvidencePart) -> dict[str, object]:
    """Fields of ``CandidatePart`` that say what was measured, whatever the verdict."""
    first, build = evidence.measurement, evidence.build
    code: dict[str, object] = {"code_sha256": None if build is None else build.code_sha256}
    if (modelled := evidence.modelled) is not None:
        told = {"metric": modelled.metric, "modelled_gain": modelled.gain}
        return {**code, **told, "origin": modelled.origin}
    if first is None:
        return code
    last = evidence.remeasurement or first
    return {
        **code,
        "origin": last.origin,
        "pairs": len(last.log_ratios) or None,
        "first_kernel_gain": gains_of(first).kernel,
        "placement_share": placement_share(evidence),
    }


def gains_of_fresh(evidence: EvidencePart) -> Gains:
    """Those of the fresh measurement; without one nothing is reported."""
    fresh = evidence.remeasurement
    return Gains() if fresh is None or fresh.look is None else gains_of(fresh)


def candidate_gains(
    evidence: EvidencePart, baseline: Baseline, target: Target, host: PluginHost
) -> CandidateGains:
    """Gains from the fresh measurement, and what the baseline's recording predicts for them."""
    fresh, gains = evidence.remeasurement, gains_of_fresh(evidence)
    if fresh is None or fresh.look is None:
        return CandidateGains()
    predicted = predicted_gain(
        (baseline.profile_directory,),
        host.catalog.readers().contributions,
        target.recorded,
        fresh.look.ratio,
    )
    return CandidateGains(gains.kernel, gains.kernel_interval, gains.application, predicted.gain)
