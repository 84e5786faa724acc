"""What the optimizer knew about a candidate when it decided: the data of the ledger, and ``optimize.json``.

Everything that a verdict rests on is here, so that it can be worked out again from the ledger alone.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rpl_core.contracts.common import Document, OriginName, Part

VerdictName = Literal["accepted", "rejected", "inconclusive", "no_verdict"]
CheckVerdictName = Literal["equal", "different", "blind", "not_run"]
TerminationName = Literal[
    "no_improvement", "candidates_exhausted", "time_budget", "ceiling_too_low", "interrupted"
]


class GuardPart(Part):
    """One guard's answer; ``passed`` null: it could not run, and ``reason`` says why."""

    guard: str
    passed: bool | None
    reason: str
    line: int | None = None


class BuildPart(Part):
    """A build of one source. ``problem`` null: it succeeded.

    ``code_sha256`` is of the device code, equal in both builds exactly when ``reproducible``.
    """

    commands: tuple[tuple[str, ...], ...]  # as executed, in order
    problem: str | None = None
    binary: str | None = None  # relative to the session's directory
    binary_sha256: str | None = None
    code_sha256: str | None = None
    reproducible: bool | None = None  # null: built once only
    isolation: str | None = None  # what its compilers could reach; null: not known
    wall_s: float = Field(ge=0, default=0.0)
    log: str | None = None


class ControlPart(Part):
    """A deliberately wrong program that the check was shown: it must call it different."""

    control: Literal["empty", "broken"]
    verdict: CheckVerdictName
    evidence: str


class CheckPart(Part):
    """One equivalence check. ``verdict`` is ``blind`` when a control passed or none could be shown."""

    check: str
    verdict: CheckVerdictName
    evidence: str
    controls: tuple[ControlPart, ...] = ()


class RulePart(Part):
    """The rule as it was applied; see ``rpl_measure.sequential.AcceptRule``.

    The defaults are those of ``accept_v1``, by which older sessions measured.
    """

    alpha: float
    looks: tuple[int, ...]
    least_gain: float
    futile_gain: float
    most_guard_loss: float
    screening: tuple[int, ...] = ()
    screening_gain: float = 0.0
    centre: Literal["median", "pseudo_median"] = "median"


class LookPart(Part):
    """What the last look found; see ``rpl_measure.sequential.Look``."""

    decision: Literal["continue", "accepted", "rejected", "inconclusive"]
    pairs: int
    p: float
    median_log_ratio: float
    ratio: float
    ratio_interval: tuple[float, float]
    minimum_detectable_gain: float | None = None
    blocked_by: tuple[str, ...] = ()


class ModesPart(Part):
    """The baseline runs fast or slow with nothing in between.

    ``slow_share`` of its runs are slow, by ``slower_by``.
    """

    slow_share: float
    slower_by: float


class MeasurementPart(Part):
    """Interleaved pairs of baseline and candidate, in order. Log ratios are ln(base / new).

    ``guards`` are the application's times that must not regress. ``problem`` says why there is no look;
    ``candidate_failed``: because the candidate crashed or hung, and the baseline did not. ``seed`` gave the
    order of the runs of each pair; ``base_ns`` and ``new_ns`` are the kernel's times.
    """

    kernel: str
    directory: str | None = None  # relative to the session's directory
    origin: OriginName | None = None
    rule: RulePart
    seed: int | None = None  # null: base and candidate took turns (older sessions)
    log_ratios: tuple[float, ...] = ()
    base_ns: tuple[float, ...] = ()
    new_ns: tuple[float, ...] = ()
    guards: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    base_cv: float | None = None  # robust: 1.4826 MAD / median of the baseline's times
    base_median_ns: float | None = None
    new_median_ns: float | None = None
    drift: bool | None = None
    modes: ModesPart | None = None
    look: LookPart | None = None
    problem: str | None = None
    candidate_failed: bool = False


class ShiftPart(Part):
    """Base and candidate measured with their code shifted by ``padding_bytes``."""

    padding_bytes: int
    measurement: MeasurementPart


class PlacementPart(Part):
    """Whether the gain stays where the code lies elsewhere. ``problem`` null: it was measured."""

    shifts: tuple[ShiftPart, ...] = ()
    problem: str | None = None


