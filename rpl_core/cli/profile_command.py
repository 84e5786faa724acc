"""What ``rpl profile`` does, behind its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.cli.analysis_options import analysis_request
from rpl_core.cli.long_work import shown_while_long
from rpl_core.cli.results import show
from rpl_core.errors import MissingError, RplError, UsageError
from rpl_core.exit_codes import ExitCode
from rpl_core.model.trace import TraceRole

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.documents.bundle import Documents
    from rpl_core.interfaces.collector import Collector, LineSink
    from rpl_core.profiling.record import ProfileRequest, Recorded
    from rpl_core.profiling.thread_traces import DeepAnalysis

_TIMING_ONLY = "timing-only"


def from_recordings(session: Session, application: tuple[str, ...], flags: Mapping[str, Any]) -> int:
    """``--from``: nothing is executed."""
    from rpl_core.pipeline.offline import analyse_only, run_directory_of
    from rpl_core.run_directory.writer import claim_path, default_path, point_latest, require_empty

    if application:
        raise UsageError(
            "--from analyses a recording and runs no application", next_step="leave one of them out"
        )
    paths, output = tuple(flags["recordings"]), flags["output"]
    request = analysis_request(session, flags, run_directory_of(paths))
    place = _runs_directory(session), (str(paths[0].resolve()),)
    if flags["dry_run"]:
        shown = ", ".join(str(path) for path in paths)
        _show_plan(session, flags, [f"analyse {shown} into {output or default_path(*place)}"])
        return int(ExitCode.OK)
    if output is not None:
        require_empty(output)
    with shown_while_long("profile", paths, quiet=flags["quiet"]):
        documents = analyse_only(paths, request, session.host)
    directory = output or claim_path(*place)
    documents.write(directory)
    if output is None:
        point_latest(directory)
    _show(session, documents, flags, directory)
    return int(ExitCode.OK)


def record(session: Session, application: tuple[str, ...], flags: Mapping[str, Any]) -> int:
    """Run the application under a collector, then analyse what it left."""
    from rpl_core.profiling.record import plan_only, record_application

    request = _profile_request(session, application, flags)
    collector = choose_collector(session, flags)
    if request.roofline and collector.name == _TIMING_ONLY:
        raise UsageError("--roofline needs a profiler", next_step="leave out --no-rocprof or --roofline")
    if request.extra_counters and not request.roofline:
        raise UsageError("--counters adds to the counters of --roofline", next_step="add --roofline")
    if flags["dry_run"]:
        _show_plan(session, flags, plan_only(request, collector, session.host))
        return int(ExitCode.OK)
    with _progress(session, request, quiet=flags["quiet"]) as step:
        recorded = record_application(request, collector, session.host, log_sink(session, flags), step)
    return _analyse(session, flags, recorded)


def _show_plan(session: Session, flags: Mapping[str, Any], lines: Sequence[str]) -> None:
    if flags["as_json"]:
        session.output.json({"dry_run": list(lines)})
        return
    for line in lines:
        session.output.line(line)


def _progress(
    session: Session, request: ProfileRequest, *, quiet: bool
) -> AbstractContextManager[Callable[[str], None]]:
    """How many counter passes follow is known only when the device is."""
    if quiet:
        return nullcontext(lambda _step: None)
    return session.output.progress("profile", total=None if request.roofline else request.runs)


def _runs_directory(session: Session) -> Path:
    return Path(session.setting("runs-directory"))


def _profile_request(
    session: Session, application: tuple[str, ...], flags: Mapping[str, Any]
) -> ProfileRequest:
    from rpl_core.profiling.command_line import application_command
    from rpl_core.profiling.record import ProfileRequest

    return ProfileRequest(
        command=application_command(application),
        runs=session.setting("runs", flags["runs"]),
        roofline=session.setting("roofline", flags["roofline"]),
        trace_dependencies=session.setting("focus-critical", flags["focus_critical"]),
        deep=_deep_analysis(session, flags),
        time_limit_s=session.setting("time-limit", flags["time_limit"]),
        allow_dangerous_counters=flags["allow_dangerous_counters"],
        extra_counters=_extra_counters(flags["counters"]),
        output=flags["output"],
        runs_directory=_runs_directory(session),
        analysis=analysis_request(session, flags, None),
    )


def _extra_counters(text: str | None) -> tuple[str, ...]:
    """Names in the order given, each once. Raises ``UsageError`` for what can't be a counter's name."""
    names = tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))
    for name in names:
        if not name.isascii() or not name.replace("_", "").replace("[", "").replace("]", "").isalnum():
            raise UsageError(
                f"{name!r} is no counter", next_step="separate names by commas: SQ_WAIT_ANY,SQ_INSTS_LDS"
            )
    return names


def _deep_analysis(session: Session, flags: Mapping[str, Any]) -> DeepAnalysis | None:
    from rpl_core.profiling.thread_traces import DeepAnalysis

    if not session.setting("deep-analysis", flags["deep_analysis"]):
        return None
    if not flags["rocprof"]:
        raise UsageError("--deep-analysis needs a profiler", next_step="leave out --no-rocprof")
    top = session.setting("deep-top", flags["deep_top"])
    return DeepAnalysis(top, session.setting("deep-timeout", flags["deep_timeout"]))


def choose_collector(session: Session, flags: Mapping[str, Any]) -> Collector:
    """The collector that was named, or the first usable one in plugin order."""
    from rpl_core.profiling.guarded_collector import GuardedCollector

    collectors = session.host.catalog.collectors()
    name = session.setting("collector", flags["collector"]) if flags["rocprof"] else _TIMING_ONLY
    if name is not None and collectors.get(name).role is not TraceRole.TIMING:  # get: says which there are
        raise UsageError(
            f"the collector {name!r} adds thread traces to a profile and records none",
            next_step="use --deep-analysis",
        )
    reasons = []
    for offered in collectors.contributions:
        if offered.value.role is not TraceRole.TIMING:
            continue
        # Timing alone records no kernel, so it is only taken on request.
        if offered.value.name == name or (name is None and offered.value.name != _TIMING_ONLY):
            candidate = GuardedCollector(offered)
            reason = candidate.missing()
            if reason is None:
                return candidate
            reasons.append(reason)
    if reasons:
        raise MissingError(reasons[0])
    raise MissingError(
        "no collector and no device plugin is installed: the core alone records nothing",
        next_step="pip install rpl-gfx942, then `rpl profile --device gfx942 -- ./app`",
    )


def log_sink(session: Session, flags: Mapping[str, Any]) -> LineSink:
    if flags["debug"]:
        return session.output.note
    return lambda _line: None


def _analyse(session: Session, flags: Mapping[str, Any], recorded: Recorded) -> int:
    from rpl_core.pipeline.offline import analyse_paths
    from rpl_core.run_directory.writer import point_latest

    if flags["output"] is None:
        point_latest(recorded.directory)
    request = analysis_request(session, flags, recorded.directory)
    failure = recorded.failure
    if failure is not None and not recorded.any_finished:
        raise failure
    with shown_while_long("analyze", (recorded.directory,), quiet=flags["quiet"]):
        documents, directory = analyse_paths((recorded.directory,), request, session.host)
    _show(session, documents, flags, directory)
    if failure is not None:
        raise _kept(failure, recorded.directory)
    return int(ExitCode.OK)


def _kept(failure: RplError, directory: Path) -> RplError:
    """The failure, saying that what finished before it is kept."""
    failure.fact = f"{failure.fact} (the finished passes are kept and analysed in {directory})"
    return failure


def _show(session: Session, documents: Documents, flags: Mapping[str, Any], directory: Path | None) -> None:
    show(
        session,
        documents,
        as_json=flags["as_json"],
        quiet=flags["quiet"],
        directory=directory,
        path_first=bool(session.setting("focus-critical", flags["focus_critical"])),
    )
