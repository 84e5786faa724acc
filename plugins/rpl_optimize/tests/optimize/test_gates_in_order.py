"""Which gates a candidate comes to, by what each of them finds: every combination, with stand-ins for the
stages.

A candidate stops at the first gate that refuses it: a stage runs if and only if all before it let it pass,
and what would only cost time is never begun.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rpl_optimize.contracts import BuildPart, CheckPart, ControlPart, GuardPart, PolicyPart
from rpl_optimize.loop import evaluate
from rpl_optimize.loop.evaluate import Evaluation

from .conftest import measured

#: What each measurement shows; only the first is a gain beyond doubt.
GAIN, NONE = measured(), measured(0.0, 30)
FRESH, LOST = measured(0.055, place="again", seed=3), measured(0.0, 10, place="again")


def _guards(passed: bool) -> tuple[GuardPart, ...]:
    parts = [
        GuardPart(guard="one", passed=True, reason=""),
        GuardPart(guard="two", passed=passed, reason="so"),
    ]
    return tuple(parts)


def _check(answer: str) -> CheckPart:
    """One that had called a wrong program different, so that it is believed."""
    control = ControlPart(control="empty", verdict="different", evidence="")
    return CheckPart(check="outputs", verdict=answer, evidence="", controls=(control,))


def _plan(directory: str) -> Any:
    return SimpleNamespace(directory=directory, model_dump=dict)


def _stages(tmp_path: Path, policy: PolicyPart, **shown: Any) -> tuple[list[str], Any, list[str]]:
    """The stages that began, the evidence, and what was written down."""
    said: list[str] = []
    events: list[str] = []
    equivalence = SimpleNamespace(run=lambda *_: shown["checks"], timing=lambda _: None)
    tools = SimpleNamespace(
        step=lambda text: said.append(text.partition(": ")[2]),
        builder=SimpleNamespace(plugin="builder"),
        host=None,
        equivalence=equivalence,
    )
    measuring = SimpleNamespace(
        root=tmp_path,
        plan=lambda *_: shown["measurement"],
        traffic=lambda *_: GuardPart(guard="traffic", passed=shown["traffic"], reason=""),
        plan_again=lambda *_: _plan("again"),
        opened=lambda _trial, plan, _place: plan,
        again=lambda *_: shown["fresh"],
    )
    request = SimpleNamespace(policy=policy, source="kernel.hip", command=("./app",))
    proposed = SimpleNamespace(
        number=1,
        directory=tmp_path,
        guards=_guards(True),
        candidate=SimpleNamespace(changes_loop=False, lds_growth=None, workgroup_limit=None),
        retuned=None,
        changes_launches=False,
        sha256="a",
        text=b"",
    )
    built = SimpleNamespace(
        proposed=proposed, part=BuildPart(commands=(("cc",),), reproducible=shown["reproducible"])
    )
    documents = SimpleNamespace(model=lambda _: None)
    trial = SimpleNamespace(
        exchanged=0,
        repeated=False,
        built=built,
        build=SimpleNamespace(code_sha256="b", host_code=None),
        baseline=SimpleNamespace(build=None, documents=documents, text=b""),
        target=SimpleNamespace(kernel="k", recorded="k"),
        known_code={},
        host=b"",
        begun=None,
        number=1,
        directory=tmp_path,
    )
    whole = Evaluation(
        request,  # type: ignore[arg-type]
        tools,  # type: ignore[arg-type]
        measuring,  # type: ignore[arg-type]
        lambda event, _: events.append(event.name),
        lambda: 7,
        lambda *_: {},
        before_runs=lambda _: said.append("may run"),
    )
    evidence = whole.run(trial)  # type: ignore[arg-type]
    return said, evidence, events


@pytest.mark.parametrize("unverified_allowed", [False, True])
@pytest.mark.parametrize("traffic_gate", [False, True])
def test_a_candidate_stops_at_the_first_gate_that_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unverified_allowed: bool, traffic_gate: bool
) -> None:
    policy = PolicyPart(allow_unverified=unverified_allowed, traffic_gate=traffic_gate, placement_check=False)
    monkeypatch.setattr(evaluate, "launch_of", lambda *_: None)
    monkeypatch.setattr(evaluate, "architectures", lambda *_: None)
    known = GuardPart(guard="new code", passed=True, reason="")
    monkeypatch.setattr(evaluate, "guard_new_code", lambda *_: known)
    answers = ("equal", "different", "not_run")
    for reproducible, guard, answer, gains, traffic, again in product(
        (True, False, None), (True, False), answers, (True, False), (True, False), (True, False)
    ):
        monkeypatch.setattr(evaluate, "guard_builds", lambda *_, _guard=guard, **__: _guards(_guard))
        said, evidence, events = _stages(
            tmp_path,
            policy,
            reproducible=reproducible,
            checks=(_check(answer),),
            measurement=GAIN if gains else NONE,
            traffic=traffic,
            fresh=FRESH if again else LOST,
        )
        expected, written = ["binary guards"], ["BINARY_GUARDED"]
        passes = reproducible is True and guard
        if passes:
            expected += ["may run", "equivalence"]
            written.append("EQUIVALENCE_CHECKED")
            passes = answer != "different"
        if passes:
            expected.append("measurement")
            written.append("MEASURED")
            if gains and traffic_gate:
                expected.append("memory traffic")
            refused = traffic_gate and not traffic
            passes = gains and (answer == "equal" or unverified_allowed) and not refused
        if passes:
            expected.append("fresh measurement")
            written += ["PLANNED", "REMEASURED"]
        case = (reproducible, guard, answer, gains, traffic, again)
        assert (said, events) == (expected, written), case
        assert (evidence.measurement is None) == ("measurement" not in said), case
        assert (evidence.remeasurement is None) == ("fresh measurement" not in said), case
        assert (evidence.checks is None) == ("equivalence" not in said), case
        assert len(evidence.architecture_guards) == ("memory traffic" in said), case
        assert evidence.source_guards == _guards(True)
        assert evidence.binary_guards == (known, *_guards(guard))
