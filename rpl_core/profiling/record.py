"""Record an application: timing runs first, then counter passes for the device that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.devices import ResolvedDevice
from rpl_core.errors import InterruptedRunError, RplError, UsageError
from rpl_core.ingest.load import load_recording
from rpl_core.interfaces.collector import CollectRequest, FollowUpRequest
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.pipeline import AnalysisRequest, analyse, recorded_device
from rpl_core.profiling.collectors import follow_up_collectors
from rpl_core.profiling.session import ProfileSession, describe_plan
from rpl_core.run_directory.writer import RunDirectory, claim_path, default_path
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import Collector, LineSink
    from rpl_core.model.device import DeviceModel
    from rpl_core.plugins.host import PluginHost
    from rpl_core.profiling.collectors import GuardedCollector
    from rpl_core.profiling.session import StepSink


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
