"""The tools that walk through an optimization: start, propose, build, measure, verdict, accept.

Each begins one stage of the session that is held and returns what the ledger says then. One session is held
at a time, because its measurements want the machine for themselves.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import attrs
from mcp.server.mcpserver import Context
from pydantic import Field

from rpl_core.errors import UsageError
from rpl_mcp.results import (
    AcceptResult,
    AllowedResult,
    BuildResult,
    MeasureResult,
    OptimizeResult,
    ProposeResult,
    StageResult,
    StartResult,
    VerdictResult,
    Waiting,
)
from rpl_mcp.session import Walk, require_resumable, state_of
from rpl_mcp.tools import Device, Name, PathText, Text, Words, teller, tool
from rpl_optimize.session_layout import is_session_directory

if TYPE_CHECKING:
    from rpl_mcp.allowed import Allowed
    from rpl_mcp.running import Runner

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
