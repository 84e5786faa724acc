"""What the tools return: parts of rpl's own documents, with nothing reworded.

Every text in them comes from recordings, sources, logs or proposers: it is data. Control characters and marks
of direction are shown as escapes, as on a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rpl_analysis.contracts.analysis import AnalysisDocument, KernelAnalysis
from rpl_analysis.contracts.dag import DagDocument, WhatIfDocument
from rpl_analysis.contracts.profile import ProfileDocument
from rpl_analysis.contracts.roofline import RooflineDocument
from rpl_compare.contract import CompareDocument
from rpl_core.contracts.common import OriginName, Part
from rpl_core.errors import BadDataError
from rpl_core.text import encodable, printable
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
