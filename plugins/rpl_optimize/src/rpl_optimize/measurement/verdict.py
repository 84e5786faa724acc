"""The verdict on a candidate, from its evidence alone: the ledger replays it to the same answer.

Fail closed: a candidate is accepted only if every gate ran, saw data and let it pass. What is proven against
it (a refusing guard, different results, no gain) rejects it, wherever in the order it was found; else the
first gate that does not let it pass decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import quantiles
from typing import Literal

from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_measure.rank_tests import REFUSE_CV, NoiseLevel, noise_level, pseudo_median
from rpl_measure.samples import Kind
from rpl_measure.sequential import LOOKS, AcceptRule, Decision, Look, last_look
from rpl_measure.series import find_modes
from rpl_optimize.contracts import (
    CheckPart,
    EvidencePart,
    GuardPart,
    JudgementPart,
    MeasurementPart,
    ModelledPart,
    PolicyPart,
    VerdictName,
)
from rpl_optimize.measurement.gains import (
    FEWEST_FRESH_PAIRS,
    LEAST_FLOOR,
    LOOP_ALPHA,
    MOST_GUARD_LOSS,
    detectable,
    fresh_pairs,
    gain_sentence,
    is_wanted,
    modes_sentence,
    placement_sentence,
)
from rpl_optimize.measurement.measure import rule_of

#: Without this time of the application there is no gate on regressions of the whole.
_LEAST_GUARD = Kind.MAKESPAN.value
_ROUNDING = 1e-12
_SAME_RATIO = 1e-9
#: Logarithm of the largest ratio of two times in whole ns of 64 bits.
_MOST_LOG_RATIO = 64 * math.log(2)
#: More pairs than this are no rule of ours; working them out takes memory by their square.
_MOST_PAIRS = 300


@frozen
class Finding:
    """Something that speaks against accepting a candidate."""

    verdict: Literal["rejected", "inconclusive", "no_verdict"]
    reason: str


def find_against(part: MeasurementPart | None, policy: PolicyPart) -> Iterator[Finding]:
    """Findings of the measurement that decides."""
    if part is None:
        yield Finding("no_verdict", "it was not measured")
        return
    unusable = _why_unusable(part, policy)
    if unusable is not None:
        yield unusable
        return
    # Times that spread so much prove nothing, against the candidate neither.
    noise = list(_noise(part, policy))
    if noise:
        yield from noise
        return
    rule = rule_of(part.rule)
    look = last_look(part.log_ratios, part.guards, rule)
    if rule.looks[0] < LOOKS[0]:
        early = f"its rule may accept after {rule.looks[0]} pairs, and none may before {LOOKS[0]}"
        yield Finding("no_verdict", early)
    elif look is None:
        few = counted(len(part.log_ratios), "pair is", "pairs are")
        yield Finding("no_verdict", f"{few} fewer than the first look needs")
    elif look.decision is Decision.REJECTED:
        yield Finding("rejected", _no_gain(look, rule))
    elif look.decision is not Decision.ACCEPTED:
        yield Finding("inconclusive", _undecided(look, rule, part))
    else:
        yield from _modes(part, rule)


def find_against_alone(part: MeasurementPart | None, policy: PolicyPart) -> Iterator[Finding]:
    """Findings of the kernel alone. It can reject, and never stands for the application: what is not
    measured, too noisy or undecided says nothing."""
    if part is None:
        return
    if part.candidate_failed:
        yield Finding("rejected", part.problem or "it failed when the kernel ran alone")
        return
    silent = part.problem is not None or part.origin != "measured" or part.base_cv is None
    if silent or _lax(part) or not _same_ratios(part) or any(_noise(part, policy)):
        return
    rule = rule_of(part.rule)
    look = last_look(part.log_ratios, {}, rule)
    if look is not None and look.decision is Decision.REJECTED:
        yield Finding("rejected", f"the kernel alone: {_no_gain(look, rule)}")


def find_against_fresh(
    fresh: MeasurementPart | None, first: MeasurementPart | None, policy: PolicyPart
) -> Iterator[Finding]:
    """Findings of the fresh measurement: it has to show a gain above the futile one, and no loss of the
    application beyond what the rule allows, in the middle of its pairs. The rule is the first one's."""
    if fresh is None or first is None:
        yield Finding("no_verdict", "it was not measured again with fresh runs")
        return
    unusable = _why_unusable(fresh, policy) or _why_not_fresh(fresh, first)
    if unusable is not None:
        yield unusable
        return
    yield from _noise(fresh, policy)
    rule = rule_of(first.rule)
    middle = rule.middle(fresh.log_ratios)
    if middle <= -math.log1p(-rule.futile_gain):
        gain = -math.expm1(-middle)
        yield Finding(
            "inconclusive",
            f"not reproduced by the fresh measurement: gain {gain:.1%} of the kernel's time, "
            f"not above {rule.futile_gain:.1%}",
        )
    losses = {name: math.expm1(-rule.middle(ratios)) for name, ratios in sorted(fresh.guards.items())}
    worse = [f"{_spaced(name)} {loss:+.1%}" for name, loss in losses.items() if loss >= rule.most_guard_loss]
    if worse:
        yield Finding("inconclusive", f"not reproduced by the fresh measurement: {', '.join(worse)}")


