"""The tools that measure, read and compare: one command of rpl each, what it wrote, and what they return.

Docstrings and descriptions here are what a model reads of a tool. They are fixed: nothing of a recording, a
source or a log gets into them.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import attrs
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rpl_analysis.contracts.analysis import AnalysisDocument, KernelAnalysis
from rpl_analysis.contracts.dag import DagDocument, WhatIfDocument
from rpl_analysis.contracts.profile import ProfileDocument
from rpl_analysis.contracts.roofline import RooflineDocument
from rpl_compare.contract import CompareDocument
from rpl_core.contracts.common import OriginName, Part
from rpl_core.errors import BadDataError, RplError
from rpl_core.files import parse_json, read_regular
from rpl_core.text import encodable, printable, readable
from rpl_mcp.running import Allowed, Answer, Runner, failure
from rpl_optimize.contracts import (
    BaselineProfiledData,
    BuildPart,
    EvidencePart,
    FinishedData,
    GuardPart,
    JudgementPart,
    OptimizeDocument,
    ProposedData,
    TargetChosenData,
    WrittenData,
)

# What the tools return: parts of rpl's own documents, with nothing reworded.
#
# Every text in them comes from recordings, sources, logs or proposers: it is data. Control characters and
# marks of direction are shown as escapes, as on a terminal.

AnyPart = TypeVar("AnyPart", bound=BaseModel)
Kernel = TypeVar("Kernel")
Waiting = Literal["propose", "build", "measure", "verdict", "accept"]
#: Characters of a result: an agent has to read it (chosen: four times a profile of 100 kernels).
_MOST_CHARACTERS = 2_000_000


class Result(Part):
    """``exit_code`` is that of the rpl command; ``notes`` the last lines that it wrote to stderr."""

    exit_code: int = 0
    notes: tuple[str, ...] = ()


class AllowedResult(Part):
    """What this server may do. ``version`` is of rpl, ``session`` the one that an optimize tool holds."""

    version: str
    allowed_commands: tuple[tuple[str, ...], ...]
    accept_allowed: bool
    session: str | None = None
    waiting_for: Waiting | None = None


class ProfileResult(Result):
    """``run`` is the run directory from the root on; ``kernels_left_out`` are not in ``profile``."""

    run: str
    profile: ProfileDocument
    kernels_left_out: int = Field(ge=0, default=0)


class AnalyseResult(Result):
    """The document that was asked for; the others are null. ``kernels_left_out`` are not in it."""

    run: str
    profile: ProfileDocument | None = None
    roofline: RooflineDocument | None = None
    dag: DagDocument | None = None
    analysis: AnalysisDocument | None = None
    kernels_left_out: int = Field(ge=0, default=0)


class ExplainResult(Result):
    kernel: KernelAnalysis


class WhatIfResult(Result):
    what_if: WhatIfDocument


class CompareResult(Result):
    """``exit_code``: 0 not slower, 1 slower, 75 the runs do not tell. ``run`` is null for recordings."""

    compare: CompareDocument
    run: str | None = None


class IsolateResult(Result):
    """What `rpl isolate` prints; ``capture`` is the folder from the root on, null where none was made."""

    state: str
    fact: str
    capture: str | None
    matches: int
    launches: int
    nearest: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Open(BaseModel):
    """Keys may be added within a major version of what `rpl replay compare` prints."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)


class ReplayerPart(_Open):
    name: str
    origin: OriginName


class ControlOutcome(_Open):
    """A wrong version of the kernel, and whether the comparison noticed it."""

    edit: str
    outcome: str


class InputOutcome(_Open):
    """Other numbers in the place of the captured ones."""

    name: str
    outcome: str
    reason: str | None = None


class TurnTimes(_Open):
    """Of both kernels in turns, in microseconds; ``ratio`` is B / A, the median over the pairs."""

    unit: str
    origin: OriginName | None
    problem: str | None
    a: tuple[float, ...]
    b: tuple[float, ...]
    a_median: float | None
    b_median: float | None
    ratio: float | None
    ratio_quartiles: tuple[float, float] | None


class ReplayComparison(_Open):
    """What `rpl replay compare --json` prints (docs/REPLAY_JSON_SCHEMA.md)."""

    schema_version: str
    verdict: str | None
    reason: str
    covers: str
    kernel: str | None
    replayer: ReplayerPart | None
    replays: int
    outputs: tuple[dict[str, Any], ...]
    inputs: tuple[InputOutcome, ...]
    found_share: float | None
    written_beside: tuple[dict[str, Any], ...]
    poisoned_bytes: int | None
    read_first_bytes: int | None
    controls: tuple[ControlOutcome, ...]
    survivors: tuple[str, ...]
    findings: tuple[str, ...] | None
    usual_findings: tuple[str, ...]
    times: TurnTimes | None
    error: dict[str, Any] | None


