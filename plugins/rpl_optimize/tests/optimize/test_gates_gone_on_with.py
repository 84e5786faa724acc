"""Gates behind an interruption, with the kernel alone, by a model and with shifted code: all combinations.

What was measured before counts as it is and what was under way goes on by its plan; nothing is measured
twice. The stages are stand-ins that note in which order, and by which plan, they were asked.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rpl_optimize.contracts import (
    BuildPart,
    CheckPart,
    ControlPart,
    EvidencePart,
    GuardPart,
    ModelledPart,
    PlacementPart,
    PlannedData,
    PolicyPart,
)
from rpl_optimize.interfaces.builder import BuildFailure
from rpl_optimize.interfaces.transformation import ShuffledReduction
from rpl_optimize.loop import evaluate
from rpl_optimize.loop.evaluate import Evaluation, Trial
from rpl_optimize.loop.rounds import OptimizeLoop
from rpl_optimize.loop.session import Limits
from rpl_optimize.measurement.gains import PADDINGS

from .conftest import measured

GAIN, FRESH = measured(), measured(0.055, place="again", seed=3)
LOST = measured(0.0, 30)
PASSED = GuardPart(guard="g", passed=True, reason="")
EQUAL = CheckPart(
    check="outputs", verdict="equal", evidence="",
    controls=(ControlPart(control="empty", verdict="different", evidence=""),),
)  # fmt: skip


def _plan(stage: str, *, directory: str | None, padding: int | None = None) -> PlannedData:
    return PlannedData(
        candidate=1, stage=stage, rule=GAIN.rule, seed=5, fewest_runs=1, most_runs=2, directory=directory,
        padding_bytes=padding,
    )  # fmt: skip


class Bench:
    """An evaluation whose gates let everything pass, but for what a test changes."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, **policy: bool) -> None:
        self.said: list[Any] = []
        self.seeds = iter(range(100, 200))
        self.continued: tuple[Any, tuple[PlannedData, ...]] = (None, ())
        self.timing: str | None = None
        self.alone_plan: PlannedData | None = _plan("kernel_alone", directory=None)
        self.alone = GAIN
        self.builds: dict[str, Any] = {}
        self.unmoved: set[str] = set()
        for name in ("launch_of", "architectures"):
            monkeypatch.setattr(evaluate, name, lambda *_: None)
        monkeypatch.setattr(evaluate, "guard_builds", lambda *_, **__: (PASSED,))
        monkeypatch.setattr(evaluate, "guard_new_code", lambda *_: PASSED)
        monkeypatch.setattr(evaluate, "why_not_moved", self._why)
        monkeypatch.setattr(evaluate, "is_wanted", lambda *_: True)
        monkeypatch.setattr(evaluate, "measure_from", self._measure_from)
        self.built = SimpleNamespace(
            proposed=SimpleNamespace(
                number=1, directory=root, guards=(PASSED,), retuned=None, changes_launches=False,
                sha256="a", text=b"new",
                candidate=SimpleNamespace(
                    changes_loop=False, lds_growth=None, workgroup_limit=None, declares=()
                ),
            ),
            part=BuildPart(commands=(("cc",),), reproducible=True),
        )  # fmt: skip
        self.baseline = SimpleNamespace(
            build="base", documents=SimpleNamespace(model=lambda _: None), text=b"old", number=3
        )
        build = SimpleNamespace(code_sha256="b", host_code=None)
        target = SimpleNamespace(kernel="k", recorded="k")
        self.trial = Trial(self.built, build, self.baseline, target, {}, b"host")
        measuring = SimpleNamespace(
            root=root,
            continued=lambda number, begun: self.continued,
            plan=lambda trial, seed: self._drawn("measurement", seed),
            plan_alone=lambda trial, seed: self.said.append(("plan alone", seed)) or self.alone_plan,
            plan_again=lambda trial, first, seed: self._drawn("remeasurement", seed),
            plan_shifted=lambda trial, first, seed, padding: self._drawn("placement", seed, padding),
            opened=self._opened,
            begin=lambda: self.said.append("begin"),
            measure=lambda trial, plan: self.said.append(("measure", plan.directory)) or GAIN,
            again=self._again,
        )
        tools = SimpleNamespace(
            step=lambda text: self.said.append(text.removeprefix("candidate 1: ")),
            builder=SimpleNamespace(
                plugin="b", padded=lambda text, padding: text + b"+%d" % padding, build=self._build
            ),
            host=None,
            equivalence=SimpleNamespace(
                run=lambda *_: (EQUAL,), timing=lambda checks: self.timing, time_kernel=None
            ),
        )
        request = SimpleNamespace(
            policy=PolicyPart(traffic_gate=False, **policy), source="k.hip", command=("./app",)
        )
        self.events: list[tuple[str, Any]] = []
        self.evaluation = Evaluation(
            request,  # type: ignore[arg-type]
            tools,  # type: ignore[arg-type]
            measuring,  # type: ignore[arg-type]
            lambda event, data: self.events.append((event.name, data)),
            lambda: next(self.seeds),
            lambda *folders: {"folders": [folder.name for folder in folders]},
        )

    def run(self, **more: Any) -> EvidencePart:
        import attrs

        return self.evaluation.run(attrs.evolve(self.trial, **more))

    @property
    def written(self) -> list[str]:
        return [name for name, _ in self.events if name not in ("BINARY_GUARDED", "EQUIVALENCE_CHECKED")]

    def _drawn(self, stage: str, seed: int, padding: int | None = None) -> PlannedData:
        self.said.append(("plan", stage, seed))
        return _plan(stage, directory=None, padding=padding)

    def _opened(self, trial: Any, plan: PlannedData, folder: Path, builds: Any = None) -> PlannedData:
        assert plan.directory is None
        self.said.append(("opened", plan.stage, builds))
        return plan.model_copy(update={"directory": folder.name})

    def _again(self, trial: Any, plan: PlannedData, builds: Any = None) -> Any:
        self.said.append(("again", plan.stage, plan.directory, builds))
        return FRESH.model_copy(update={"directory": plan.directory})

    def _measure_from(self, source: Any, kernel: str, rule: Any, *, seed: int) -> Any:
        self.said.append(("alone", kernel, seed))
        return self.alone

    def _build(self, text: bytes, folder: Path, host: bytes | None) -> Any:
        name = text.decode()
        self.said.append(("build", name, folder.name, host))
        good = SimpleNamespace(name=name, host_code=SimpleNamespace(passed=True))
        return self.builds.get(name, good)

    def _why(self, plain: Any, shifted: Any, kernel: str) -> str | None:
        assert (plain == "base") == shifted.name.startswith("old")
        return f"{shifted.name} is not moved" if shifted.name in self.unmoved else None


