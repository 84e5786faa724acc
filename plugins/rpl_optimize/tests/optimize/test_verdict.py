"""The verdict: every gate on its own, what beats what, and that a gate which saw nothing never accepts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rpl_core.model.metric import Origin
from rpl_optimize.contracts import (
    BuildPart,
    CheckPart,
    ControlPart,
    EvidencePart,
    GuardPart,
    LookPart,
    MeasurementPart,
    ModelledPart,
    PlacementPart,
    PolicyPart,
)
from rpl_optimize.measurement import verdict
from rpl_optimize.measurement.verdict import GATES, judge

from .conftest import measured, placed, two_modes

Change = Callable[[EvidencePart], dict[str, object]]
POLICY = PolicyPart(placement_check=True)


def guard(passed: bool | None, name: str = "lds") -> tuple[GuardPart, ...]:
    return (
        GuardPart(guard="first", passed=True, reason="fine"),
        GuardPart(guard=name, passed=passed, reason="so"),
    )


def check(answer: str, *controls: str, name: str = "outputs") -> CheckPart:
    parts = tuple(ControlPart(control="empty", verdict=shown, evidence="") for shown in controls)
    return CheckPart(check=name, verdict=answer, evidence="seen", controls=parts)


def build(**changes: object) -> BuildPart:
    return BuildPart(**{"commands": (("cc",),), "reproducible": True, **changes})


def altered(part_name: str, **changes: object) -> Change:
    return lambda evidence: {part_name: getattr(evidence, part_name).model_copy(update=changes)}


def rule_with(**changes: object) -> Change:
    def change(evidence: EvidencePart) -> dict[str, object]:
        assert evidence.measurement is not None
        rule = evidence.measurement.rule.model_copy(update=changes)
        return {"measurement": evidence.measurement.model_copy(update={"rule": rule})}

    return change


def having(**changes: object) -> Change:
    return lambda _evidence: changes


def failed_alone() -> MeasurementPart:
    part = measured(0.06, 30, origin=Origin.MODELLED)
    return part.model_copy(
        update={"problem": "the candidate computes something else: b", "candidate_failed": True}
    )


#: What is spoilt -> verdict, stage, a part of the reason.
TABLE: dict[str, tuple[Change, str, str, str]] = {
    "no source guard": (having(source_guards=()), "no_verdict", "source_guards", "no guard"),
    "source guard refuses": (having(source_guards=guard(False)), "rejected", "source_guards", "lds: so"),
    "source guard not run": (having(source_guards=guard(None)), "no_verdict", "source_guards", "not run"),
    "not built": (having(build=None), "no_verdict", "build", "not built"),
    "build fails": (having(build=build(problem="error: x")), "rejected", "build", "error: x"),
    "build differs": (having(build=build(reproducible=False)), "no_verdict", "build", "differ"),
    "built once": (having(build=build(reproducible=None)), "no_verdict", "build", "once only"),
    "no binary guard": (having(binary_guards=()), "no_verdict", "binary_guards", "no guard"),
    "binary guard refuses": (having(binary_guards=guard(False)), "rejected", "binary_guards", "lds"),
    "binary guard not run": (having(binary_guards=guard(None)), "no_verdict", "binary_guards", "not run"),
    "not compared": (having(checks=None), "no_verdict", "equivalence", "not compared"),
    "no check": (having(checks=()), "no_verdict", "equivalence", "no equivalence check is configured"),
    "different": (having(checks=(check("different"),)), "rejected", "equivalence", "outputs: seen"),
    "one equal, one different": (
        having(checks=(check("equal", "different"), check("different"))),
        "rejected",
        "equivalence",
        "seen",
    ),
    "blind": (having(checks=(check("blind", "equal"),)), "no_verdict", "equivalence", "blind"),
    "equal without control": (having(checks=(check("equal"),)), "no_verdict", "equivalence", "blind"),
    "equal, control passed": (
        having(checks=(check("equal", "different", "equal"),)),
        "no_verdict",
        "equivalence",
        "blind",
    ),
    "equal, control not run": (having(checks=(check("equal", "not_run"),)), "no_verdict", "equivalence", ""),
    "check not run": (having(checks=(check("not_run"),)), "no_verdict", "equivalence", "not_run"),
    "no gain of the kernel alone": (
        having(kernel_alone=measured(0.0, 30, place="alone"), measurement=None),
        "rejected",
        "kernel_alone",
        "the kernel alone: gain",
    ),
    "other results behind the timing": (
        having(kernel_alone=failed_alone()),
        "rejected",
        "kernel_alone",
        "the candidate computes something else",
    ),
    "not measured": (having(measurement=None), "no_verdict", "measurement", "not measured"),
    "candidate crashed": (
        altered("measurement", problem="signal 11", candidate_failed=True, look=None),
        "rejected",
        "measurement",
        "signal 11",
    ),
    "not measurable": (altered("measurement", problem="no kernel"), "no_verdict", "measurement", "no kernel"),
    "synthetic times": (altered("measurement", origin="synthetic"), "no_verdict", "measurement", "synthetic"),
    "modelled times": (altered("measurement", origin="modelled"), "no_verdict", "measurement", "modelled"),
    "unknown origin": (altered("measurement", origin=None), "no_verdict", "measurement", "unknown origin"),
    "no application time": (altered("measurement", guards={}), "no_verdict", "measurement", "application"),
    "guards of other pairs": (
        altered("measurement", guards={"makespan": (0.1,)}),
        "no_verdict",
        "measurement",
        "same pairs",
    ),
    "noise unknown": (altered("measurement", base_cv=None), "no_verdict", "measurement", "noise"),
    "noisy": (altered("measurement", base_cv=0.11), "inconclusive", "measurement", "--force"),
    "few pairs": (having(measurement=measured(pairs=2)), "no_verdict", "measurement", "2 pairs"),
    "no pairs": (
        altered("measurement", log_ratios=(), guards={"makespan": ()}),
        "no_verdict",
        "measurement",
        "",
    ),
    "no gain": (having(measurement=measured(0.0, 30)), "rejected", "measurement", "futile"),
    "loss": (having(measurement=measured(-0.1, 10)), "rejected", "measurement", "after 3 pairs"),
    "small gain": (having(measurement=measured(0.02, 30)), "inconclusive", "measurement", "wanted"),
    "time was over": (having(measurement=measured(0.02, 12)), "inconclusive", "measurement", "over"),
    "application suffers": (
        having(measurement=measured(0.06, 30, application_gain=-0.03)),
        "inconclusive",
        "measurement",
        "makespan",
    ),
    "lax alpha": (rule_with(alpha=0.2), "no_verdict", "measurement", "rule"),
    "lax gain": (rule_with(least_gain=0.001, futile_gain=0.0005), "no_verdict", "measurement", "rule"),
    "lax futility": (rule_with(futile_gain=-1.0), "no_verdict", "measurement", "rule"),
    "lax guard": (rule_with(most_guard_loss=0.5), "no_verdict", "measurement", "rule"),
    "early look": (rule_with(looks=(5, 10)), "no_verdict", "measurement", "rule"),
    "looks in disorder": (rule_with(looks=(10, 10)), "no_verdict", "measurement", "rule"),
    "a look beyond reason": (rule_with(looks=(10, 10**6)), "no_verdict", "measurement", "rule"),
    "no looks": (rule_with(looks=()), "no_verdict", "measurement", "rule"),
    "no traffic gate": (having(architecture_guards=()), "no_verdict", "architecture_guards", "no guard"),
    "traffic grows": (having(architecture_guards=guard(False)), "rejected", "architecture_guards", "so"),
    "traffic unknown": (having(architecture_guards=guard(None)), "no_verdict", "architecture_guards", "so"),
    "not measured again": (having(remeasurement=None), "no_verdict", "remeasurement", "fresh runs"),
    "not reproduced": (
        having(remeasurement=measured(0.005, place="b")),
        "inconclusive",
        "remeasurement",
        "not reproduced",
    ),
    "application suffers afresh": (
        having(remeasurement=measured(0.06, place="b", application_gain=-0.02)),
        "inconclusive",
        "remeasurement",
        "critical path +2.0%, makespan +2.0%",
    ),
    "crashes afresh": (
        altered("remeasurement", problem="signal 6", candidate_failed=True),
        "rejected",
        "remeasurement",
        "signal 6",
    ),
    "synthetic afresh": (altered("remeasurement", origin="synthetic"), "no_verdict", "remeasurement", ""),
    "noisy afresh": (altered("remeasurement", base_cv=0.2), "inconclusive", "remeasurement", "20.0%"),
    "few fresh pairs": (
        having(remeasurement=measured(pairs=4, place="b").model_copy(update={"problem": None})),
        "no_verdict",
        "remeasurement",
        "too few",
    ),
    "another kernel afresh": (
        altered("remeasurement", kernel="k2"),
        "no_verdict",
        "remeasurement",
        "another",
    ),
    "from nowhere": (
        altered("remeasurement", directory=None),
        "no_verdict",
        "remeasurement",
        "first one again",
    ),
    "the same place again": (
        altered("remeasurement", directory="measure"),
        "no_verdict",
        "remeasurement",
        "first one again",
    ),
    "no place": (having(placement=None), "no_verdict", "placement", "shifted code"),
    "no builds with shifted code": (
        having(placement=PlacementPart(problem="the padding did not move the kernel")),
        "no_verdict",
        "placement",
        "did not move",
    ),
    "no shifts": (having(placement=PlacementPart()), "no_verdict", "placement", "shifted code"),
    "gone at another place": (
        having(placement=placed(0.05, 0.004)),
        "inconclusive",
        "placement",
        "0.4% with the code shifted by 4352 bytes",
    ),
    "other times than its ratios": (
        altered("measurement", base_ns=(1.0,) * 10),
        "no_verdict",
        "measurement",
        "not those of its times",
    ),
    "one mode happens to be slower": (
        having(measurement=two_modes(0.0)),
        "inconclusive",
        "measurement",
        "two modes (50% of its runs are slower by 8.3%)",
    ),
}


def spoilt(evidence: EvidencePart, name: str) -> EvidencePart:
    return evidence.model_copy(update=TABLE[name][0](evidence))


def test_flawless_evidence_is_accepted(accepted_evidence: EvidencePart) -> None:
    found = judge(accepted_evidence, POLICY)
    assert (found.verdict, found.stage, found.verified) == ("accepted", "remeasurement", True)
    assert "5.8% at +256 bytes, 5.2% at +4352 bytes" in found.reason
    assert "placement can explain up to 0.6% of the time" in found.reason
    assert "5.5%" in found.reason  # the fresh gain, not the one that was chosen


@pytest.mark.parametrize("name", TABLE)
def test_spoilt_evidence(accepted_evidence: EvidencePart, name: str) -> None:
    found = judge(spoilt(accepted_evidence, name), POLICY)
    _, verdict_name, stage, words = TABLE[name]
    assert (found.verdict, found.stage) == (verdict_name, stage), found.reason
    assert words in found.reason


#: The model's gate is for sessions that name a model; see below.
MEASURED_GATES = tuple(gate for gate in GATES if gate.stage != "model")


@pytest.mark.parametrize("gate", MEASURED_GATES, ids=lambda gate: gate.stage)
def test_every_gate_is_needed(accepted_evidence, gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, evidence that it alone stops would be accepted."""
    monkeypatch.setattr(verdict, "GATES", tuple(other for other in GATES if other is not gate))
    stopped = [name for name, (_, _, stage, _) in TABLE.items() if stage == gate.stage]
    passed = [n for n in stopped if judge(spoilt(accepted_evidence, n), POLICY).verdict == "accepted"]
    assert passed