class ReplayCompareResult(Result):
    """``exit_code``: 0 equal, or differs by rounding only; 1 different; 75 blind or undecided."""

    comparison: ReplayComparison


class StageResult(Result):
    """A session as its ledger has it: ``waiting_for`` is the stage to begin next.

    ``finished`` says why it is over, or how it was left; null while it waits.
    """

    session: str
    waiting_for: Waiting | None
    finished: FinishedData | None = None


class StartResult(StageResult):
    """``baseline`` is the version to beat, ``target`` the kernel that was chosen last, if one was."""

    baseline: BaselineProfiledData | None
    target: TargetChosenData | None


class ProposeResult(StageResult):
    """``proposed`` is null where the proposer has nothing left. ``diff`` is its change of the source."""

    target: TargetChosenData | None
    proposed: ProposedData | None
    diff: str | None
    source_guards: tuple[GuardPart, ...]


class BuildResult(StageResult):
    candidate: int | None
    build: BuildPart | None
    binary_guards: tuple[GuardPart, ...]


class MeasureResult(StageResult):
    """All evidence on the candidate, the guards' included."""

    candidate: int | None
    evidence: EvidencePart | None


class VerdictResult(StageResult):
    """``question`` says what an acceptance would rest on; null where nothing is asked."""

    candidate: int | None
    judgement: JudgementPart | None
    question: str | None


class AcceptResult(StageResult):
    """``written`` is where the accepted source lies; null where the candidate was declined."""

    candidate: int | None
    written: WrittenData | None
    baseline: BaselineProfiledData | None


class OptimizeResult(StageResult):
    """All of it, with ``optimize.json`` as it is now; what is of a candidate is of the last one."""

    candidate: int | None
    baseline: BaselineProfiledData | None
    target: TargetChosenData | None
    proposed: ProposedData | None
    diff: str | None
    source_guards: tuple[GuardPart, ...]
    build: BuildPart | None
    binary_guards: tuple[GuardPart, ...]
    evidence: EvidencePart | None
    judgement: JudgementPart | None
    question: str | None
    written: WrittenData | None
    optimize: OptimizeDocument


def shortest(kernels: Sequence[Kernel], most: int, name: str | None, by: str) -> tuple[Kernel, ...]:
    """At most ``most`` of them, in their order: those whose member ``by`` holds ``name``."""
    return tuple(kernel for kernel in kernels if name is None or name in getattr(kernel, by))[:most]


def masked(result: AnyPart) -> AnyPart:
    """``result`` with texts that steer nothing. Raises ``BadDataError`` where it is too large to be read."""
    left = [_MOST_CHARACTERS]

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            text = printable(encodable(value))
            left[0] -= len(text)
            return text
        left[0] -= 8
        if left[0] < 0:
            raise BadDataError(
                f"the result has more than {_MOST_CHARACTERS} characters", next_step="ask for fewer kernels"
            )
        if isinstance(value, dict):
            return {plain(str(key)): plain(inner) for key, inner in value.items()}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    return type(result).model_validate(plain(result.model_dump(mode="json")))


Given = ParamSpec("Given")
Returned = TypeVar("Returned", bound=BaseModel)
Document = TypeVar("Document", bound=BaseModel)

_MOST_BYTES = 64 << 20
_MOST_TEXT = 4096

Text = Annotated[str, Field(min_length=1, max_length=_MOST_TEXT)]
Words = Annotated[
    list[Text],
    Field(
        min_length=1,
        max_length=200,
        description="Word for word one of allowed_commands (see the tool allowed_words)",
    ),
]
PathText = Annotated[
    str, Field(min_length=1, max_length=_MOST_TEXT, description="From the root on, without `..` and links")
]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Device = Annotated[
    Name | None, Field(description="Such as gfx942, mi300x or gfx942-emu; null: the GPU found")
]
KernelText = Annotated[Text | None, Field(description="Only kernels whose name holds this text")]
Most = Annotated[int, Field(ge=1, le=1000, description="Most kernels in the result")]
Factor = Annotated[float, Field(gt=0, le=1e6)]

#: What no measurement found is a finding too.
_COMPARED = (0, 1, 75)