STAGES = ("measurement", "remeasurement", "placement")


@pytest.mark.parametrize("finished", range(4))
@pytest.mark.parametrize("under_way", [False, True])
def test_what_was_measured_is_not_measured_again(tmp_path, monkeypatch, finished, under_way):
    bench = Bench(tmp_path, monkeypatch)
    done = STAGES[:finished]
    parts = dict(zip(done, (GAIN, FRESH, PlacementPart(problem="as it was"))[:finished], strict=True))
    padding = PADDINGS[0] if finished == 2 else None
    plans = ()
    if under_way and finished < 3:
        plans = (_plan(STAGES[finished], directory="kept", padding=padding),)
    told = SimpleNamespace(model_dump=lambda: {"told": True})
    bench.continued = (told, plans)
    evidence = bench.run(begun=SimpleNamespace(parts=parts))
    assert ("CONTINUED", {"told": True}) in bench.events
    assert all(getattr(evidence, name) == part for name, part in parts.items())
    measured_now = [one for one in bench.said if one[0] in ("measure", "again")]
    paddings = {"measurement": 1, "remeasurement": 1, "placement": len(PADDINGS)}
    assert len(measured_now) == sum(paddings[name] for name in STAGES[finished:])
    planned = sum(one[0] == "plan" for one in bench.said)
    assert planned == len(measured_now) - len(plans)
    assert bench.written.count("PLANNED") == planned
    assert sum(one[0] == "opened" for one in bench.said) == planned
    # One that goes on was charged when it was begun.
    assert bench.said.count("begin") == (finished == 0 and not plans)
    if plans:
        assert measured_now[0][1 if finished == 0 else 2] == "kept"
    names = {"measurement": "MEASURED", "remeasurement": "REMEASURED", "placement": "PLACED"}
    assert [one for one in bench.written if one in names.values()] == [names[n] for n in STAGES[finished:]]