def find_against_places(evidence: EvidencePart, policy: PolicyPart) -> Iterator[Finding]:
    """Findings of the builds with shifted code: the gain has to stay above the futile one at each place.

    Where no such build could be measured, only a user who asked for it has no verdict.
    """
    placed, first = evidence.placement, evidence.measurement
    if placed is None or first is None:
        yield Finding("no_verdict", "it was not measured with shifted code")
        return
    if placed.problem is not None:
        if policy.placement_check:
            yield Finding("no_verdict", f"its gain could not be measured at other places: {placed.problem}")
        return
    futile = rule_of(first.rule).futile_gain
    for shift in placed.shifts:
        part = shift.measurement
        unusable = _why_unusable(part, policy)
        if unusable is not None:
            yield unusable
        elif (gain := -math.expm1(-pseudo_median(part.log_ratios))) <= futile:
            yield Finding(
                "inconclusive",
                f"the gain may be that of the code's placement: {gain:.1%} with the code shifted by "
                f"{shift.padding_bytes} bytes, not above {futile:.1%}",
            )
    if not placed.shifts:
        yield Finding("no_verdict", "it was not measured with shifted code")


def replayed_look(part: MeasurementPart) -> Look | None:
    """The look of a measurement from its log ratios; ``None`` where they give none."""
    if part.problem is not None or _lax(part) or _contradiction(part):
        return None
    return last_look(part.log_ratios, part.guards, rule_of(part.rule))


def time_sentence(part: MeasurementPart | None, policy: PolicyPart) -> str:
    """What the times alone would say, for a candidate whose results nobody could verify."""
    if part is None:
        return "its time was not measured"
    against = list(find_against(part, policy))
    if against:
        return f"its time: {against[0].reason}"
    look = last_look(part.log_ratios, part.guards, rule_of(part.rule))
    gain = 0.0 if look is None else 1 - look.ratio
    return f"on time alone it gains {gain:.1%} of the kernel's; --allow-unverified accepts that"


def _why_unusable(part: MeasurementPart, policy: PolicyPart) -> Finding | None:
    """The first reason why these pairs give no verdict, or, for a failed candidate, why it is rejected."""
    if part.problem is not None:
        verdict: Literal["rejected", "no_verdict"] = "rejected" if part.candidate_failed else "no_verdict"
        return Finding(verdict, part.problem)
    if part.origin != "measured" and not (part.origin == "synthetic" and policy.allow_synthetic):
        return Finding(
            "no_verdict", f"the times are {part.origin or 'of unknown origin'}, and only measured ones count"
        )
    problem = _lax(part) or _contradiction(part)
    return Finding("no_verdict", problem) if problem else None


