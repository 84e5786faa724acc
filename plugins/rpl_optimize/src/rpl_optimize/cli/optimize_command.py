"""What ``rpl optimize`` and its relatives do, behind their options."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.cli.output import Output, terminal_width
from rpl_core.cli.session import Session, session_of
from rpl_core.config import names, parsed
from rpl_core.errors import BadDataError, ExitCode, MissingError, UsageError
from rpl_core.text import encodable, format_table, harmless_json, printable, wrap_lines
from rpl_core.values import frozen
from rpl_optimize.cli.optimize_options import OptimizeSettings
from rpl_optimize.cli.optimize_request import (
    Call,
    Steps,
    chosen_metric,
    optimize_request,
    optimize_tools,
    recalled,
    remembered,
    split_source,
)
from rpl_optimize.plugin import KEEP_VARIABLES
from rpl_optimize.running.sandbox import SWITCH, find_sandbox, keeping

if TYPE_CHECKING:
    import click

    from rpl_optimize.contracts import CandidatePart, OptimizeDocument
    from rpl_optimize.ledger.lines import Ledger
    from rpl_optimize.loop.session import OptimizeRequest, StageName, Tools

_EXIT_CODES = {
    "accepted": ExitCode.OK,
    "rejected": ExitCode.NEGATIVE_FINDING,
    "inconclusive": ExitCode.NO_VERDICT,
    "no_verdict": ExitCode.NO_VERDICT,
}


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
    call = Call(words, flags, proposer, suffix, proposer_options or {}, f"rpl {context.command.name}")
    settings = call.settings(session)
    _require_one_to_ask(settings)
    with keeping(_kept_variables(session)), _progress(session, settings) as show:
        watched = settings.debug or settings.step_by_step or (settings.auto_approve and sys.stderr.isatty())
        step = Steps(show, every_run=watched)
        if settings.resume is not None:
            document, root = _resume(session, call, settings.resume.resolve(), context, step)
        else:
            document, root = _start(session, call, step)
    if settings.step_by_step:
        StepByStep(session.output, root).ended(document)
    else:
        from rpl_core.documents import to_json

        session.output.raw(
            to_json(document) if settings.as_json else optimize_text(document, root, terminal_width())
        )
    return int(_EXIT_CODES[document.verdict or "rejected"])


def _kept_variables(session: Session) -> tuple[str, ...]:
    told = session.host.relay.config.get(KEEP_VARIABLES.name)
    if told is None:
        return ()
    kept: tuple[str, ...] = parsed(names, told, f"file {session.configuration.file}", KEEP_VARIABLES.name)
    return kept


def _require_sandbox(session: Session, call: Call) -> None:
    """What a model writes is neither compiled nor run on a machine that can't confine it."""
    from rpl_optimize.hookspecs import PROPOSERS

    sandbox = find_sandbox()
    proposer = session.host.catalog.of(PROPOSERS).get(call.proposer)
    if sandbox.kind is None and proposer.writes_code and os.environ.get(SWITCH) != "off":
        raise MissingError(
            f"there is no sandbox for the code that {call.proposer!r} writes: {sandbox.reason}",
            cause="bubblewrap is not installed, and the kernel or the container allows no user namespaces",
            next_step=f"install bubblewrap or allow user namespaces; {SWITCH}=off runs it without",
        )


def _progress(session: Session, settings: OptimizeSettings) -> AbstractContextManager[Callable[[str], None]]:
    """Lines instead of a bar where a question may come: a bar would draw over it."""
    if settings.auto_approve:
        return session.output.progress("optimize", total=None)
    return nullcontext(lambda step: session.output.note(f"optimize: {step}"))


def _require_one_to_ask(settings: OptimizeSettings) -> None:
    if settings.step_by_step:
        if settings.auto_approve or settings.as_json:
            other = "--auto-approve" if settings.auto_approve else "--json"
            raise UsageError(f"--step-by-step asks and answers by lines, so {other} can't go with it")
        return
    if not settings.auto_approve and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "accepting a change asks a question, and there is no terminal to ask on",
            next_step="add --auto-approve",
        )