def test_nothing_known_is_no_verdict() -> None:
    found = judge(EvidencePart(), PolicyPart(allow_unverified=True, allow_synthetic=True, force_noisy=True))
    assert found.verdict == "no_verdict"


@pytest.mark.parametrize("missing", sorted(set(EvidencePart.model_fields) - {"modelled", "kernel_alone"}))
def test_whatever_is_missing_nothing_is_accepted(accepted_evidence, missing: str) -> None:
    lax = PolicyPart(allow_unverified=True, allow_synthetic=True, force_noisy=True, placement_check=True)
    emptied = accepted_evidence.model_copy(update={missing: EvidencePart.model_fields[missing].default})
    assert judge(emptied, lax).verdict == "no_verdict"


@pytest.mark.parametrize("checks", [(), (check("blind", "equal"),), (check("not_run"),)])
def test_allow_unverified_accepts_on_time_alone_and_says_so(accepted_evidence, checks) -> None:
    evidence = accepted_evidence.model_copy(update={"checks": checks})
    found = judge(evidence, PolicyPart(allow_unverified=True))
    assert (found.verdict, found.verified) == ("accepted", False)
    assert "accepted on time alone" in found.reason
    refused = judge(evidence, POLICY)
    assert refused.verdict == "no_verdict"
    assert "--allow-unverified" in refused.reason