def _lax(part: MeasurementPart) -> str | None:
    """A rule that no session may measure by."""
    rule = part.rule
    lax = (
        rule.alpha > LOOP_ALPHA + _ROUNDING
        or rule.least_gain < LEAST_FLOOR - _ROUNDING
        or rule.most_guard_loss > MOST_GUARD_LOSS + _ROUNDING
        or not 0 < rule.futile_gain <= rule.least_gain < 1
        or not rule.looks
        or rule.looks[0] < FEWEST_FRESH_PAIRS
        or rule.looks[-1] > _MOST_PAIRS
        or rule.screening_gain > rule.futile_gain
        or any(later <= earlier for earlier, later in zip(rule.looks, rule.looks[1:], strict=False))
    )
    return "the rule that it was measured by is none that counts" if lax else None


def _contradiction(part: MeasurementPart) -> str | None:
    if _LEAST_GUARD not in part.guards:
        return "the time of the whole application was not measured, so nobody knows that it did not suffer"
    if any(
        abs(ratio) > _MOST_LOG_RATIO
        for ratios in (part.log_ratios, *part.guards.values())
        for ratio in ratios
    ):
        return "some of its times are none that a clock of 64 bits gives"
    if any(len(ratios) != len(part.log_ratios) for ratios in part.guards.values()):
        return "the application's times do not belong to the same pairs"
    if part.base_cv is None:
        return "the noise of the baseline is unknown"
    if (part.base_ns or part.seed is not None) and not _same_ratios(part):
        return "its log ratios are not those of its times"
    return None


def _same_ratios(part: MeasurementPart) -> bool:
    if not len(part.base_ns) == len(part.new_ns) == len(part.log_ratios):
        return False
    if not all(0 < time < math.inf for time in (*part.base_ns, *part.new_ns)):
        return False
    pairs = zip(part.base_ns, part.new_ns, part.log_ratios, strict=True)
    return all(math.isclose(math.log(b / n), ratio, abs_tol=_SAME_RATIO) for b, n, ratio in pairs)


def _why_not_fresh(fresh: MeasurementPart, first: MeasurementPart) -> Finding | None:
    if fresh.kernel != first.kernel:
        return Finding("no_verdict", "the fresh measurement is of another kernel")
    pairs = len(fresh.log_ratios)
    wanted = fresh_pairs(rule_of(first.rule), first.log_ratios)
    if pairs < wanted:
        return Finding(
            "no_verdict", f"{counted(pairs, 'fresh pair is', 'fresh pairs are')} too few: it takes {wanted}"
        )
    if fresh.directory is None or fresh.directory == first.directory:
        return Finding("no_verdict", "the fresh measurement is the first one again")
    return None


def _noise(part: MeasurementPart, policy: PolicyPart) -> Iterator[Finding]:
    if noise_level(part.base_cv) is NoiseLevel.TOO_NOISY and not policy.force_noisy:
        yield Finding(
            "inconclusive",
            f"the baseline's time of the kernel spreads by {part.base_cv:.1%}, over {REFUSE_CV:.0%}; "
            f"{detectable(part)}; --force judges all the same",
        )


def _modes(part: MeasurementPart, rule: AcceptRule) -> Iterator[Finding]:
    """A baseline with a fast and a slow mode: the gain has to show among the faster runs as well.

    The middle of all runs moves when one side happens to be slow more often; the lower quartile does not
    before three quarters of the runs are slow.
    """
    modes = find_modes(part.base_ns)
    if modes is None:
        return
    gain = 1 - _lower_quartile(part.new_ns) / _lower_quartile(part.base_ns)
    if gain <= rule.futile_gain:
        yield Finding(
            "inconclusive",
            f"{modes_sentence(modes)}, and the faster runs gain {gain:.1%}, not above {rule.futile_gain:.1%}",
        )


def _lower_quartile(times: Sequence[float]) -> float:
    return quantiles(times, n=4, method="inclusive")[0]


def _no_gain(look: Look, rule: AcceptRule) -> str:
    return (
        f"gain {_gain(look):.1%} of the kernel's time after {counted(look.pairs, 'pair')}, "
        f"{rule.least_gain:.1%} wanted; below {rule.futile_gain:.1%} going on is futile"
    )