def _start(session: Session, call: Call, step: Steps) -> tuple[OptimizeDocument, Path]:
    from rpl_core.files import write_atomic
    from rpl_core.run_directory import claim_path, make_empty
    from rpl_optimize.cli.optimize_request import with_binary
    from rpl_optimize.ledger.lines import Ledger
    from rpl_optimize.loop.rounds import OptimizeLoop
    from rpl_optimize.loop.session import OptimizeSession
    from rpl_optimize.loop.state import LoopState
    from rpl_optimize.session_layout import LEDGER, REQUEST
    from rpl_optimize.transform import read_source

    given = call.settings(session)
    source, command = split_source(call, given.source)
    _require_known(session, call, source, command)
    _require_sandbox(session, call)
    call = with_binary(session, call, source, command, step)
    request = optimize_request(session, call)
    original = read_source(request.source, None).text
    _require_writable(request)
    tools = optimize_tools(session, call, request, step)
    root = given.output
    if root is None:
        root = claim_path(Path(session.setting("runs-directory")), (f"optimize-{request.source.stem}",))
    else:
        make_empty(root)
    root = root.resolve()
    tools = _stepping(session, call, tools, root)
    key = _key(call.settings(session))
    write_atomic(root / REQUEST, json.dumps(remembered(call), indent=2) + "\n")
    with Ledger.create(root / LEDGER) as ledger:
        running = OptimizeSession.start(root, request, ledger, original, call.proposer)
        running.record_start(call.plain_options)
        session.output.note(f"recording in {root}; built by: {tools.builder.summary}")
        sandbox = find_sandbox()
        if sandbox.kind is None:
            session.output.note(f"warning: candidates are compiled with {sandbox.summary}")
        _warn_of_no_check(session, given)
        with _signed(ledger, key):
            return OptimizeLoop(running, tools, LoopState(original)).run(), root


def _require_known(session: Session, call: Call, source: Path | None, command: tuple[str, ...]) -> None:
    """Before anything runs: what is misspelt, or could not be measured, needs no run to be refused."""
    from rpl_core.cli.command_options import option_values
    from rpl_optimize.build.project_systems import find_source
    from rpl_optimize.hookspecs import PROPOSERS

    if source is not None:
        find_source(command, source=source)
    proposers = session.host.catalog.of(PROPOSERS)
    chosen = proposers.get(call.proposer)  # says which there are
    values = option_values(session, call.command, call.flags)
    for proposer in (contribution.value for contribution in proposers.contributions):
        given = [option for option in proposer.asked_by if values[option] != option.default]
        if given and not chosen.asks_others and proposer.name != chosen.name:
            raise UsageError(
                f"--{given[0].name} asks for the proposer {proposer.name}, "
                f"and --proposer {chosen.name} asks no other",
                next_step=f"leave out --proposer or --{given[0].name}",
            )
        if proposer.asked_by and not given and proposer.name == chosen.name:
            raise UsageError(
                f"--proposer {chosen.name} proposes nothing without --{chosen.asked_by[0].name}",
                next_step=f"add --{chosen.asked_by[0].name}, or leave out --proposer",
            )
    chosen_metric(session, call.settings(session))


def _warn_of_no_check(session: Session, settings: OptimizeSettings) -> None:
    """Before the first measurement: after the last one it would be too late to say."""
    if settings.validate or settings.outputs:
        return
    if settings.metric is not None:
        session.output.note("warning: results are not compared, so no figure of the model counts")
    elif settings.allow_unverified:
        session.output.note("warning: results are not compared: candidates are accepted on time alone")
    else:
        session.output.note(
            "warning: neither --validate nor --output-file is given, so no candidate can be accepted "
            "unless a plugin's check compares results"
        )