def test_allow_unverified_does_not_excuse_different_results(accepted_evidence) -> None:
    evidence = accepted_evidence.model_copy(update={"checks": (check("different"),)})
    assert judge(evidence, PolicyPart(allow_unverified=True)).verdict == "rejected"


def test_a_proven_loss_beats_unverified_results(accepted_evidence) -> None:
    evidence = accepted_evidence.model_copy(
        update={"checks": (), "measurement": measured(-0.05), "remeasurement": None}
    )
    found = judge(evidence, POLICY)
    assert (found.verdict, found.stage) == ("rejected", "measurement")


def test_unverified_and_undecided_time_stays_no_verdict_with_the_time_in_it(accepted_evidence) -> None:
    evidence = accepted_evidence.model_copy(update={"checks": (), "measurement": measured(0.02, 30)})
    found = judge(evidence, POLICY)
    assert (found.verdict, found.stage) == ("no_verdict", "equivalence")
    assert "2.5% wanted" in found.reason


def test_an_early_stop_by_a_guard_needs_no_later_stage() -> None:
    refused = judge(EvidencePart(source_guards=guard(False)), POLICY)
    assert (refused.verdict, refused.stage) == ("rejected", "source_guards")


def test_synthetic_times_count_where_they_are_allowed(accepted_evidence) -> None:
    update = {
        "measurement": measured(origin=Origin.SYNTHETIC),
        "remeasurement": measured(origin=Origin.SYNTHETIC, seed=3, place="b"),
    }
    evidence = accepted_evidence.model_copy(update=update)
    assert judge(evidence, POLICY).verdict == "no_verdict"
    assert judge(evidence, PolicyPart(allow_synthetic=True)).verdict == "accepted"


