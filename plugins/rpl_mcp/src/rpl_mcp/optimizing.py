"""The tools that walk through an optimization: start, propose, build, measure, verdict, accept.

Each begins one stage of the session that is held and returns what the ledger says then. One session is held
at a time, because its measurements want the machine for themselves.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import anyio
import attrs
from mcp.server.mcpserver import Context
from pydantic import Field

from rpl_core.errors import BadDataError, ExitCode, UsageError
from rpl_core.files import parse_json, read_regular
from rpl_core.text import is_masked
from rpl_mcp.running import Allowed, Child, Runner, failure
from rpl_mcp.tools import (
    AcceptResult,
    AllowedResult,
    BuildResult,
    Device,
    MeasureResult,
    Name,
    OptimizeResult,
    PathText,
    ProposeResult,
    StageResult,
    StartResult,
    Text,
    VerdictResult,
    Waiting,
    Words,
    teller,
    tool,
)
from rpl_optimize.cli.optimize import optimize
from rpl_optimize.contracts import (
    BaselineProfiledData,
    FinishedData,
    JudgedData,
    JudgementPart,
    OptimizeDocument,
    ProposedData,
    TargetChosenData,
    WrittenData,
)
from rpl_optimize.ledger.lines import CONTRACTS, read_ledger
from rpl_optimize.ledger.session_files import RecordedEvidence
from rpl_optimize.loop.session import unified_diff
from rpl_optimize.session_layout import DOCUMENT, LEDGER, ORIGINAL, REQUEST, is_session_directory
from rpl_optimize.transform import read_source

if TYPE_CHECKING:
    Tell = Callable[[str], Awaitable[None]]

# One optimization that an agent walks through: the process of `rpl optimize --step-by-step` and its ledger.
#
# The loop is rpl's own and lives in that process; here its stages are begun, and what they found is read from
# the session's ledger. Nothing else is kept: a session that lost its process is resumed from its directory.

_MOST_REQUEST_BYTES = 1 << 20
#: What ends a session that rpl closed itself: its result is in the document.
_ENDINGS = (ExitCode.OK, ExitCode.NEGATIVE_FINDING, ExitCode.NO_VERDICT, ExitCode.INTERRUPTED)
#: Options that name files, and those that only say what is measured and how, or are looked at themselves.
_FILES = ("source", "binary", "output", "resume")
_CHECKED = frozenset(
    (
        *("build_command", "validate", "kernel", "outputs", "rtol", "atol", "min_improvement", "max_iters"),
        *("patience", "device", "metric", "runs", "step_by_step", "proposer"),
    )
)


@attrs.define(eq=False)
class Walk:
    """A session that waits for the next stage. ``told`` is what it said last."""

    runner: Runner
    child: Child
    folder: Path
    told: Mapping[str, Any] = attrs.field(factory=dict)
    candidate: int | None = None

    @property
    def waiting_for(self) -> Waiting | None:
        return cast("Waiting | None", self.told.get("waiting_for"))

    @classmethod
    async def begin(cls, runner: Runner, words: Sequence[str], folder: Path, tell: Tell) -> Walk:
        """Until it waits for the first time; raises what made the command fail before."""
        async with runner.turn, runner.limited("optimize"):
            walk = cls(runner, await runner.start(("optimize", "--step-by-step", *words)), folder)
            await walk._listened(tell)
        return walk

    async def go_on(self, answer: str, tell: Tell) -> None:
        """Answer it, and wait until it asks again or ends. To cancel this ends the session's process."""
        async with self.runner.turn, self.runner.limited("optimize"):
            self.child.notes.clear()
            await self.child.say(answer)
            await self._listened(tell)

    async def _listened(self, tell: Tell) -> None:
        going = False
        try:
            line = await self.child.line(tell)
            self.told = {} if line is None else parse_json(line, "what the session said")
            self.candidate = self.told.get("candidate", self.candidate)
            going = self.waiting_for is not None
            if not going:
                answer = await self.child.result(tell)
                if answer.exit_code not in _ENDINGS or not is_session_directory(self.folder):
                    raise failure("optimize", answer)
        finally:
            if not going:
                await self.runner.end(self.child)

    async def stop(self) -> None:
        """Leave it open to be resumed."""
        await self.runner.end(self.child)
        self.told = {}