class ModelledPart(Part):
    """Baseline and candidate by a figure of a model, over all launches of the kernel in one run each.

    Less is better. Nothing of it was measured. ``problem`` null: both figures are there.
    """

    metric: str
    unit: str
    formula: str
    kernel: str
    origin: Literal["modelled"] = "modelled"
    least_gain: float
    base: float | None = None
    new: float | None = None
    base_launches: int | None = None
    new_launches: int | None = None
    directory: str | None = None  # relative to the session's directory
    problem: str | None = None
    candidate_failed: bool = False

    @property
    def gain(self) -> float | None:
        """The part of the baseline's figure that is saved."""
        if self.problem is not None or self.base is None or self.new is None or self.base <= 0:
            return None
        return 1 - self.new / self.base


class PolicyPart(Part):
    """What the user allowed and asked for, as far as verdicts depend on it.

    ``metric`` names the model by which candidates are compared instead of measurements; none is accepted.
    ``placement_check`` null: for gains under 5 %, as far as shifted builds can be made.
    """

    allow_unverified: bool = False
    allow_occupancy_loss: bool = False
    allow_synthetic: bool = False
    force_noisy: bool = False
    traffic_gate: bool = True
    placement_check: bool | None = False  # older sessions knew none
    metric: str | None = None


class EvidencePart(Part):
    """All that is known about one candidate; ``None`` or empty where a stage was not reached."""

    source_guards: tuple[GuardPart, ...] = ()
    build: BuildPart | None = None
    binary_guards: tuple[GuardPart, ...] = ()
    checks: tuple[CheckPart, ...] | None = None
    kernel_alone: MeasurementPart | None = None  # by a check, away from the application
    measurement: MeasurementPart | None = None
    architecture_guards: tuple[GuardPart, ...] = ()  # hardware traffic
    remeasurement: MeasurementPart | None = None
    placement: PlacementPart | None = None
    modelled: ModelledPart | None = None  # instead of measurements (--metric)


class JudgementPart(Part):
    """A verdict, the stage that decided it and the reason in one sentence."""

    verdict: VerdictName
    stage: str
    reason: str
    verified: bool = False  # some check that is not blind called it equal


class CandidatePart(Part):
    """One candidate of a finished session."""

    number: int
    kernel: str
    proposer: str
    transformation: str | None = None  # that proposes the edit; null where the proposer made it
    summary: str
    source_sha256: str
    judgement: JudgementPart
    source: str | None = None  # the candidate, relative to the session's directory; kept whatever the verdict
    origin: OriginName | None = None  # of its measurement; null: not measured
    pairs: int | None = None  # of the fresh measurement, or of the first where that decided
    first_kernel_gain: float | None = None  # of the measurement that decides, which luck helped to choose
    predicted_gain: float | None = None  # of the application, by what-if from the measured kernel gain
    measured_gain: float | None = None  # of the application's makespan, from the fresh measurement
    kernel_gain: float | None = None  # from the fresh measurement
    kernel_gain_interval: tuple[float, float] | None = None
    placement_share: float | None = None  # of the kernel's time, that code placement may explain
    code_sha256: str | None = None  # of its device code; null: not built
    metric: str | None = None  # the model that it was compared by, instead of a measurement
    modelled_gain: float | None = None  # of that model's figure for the kernel; never a measured one


class OptimizeDocument(Document):
    """``optimize.json``: the result of ``rpl optimize`` or ``rpl llm-optimize``."""

    command: tuple[str, ...]
    source: str
    source_sha256: str
    proposer: str
    state: Literal["running", "finished"]
    termination_reason: TerminationName | None = None
    termination_detail: str | None = None
    verdict: VerdictName | None = None  # of the session: accepted if any candidate was
    candidates: tuple[CandidatePart, ...] = ()
    accepted_source: str | None = None  # where it was written
    backup: str | None = None  # of the source, with --in-place
    modelled_source: str | None = (
        None  # the best by the model (--metric), relative to the session's directory
    )
    dominance_shifts: tuple[str, ...] = ()
    ledger: str = "ledger.jsonl"


# The data of each event in ``ledger.jsonl``.
#
# ``candidate`` is the number of a candidate, from 1 on. Paths are relative to the session's directory unless
# they are the user's own.

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
