"""Record an application: timing runs first, then counter passes for the device that they name."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.devices import ResolvedDevice
from rpl_core.documents import diagnostic_docs
from rpl_core.errors import (
    InterruptedRunError,
    MissingError,
    PluginError,
    RplError,
    TimeLimitError,
    UsageError,
)
from rpl_core.ingest import load_recording
from rpl_core.interfaces.collector import (
    CollectionPlan,
    Collector,
    CollectRequest,
    FollowUpRequest,
    PassOutcome,
    RunInfo,
    RunOutcome,
    RunState,
)
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.model.value_checks import require_value
from rpl_core.pipeline import AnalysisRequest, analyse, recorded_device
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.plugins.entry_points import provider_of
from rpl_core.run_directory import RunDirectory, claim_path, default_path
from rpl_core.text import secret_bytes
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import LineSink, PlannedPass
    from rpl_core.interfaces.options import Options
    from rpl_core.model.device import DeviceModel
    from rpl_core.plugins.host import Contribution, HookRelay, PluginHost


@frozen
class ProfileRequest:
    """What to record. ``output`` is the run directory, or ``None`` for a fresh one."""

    command: tuple[str, ...]
    runs: int
    roofline: bool
    trace_dependencies: bool  # calls and copies
    time_limit_s: float | None
    allow_dangerous_counters: bool
    keep_command: bool = attrs.field(default=False, kw_only=True)  # with its secrets, in run.json
    output: Path | None
    runs_directory: Path
    analysis: AnalysisRequest
    extra_counters: tuple[str, ...] = ()
    reference_run: bool = False  # one more run without calls and copies: what recording them costs

    def options(self) -> Mapping[str, Any]:
        """What the manifest remembers of the request; later analyses of the run take it over."""
        return {
            **self.analysis.remembered(),
            "runs": self.runs,
            "roofline": self.roofline,
            "counters": ",".join(self.extra_counters) or None,
            "api": self.trace_dependencies,
            "time_limit_s": self.time_limit_s,
        }


@frozen
class Recorded:
    """A recorded run: its directory, the failure that cut it short, and whether anything finished."""

    directory: Path
    failure: RplError | None
    any_finished: bool


def plan_only(request: ProfileRequest, collector: Collector, host: PluginHost) -> Sequence[str]:
    """The commands of all passes, for ``--dry-run``. Counter passes need ``--device`` here."""
    directory = request.output or default_path(request.runs_directory, request.command)
    device = recorded_device(request.analysis, (), host)
    if request.roofline and device.model is None:
        raise UsageError(
            "--dry-run can't plan counter passes without --device",
            next_step="add --device NAME (`rpl devices` lists them)",
        )
    options = request.analysis.options
    plans = [collector.plan(_timing(request, device))]
    if request.roofline:
        plans.append(collector.plan(_counters(request, device)))
    lines = [line for plan in plans for line in describe_plan(plan.passes, directory)]
    told = (*([collector] if request.roofline else ()), *follow_up_collectors(host))
    lines += [f"note: {note}" for c in told if (note := c.announcement(options))]
    lines += [f"note: {d.fact}" for plan in plans for d in plan.diagnostics]
    return lines


def record_application(
    request: ProfileRequest, collector: Collector, host: PluginHost, log: LineSink, step: StepSink
) -> Recorded:
    """Run all passes. Raises ``InterruptedRunError`` on Ctrl-C, with the run directory closed."""
    device = recorded_device(request.analysis, (), host)
    plan = collector.plan(_timing(request, device))
    run = RunDirectory.create(
        request.output or claim_path(request.runs_directory, request.command),
        command=request.command,
        collector=collector.name,
        device=device.model.name if device.model else None,
        device_source=device.source,
        options=request.options(),
        plan=plan.passes,
        plugins=tuple(f"{r.name} {r.version or '?'}" for r in host.records if r.status == "loaded"),
        keep_command=request.keep_command,
    )
    session = ProfileSession(run, collector, host.relay, log, step)
    try:
        session.start()
        session.execute(plan)
        if request.roofline and session.failure is None:
            _execute_counter_passes(session, request, host)
        if session.failure is None:
            _record_follow_ups(session, request.analysis, host)
        session.finish(None, documents_follow=True)
    except (InterruptedRunError, KeyboardInterrupt):
        raise session.interrupted() from None
    finished = any(entry.state == "complete" for entry in run.manifest.passes)
    return Recorded(run.path, session.failure, finished)


def _execute_counter_passes(session: ProfileSession, request: ProfileRequest, host: PluginHost) -> None:
    """Plan for the device that the timing runs name: its counters decide the passes."""
    try:
        recording = load_recording((session.run.path,), host.catalog.readers().contributions)
        device = recorded_device(request.analysis, recording.gpu_agents, host)
        if device.model is None:
            fact = "no counter pass was run: no installed plugin knows the counters of this device"
            remedy = "install the device's plugin, or name the device with --device"
            session.diagnostics.append(Diagnostic("collect.no_counter_map", fact, remedy=remedy))
            return
        plan = session.collector.plan(_counters(request, device))
    except InterruptedRunError:
        raise
    except RplError as error:
        session.failure = error
        return
    session.run.add_passes(plan.passes, device.model.name, device.source)
    session.execute(plan)


def _timing(request: ProfileRequest, device: ResolvedDevice) -> CollectRequest:
    return CollectRequest(
        command=request.command,
        runs=request.runs,
        device=device.model,
        trace_dependencies=request.trace_dependencies,
        reference_run=request.reference_run and request.trace_dependencies,
        time_limit_s=request.time_limit_s,
        options=request.analysis.options,
        counters_follow=request.roofline,
    )


def _counters(request: ProfileRequest, device: ResolvedDevice) -> CollectRequest:
    """The recommended set first, so that it keeps its passes; what the user adds goes where room is left."""
    recommended = device.model.counter_map.recommended if device.model else ()
    return attrs.evolve(
        _timing(request, device),
        runs=0,
        trace_dependencies=False,
        reference_run=False,
        counters=tuple(dict.fromkeys((*recommended, *request.extra_counters))),
        allow_dangerous_counters=request.allow_dangerous_counters,
    )


def _record_follow_ups(session: ProfileSession, analysis: AnalysisRequest, host: PluginHost) -> None:
    """Passes that collectors add after the timing and counter passes, such as traces of single kernels.

    Whatever goes wrong here costs these passes, never the profile: each reason becomes one diagnostic.
    """
    for collector in follow_up_collectors(host):
        try:
            _follow_up(session, collector, analysis, host)
        except InterruptedRunError:
            raise
        except RplError as error:
            session.diagnostics.append(collector.lost(error))


def _follow_up(
    session: ProfileSession, collector: GuardedCollector, analysis: AnalysisRequest, host: PluginHost
) -> None:
    def so_far() -> Mapping[str, Mapping[str, Any]]:
        recording = load_recording((session.run.path,), host.catalog.readers().contributions)
        documents = analyse(recording, analysis, host)
        return {name: documents.content(name) for name in documents.names}

    def device() -> DeviceModel | None:
        recording = load_recording((session.run.path,), host.catalog.readers().contributions)
        return recorded_device(analysis, recording.gpu_agents, host).model

    request = FollowUpRequest(session.info.command, analysis.options, device, so_far)
    plan = collector.follow_up(request)
    if plan is not None:
        manifest = session.run.manifest
        session.run.add_passes(plan.passes, manifest.device, manifest.device_source or "unknown")
        session.execute(plan, collector)


# Run the passes of a profile one after the other and keep the run directory true.


# Bytes that must not stay in files of a folder: overwritten in place, whatever the format is.


def overwrite_in_files(folder: Path, sought: Sequence[bytes]) -> tuple[str, ...]:
    """Put asterisks over each of ``sought`` in the regular files below ``folder``; links are not followed.

    Nothing is moved, so that files of any format stay readable. Returns the names (below ``folder``) of
    files that could not be changed.
    """
    failed = []
    for place, _, names in os.walk(folder) if sought else ():
        for name in names:
            path = Path(place, name)
            try:
                if stat.S_ISREG(path.lstat().st_mode) and path.stat().st_size:
                    _overwrite(path, sought)
            except (OSError, ValueError):
                failed.append(path.relative_to(folder).as_posix())
    return tuple(sorted(failed))


def _overwrite(path: Path, sought: Sequence[bytes]) -> None:
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        places = [(at, len(text)) for text in sought for at in _offsets_of(content, text)]
    if places:
        with path.open("r+b") as target:
            for at, size in places:
                target.seek(at)
                target.write(b"*" * size)


def _offsets_of(content: mmap.mmap, secret: bytes) -> list[int]:
    offsets, at = [], content.find(secret)
    while at >= 0:
        offsets.append(at)
        at = content.find(secret, at + len(secret))
    return offsets


#: Hears the name of each pass before it starts.
StepSink = Callable[[str], None]


@attrs.define
class ProfileSession:
    """One run in progress. ``failure`` is the first thing that went wrong; finished passes are kept."""

    run: RunDirectory
    collector: Collector
    relay: HookRelay
    log: LineSink
    step: StepSink
    failure: RplError | None = None
    diagnostics: list[Diagnostic] = attrs.field(factory=list)

    @property
    def info(self) -> RunInfo:
        manifest = self.run.manifest
        return RunInfo(self.run.path, self.run.command, manifest.device, manifest.collector)

    def start(self) -> None:
        self.relay.run_started(self.info)

    def execute(self, plan: CollectionPlan, collector: Collector | None = None) -> None:
        """Run the passes of ``plan``, with another collector than the profile's where one is given.

        A failed timing pass ends the profile, because without it nothing can be said. A failed counter
        pass costs its counters, a failed reference run what it would have told, both the exit code only if
        the time limit ended them. A failed follow-up pass costs itself. An interrupt is recorded and goes on
        up.
        """
        self.diagnostics += plan.diagnostics
        for planned in plan.passes:
            if self.failure is not None and planned.role in (TraceRole.TIMING, TraceRole.REFERENCE):
                break
            names = [entry.name for entry in self.run.manifest.passes]
            self.step(f"{planned.name} ({names.index(planned.name) + 1} of {len(names)})")
            self._execute_pass(planned, collector or self.collector)

    def _execute_pass(self, planned: PlannedPass, collector: Collector) -> None:
        try:
            try:
                outcome = collector.run(planned, self.run.path, self.log)
            finally:
                self._hide_secrets(planned)
            self.run.pass_succeeded(outcome)
            self.diagnostics += outcome.diagnostics
        except (InterruptedRunError, KeyboardInterrupt):
            self.run.pass_failed(planned.name, "interrupted")
            raise
        except RplError as error:
            self.run.pass_failed(
                planned.name, error.one_line(), exit_status=getattr(error, "exit_status", None)
            )
            self._note_failure(planned, collector, error)

    def _hide_secrets(self, planned: PlannedPass) -> None:
        """Profilers write the command line into what they record."""
        if self.run.keep_command:
            return
        unchanged = overwrite_in_files(self.run.path / planned.directory, secret_bytes(planned.command))
        if unchanged:
            self.diagnostics.append(
                Diagnostic(
                    "collect.secrets_kept",
                    f"a secret of the command line may stand in {unchanged[0]}, which could not be changed",
                    severity=Severity.WARNING,
                    remedy="do not share the file",
                    where=planned.directory,
                    count=len(unchanged),
                )
            )

    def _note_failure(self, planned: PlannedPass, collector: Collector, error: RplError) -> None:
        if collector.role is not TraceRole.TIMING:
            self.diagnostics.append(attrs.evolve(collector.lost(error), where=planned.directory))
            return
        # A limit that the user set ends the profile; any other failure under counters costs the counters.
        if planned.role is TraceRole.TIMING or isinstance(error, TimeLimitError):
            self.failure = self.failure or error
        if planned.role is TraceRole.TIMING:
            return
        counted = planned.role is TraceRole.COUNTERS
        unknown = "what recording API calls costs is unknown: the run without them failed"
        self.diagnostics.append(
            Diagnostic(
                "collect.counter_pass_failed" if counted else "collect.reference_run_failed",
                f"{f'counter pass {planned.name} failed' if counted else unknown}: {error.fact}",
                severity=Severity.WARNING,
                cause=error.cause,
                remedy=error.next_step,
                where=planned.directory,
            )
        )

    def interrupted(self) -> InterruptedRunError:
        """Close the run directory after an interrupt; returns the error that tells the user."""
        self.finish("interrupted")
        return InterruptedRunError(
            f"interrupted; what finished is kept in {self.run.path}",
            next_step=f"analyse it with `rpl analyze {self.run.path}`",
        )

    def finish(self, reason: str | None, *, documents_follow: bool = False) -> None:
        """Close the run directory and tell the plugins."""
        if reason is None and self.failure is not None:
            reason = self.failure.fact
        self.run.finish(reason, diagnostic_docs(self.diagnostics), documents_follow=documents_follow)
        state = RunState.COMPLETE if reason is None else RunState.INCOMPLETE
        self.relay.run_finished(self.info, RunOutcome(state, reason))


def describe_plan(passes: Iterable[PlannedPass], run_directory: Path) -> Sequence[str]:
    """The commands of a plan as lines that can be pasted into a shell."""
    import shlex

    lines = []
    for planned in passes:
        command = shlex.join(_with_directory(planned.command, run_directory / planned.directory))
        lines.append(f"{planned.name} ({planned.role.value}): {command}")
        lines += [f"{planned.name} reads {name}: {text.strip()}" for name, text in planned.inputs]
    return lines


def _with_directory(command: tuple[str, ...], directory: Path) -> list[str]:
    """The pass's directory filled in; the application's own words (after ``--``) stay as they are."""
    end = command.index("--") if "--" in command else len(command)
    return [word.replace("{directory}", str(directory)) for word in command[:end]] + list(command[end:])


# The collectors that record an application, each behind the plugin boundary.


#: The collector without a profiler. It records no kernel, so it is only taken on request.
TIMING_ONLY = "timing-only"


class GuardedCollector(Collector):
    """Passes every call on and looks at the answer.

    Anything but an expected failure becomes ``PluginError`` naming the plugin.
    """

    def __init__(self, offered: Contribution[Collector]) -> None:
        self.name = offered.value.name
        self.summary = offered.value.summary
        self.role = offered.value.role
        self.device = offered.value.device
        self.lost_code = offered.value.lost_code
        self._plugin = offered.plugin
        self._collector = offered.value

    def missing(self) -> str | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r}"):
            return _optional_text(self._collector.missing())

    def instead(self, options: Options) -> str | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r}"):
            return _optional_text(self._collector.instead(options))

    def follow_up(self, request: FollowUpRequest) -> CollectionPlan | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r} while planning"):
            plan = self._collector.follow_up(request)
            return None if plan is None else _sound_plan(plan)

    def announcement(self, options: Options) -> str | None:
        with plugin_boundary(self._plugin, f"collector {self.name!r}"):
            return _optional_text(self._collector.announcement(options))

    def lost(self, error: RplError) -> Diagnostic:
        try:
            with plugin_boundary(self._plugin, f"collector {self.name!r}"):
                return require_value(self._collector.lost(error), Diagnostic)
        except PluginError:  # what was lost is told all the same
            return super().lost(error)

    def plan(self, request: CollectRequest) -> CollectionPlan:
        with plugin_boundary(self._plugin, f"collector {self.name!r} while planning"):
            return _sound_plan(self._collector.plan(request))

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        with plugin_boundary(self._plugin, f"collector {self.name!r} in {planned.name}"):
            outcome = require_value(self._collector.run(planned, run_directory, log), PassOutcome)
            if outcome.planned != planned:
                raise ValueError(f"the outcome is that of {outcome.planned.name}")
            lacking = [f for f in outcome.files if not (run_directory / f).is_file() or not _is_inside(f)]
            if lacking:
                raise ValueError(f"the outcome names {lacking[0]}, which is not there")
            if planned.role is TraceRole.TIMING and not outcome.files and outcome.process_ms is None:
                raise ValueError("the outcome has neither files nor a time of the process")
            return outcome


def _sound_plan(plan: object) -> CollectionPlan:
    """``plan`` if its passes can be told apart. Raises ``TypeError`` or ``ValueError`` otherwise."""
    sound = require_value(plan, CollectionPlan)
    names = [planned.name for planned in sound.passes]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a plan needs passes, each with a name of its own, not {names}")
    for place in (*names, *(planned.directory for planned in sound.passes)):
        if not _is_inside(place):
            raise ValueError(f"{place!r} is no place in the run directory")
    return sound


def _is_inside(path: str) -> bool:
    return bool(path) and not Path(path).is_absolute() and ".." not in Path(path).parts


def _optional_text(answer: object) -> str | None:
    if answer is not None and not isinstance(answer, str):
        raise TypeError(f"text or None was expected, not {type(answer).__name__}")
    return answer


def choose_collector(
    host: PluginHost, name: str | None, options: Options, device: str | None = None
) -> GuardedCollector:
    """The collector called ``name``, or that of ``device``, or the first usable. Raises ``MissingError``."""
    collectors = host.catalog.collectors()
    recording = [GuardedCollector(c) for c in collectors.contributions if c.value.role is TraceRole.TIMING]
    name = name or next((c.name for c in recording if device and c.device == device), None)
    wanted = next((other for c in recording if (other := c.instead(options)) is not None), name)
    if wanted is not None and collectors.get(wanted).role is not TraceRole.TIMING:  # says which there are
        raise UsageError(
            f"the collector {wanted!r} adds passes to a profile and records none",
            next_step="name one that records applications",
        )
    reasons = []
    for candidate in recording:
        if candidate.name == wanted or not (wanted or candidate.device or candidate.name == TIMING_ONLY):
            reason = candidate.missing()
            if reason is None:
                return candidate
            reasons.append(reason)
    if reasons:
        raise MissingError(reasons[0])
    package = provider_of("kinds", "collectors") or "rocm-perf-lab"
    raise MissingError(
        "no collector and no device plugin is installed: the core alone records nothing",
        next_step=f"pip install {package}, then `rpl profile -- ./app`",
    )


def follow_up_collectors(host: PluginHost) -> Sequence[GuardedCollector]:
    """Those that add passes to a finished profile, in plugin order."""
    offered = host.catalog.collectors().contributions
    return [GuardedCollector(c) for c in offered if c.value.role is not TraceRole.TIMING]