def state_of(
    allowed: Allowed,
    folder: Path,
    told: Mapping[str, Any],
    notes: Iterable[str] = (),
    candidate: int | None = None,
) -> OptimizeResult:
    """The session as its ledger has it. ``candidate``: of which evidence is given, ``None``: the last one."""
    evidence = RecordedEvidence()
    last: dict[type, Any] = {}
    sources = [read_source(_original(allowed, folder), None).text]
    proposals: dict[int, tuple[ProposedData, bytes]] = {}
    judgements: dict[int, JudgementPart] = {}
    for entry in read_ledger(_file(allowed, folder, LEDGER)):
        data = CONTRACTS[entry.event].model_validate(entry.data)
        evidence.take(entry.event, data)
        last[type(data)] = data
        if isinstance(data, ProposedData):
            proposals[data.candidate] = (data, sources[-1])
        elif isinstance(data, JudgedData):
            judgements[data.candidate] = data.judgement
        elif isinstance(data, WrittenData) and data.candidate in proposals:
            accepted = _source(allowed, folder, proposals[data.candidate][0])
            sources.append(accepted or sources[-1])
    number = max(proposals, default=None) if candidate is None else candidate
    proposed, before = proposals.get(number or 0, (None, b""))
    found = evidence.of(number) if proposed is not None and number is not None else None
    written, waiting = last.get(WrittenData), cast("Waiting | None", told.get("waiting_for"))
    return OptimizeResult(
        notes=tuple(notes),
        session=allowed.told(folder),
        waiting_for=waiting,
        finished=None if waiting is not None else last.get(FinishedData),
        candidate=number,
        baseline=last.get(BaselineProfiledData),
        target=last.get(TargetChosenData),
        proposed=proposed,
        diff=None if proposed is None else _diff(allowed, folder, proposed, before),
        source_guards=() if found is None else found.source_guards,
        build=None if found is None else found.build,
        binary_guards=() if found is None else found.binary_guards,
        evidence=found,
        judgement=None if number is None else judgements.get(number),
        question=told.get("evidence"),
        written=written if written is not None and written.candidate == number else None,
        optimize=_document(_file(allowed, folder, DOCUMENT)),
    )


def _file(allowed: Allowed, folder: Path, name: str) -> Path:
    """A file of a session, which may come from elsewhere: no link may lead out of the root."""
    path = allowed.path(allowed.told(folder / name))
    if not path.is_relative_to(folder):
        raise BadDataError(f"the ledger of {folder.name} names a file outside of the session")
    return path


def _original(allowed: Allowed, folder: Path) -> Path:
    kept = sorted((folder / ORIGINAL).iterdir()) if (folder / ORIGINAL).is_dir() else []
    if len(kept) != 1:
        raise BadDataError(f"{folder.name} keeps no copy of its source")
    return _file(allowed, folder, f"{ORIGINAL}/{kept[0].name}")


def _source(allowed: Allowed, folder: Path, proposed: ProposedData) -> bytes | None:
    """The candidate's text, from where the session keeps it."""
    if proposed.source is None:
        return None
    return read_source(_file(allowed, folder, proposed.source), None).text


def _diff(allowed: Allowed, folder: Path, proposed: ProposedData, before: bytes) -> str | None:
    text = _source(allowed, folder, proposed)
    return None if text is None else unified_diff(before, text, Path(proposed.source or "").name)


def _document(path: Path) -> OptimizeDocument:
    return OptimizeDocument.model_validate(parse_json(read_regular(path, 64 << 20, links=False), DOCUMENT))


