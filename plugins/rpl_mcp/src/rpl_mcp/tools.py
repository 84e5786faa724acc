"""The tools that measure, read and compare: one command of rpl each, and what it wrote.

Docstrings and descriptions here are what a model reads of a tool. They are fixed: nothing of a recording, a
source or a log gets into them.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Literal, ParamSpec, TypeVar

import attrs
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field, ValidationError

from rpl_analysis.contracts.analysis import AnalysisDocument
from rpl_analysis.contracts.dag import DagDocument, WhatIfDocument
from rpl_analysis.contracts.profile import ProfileDocument
from rpl_analysis.contracts.roofline import RooflineDocument
from rpl_compare.contract import CompareDocument
from rpl_core.errors import RplError
from rpl_core.files import parse_json, read_regular
from rpl_core.text import readable
from rpl_mcp.results import (
    AnalyseResult,
    CompareResult,
    ExplainResult,
    IsolateResult,
    ProfileResult,
    ReplayCompareResult,
    ReplayComparison,
    WhatIfResult,
    masked,
    shortest,
)
from rpl_mcp.running import Allowed, Answer, Runner, failure

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
        kept = shortest(document.kernels, top, None, "name")
        return ProfileResult(
            notes=answer.notes,
            run=self.allowed.told(run),
            profile=document.model_copy(update={"kernels": kept}),
            kernels_left_out=len(document.kernels) - len(kept),
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
    kept = shortest(kernels, top, kernel, by)
    return document.model_copy(update={"kernels": kept}), len(kernels) - len(kept)
