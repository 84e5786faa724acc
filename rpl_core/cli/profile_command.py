"""What ``rpl profile`` does, behind its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.cli.output import shown_while_long
from rpl_core.cli.results import show
from rpl_core.errors import RplError, UsageError
from rpl_core.exit_codes import ExitCode

if TYPE_CHECKING:
    from rpl_core.cli.profile import ProfileCall
    from rpl_core.cli.session import Session
    from rpl_core.documents.bundle import Documents
    from rpl_core.interfaces.collector import LineSink
    from rpl_core.pipeline import AnalysisRequest
    from rpl_core.profiling.record import ProfileRequest, Recorded


def from_recordings(call: ProfileCall, application: tuple[str, ...]) -> int:
    """``--from``: nothing is executed."""
    from rpl_core.pipeline import analyse_paths, run_directory_of
    from rpl_core.run_directory.writer import claim_path, default_path, point_latest, require_empty

    if application:
        raise UsageError(
            "--from analyses a recording and runs no application", next_step="leave one of them out"
        )
    request = call.analysis(run_directory_of(call.recordings))
    place = call.runs_directory, (str(call.recordings[0].resolve()),)
    if call.dry_run:
        shown = ", ".join(str(path) for path in call.recordings)
        _show_plan(call, [f"analyse {shown} into {call.output or default_path(*place)}"])
        return int(ExitCode.OK)
    if call.output is not None:
        require_empty(call.output)
    with shown_while_long("profile", call.recordings, quiet=call.common.quiet):
        documents, directory = analyse_paths(
            call.recordings,
            request,
            call.session.host,
            output=lambda: call.output or claim_path(*place),
            keep=call.keep,
        )
    if call.output is None and directory is not None:
        point_latest(directory)
    _show(call, documents, directory, request)
    return int(ExitCode.OK)


def record(call: ProfileCall, application: tuple[str, ...]) -> int:
    """Run the application under a collector, then analyse what it left."""
    from rpl_core.profiling.collectors import TIMING_ONLY, choose_collector, follow_up_collectors
    from rpl_core.profiling.record import plan_only, record_application

    session = call.session
    request = _profile_request(call, application)
    asked = request.analysis
    collector = choose_collector(session.host, call.collector, asked.options, asked.device)
    if call.keep:
        raise UsageError("--keep is for --from", next_step="a recorded run keeps what it recorded")
    if request.roofline and collector.name == TIMING_ONLY:
        raise UsageError(
            "--roofline needs a profiler", next_step="let a profiler record, or leave out --roofline"
        )
    if request.extra_counters and not request.roofline:
        raise UsageError("--counters adds to the counters of --roofline", next_step="add --roofline")
    # Raises for options that contradict each other, before anything runs.
    told = (*([collector] if request.roofline else ()), *follow_up_collectors(session.host))
    announced = [each.announcement(asked.options) for each in told]
    if call.dry_run:
        session.tell_settings()
        _show_plan(call, plan_only(request, collector, session.host))
        return int(ExitCode.OK)
    for note in filter(None, announced):
        session.output.note(f"note: {note}")
    with _progress(call, request) as step:
        recorded = record_application(request, collector, session.host, log_sink(session, call.debug), step)
    return _analyse(call, recorded)


def _show_plan(call: ProfileCall, lines: Sequence[str]) -> None:
    if call.common.as_json:
        call.session.output.json({"dry_run": list(lines)})
        return
    for line in lines:
        call.session.output.line(line)


def _progress(call: ProfileCall, request: ProfileRequest) -> AbstractContextManager[Callable[[str], None]]:
    """How many counter passes follow is known only when the device is."""
    if call.common.quiet:
        return nullcontext(lambda _step: None)
    return call.session.output.progress("profile", total=None if request.roofline else request.runs)


def _profile_request(call: ProfileCall, application: tuple[str, ...]) -> ProfileRequest:
    from rpl_core.process.launch import application_command
    from rpl_core.profiling.record import ProfileRequest

    return ProfileRequest(
        command=application_command(application),
        runs=call.runs,
        roofline=call.roofline,
        trace_dependencies=call.api,
        reference_run=call.api,
        time_limit_s=call.time_limit_s,
        allow_dangerous_counters=call.allow_dangerous_counters,
        keep_command=call.keep_command,
        extra_counters=call.counters,
        output=call.output,
        runs_directory=call.runs_directory,
        analysis=call.analysis(None),
    )


def log_sink(session: Session, debug: bool) -> LineSink:
    """Where the profiler's log goes: shown with ``--debug``, else nowhere."""
    if debug:
        return session.output.note
    return lambda _line: None


def _analyse(call: ProfileCall, recorded: Recorded) -> int:
    from rpl_core.pipeline import analyse_paths
    from rpl_core.run_directory.writer import point_latest

    if call.output is None:
        point_latest(recorded.directory)
    failure = recorded.failure
    if failure is not None and not recorded.any_finished:
        raise failure
    with shown_while_long("analyze", (recorded.directory,), quiet=call.common.quiet):
        request = call.analysis(recorded.directory)
        documents, directory = analyse_paths((recorded.directory,), request, call.session.host)
    _show(call, documents, directory, request)
    if failure is not None:
        raise _kept(failure, recorded.directory)
    return int(ExitCode.OK)


def _kept(failure: RplError, directory: Path) -> RplError:
    """The failure, saying that what finished before it is kept."""
    failure.fact = f"{failure.fact} (the finished passes are kept and analysed in {directory})"
    return failure


def _show(call: ProfileCall, documents: Documents, directory: Path | None, request: AnalysisRequest) -> None:
    show(
        call.session,
        documents,
        as_json=call.common.as_json,
        quiet=call.common.quiet,
        directory=directory,
        path_first=call.focus_critical,
        options=request.options,
    )