def test_nothing_is_gone_on_with_where_nothing_was_begun(tmp_path, monkeypatch):
    bench = Bench(tmp_path, monkeypatch)
    bench.continued = (None, (_plan("measurement", directory="kept"),))
    evidence = bench.run(begun=SimpleNamespace(parts={"measurement": LOST}))
    assert "CONTINUED" not in bench.written
    assert evidence.measurement == GAIN
    again = Bench(tmp_path / "again", monkeypatch)
    again.continued = (SimpleNamespace(model_dump=dict), (_plan("measurement", directory="kept"),))
    again.run()  # no candidate of before
    assert "CONTINUED" not in again.written
    assert ("plan", "measurement", 100) in again.said


def test_each_measurement_has_a_seed_a_plan_and_its_recordings(tmp_path, monkeypatch):
    bench = Bench(tmp_path, monkeypatch)
    evidence = bench.run()
    assert [one for one in bench.said if one[0] == "plan"] == [
        ("plan", "measurement", 100), ("plan", "remeasurement", 101),
        *(("plan", "placement", 102 + number) for number in range(len(PADDINGS))),
    ]  # fmt: skip
    assert bench.written == [
        "PLANNED",
        "MEASURED",
        "PLANNED",
        "REMEASURED",
        *["PLANNED"] * len(PADDINGS),
        "PLACED",
    ]
    recorded = {name: data["recordings"]["folders"] for name, data in bench.events if "recordings" in data}
    assert recorded == {
        "MEASURED": ["measure"], "REMEASURED": ["remeasure"], "PLACED": ["measure"] * len(PADDINGS),
    }  # fmt: skip
    assert all(data["candidate"] == 1 for _, data in bench.events)
    assert [(one.padding_bytes, one.measurement.directory) for one in evidence.placement.shifts] == [
        (padding, "measure") for padding in PADDINGS
    ]
    steps = [one for one in bench.said if isinstance(one, str)]
    assert steps == [
        "binary guards", "equivalence", "measurement", "begin", "fresh measurement", "placement",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "planned", "part", "before"),
    list(product((None, "capture"), (True, False), (GAIN, LOST), (None, GAIN, LOST))),
)
def test_the_kernel_alone_rejects_and_never_accepts(tmp_path, monkeypatch, check, planned, part, before):
    bench = Bench(tmp_path, monkeypatch)
    bench.timing, bench.alone = check, part
    bench.alone_plan = bench.alone_plan if planned else None
    more = {}
    if before is not None:
        bench.continued = (SimpleNamespace(model_dump=dict), ())
        more["begun"] = SimpleNamespace(parts={"kernel_alone": before})
    evidence = bench.run(**more)
    runs = before is None and check is not None and planned
    assert ("alone", "k", 5) in bench.said if runs else not any(one[0] == "alone" for one in bench.said)
    assert ("TIMED_ALONE" in bench.written) == runs
    assert ("the kernel alone, by capture" in bench.said) == runs
    assert any(one[0] == "plan alone" for one in bench.said) == (before is None and check is not None)
    found = part if runs else before
    assert evidence.kernel_alone == found
    assert (evidence.measurement is None) == (found is LOST)


def test_by_a_model_nothing_is_measured(tmp_path, monkeypatch):
    bench = Bench(tmp_path, monkeypatch)
    seen = {}
    monkeypatch.setattr(evaluate, "guard_builds", lambda *_, **more: seen.update(more) or (PASSED,))
    part = ModelledPart(metric="m", unit="u", formula="f", kernel="k", least_gain=0.02)
    evaluation = bench.evaluation
    bench.run()
    assert seen["measured"] is True
    bench.said.clear()
    bench.events.clear()
    import attrs

    model = SimpleNamespace(compare=lambda trial, folder: bench.said.append(folder.name) or part)
    bench.evaluation = attrs.evolve(evaluation, modelling=model)
    evidence = bench.run()
    assert seen["measured"] is False
    assert (evidence.modelled, evidence.measurement) == (part, None)
    assert bench.written == ["MODELLED"]
    assert bench.events[-1][1] == {"candidate": 1, "modelled": part, "recordings": {"folders": ["model"]}}
    assert bench.said == ["binary guards", "equivalence", "model", "model"]


OTHER_HOST = SimpleNamespace(name="", host_code=SimpleNamespace(passed=False))
NO_HOST = SimpleNamespace(name="", host_code=None)
FAILED = BuildFailure("no room", (), 0.0, "")
LAST = PADDINGS[-1]