def _undecided(look: Look, rule: AcceptRule, part: MeasurementPart) -> str:
    wanted = f"gain {_gain(look):.1%} of the kernel's time, {rule.least_gain:.1%} wanted, p {look.p:.2g}"
    if look.blocked_by:
        wanted += f"; not proven that {_listed(look.blocked_by)} does not suffer"
    end = "" if rule.next_look(look.pairs) is None else " (the time for measuring was over)"
    return f"{wanted} after {counted(look.pairs, 'pair')}{end}; {detectable(part)}"


def _gain(look: Look) -> float:
    return -math.expm1(-look.median_log_ratio)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(_spaced(name) for name in names)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


# The gates in their order.

Guards = Sequence["GuardPart"]
GateCheck = Callable[["EvidencePart", "PolicyPart"], Iterator[Finding]]


@frozen
class Gate:
    """``check`` yields what speaks against accepting; nothing: the gate is passed."""

    stage: str
    check: GateCheck


def judge(evidence: EvidencePart, policy: PolicyPart) -> JudgementPart:
    """The verdict, the stage that decided and the reason in one sentence."""
    findings = [(gate.stage, finding) for gate in GATES for finding in gate.check(evidence, policy)]
    rejecting = [found for found in findings if found[1].verdict == "rejected"]
    verified = is_verified(evidence)
    if not findings:
        placement = placement_sentence(evidence) if is_wanted(evidence, policy) else None
        return _accepted(evidence, placement, verified=verified)
    stage, finding = (rejecting or findings)[0]
    reason = finding.reason
    if finding.verdict == "no_verdict" and stage == "equivalence" and policy.metric is None:
        reason = f"{reason}; {time_sentence(evidence.measurement, policy)}"
    return JudgementPart(verdict=finding.verdict, stage=stage, reason=reason, verified=verified)


def session_verdict(verdicts: Iterable[VerdictName]) -> VerdictName:
    """Accepted if any candidate was; else what is still open, else rejected."""
    found = set(verdicts)
    order: tuple[VerdictName, ...] = ("accepted", "inconclusive", "no_verdict")
    return next((verdict for verdict in order if verdict in found), "rejected")


def is_verified(evidence: EvidencePart) -> bool:
    """Whether some check called it equal that had called a wrong program different, and none objects."""
    checks = evidence.checks or ()
    return any(_saw(check) for check in checks) and not any(check.verdict == "different" for check in checks)


def _accepted(evidence: EvidencePart, placement: str | None, *, verified: bool) -> JudgementPart:
    fresh = evidence.remeasurement
    reason = f"proven and reproduced: {gain_sentence(fresh) if fresh else ''}"
    if placement is not None:
        reason = f"{reason}; {placement}"
    if not verified:
        reason = f"accepted on time alone, without any check of the results; {reason}"
    return JudgementPart(verdict="accepted", stage="remeasurement", reason=reason, verified=verified)


def _guards(
    guards: Guards, what: str, *, unknown: Literal["no_verdict", "inconclusive"] = "no_verdict"
) -> Iterator[Finding]:
    if not guards:
        yield Finding(unknown, f"no guard on the {what} ran")
    for guard in guards:
        if guard.passed is False:
            yield Finding("rejected", f"{guard.guard}: {guard.reason}")
        elif guard.passed is None:
            yield Finding(unknown, f"{guard.guard} could not run: {guard.reason}")


def _source(evidence: EvidencePart, _policy: PolicyPart) -> Iterator[Finding]:
    yield from _guards(evidence.source_guards, "source")


def _build(evidence: EvidencePart, _policy: PolicyPart) -> Iterator[Finding]:
    build = evidence.build
    if build is None:
        yield Finding("no_verdict", "it was not built")
    elif build.problem is not None:
        yield Finding("rejected", f"it does not build: {build.problem}")
    elif build.reproducible is None:
        yield Finding("no_verdict", "it was built once only, so nobody knows which code was measured")
    elif not build.reproducible:
        # No fault of the candidate: its binary can't stand for its source.
        yield Finding("no_verdict", "two builds of the same source differ, so no binary stands for it")


def _binary(evidence: EvidencePart, _policy: PolicyPart) -> Iterator[Finding]:
    yield from _guards(evidence.binary_guards, "binary")


