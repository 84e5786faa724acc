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