def _resume(
    session: Session, call: Call, root: Path, context: click.Context, step: Steps
) -> tuple[OptimizeDocument, Path]:
    from rpl_optimize.ledger.lines import Ledger
    from rpl_optimize.loop.rounds import OptimizeLoop
    from rpl_optimize.loop.session import OptimizeSession
    from rpl_optimize.loop.state import read_session
    from rpl_optimize.session_layout import LEDGER

    begun, call = recalled(root, call, context)
    _require_sandbox(session, call)
    if not (root / LEDGER).exists():
        raise BadDataError(f"{root} stopped before it began", next_step="start a new session")
    key = _key(call.settings(session))
    with Ledger.open_for_append(root / LEDGER) as ledger:
        request = optimize_request(session, call)
        resumed = read_session(root, request, begun.plain_options, begun.proposer)
        # What the user allowed then holds now, whatever the environment says today.
        request = attrs.evolve(request, policy=resumed.policy)
        running = OptimizeSession.resume(root, request, ledger, resumed, call.proposer)
        if resumed.finished is not None:
            session.output.note(f"the session has finished: {resumed.finished.termination_reason}")
            return running.document, root
        from rpl_optimize.loop.session import digest
        from rpl_optimize.transform import read_source

        now = digest(read_source(request.source, None).text)
        state = resumed.state
        expected = {digest(resumed.original)} | (
            {state.ours, digest(state.text)} if request.in_place else set()
        )
        if now not in expected:
            raise BadDataError(
                f"{request.source} was changed since the session began",
                next_step="start a new session, or restore the file",
            )
        _require_writable(request)
        running.record_resumed()
        tools = _stepping(session, call, optimize_tools(session, call, request, step), root)
        with _signed(ledger, key):
            return OptimizeLoop(running, tools, resumed.state, resumed.open_end).run(), root


def _stepping(session: Session, call: Call, tools: Tools, root: Path) -> Tools:
    """The same, asking for each stage where the call says so."""
    if not call.settings(session).step_by_step:
        return tools
    steps = StepByStep(session.output, root)
    return attrs.evolve(tools, hold=steps.hold, approve=steps.approve)


def _key(settings: OptimizeSettings) -> bytes | None:
    """Read before anything runs: at the end it would be too late to say that it is none."""
    from rpl_optimize.ledger.session_files import read_key

    return None if settings.sign is None else read_key(settings.sign)


@contextmanager
def _signed(ledger: Ledger, key: bytes | None) -> Iterator[None]:
    """Sign the ledger however the session ends, but for a kill."""
    from rpl_optimize.ledger.session_files import sign

    try:
        yield
    finally:
        if key is not None and ledger.entries:
            sign(ledger.path, key, ledger.entries, ledger.last_sha256)


def _require_writable(request: OptimizeRequest) -> None:
    """Better before the first measurement than after the last one."""
    place = request.source.parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise UsageError(
            f"nothing may be written in {place}, and an accepted version goes beside the source",
            next_step="work on a copy of the source that you may change, with --source and --build",
        )


# The result of a session as text.


def optimize_text(document: OptimizeDocument, root: Path, width: int | None = None) -> str:
    """Candidates, why it ended, and where things are, in lines of at most ``width`` characters."""
    lines = []
    if document.candidates:
        columns = ("#", "KERNEL", "VERDICT", "KERNEL GAIN", "APP GAIN", "PREDICTED", "CANDIDATE")
        rows = [_row(candidate) for candidate in document.candidates]
        right = ("#", "KERNEL GAIN", "APP GAIN", "PREDICTED")
        lines += [format_table(columns, rows, right=right, width=width), ""]
        lines += [_sentence(candidate) for candidate in document.candidates]
        lines.append("")
    end = [f"dominance shift: {sentence}" for sentence in document.dominance_shifts]
    end.append(f"ended: {document.termination_reason}: {document.termination_detail}")
    end.append(f"verdict: {_verdict(document)}")
    if document.accepted_source is not None:
        end.append(f"accepted source: {document.accepted_source}")
    if document.modelled_source is not None:
        end.append(f"best by the model, not accepted: {root / document.modelled_source}")
    if document.backup is not None:
        end.append(f"backup: {document.backup}")
    end.append(f"session: {root} (check it with `rpl ledger verify {shlex.quote(str(root))}`)")
    lines += [_line(sentence) for sentence in end]
    text = "\n".join(lines) + "\n"
    return text if width is None else wrap_lines(text, width)