def _equivalence(evidence: EvidencePart, policy: PolicyPart) -> Iterator[Finding]:
    checks = evidence.checks
    if checks is None:
        yield Finding("no_verdict", "its results were not compared")
        return
    for check in checks:
        if check.verdict == "different":
            yield Finding("rejected", f"{check.check}: {check.evidence}")
    if not is_verified(evidence) and not policy.allow_unverified:
        yield Finding("no_verdict", _why_unverified(checks))


def _saw(check: CheckPart) -> bool:
    """Equal, and not blind: a wrong program was shown to it, and it noticed every one that it was shown."""
    shown = [control.verdict for control in check.controls if control.verdict != "not_run"]
    return check.verdict == "equal" and bool(shown) and all(verdict == "different" for verdict in shown)


def _why_unverified(checks: Sequence[CheckPart]) -> str:
    if not checks:
        return "no equivalence check is configured (--validate, --output-file), so its results are unverified"
    kinds = ", ".join(
        f"{check.check}: {'blind' if check.verdict == 'equal' else check.verdict} ({check.evidence})"
        for check in [c for c in checks if c.verdict != "not_run"] or checks
    )
    return f"no equivalence check could tell its results from wrong ones ({kinds})"


def _model(evidence: EvidencePart, policy: PolicyPart) -> Iterator[Finding]:
    """With a model in the place of measurements there is always something against accepting."""
    if policy.metric is None:
        return
    part = evidence.modelled
    if part is None or part.metric != policy.metric:
        yield Finding("no_verdict", f"{policy.metric} was not worked out, and nothing was measured")
    elif part.gain is None:
        yield Finding(
            "rejected" if part.candidate_failed else "no_verdict", part.problem or "the model gives no figure"
        )
    elif part.gain < part.least_gain:
        yield Finding("rejected", f"{_by_model(part)}, {part.least_gain:.1%} wanted")
    else:
        yield Finding("no_verdict", f"{_by_model(part)}; nothing was measured, so it is not accepted")


def _by_model(part: ModelledPart) -> str:
    return f"gain {part.gain:.1%} by the model {part.metric}: {part.base:.6g} to {part.new:.6g} {part.unit}"


def _measured_only(check: GateCheck) -> GateCheck:
    """Nothing for sessions that ask a model."""

    def checked(evidence: EvidencePart, policy: PolicyPart) -> Iterator[Finding]:
        if policy.metric is None:
            yield from check(evidence, policy)

    return checked


def _kernel_alone(evidence: EvidencePart, policy: PolicyPart) -> Iterator[Finding]:
    yield from find_against_alone(evidence.kernel_alone, policy)


def _measurement(evidence: EvidencePart, policy: PolicyPart) -> Iterator[Finding]:
    yield from find_against(evidence.measurement, policy)


def _architecture(evidence: EvidencePart, policy: PolicyPart) -> Iterator[Finding]:
    if policy.traffic_gate:
        yield from _guards(evidence.architecture_guards, "hardware's traffic")
    else:
        yield from (
            finding
            for finding in _guards(evidence.architecture_guards, "hardware's traffic")
            if finding.verdict == "rejected"
        )


def _remeasurement(evidence: EvidencePart, policy: PolicyPart) -> Iterator[Finding]:
    yield from find_against_fresh(evidence.remeasurement, evidence.measurement, policy)


def _placement(evidence: EvidencePart, policy: PolicyPart) -> Iterator[Finding]:
    if evidence.remeasurement is None or not is_wanted(evidence, policy):
        return
    yield from find_against_places(evidence, policy)


#: In the order of the stages.
GATES = (
    Gate("source_guards", _source),
    Gate("build", _build),
    Gate("binary_guards", _binary),
    Gate("equivalence", _equivalence),
    Gate("model", _model),
    Gate("kernel_alone", _measured_only(_kernel_alone)),
    Gate("measurement", _measured_only(_measurement)),
    Gate("architecture_guards", _measured_only(_architecture)),
    Gate("remeasurement", _measured_only(_remeasurement)),
    Gate("placement", _measured_only(_placement)),
)