def tool(call: Callable[Given, Awaitable[Returned]]) -> Callable[Given, Awaitable[Returned]]:
    """The edge to the client: expected failures become one line, and texts of results steer nothing."""

    @wraps(call)
    async def told(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            return masked(await call(*args, **kwargs))
        except RplError as error:
            raise ToolError(readable(error.one_line())) from error
        except ValidationError as error:
            raise ToolError(f"what was read is not as rpl writes it: no {error.title}") from error

    return told


def teller(context: Context) -> Callable[[str], Awaitable[None]]:
    """Progress of a call: each message is a line of rpl or of the application, as data."""
    count = 0

    async def tell(text: str) -> None:
        nonlocal count
        count += 1
        await context.report_progress(count, None, text)

    return tell


@attrs.frozen(eq=False)
class Tools:
    allowed: Allowed
    runner: Runner

    async def _run(
        self, context: Context, words: Sequence[str | Path], results: Sequence[int] = (0,)
    ) -> Answer:
        answer = await self.runner.run(words, teller(context))
        if answer.exit_code not in results:
            raise failure(str(words[0]), answer)
        return answer

    @tool
    async def profile(
        self,
        context: Context,
        command: Words,
        device: Device = None,
        runs: Annotated[int, Field(ge=1, le=100, description="Timing runs")] = 3,
        roofline: Annotated[bool, Field(description="Collect hardware counters in more passes")] = False,
        top: Most = 20,
    ) -> ProfileResult:
        """Run an application under the profiler: times, stability, resources, occupancy (profile.json).

        Figures say their exactness and origin; unknown is null with a reason. `run` is for the other tools.
        """
        application = self.allowed.command(command)
        run = self.allowed.new("profile")
        words = ["profile", "--json", *_device(device), "--runs", str(runs), "-o", str(run)]
        answer = await self._run(context, [*words, *(["--roofline"] if roofline else []), "--", *application])
        document = _parsed(answer.stdout, ProfileDocument)
        shown = shortest(document.kernels, top, None, "name")
        return ProfileResult(
            notes=answer.notes,
            run=self.allowed.told(run),
            profile=document.model_copy(update={"kernels": shown}),
            kernels_left_out=len(document.kernels) - len(shown),
        )

    @tool
    async def analyse(
        self,
        context: Context,
        recording: PathText,
        document: Annotated[
            Literal["profile", "roofline", "dag", "analysis"],
            Field(
                description="analysis: what limits each kernel; dag: the critical path and what gains bring"
            ),
        ] = "analysis",
        device: Device = None,
        kernel: KernelText = None,
        top: Most = 20,
    ) -> AnalyseResult:
        """Analyse a run directory or a recording: one of its four documents. Nothing is executed."""
        path = self.allowed.path(recording)
        run = self.allowed.new("analyse")
        words = ["analyze", "--quiet", *_device(device), "-o", str(run), "--", str(path)]
        answer = await self._run(context, words)
        part, left_out = _read(run, document, kernel, top)
        return AnalyseResult(
            notes=answer.notes, run=self.allowed.told(run), kernels_left_out=left_out, **{document: part}
        )

    @tool
    async def explain(self, context: Context, run: PathText, kernel: KernelText = None) -> ExplainResult:
        """Why a kernel got its bottleneck label, with the evidence; null: the longest-running kernel."""
        words = ["explain", "--json", "--run", str(self.allowed.path(run))]
        answer = await self._run(context, [*words, "--", *([kernel] if kernel is not None else [])])
        kernel_said = parse_json(answer.stdout, "what rpl printed")
        return ExplainResult.model_validate({"notes": answer.notes, "kernel": kernel_said})

    @tool
    async def what_if(
        self,
        context: Context,
        run: PathText,
        faster: Annotated[
            dict[str, Factor | Literal["free"]],
            Field(min_length=1, max_length=50, description="Kernel name, or a part of it, to its speed-up"),
        ],
    ) -> WhatIfResult:
        """What the application would gain if kernels were faster: a prediction by the graph of the run."""
        asked = [f"{name}={factor if factor == 'free' else f'{factor:g}'}" for name, factor in faster.items()]
        words = ["what-if", "--json", "--run", str(self.allowed.path(run)), "--", *asked]
        answer = await self._run(context, words)
        return WhatIfResult(notes=answer.notes, what_if=_parsed(answer.stdout, WhatIfDocument))

    @tool
    async def compare(
        self,
        context: Context,
        base: PathText,
        new: PathText,
        fail_above_percent: Annotated[float, Field(ge=0, le=1000)] = 3.0,
    ) -> CompareResult:
        """Whether the runs of `new` are slower than those of `base`, or that they do not tell."""
        sides = [str(self.allowed.path(side)) for side in (base, new)]
        words = ["compare", "--json", "--fail-above", f"{fail_above_percent:g}%", "--", *sides]
        answer = await self._run(context, words, _COMPARED)
        document = _parsed(answer.stdout, CompareDocument)
        return CompareResult(exit_code=answer.exit_code, notes=answer.notes, compare=document)

    @tool
    async def compare_commands(
        self,
        context: Context,
        base: Words,
        new: Words,
        pairs: Annotated[int, Field(ge=2, le=200, description="Most pairs of runs")] = 30,
        fail_above_percent: Annotated[float, Field(ge=0, le=1000)] = 3.0,
    ) -> CompareResult:
        """Measure two commands in pairs of random order, and say whether `new` is slower."""
        sides = [shlex.join(self.allowed.command(side)) for side in (base, new)]
        run = self.allowed.new("compare")
        words = ["compare", "--json", "--interleaved", "--base", sides[0], "--new", sides[1], "-o", str(run)]
        words += ["--pairs", str(pairs), "--fail-above", f"{fail_above_percent:g}%"]
        answer = await self._run(context, words, _COMPARED)
        document = _parsed(answer.stdout, CompareDocument)
        return CompareResult(
            exit_code=answer.exit_code, notes=answer.notes, compare=document, run=self.allowed.told(run)
        )

    @tool
    async def isolate(
        self,
        context: Context,
        command: Words,
        kernel: Annotated[Text | None, Field(description="Regular expression on the kernel's name")] = None,
        dispatch: Annotated[int, Field(ge=0, le=2**31, description="Which matching launch, from 0")] = 0,
    ) -> IsolateResult:
        """Run an application and capture one launch of a kernel with its memory, for `replay_compare`."""
        application = self.allowed.command(command)
        folder = self.allowed.new("isolate") / "capture"
        named = [] if kernel is None else [f"--kernel={kernel}"]
        words = ["isolate", "--json", *named, "--dispatch", str(dispatch), "-o", str(folder)]
        answer = await self._run(context, [*words, "--", *application], (0, 1, 75))
        told = parse_json(answer.stdout, "what rpl isolate printed")
        return IsolateResult(
            exit_code=answer.exit_code,
            notes=answer.notes,
            capture=None if told["folder"] is None else self.allowed.told(told["folder"]),
            **{name: told[name] for name in ("state", "fact", "matches", "launches", "nearest", "warnings")},
        )

    @tool
    async def replay_compare(
        self,
        context: Context,
        capture: PathText,
        a: PathText,
        b: PathText,
        pairs: Annotated[int | None, Field(ge=2, le=10_000, description="Also time both in turns")] = None,
        ulps: Annotated[int, Field(ge=0, le=2**31, description="Units in the last place allowed")] = 0,
        replayer: Annotated[Name | None, Field(description="A replayer or its device")] = None,
    ) -> ReplayCompareResult:
        """Replay a captured launch with the kernels of code objects `a` and `b`; compare what they write."""
        files = [str(self.allowed.path(file)) for file in (capture, a, b)]
        words = ["replay", "compare", "--json", "--ulps", str(ulps)]
        words += [] if pairs is None else ["--pairs", str(pairs)]
        words += [] if replayer is None else ["--replayer", replayer]
        answer = await self._run(context, [*words, "--", *files], _COMPARED)
        comparison = _parsed(answer.stdout, ReplayComparison)
        return ReplayCompareResult(exit_code=answer.exit_code, notes=answer.notes, comparison=comparison)


def _device(device: str | None) -> list[str]:
    return [] if device is None else ["--device", device]


def _parsed(content: bytes, model: type[Document]) -> Document:
    return model.model_validate(parse_json(content, "what rpl printed"))


def _read(run: Path, name: str, kernel: str | None, top: int) -> tuple[BaseModel, int]:
    """The document of a run, with at most ``top`` kernels, and how many it has beside them."""
    models: dict[str, tuple[type[BaseModel], str]] = {
        "profile": (ProfileDocument, "name"),
        "roofline": (RooflineDocument, "kernel"),
        "dag": (DagDocument, ""),
        "analysis": (AnalysisDocument, "kernel"),
    }
    model, by = models[name]
    document = _parsed(read_regular(run / f"{name}.json", _MOST_BYTES, links=False), model)
    if not by:
        return document, 0
    kernels: tuple[BaseModel, ...] = getattr(document, "kernels")  # noqa: B009 - of three models
    shown = shortest(kernels, top, kernel, by)
    return document.model_copy(update={"kernels": shown}), len(kernels) - len(shown)