def _line(text: str) -> str:
    """One line: names and compiler messages come from anywhere."""
    return printable(text).replace("\n", "\\n")


def _verdict(document: OptimizeDocument) -> str:
    """The session's verdict, with what a reader must not overlook."""
    if not document.candidates:
        return "nothing was accepted: no candidate was judged"
    accepted = [c for c in document.candidates if c.judgement.verdict == "accepted"]
    notes = []
    if any(not candidate.judgement.verified for candidate in accepted):
        notes.append("unverified: no check saw its results")
    if any(candidate.origin not in {None, "measured"} for candidate in accepted):
        notes.append("synthetic times: no measurement of hardware")
    if metrics := {one.metric for one in document.candidates if one.metric is not None}:
        notes.append(f"by the model {' and '.join(sorted(metrics))}; nothing was measured")
    told = f" ({'; '.join(notes)})" if notes else ""
    return f"{document.verdict}{told}"


def _sentence(candidate: CandidatePart) -> str:
    judgement = candidate.judgement
    text = f"{candidate.number}: {judgement.verdict}: {' '.join(judgement.reason.split())}"
    if judgement.verdict in {"no_verdict", "inconclusive"} and candidate.source is not None:
        text += f" (kept: {candidate.source})"
    return _line(text)


def _row(candidate: CandidatePart) -> tuple[str, ...]:
    verdict = candidate.judgement.verdict
    unverified = verdict == "accepted" and not candidate.judgement.verified
    return (
        str(candidate.number),
        candidate.kernel,
        f"{verdict} (unverified)" if unverified else verdict,
        _kernel_gain(candidate),
        _percent(candidate.measured_gain),
        _percent(candidate.predicted_gain),
        _line(candidate.summary),
    )


def _kernel_gain(candidate: CandidatePart) -> str:
    """In brackets where no fresh measurement confirmed it; said where it is a model's."""
    if candidate.modelled_gain is not None:
        return f"{candidate.modelled_gain:+.1%} modelled"
    if candidate.kernel_gain is None and candidate.first_kernel_gain is not None:
        return f"({candidate.first_kernel_gain:+.1%})"
    return _percent(candidate.kernel_gain)


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction:+.1%}"


# ``--step-by-step``: a session that somebody else's program walks through, by lines of stdin and stdout.
#
# Before each stage stdout gets one JSON object on a line, and the session waits for a line of stdin: ``go``
# begins the stage, ``no`` declines an acceptance. Anything else, the end of the input too, leaves the session
# open to ``--resume``. The last object says how it ended. What the stages found stands in the ledger.

#: A longer line is no answer (chosen).
_LONGEST_ANSWER = 1000


@frozen
class StepByStep:
    """``root`` is the session's directory."""

    output: Output
    root: Path

    def hold(self, stage: StageName, candidate: int) -> None:
        """Raises ``KeyboardInterrupt`` unless the stage may begin."""
        if self._ask({"waiting_for": stage, "candidate": candidate}) != "go":
            raise KeyboardInterrupt

    def approve(self, diff: str, evidence: str) -> bool:
        """Whether a proven change is accepted. Raises ``KeyboardInterrupt`` where that stays open."""
        answer = self._ask({"waiting_for": "accept", "diff": diff, "evidence": evidence})
        if answer not in ("go", "no"):
            raise KeyboardInterrupt
        return answer == "go"

    def ended(self, document: OptimizeDocument) -> None:
        self._tell({"waiting_for": None, "optimize": document.model_dump(mode="json")})

    def _ask(self, told: Mapping[str, object]) -> str:
        self._tell(told)
        return sys.stdin.readline(_LONGEST_ANSWER).strip()

    def _tell(self, told: Mapping[str, object]) -> None:
        line = json.dumps({**told, "session": str(self.root)}, ensure_ascii=False, allow_nan=False)
        self.output.raw(harmless_json(encodable(line)) + "\n")
        sys.stdout.flush()
