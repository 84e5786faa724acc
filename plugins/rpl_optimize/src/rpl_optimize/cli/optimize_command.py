"""What ``rpl optimize`` and its relatives do, behind their options."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.cli.session import session_of
from rpl_core.errors import BadDataError, UsageError
from rpl_core.exit_codes import ExitCode
from rpl_optimize.cli.optimize_call import Call, recalled, remembered

if TYPE_CHECKING:
    import click

    from rpl_core.cli.session import Session
    from rpl_optimize.contracts.optimize import OptimizeDocument, PolicyPart
    from rpl_optimize.loop.request import OptimizeRequest, Tools
    from rpl_optimize.loop.resume import Resumed

_SOURCE_SUFFIXES = (".cu", ".hip", ".cpp", ".cc", ".cxx")
_EXIT_CODES = {
    "accepted": ExitCode.OK,
    "rejected": ExitCode.NEGATIVE_FINDING,
    "inconclusive": ExitCode.NO_VERDICT,
    "no_verdict": ExitCode.NO_VERDICT,
}
#: Seconds for one run of a check, where --time-limit says nothing.
_CHECK_TIME_LIMIT_S = 600.0


def run_optimize(
    context: click.Context,
    words: tuple[str, ...],
    flags: Mapping[str, Any],
    *,
    proposer: str,
    suffix: str,
    proposer_options: Mapping[str, str] | None = None,
) -> int:
    """Run or resume a session and print its result; the exit code says what came of it.

    ``proposer_options`` go to the proposer as they are, with every proposal.
    """
    session = session_of(context)
    _require_terminal(flags)
    call = Call(words, flags, proposer, suffix, proposer_options or {}, f"rpl {context.command.name}")
    with _progress(session, call) as show:
        step = Steps(show, every_run=flags["debug"] or (flags["auto_approve"] and sys.stderr.isatty()))
        if flags["resume"]:
            document, root = _resume(session, call, context, step)
        else:
            document, root = _start(session, call, step)
    _show(session, document, root, as_json=flags["as_json"])
    return int(_EXIT_CODES[document.verdict or "rejected"])


class Steps:
    """Progress in two sizes: the stages for everyone, each process run where it disturbs nobody."""

    def __init__(self, show: Callable[[str], None], *, every_run: bool) -> None:
        self._show = show
        self._every_run = every_run
        self._stage = ""

    def stage(self, text: str) -> None:
        self._stage = text
        self._show(text)

    def run(self, text: str) -> None:
        if self._every_run:
            self._show(f"{self._stage}: {text}")


def _progress(session: Session, call: Call) -> AbstractContextManager[Callable[[str], None]]:
    """Lines instead of a bar where a question may come: a bar would draw over it."""
    if call.flags["auto_approve"]:
        return session.output.progress("optimize", total=None)
    return nullcontext(lambda step: session.output.note(f"optimize: {step}"))


def _require_terminal(flags: Mapping[str, Any]) -> None:
    if not flags["auto_approve"] and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "accepting a change asks a question, and there is no terminal to ask on",
            next_step="add --auto-approve",
        )


def _start(session: Session, call: Call, step: Steps) -> tuple[OptimizeDocument, Path]:
    from rpl_core.files.atomic import write_atomic
    from rpl_core.run_directory.writer import claim_path, make_empty
    from rpl_optimize.ledger.writer import Ledger
    from rpl_optimize.loop.layout import LEDGER, REQUEST
    from rpl_optimize.loop.loop import OptimizeLoop
    from rpl_optimize.loop.session import OptimizeSession
    from rpl_optimize.loop.state import LoopState
    from rpl_optimize.transform.source_file import read_source

    request = _request(session, call)
    original = read_source(request.source, None).text
    _require_writable(request)
    tools = _tools(session, call, request, step)
    root = call.flags["output"]
    if root is None:
        root = claim_path(Path(session.setting("runs-directory")), (f"optimize-{request.source.stem}",))
    else:
        make_empty(root)
    root = root.resolve()
    write_atomic(root / REQUEST, json.dumps(remembered(call), indent=2) + "\n")
    with Ledger.create(root / LEDGER) as ledger:
        running = OptimizeSession.start(root, request, ledger, original, call.proposer)
        running.record_start(call.plain_options)
        session.output.note(f"recording in {root}; built by: {tools.builder.summary}")
        _warn_of_no_check(session, call)
        return OptimizeLoop(running, tools, LoopState(original)).run(), root


def _warn_of_no_check(session: Session, call: Call) -> None:
    """Before the first measurement: after the last one it would be too late to say."""
    if call.flags["validate"] or call.flags["outputs"]:
        return
    if call.flags["allow_unverified"]:
        session.output.note("warning: results are not compared: candidates are accepted on time alone")
    else:
        session.output.note(
            "warning: neither --validate nor --output-file is given, so no candidate can be accepted "
            "unless a plugin's check compares results"
        )


def _resume(
    session: Session, call: Call, context: click.Context, step: Steps
) -> tuple[OptimizeDocument, Path]:
    from rpl_optimize.ledger.writer import Ledger
    from rpl_optimize.loop.layout import LEDGER
    from rpl_optimize.loop.loop import OptimizeLoop
    from rpl_optimize.loop.resume import read_session
    from rpl_optimize.loop.session import OptimizeSession

    root = call.flags["resume"].resolve()
    begun, call = recalled(root, call, context)
    if not (root / LEDGER).exists():
        raise BadDataError(f"{root} stopped before it began", next_step="start a new session")
    with Ledger.open_for_append(root / LEDGER) as ledger:
        request = _request(session, call)
        resumed = read_session(root, request, begun.plain_options, begun.proposer)
        # What the user allowed then holds now, whatever the environment says today.
        request = attrs.evolve(request, policy=resumed.policy)
        running = OptimizeSession.resume(root, request, ledger, resumed, call.proposer)
        if resumed.finished is not None:
            session.output.note(f"the session has finished: {resumed.finished.termination_reason}")
            return running.document, root
        _require_unchanged(request, resumed)
        _require_writable(request)
        running.record_resumed()
        tools = _tools(session, call, request, step)
        return OptimizeLoop(running, tools, resumed.state, resumed.open_end).run(), root


def _require_writable(request: OptimizeRequest) -> None:
    """Better before the first measurement than after the last one."""
    place = request.source.parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise UsageError(
            f"nothing may be written in {place}, and an accepted version goes beside the source",
            next_step="work on a copy of the source that you may change, with --source and --build",
        )


def _require_unchanged(request: OptimizeRequest, resumed: Resumed) -> None:
    from rpl_optimize.loop.accept import digest
    from rpl_optimize.transform.source_file import read_source

    now = digest(read_source(request.source, None).text)
    state = resumed.state
    expected = {digest(resumed.original)} | ({state.ours, digest(state.text)} if request.in_place else set())
    if now not in expected:
        raise BadDataError(
            f"{request.source} was changed since the session began",
            next_step="start a new session, or restore the file",
        )


def _request(session: Session, call: Call) -> OptimizeRequest:
    from rpl_core.cli.analysis_options import analysis_request
    from rpl_core.interfaces.equivalence import EquivalenceOptions
    from rpl_core.profiling.command_line import application_command
    from rpl_optimize.build.model import BuildOptions
    from rpl_optimize.checks.output_spec import read_outputs
    from rpl_optimize.loop.find_source import find_source
    from rpl_optimize.loop.request import Limits, OptimizeRequest

    flags = call.flags
    read_outputs(tuple(flags["outputs"]))  # a wrong one must not wait for the first candidate
    source, words = _split_source(call)
    command = application_command(words)
    found = find_source(
        command, source=source, compile_database=flags["compile_database"], binary=flags["binary"]
    )
    session.output.note(f"source: {found.path} ({found.how})")
    path = found.path.resolve()
    return OptimizeRequest(
        command=command,
        source=path,
        build=BuildOptions(
            command=command,
            source=path,
            template=flags["build_command"],
            compile_database=flags["compile_database"],
            project=flags["project"],
            binary=flags["binary"],
            link_flags=_link_flags(flags["link_flags"]),
            architecture=_architecture(session, flags),
            time_limit_s=flags["build_time_limit"],
        ),
        equivalence=EquivalenceOptions(
            validate=flags["validate"],
            outputs=tuple(flags["outputs"]),
            relative=flags["rtol"],
            absolute=flags["atol"],
            time_limit_s=session.setting("time-limit", flags["time_limit"]) or _CHECK_TIME_LIMIT_S,
        ),
        policy=_policy(flags),
        limits=Limits(flags["min_improvement"], flags["max_iters"], flags["patience"], flags["time_budget"]),
        analysis=analysis_request(session, flags, None),
        kernel=flags["kernel"],
        suffix=call.suffix,
        command_name=call.command_name,
        in_place=flags["in_place"],
        runs=session.setting("runs", flags["runs"]),
        roofline=session.setting("roofline", flags["roofline"]),
        trace_dependencies=session.setting("focus-critical", flags["focus_critical"]),
        time_limit_s=session.setting("time-limit", flags["time_limit"]),
        proposer_options=call.proposer_options,
    )


def _link_flags(text: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text or ""))
    except ValueError as error:
        raise UsageError(f"--link-flags can't be split into words: {error}") from None


def _split_source(call: Call) -> tuple[Path | None, tuple[str, ...]]:
    """A first word that names a source file is the source; everything else is the command."""
    if call.words and call.flags["source"] is not None:
        return call.flags["source"], call.words
    if not call.words:
        raise UsageError("no application given", next_step='`rpl optimize kernel.hip "./app 100"`')
    if Path(call.words[0]).suffix in _SOURCE_SUFFIXES:
        if len(call.words) == 1:
            raise UsageError(
                f"{call.words[0]} is a source, and no command to measure is given",
                next_step='`rpl optimize kernel.hip "./app 100"`',
            )
        return Path(call.words[0]), call.words[1:]
    return None, call.words


def _architecture(session: Session, flags: Mapping[str, Any]) -> str | None:
    """What to compile for, where the device is named."""
    name = session.setting("device", flags["device"])
    if name is None:
        return None
    from rpl_core.devices.resolve import resolve_device

    devices = tuple(session.host.catalog.devices())
    model = resolve_device(name, (), devices, lambda _agents: None).model
    return None if model is None else model.architecture


def _policy(flags: Mapping[str, Any]) -> PolicyPart:
    from rpl_compare.comparison.comparable import SYNTHETIC_VARIABLE
    from rpl_optimize.contracts.optimize import PolicyPart

    return PolicyPart(
        allow_unverified=flags["allow_unverified"],
        allow_occupancy_loss=flags["allow_occupancy_loss"],
        allow_synthetic=os.environ.get(SYNTHETIC_VARIABLE) == "1",
        force_noisy=flags["force"],
        traffic_gate=flags["traffic_gate"],
    )


def _tools(session: Session, call: Call, request: OptimizeRequest, step: Steps) -> Tools:
    from rpl_core.cli.profile_command import log_sink
    from rpl_core.profiling.choose_collector import choose_collector
    from rpl_optimize.build.choose import choose_builder
    from rpl_optimize.equivalence.stage import EquivalenceStage
    from rpl_optimize.loop.request import Tools
    from rpl_optimize.transform.ask import installed

    catalog = session.host.catalog
    builder = choose_builder(request.build)
    catalog.proposers().get(call.proposer)  # says which there are
    proposer = next(c for c in catalog.proposers().contributions if c.value.name == call.proposer)
    return Tools(
        host=session.host,
        collector=choose_collector(
            session.host, session.setting("collector", call.flags["collector"]), request.analysis.options
        ),
        builder=builder,
        proposer=proposer,
        equivalence=EquivalenceStage(
            catalog.equivalence_checks(), installed(catalog.transformations()), builder, request.equivalence
        ),
        approve=_approval(session, call),
        note=session.output.note,
        log=log_sink(session, call.flags["debug"]),
        step=step.stage,
        run_step=step.run,
    )


def _approval(session: Session, call: Call) -> Callable[[str, str], bool]:
    def ask(diff: str, evidence: str) -> bool:
        if call.flags["auto_approve"]:
            return True
        import click

        session.output.note(diff)
        session.output.note(evidence)
        try:
            return click.confirm("accept this change?", err=True)
        except click.Abort:  # Ctrl-C or the end of the input: no answer, so the question stays open
            raise KeyboardInterrupt from None

    return ask


def _show(session: Session, document: OptimizeDocument, root: Path, *, as_json: bool) -> None:
    from rpl_core.documents.bundle import to_json
    from rpl_optimize.loop.text import optimize_text

    session.output.raw(to_json(document) if as_json else optimize_text(document, root))
