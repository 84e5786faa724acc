"""``rpl profile`` records an application (or takes a recording); ``rpl analyze`` analyses what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import (
    AnalysisOptions,
    PluginOptionsCommand,
    analysis_request,
    keep_option,
    option,
    settled,
    takes,
)
from rpl_core.cli.output import shown_while_long
from rpl_core.cli.session import Session, session_of, show
from rpl_core.errors import ExitCode, RplError, UsageError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.documents import Documents
    from rpl_core.interfaces.collector import LineSink
    from rpl_core.pipeline import AnalysisRequest
    from rpl_core.profiling import ProfileRequest, Recorded


def _counters(text: str | None) -> tuple[str, ...]:
    """Names in the order given, each once. Raises ``UsageError`` for what can't be a counter's name."""
    names = tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))
    for name in names:
        if not name.isascii() or not name.replace("_", "").replace("[", "").replace("]", "").isalnum():
            raise UsageError(f"{name!r} is no counter", next_step="separate names by commas: A,B")
    return names


@frozen
class ProfileCall:
    """One ``rpl profile``, settings resolved. ``flags`` also hold the options of plugins."""

    session: Session
    flags: Mapping[str, Any]
    common: AnalysisOptions
    runs: int = option("--runs", setting="runs", type=int, help="Timing runs (default 3).")
    collector: str | None = option(
        "--collector", setting="collector", metavar="NAME", help="Collector to record with."
    )
    roofline: bool = option(
        "--roofline",
        setting="roofline",
        is_flag=True,
        default=None,
        help="Collect hardware counters in separate passes.",
    )
    counters: tuple[str, ...] = option(
        "--counters",
        parse=_counters,
        metavar="A,B,...",
        help="Counters to collect beside the recommended set of --roofline.",
    )
    api: bool = option(
        "--api/--no-api",
        setting="api",
        default=None,
        help="Record API calls and copies, and run once without them for what that costs (default: on).",
    )
    focus_critical: bool = option(
        "--focus-critical",
        setting="focus-critical",
        is_flag=True,
        default=None,
        help="Put the critical path first in the output.",
    )
    recordings: tuple[Path, ...] = option(
        "--from", multiple=True, type=click.Path(path_type=Path), help="Take a recording."
    )
    keep: bool = keep_option()
    time_limit_s: float | None = option(
        "--time-limit",
        setting="time-limit",
        type=float,
        metavar="S",
        help="Seconds that one pass may take.",
    )
    allow_dangerous_counters: bool = option(
        "--allow-dangerous-counters", is_flag=True, help="Collect counters that can hang the GPU."
    )
    keep_command: bool = option(
        "--keep-command", is_flag=True, help="Keep secrets of the command in run.json (masked otherwise)."
    )
    dry_run: bool = option("--dry-run", is_flag=True, help="Print the commands and passes; run nothing.")
    debug: bool = option("--debug", is_flag=True, help="Show the profiler's log.")
    output: Path | None = option(
        "-o", "--output", type=click.Path(path_type=Path), help="Run directory (default: rpl-runs/...)."
    )
    runs_directory: Path = option(setting="runs-directory", parse=Path)

    def analysis(self, root: Path | None) -> AnalysisRequest:
        """The analysis that was asked for; see ``analysis_request``."""
        return analysis_request(self.session, self.flags, root, command="profile")


#: Headings of the help with the options below them, by the names of parameters.
_GROUPS = {
    "What is recorded": (
        *("runs", "collector", "roofline", "counters", "api", "recordings", "keep", "time_limit_s"),
        *("allow_dangerous_counters", "keep_command"),
    ),
    "Analysis": ("device",),
    "Output": ("output", "as_json", "quiet", "focus_critical"),
    "Other": ("dry_run", "debug", "help"),
}


@click.command("profile", cls=PluginOptionsCommand, groups=_GROUPS)
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@takes(ProfileCall, AnalysisOptions)
@click.pass_context
def profile(context: click.Context, /, application: tuple[str, ...], **flags: Any) -> int:
    """Record APPLICATION and write profile.json, roofline.json, dag.json and analysis.json.

    Everything after `--` belongs to the application. Without `--`, rpl's own options are rpl's wherever
    they stand. One quoted string is split as a shell would.

    \b
    rpl profile --device NAME -- ./app 100
    rpl profile --device NAME --roofline --runs 5 "./app 100"
    rpl profile --device NAME --from recording_results.db
    """
    from rpl_core.process_start import import_numpy_alone

    import_numpy_alone()

    session = session_of(context)
    common = settled(AnalysisOptions, session, flags)
    call = settled(ProfileCall, session, flags, session=session, flags=flags, common=common)
    common.require_one_form()
    return from_recordings(call, application) if call.recordings else record(call, application)


# What ``rpl profile`` does, behind its options.


def from_recordings(call: ProfileCall, application: tuple[str, ...]) -> int:
    """``--from``: nothing is executed."""
    from rpl_core.pipeline import analyse_paths, run_directory_of
    from rpl_core.run_directory import claim_path, default_path, point_latest, require_empty

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
    from rpl_core.profiling import (
        TIMING_ONLY,
        choose_collector,
        follow_up_collectors,
        plan_only,
        record_application,
    )

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
    from rpl_core.process import application_command
    from rpl_core.profiling import ProfileRequest

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
    from rpl_core.run_directory import point_latest

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
        raise _naming_what_is_kept(failure, recorded.directory)
    return int(ExitCode.OK)


def _naming_what_is_kept(failure: RplError, directory: Path) -> RplError:
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


# ``rpl analyze``: documents from recordings, offline.


@frozen
class AnalyzeOptions:
    """What ``rpl analyze`` alone takes."""

    output: Path | None = option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        help="Write the four documents and run.json here.",
    )
    keep: bool = keep_option()
    ranks: bool = option("--ranks", is_flag=True, help="All recordings are processes of one run.")
    each_is_a_run: bool = option(
        "--each-is-a-run", is_flag=True, help="Every argument is a repeated run, not another process."
    )


@click.command("analyze", cls=PluginOptionsCommand)
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path))
@takes(AnalyzeOptions, AnalysisOptions)
@click.pass_context
def analyze(
    context: click.Context,
    /,
    recordings: tuple[Path, ...],
    **flags: Any,
) -> None:
    """Analyse run directories, files or folders; nothing is executed.

    Recordings that were made at the same time (ranks) are one run, others are repeated runs, and what was
    assumed is said. --ranks makes all of them processes of one run, --each-is-a-run every argument a run.

    A run directory is analysed as it was recorded (device, ceilings) unless an option says otherwise, and
    gets its documents renewed; of other recordings -o makes a run, which names where they lie.

    \b
    rpl analyze rpl-runs/latest
    rpl analyze --device NAME RECORDING ... -o out
    """
    from rpl_core.process_start import import_numpy_alone

    import_numpy_alone()
    from rpl_core.cli.output import shown_while_long
    from rpl_core.cli.session import show
    from rpl_core.pipeline import analyse_paths, run_directory_of

    session = session_of(context)
    given, common = settled(AnalyzeOptions, session, flags), settled(AnalysisOptions, session, flags)
    common.require_one_form()
    if given.keep and given.output is None:
        raise click.UsageError("--keep needs a place: add -o DIR", context)
    if given.ranks and given.each_is_a_run:
        raise click.UsageError("--ranks and --each-is-a-run contradict each other", context)
    request = analysis_request(session, flags, run_directory_of(recordings))
    output = given.output
    with shown_while_long("analyze", recordings, quiet=common.quiet):
        documents, directory = analyse_paths(
            recordings,
            request,
            session.host,
            output=(lambda: output) if output is not None else None,
            keep=given.keep,
            each_is_a_run=given.each_is_a_run,
            ranks=given.ranks,
        )
    show(
        session,
        documents,
        as_json=common.as_json,
        quiet=common.quiet,
        directory=directory,
        options=request.options,
    )
