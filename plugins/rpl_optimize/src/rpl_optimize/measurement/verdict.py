"""The verdict on a candidate, from its evidence alone: the ledger replays it to the same answer.

Fail closed: a candidate is accepted only if every gate ran, saw data and let it pass. What is proven against
it (a refusing guard, different results, no gain) rejects it, wherever in the order it was found; else the
first gate that does not let it pass decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from rpl_core.values import frozen
from rpl_optimize.contracts.optimize import JudgementPart
from rpl_optimize.measurement.gains import gain_sentence
from rpl_optimize.measurement.objections import (
    Finding,
    find_against,
    find_against_alone,
    find_against_fresh,
    find_against_places,
    time_sentence,
)
from rpl_optimize.measurement.placement import is_wanted, placement_sentence

if TYPE_CHECKING:
    from rpl_optimize.contracts.optimize import (
        CheckPart,
        EvidencePart,
        GuardPart,
        ModelledPart,
        PolicyPart,
        VerdictName,
    )

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