def require_resumable(folder: Path, allowed: Allowed) -> None:
    """A session runs what its ``request.json`` says: nothing may be in it that this server would not run."""
    if not is_session_directory(folder) or not (folder / REQUEST).is_file():
        raise UsageError(f"{folder.name} holds no session", next_step="name what optimize_start returned")
    request = parse_json(read_regular(folder / REQUEST, _MOST_REQUEST_BYTES, links=False), REQUEST)
    try:
        words, flags = [str(word) for word in request["words"]], dict(request["flags"])
        foreign = request["command_name"] != "rpl optimize" or request["proposer_options"]
    except (KeyError, TypeError, ValueError) as error:
        raise BadDataError(f"{REQUEST} of {folder.name} is damaged: {type(error).__name__}") from None
    if foreign or is_masked(tuple(words)):
        raise UsageError(
            f"{folder.name} was not begun by these tools, or its command held a secret",
            next_step="let the user resume it: `rpl optimize --resume`",
        )
    allowed.command(words)
    allowed.command(shlex.split(flags.get("build_command") or ""))
    for text in shlex.split(flags.get("validate") or ""):
        allowed.command(shlex.split(text))
    usual = {parameter.name: parameter.default for parameter in optimize.params}
    for name, value in flags.items():
        default = usual.get(name)
        unset = value in (None, "") or value == default or (value is False and default is not True)
        if name in _FILES and not unset:
            allowed.path(allowed.told(str(value)))
        elif name not in _CHECKED and not unset:
            raise UsageError(f"{folder.name} was begun with {name}, which these tools do not use")


Fraction = Annotated[float, Field(gt=0, lt=1)]
Tolerance = Annotated[float, Field(ge=0, le=1e9)]