@pytest.mark.parametrize(
    ("builds", "unmoved", "launches", "problem"),
    [
        ({}, set(), False, None),
        ({}, set(), True, None),
        ({f"old+{PADDINGS[0]}": FAILED}, set(), False, "no build with shifted code: no room"),
        ({f"new+{LAST}": FAILED}, set(), False, "no build with shifted code: no room"),
        ({f"new+{LAST}": OTHER_HOST}, set(), False, "a build with shifted code has other host code"),
        ({f"new+{LAST}": NO_HOST}, set(), False, "a build with shifted code has other host code"),
        ({f"old+{LAST}": NO_HOST}, set(), True, "a build with shifted code has other host code"),
        ({}, {f"old+{LAST}"}, False, f"old+{LAST} is not moved"),
        ({}, {f"new+{PADDINGS[0]}"}, False, f"new+{PADDINGS[0]} is not moved"),
    ],
)
def test_shifted_code_is_moved_and_nothing_else(tmp_path, monkeypatch, builds, unmoved, launches, problem):
    bench = Bench(tmp_path, monkeypatch)
    bench.builds = {
        name: built if built is FAILED else SimpleNamespace(name=name, host_code=built.host_code)
        for name, built in builds.items()
    }
    if launches:  # the candidate's own launches are in its host code, which so is its own
        bench.builds |= {f"new+{one}": SimpleNamespace(name=f"new+{one}", host_code=None) for one in PADDINGS}
    bench.unmoved = unmoved
    bench.built.proposed.changes_launches = launches
    evidence = bench.run()
    assert evidence.placement.problem == problem
    wrong = next((n for n, p in enumerate(PADDINGS) if any(str(p) in one for one in (*builds, *unmoved))), 9)
    assert [one.padding_bytes for one in evidence.placement.shifts] == list(PADDINGS[:wrong])
    for _, name, folder, host in (one for one in bench.said if one[0] == "build"):
        old = name.startswith("old")
        assert folder == ("base" if old else "new")
        assert host == (b"host" if old or not launches else None)
    for one in (one for one in bench.said if one[0] == "again" and one[1] == "placement"):
        assert [side.name.partition("+")[0] for side in one[3]] == ["old", "new"]
    # The version to beat is shifted once, however many candidates are measured against it.
    bench.said.clear()
    bench.run()
    assert not any(one[0] == "build" and one[1].startswith("old") for one in bench.said)


def test_what_is_handed_from_lane_to_lane_is_counted():
    declares = [
        ShuffledReduction.__new__(ShuffledReduction),
        object(),
        ShuffledReduction.__new__(ShuffledReduction),
    ]
    for count in range(4):
        candidate = SimpleNamespace(declares=declares[:count])
        trial = Trial(SimpleNamespace(proposed=SimpleNamespace(candidate=candidate)), None, None, None)
        assert trial.exchanged == (0, 1, 1, 2)[count]


@pytest.mark.parametrize("metric", [None, "a model"])
@pytest.mark.parametrize("ceiling", [0.5, 0.01])
def test_what_measuring_takes_is_told_once(monkeypatch, metric, ceiling):
    from rpl_optimize.loop import rounds

    monkeypatch.setattr(rounds, "run_to_run_cv", lambda *_: 0.01)
    monkeypatch.setattr(rounds, "usual_run_s", lambda _: 2.0)
    monkeypatch.setattr(
        rounds, "cost_sentence", lambda rule, left, run_s, *, placement: (left, run_s, placement)
    )
    notes: list[Any] = []
    loop = OptimizeLoop.__new__(OptimizeLoop)
    loop._request = SimpleNamespace(
        limits=Limits(candidates=5, min_improvement=0.02), policy=PolicyPart(placement_check=True)
    )
    loop._cost_told, loop._state = False, SimpleNamespace(tried=2)
    loop._tools = SimpleNamespace(metric=metric, note=notes.append)
    out_of_reach = SimpleNamespace(recorded="k", ceiling_gain=0.001)
    loop._tell_cost(out_of_reach, None)
    assert notes == []
    for _ in range(2):
        loop._tell_cost(SimpleNamespace(recorded="k", ceiling_gain=ceiling), None)
    assert notes == ([(3, 2.0, True)] if metric is None and ceiling > 0.02 else [])


def test_no_code_is_shifted_where_nobody_wants_to_know(tmp_path, monkeypatch):
    bench = Bench(tmp_path, monkeypatch)
    monkeypatch.setattr(evaluate, "is_wanted", lambda *_: False)
    assert bench.run().placement is None
    assert "placement" not in bench.said
    assert "PLACED" not in bench.written