@pytest.mark.parametrize("part", ["measurement", "remeasurement"])
def test_noise_is_overruled_by_force_only(accepted_evidence, part: str) -> None:
    evidence = accepted_evidence.model_copy(update=altered(part, base_cv=0.3)(accepted_evidence))
    assert judge(evidence, POLICY).verdict == "inconclusive"
    assert judge(evidence, PolicyPart(force_noisy=True)).verdict == "accepted"


def test_noisy_times_prove_nothing_against_it_either(accepted_evidence) -> None:
    futile = measured(0.0, 10).model_copy(update={"base_cv": 0.3})
    evidence = accepted_evidence.model_copy(update={"measurement": futile, "remeasurement": None})
    found = judge(evidence, POLICY)
    assert (found.verdict, found.stage) == ("inconclusive", "measurement")
    assert judge(evidence, PolicyPart(force_noisy=True)).verdict == "rejected"


@pytest.mark.parametrize("guards", [(), guard(None)])
def test_without_the_traffic_gate_unknown_traffic_passes_and_grown_does_not(
    accepted_evidence, guards
) -> None:
    ungated = PolicyPart(traffic_gate=False)
    evidence = accepted_evidence.model_copy(update={"architecture_guards": guards})
    assert judge(evidence, ungated).verdict == "accepted"
    grown = accepted_evidence.model_copy(update={"architecture_guards": guard(False)})
    assert judge(grown, ungated).verdict == "rejected"


@pytest.mark.parametrize("gain", [0.0, 0.02])
def test_a_recorded_look_is_not_believed(accepted_evidence, gain: float) -> None:
    first = accepted_evidence.measurement
    lying = measured(gain, 30).model_copy(update={"look": first.look})
    assert isinstance(lying.look, LookPart)
    assert lying.look.decision == "accepted"
    evidence = accepted_evidence.model_copy(update={"measurement": lying})
    assert judge(evidence, POLICY).verdict in ("rejected", "inconclusive")


def test_pairs_behind_the_look_that_rejected_change_nothing(accepted_evidence) -> None:
    bad, good = measured(-0.01, 10), measured(0.1, 20)
    update = {
        "base_ns": bad.base_ns + good.base_ns,
        "new_ns": bad.new_ns + good.new_ns,
        "log_ratios": bad.log_ratios + good.log_ratios,
        "guards": {name: bad.guards[name] + good.guards[name] for name in bad.guards},
    }
    evidence = accepted_evidence.model_copy(update={"measurement": good.model_copy(update=update)})
    found = judge(evidence, POLICY)
    assert found.verdict == "rejected"
    assert "after 3 pairs" in found.reason