@attrs.define(eq=False)
class OptimizeTools:
    """``held`` is the session whose process waits for its next stage."""

    allowed: Allowed
    runner: Runner
    held: Walk | None = None
    _step_by_step: anyio.Lock = attrs.field(factory=anyio.Lock)

    @tool
    async def allowed_words(self) -> AllowedResult:
        """What this server may do: the commands that may be run, and whether a source may be written."""
        from rpl_core import __version__

        held = self.held
        return AllowedResult(
            version=__version__,
            allowed_commands=self.allowed.commands,
            accept_allowed=self.allowed.accept,
            session=None if held is None else self.allowed.told(held.folder),
            waiting_for=None if held is None else held.waiting_for,
        )

    @tool
    async def optimize_start(
        self,
        context: Context,
        source: PathText,
        command: Words,
        build: Annotated[
            Words, Field(description="An allowed command with {source} and {output}, or a project's")
        ],
        output_files: Annotated[
            list[Text],
            Field(max_length=20, description="Results that must stay equal: FILE, FILE:f32, or - for stdout"),
        ] = [],  # noqa: B006 - the client's schema shows it, nobody changes it
        validate: Annotated[
            list[Words], Field(max_length=20, description="Allowed commands that exit 0 for right results")
        ] = [],  # noqa: B006 - as above
        rtol: Tolerance = 0.0,
        atol: Tolerance = 0.0,
        kernel: Annotated[
            Text | None, Field(description="Only this kernel, by its name in the source")
        ] = None,
        device: Device = None,
        metric: Annotated[
            Name | None,
            Field(description="Compare by a model on a device that measures nothing; accepts nothing"),
        ] = None,
        proposer: Name = "ranked",
        runs: Annotated[int, Field(ge=1, le=100)] = 3,
        min_improvement: Fraction = 0.02,
        max_candidates: Annotated[int, Field(ge=1, le=1000)] = 3,
        patience: Annotated[int, Field(ge=1, le=1000)] = 3,
    ) -> StartResult:
        """Begin an optimization: build and profile the unchanged program. `waiting_for` names the next tool.

        Without `output_files` or `validate` no result is checked, and nothing can be accepted.
        """
        async with self._step_by_step:
            self._require_none_held()
            file = self.allowed.path(source)
            application, template = self.allowed.command(command), self.allowed.command(build)
            checks = [shlex.join(self.allowed.command(check)) for check in validate]
            outputs = [self.allowed.result(output) for output in output_files]
            folder = self.allowed.new(f"optimize-{file.stem}")
            words = ["--source", str(file), "--build", shlex.join(template), "-o", str(folder)]
            words += [word for check in checks for word in ("--validate", check)]
            words += [f"--output-file={output}" for output in outputs]
            words += ["--rtol", repr(rtol), "--atol", repr(atol), "--runs", str(runs), "--proposer", proposer]
            words += ["--min-improvement", repr(min_improvement), "--max-iters", str(max_candidates)]
            words += ["--patience", str(patience)]
            words += [] if kernel is None else [f"--kernel={kernel}"]
            words += [] if device is None else ["--device", device]
            words += [] if metric is None else ["--metric", metric]
            return StartResult.model_validate(
                await self._begun(context, [*words, "--", *application], folder)
            )

    @tool
    async def optimize_resume(self, context: Context, session: PathText) -> StartResult:
        """Go on with a session that was stopped, was cancelled or lost its server."""
        async with self._step_by_step:
            self._require_none_held()
            folder = self.allowed.path(session)
            require_resumable(folder, self.allowed)
            return StartResult.model_validate(await self._begun(context, ["--resume", str(folder)], folder))

    @tool
    async def optimize_propose(self, context: Context) -> ProposeResult:
        """Ask for the next candidate: its edit (`diff`) and the guards on its source. Nothing is built."""
        return ProposeResult.model_validate(await self._step(context, "propose"))

    @tool
    async def optimize_build(self, context: Context) -> BuildResult:
        """Build the candidate twice and run the guards on its binary. The program is not run yet."""
        return BuildResult.model_validate(await self._step(context, "build"))

    @tool
    async def optimize_measure(self, context: Context) -> MeasureResult:
        """Check that the candidate computes the same, then measure it and the baseline in pairs of runs."""
        return MeasureResult.model_validate(await self._step(context, "measure"))

    @tool
    async def optimize_verdict(self, context: Context) -> VerdictResult:
        """Judge the candidate by its evidence: accepted, rejected, inconclusive or no_verdict, and why."""
        return VerdictResult.model_validate(await self._step(context, "verdict"))

    @tool
    async def optimize_accept(
        self,
        context: Context,
        accept: Annotated[
            bool, Field(description="false declines the proven candidate, which is then rejected")
        ],
    ) -> AcceptResult:
        """Accept what is proven: the source is written beside the original and is the next baseline."""
        if accept and not self.allowed.accept:
            raise UsageError(
                "nothing may be written by this server, so the question stays open",
                next_step="the user accepts with `rpl optimize --resume`, or starts the server with "
                "--allow-accept; optimize_stop keeps the session for that",
            )
        return AcceptResult.model_validate(await self._step(context, "accept", "go" if accept else "no"))

    @tool
    async def optimize_state(self, session: PathText) -> OptimizeResult:
        """A session as its ledger has it, held or not. Nothing is run."""
        folder = self.allowed.path(session)
        if not is_session_directory(folder):
            raise UsageError("there is no session", next_step="name what optimize_start returned")
        held = self.held
        told = held.told if held is not None and held.folder == folder else {}
        return state_of(self.allowed, folder, told)

    @tool
    async def optimize_stop(self) -> StageResult:
        """Stop the session that is held. Everything found so far stays, for optimize_resume."""
        held = self._require_held()
        await self.stop()
        return StageResult.model_validate(state_of(self.allowed, held.folder, {}, held.child.notes))

    async def stop(self) -> None:
        if self.held is not None:
            held, self.held = self.held, None
            await held.stop()

    async def _begun(self, context: Context, words: Sequence[str], folder: Path) -> OptimizeResult:
        return self._after(await Walk.begin(self.runner, words, folder, teller(context)))

    async def _step(self, context: Context, stage: Waiting, answer: str = "go") -> OptimizeResult:
        async with self._step_by_step:
            held = self._require_held()
            if held.waiting_for != stage:
                raise UsageError(
                    f"the session waits for {held.waiting_for}, not for {stage}",
                    next_step=f"call optimize_{held.waiting_for}",
                )
            candidate = held.candidate
            try:
                await held.go_on(answer, teller(context))
            except BaseException:  # cancelled too: its process ends, the session stays open
                await self.stop()
                raise
            return self._after(held, candidate)

    def _after(self, walk: Walk, candidate: int | None = None) -> OptimizeResult:
        self.held = walk if walk.waiting_for is not None else None
        return state_of(self.allowed, walk.folder, walk.told, walk.child.notes, candidate)

    def _require_held(self) -> Walk:
        if self.held is None:
            raise UsageError("no session is held", next_step="call optimize_start or optimize_resume")
        return self.held

    def _require_none_held(self) -> None:
        if self.held is not None:
            raise UsageError(
                f"{self.allowed.told(self.held.folder)} is held, and waits for {self.held.waiting_for}",
                next_step="go on with it, or leave it with optimize_stop",
            )
