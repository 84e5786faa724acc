"""``ledger.jsonl``: one line per event of an optimization, and the data of each event.

``candidate`` is the number of a candidate, from 1 on. Paths are relative to the session's directory unless
they are the user's own.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rpl_core.contracts.common import OriginName, Part
from rpl_optimize.contracts.optimize import (
    BuildPart,
    CheckPart,
    EvidencePart,
    GuardPart,
    JudgementPart,
    MeasurementPart,
    ModelledPart,
    PlacementPart,
    PolicyPart,
    RulePart,
    TerminationName,
    VerdictName,
)

Sha256 = str
#: Directories of recordings, relative to the session's, with a hash over all that they hold.
Recordings = dict[str, Sha256]
#: How far an edit of constants reaches: device code only, or launches, so that the host's code changes too.
RetunedName = Literal["device", "launches"]
PlannedStage = Literal["kernel_alone", "measurement", "remeasurement", "placement"]


class SessionStartedData(Part):
    """What the user asked for. ``options`` are those of the command line, by name.

    ``request_sha256`` is of ``request.json``; null in older sessions.
    """

    tool_version: str
    command: tuple[str, ...]
    source: str
    source_sha256: Sha256
    proposer: str
    policy: PolicyPart
    options: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    request_sha256: Sha256 | None = None


class ResumedData(Part):
    """The session goes on; ``source_sha256`` is that of the user's file now."""

    tool_version: str
    source_sha256: Sha256


class BaselineProfiledData(Part):
    """``number`` counts baselines: after an acceptance the accepted version is the next one."""

    number: int
    directory: str
    source_sha256: Sha256
    origin: OriginName | None = None
    runs: int = Field(ge=0, default=0)
    makespan_ns: float | None = None
    build: BuildPart | None = None
    recordings: Recordings = Field(default_factory=dict)
    device: str | None = None
    dominant: str | None = None  # the kernel with the most of the critical path


class TargetChosenData(Part):
    """``kernel`` null: none was worth it, and ``reason`` says why. Gains are fractions of the application."""

    kernel: str | None
    reason: str
    share_of_path: float | None = None
    ceiling_gain: float | None = None  # of the application, if the kernel cost nothing
    base_cv: float | None = None
    rule: RulePart | None = None


class GrowingPart(Part):
    """A file that only grows: the hash of its first ``size_bytes``."""

    size_bytes: int = Field(ge=0)
    sha256: Sha256


class ProposedData(Part):
    """A candidate. ``repairs`` counts the repair turns that led to it.

    ``records`` are files that its proposer keeps in the session's directory, as they were then.

    ``transformation`` proposes the edit, null where the proposer made it. ``expected_gain`` is the part of
    the application's time that the documents leave for it, at least and at most; ``rests_on`` their values.
    ``retuned``: constants of the source changed, for device code only, or also what the host launches with.
    """

    candidate: int
    kernel: str
    proposer: str
    summary: str
    source_sha256: Sha256
    baseline_sha256: Sha256 | None = None  # of the source that it changes
    source: str | None = None
    patch: str | None = None
    repairs: int = Field(ge=0, default=0)
    changes_loop: bool = False
    transformation: str | None = None
    workgroup_limit: int | None = None
    lds_growth: int | None = None
    retuned: RetunedName | None = None
    expected_gain: tuple[float, float] | None = None
    rests_on: dict[str, float | int | str | None] = Field(default_factory=dict)
    records: dict[str, GrowingPart] = Field(default_factory=dict)


class GuardedData(Part):
    """Answers of the guards on the source, or on the binary."""

    candidate: int
    guards: tuple[GuardPart, ...]


class BuiltData(Part):
    candidate: int
    build: BuildPart


class CheckedData(Part):
    candidate: int
    checks: tuple[CheckPart, ...]


class PlannedData(Part):
    """What will be measured and by which rule, written before its first run.

    ``seed`` gives the order within the pairs. It is the beginning of the hash of the line before, so that
    nobody chose it.
    """

    candidate: int
    stage: PlannedStage
    rule: RulePart
    seed: int = Field(ge=0, lt=1 << 32)
    fewest_runs: int = Field(ge=0)  # of the application, or of the kernel alone
    most_runs: int = Field(ge=0)
    run_s: float | None = None  # of one run of the baseline
    padding_bytes: int | None = None  # placement only: by how much the code is shifted
    directory: str | None = None  # of its pairs, in the session; null: such a measurement is not gone on with


class ContinuedData(Part):
    """A resumed session goes on with what it measured of this very program before it was interrupted.

    ``finished`` measurements count as they are. ``under_way`` is the one that goes on in ``directory``,
    behind ``pairs`` complete pairs; ``repeated_pairs`` were hit by earlier interruptions.
    """

    candidate: int
    finished: tuple[PlannedStage, ...] = ()
    under_way: PlannedStage | None = None
    padding_bytes: int | None = None
    directory: str | None = None
    pairs: int = Field(ge=0, default=0)
    repeated_pairs: int = Field(ge=0, default=0)


class MeasuredData(Part):
    """``architecture_guards`` are those that were measured with it (hardware traffic)."""

    candidate: int
    measurement: MeasurementPart
    architecture_guards: tuple[GuardPart, ...] = ()
    recordings: Recordings = Field(default_factory=dict)


class ModelledData(Part):
    candidate: int
    modelled: ModelledPart
    recordings: Recordings = Field(default_factory=dict)


class PlacementData(Part):
    candidate: int
    placement: PlacementPart
    recordings: Recordings = Field(default_factory=dict)


class JudgedData(Part):
    """Everything that the verdict rests on: it can be worked out again from this line alone."""

    candidate: int
    evidence: EvidencePart
    policy: PolicyPart
    judgement: JudgementPart


class AcceptedData(Part):
    """Gains are fractions: of the application's makespan, and of the kernel's time."""

    candidate: int
    source_sha256: Sha256
    predicted_gain: float | None = None
    measured_gain: float | None = None
    kernel_gain: float | None = None
    kernel_gain_interval: tuple[float, float] | None = None


class RolledBackData(Part):
    """``predicted_gain``: of a candidate that was measured afresh all the same."""

    candidate: int
    predicted_gain: float | None = None
    verdict: VerdictName
    reason: str


class WrittenData(Part):
    """The accepted source at the user's place. ``before_sha256``: what was there, null for a new file."""

    candidate: int
    path: str
    sha256: Sha256
    before_sha256: Sha256 | None = None
    backup: str | None = None


class FinishedData(Part):
    """``files``: all else in the session's directory, files and whole folders, with a hash over each."""

    termination_reason: TerminationName
    termination_detail: str | None = None
    verdict: VerdictName | None = None
    source_sha256: Sha256 | None = None  # of the user's file at the end
    files: dict[str, Sha256] = Field(default_factory=dict)


class RecoveredData(Part):
    """The last line was torn (kill -9, a full disk) and has been cut off."""

    dropped_bytes: int = Field(ge=1)
    dropped_sha256: Sha256


class NoteData(Part):
    """Something that people should know; ``details`` are free."""

    text: str
    candidate: int | None = None
    details: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