@pytest.mark.parametrize(
    ("gain", "spread", "wanted"), [(0.03, 1.0, True), (0.055, 1.0, False), (0.055, 12.0, True)]
)
def test_placement_is_asked_for_where_gains_may_be_small(
    accepted_evidence, gain: float, spread: float, wanted: bool
) -> None:
    """A build that can't be shifted stops only who asked for it; the verdict says so."""
    update = {
        "measurement": measured(gain),
        "remeasurement": measured(gain, place="b", seed=3, spread=spread),
        "placement": None,
    }
    evidence = accepted_evidence.model_copy(update=update)
    automatic = PolicyPart(placement_check=None)
    assert (judge(evidence, automatic).stage == "placement") is wanted
    assert judge(evidence, PolicyPart(placement_check=False)).verdict == "accepted"
    unmoved = evidence.model_copy(update={"placement": PlacementPart(problem="nothing moved")})
    found = judge(unmoved, automatic)
    assert found.verdict == "accepted"
    assert ("code placement was not checked (nothing moved)" in found.reason) is wanted


def test_a_gain_in_both_modes_is_accepted(accepted_evidence) -> None:
    evidence = accepted_evidence.model_copy(update={"measurement": two_modes(0.06)})
    assert judge(evidence, POLICY).verdict == "accepted"


def test_the_same_evidence_gives_the_same_words(accepted_evidence) -> None:
    again = EvidencePart.model_validate_json(accepted_evidence.model_dump_json())
    assert judge(again, POLICY) == judge(accepted_evidence, POLICY)


BY_MODEL = PolicyPart(placement_check=True, metric="cost")


@pytest.mark.parametrize(
    ("figures", "answer", "said"),
    [
        ({"base": 100.0, "new": 90.0}, "no_verdict", "gain 10.0% by the model cost: 100 to 90 cycles"),
        ({"base": 100.0, "new": 99.0}, "rejected", "gain 1.0% by the model cost"),
        ({"base": 100.0, "new": 120.0}, "rejected", "gain -20.0%"),
        ({"base": 100.0, "problem": "it crashed", "candidate_failed": True}, "rejected", "it crashed"),
        ({"base": 0.0, "new": 0.0, "problem": "it costs nothing"}, "no_verdict", "it costs nothing"),
        ({"base": 0.0, "new": 0.0}, "no_verdict", "no figure"),
        (None, "no_verdict", "nothing was measured"),
        ({"metric": "another", "base": 100.0, "new": 50.0}, "no_verdict", "nothing was measured"),
    ],
)
def test_a_model_accepts_nothing_whatever_else_is_proven(
    accepted_evidence: EvidencePart,
    figures: dict[str, object] | None,
    answer: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert judge(accepted_evidence, POLICY).verdict == "accepted"
    told = {"metric": "cost", "unit": "cycles", "formula": "f", "kernel": "k", "least_gain": 0.02}
    part = None if figures is None else ModelledPart.model_validate({**told, **figures})
    evidence = accepted_evidence.model_copy(update={"modelled": part})
    found = judge(evidence, BY_MODEL)
    assert (found.verdict, found.stage) == (answer, "model")
    assert said in found.reason
    monkeypatch.setattr(verdict, "GATES", MEASURED_GATES)
    assert judge(evidence, BY_MODEL).verdict == "accepted"  # so it is the model's gate that stops it


def test_a_model_says_nothing_of_wrong_results(accepted_evidence: EvidencePart) -> None:
    evidence = accepted_evidence.model_copy(update={"checks": (check("different"),)})
    assert judge(evidence, BY_MODEL).stage == "equivalence"


@pytest.mark.parametrize(
    "alone",
    [
        measured(0.0, 30, origin=Origin.SYNTHETIC),
        measured(-0.5, 30, origin=Origin.MODELLED),
        measured(0.0, 30).model_copy(update={"problem": "no GPU"}),
        measured(0.0, 30, spread=100),
        measured(0.06, 30),
    ],
)
def test_the_kernel_alone_accepts_nothing_and_rejects_only_by_measured_times(accepted_evidence, alone):
    policy = PolicyPart(allow_synthetic=True)
    evidence = accepted_evidence.model_copy(update={"kernel_alone": alone})
    assert judge(evidence, policy).verdict == "accepted"
    unmeasured = evidence.model_copy(update={"measurement": None, "remeasurement": None})
    assert judge(unmeasured, policy).stage == "measurement"
