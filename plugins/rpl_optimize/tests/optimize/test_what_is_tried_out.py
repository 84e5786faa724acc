"""Candidates that a proposer tries out before it proposes: what ends one, and what is said of it.

Every combination of what guards, the build, the checks and the timed runs find; nothing of it may be left.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from rpl_core.errors import ApplicationError, BadDataError, MissingError, TimeLimitError
from rpl_optimize.contracts import CheckPart, GuardPart, ProposedData
from rpl_optimize.interfaces.builder import BuildFailure
from rpl_optimize.interfaces.transformation import Edit, EditCandidate, KernelSource, TunedConstants
from rpl_optimize.loop import proposing
from rpl_optimize.loop.proposing import LookedAt, ProposalStage, Retuned, Tryout
from rpl_optimize.loop.state import Unfinished

CANDIDATE = EditCandidate("c", "k", 1, "unrolled", (Edit(0, 3, b"new"),))
BAD = GuardPart(guard="loops", passed=False, reason="one is gone")
GOOD = GuardPart(guard="edits", passed=True, reason="")
RECORDED = "void k(int)"


def _check(name: str, verdict: str) -> CheckPart:
    return CheckPart(check=name, verdict=verdict, evidence=f"by {name}")


class Bench:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, **found: Any) -> None:
        self.root, self.said, self.found = root, [], found
        monkeypatch.setattr(proposing, "profile_baseline", self._profile)
        builder = SimpleNamespace(build=self._build, command_for=lambda built: (built.name,))
        tools = SimpleNamespace(
            step=lambda text: self.said.append(("step", text)),
            builder=builder,
            equivalence=SimpleNamespace(run=self._checks),
        )
        model = None
        if found.get("model"):
            metric = SimpleNamespace(value=SimpleNamespace(unit="cycles"))
            model = SimpleNamespace(metric=metric, value=self._modelled)
        request = attrs.make_class("R", ["command", "runs", "roofline", "trace_dependencies"])
        self.tryout = Tryout(
            request(("./app",), 9, True, True),
            tools,
            root,
            SimpleNamespace(look=lambda *_: found["looked"]),
            SimpleNamespace(build="base"),
            SimpleNamespace(recorded=RECORDED),
            b"host",
            model,
            self._around("around"),
            self._around("checks"),
            lambda text: self.said.append(("told", text)),
        )

    def run(self) -> Any:
        source = KernelSource("k.hip", b"old", "k", None, "reading", None)
        return self.tryout.run(CANDIDATE, 4, SimpleNamespace(source=source))

    def _around(self, name: str) -> Any:
        @contextmanager
        def around(*folders: Path) -> Any:
            self.said.append((name, *(folder.name for folder in folders)))
            yield
            self.said.append((name, "left"))

        return around

    def _build(self, text: bytes, folder: Path, host: bytes | None) -> Any:
        self.said.append(("build", text, folder.name, host))
        return self.found["built"]

    def _checks(self, subject: Any, folder: Path) -> Any:
        assert (subject.baseline, subject.candidate) == ("base", self.found["built"])
        assert subject.source.reading is None
        self.said.append(("equivalence", folder.name, subject.same_launches))
        return self.found.get("checks", ())

    def _modelled(self, kernel: str, built: Any, folder: Path) -> Any:
        assert (kernel, built) == (RECORDED, self.found["built"])
        self.said.append(("model", folder.name))
        return SimpleNamespace(value=123456.789)

    def _profile(self, asked: Any, tools: Any, command: Any, place: Path) -> Any:
        if "raises" in self.found:
            raise self.found["raises"]
        assert (asked.runs, asked.roofline, asked.trace_dependencies) == (4, False, False)
        self.said.append(("profile", *command, place.name))
        kernels = [SimpleNamespace(name=n, runtime_ms=t) for n, t in self.found["times"]]
        return SimpleNamespace(model=lambda name: SimpleNamespace(kernels=kernels))


def _built(passed: bool | None) -> Any:
    host = None if passed is None else SimpleNamespace(passed=passed, reason="other host code")
    return SimpleNamespace(name="./new", host_code=host)


FAILED = BuildFailure("no brace", (), 0.0, None)
OTHERS = [("void m()", 9.0), ("void n()", 3.0)]


@pytest.mark.parametrize(
    ("retuned", "model"), [(None, False), ("launches", False), ("device", True), ("launches", True)]
)
def test_what_ends_a_try(tmp_path, monkeypatch, retuned, model):
    cases = product(
        ((GOOD,), (GOOD, BAD)), (b"new", None), (FAILED, _built(None), _built(True), _built(False)),
        ((), ("equal",), ("equal", "different"), ("not_run",)), ([], [*OTHERS, (RECORDED, 1.5)]),
    )  # fmt: skip
    for number, (guards, text, built, verdicts, times) in enumerate(cases):
        looked = LookedAt(CANDIDATE, guards, text, None, retuned)
        checks = tuple(_check(f"check {i}", verdict) for i, verdict in enumerate(verdicts))
        root = tmp_path / str(number)
        bench = Bench(root, monkeypatch, looked=looked, built=built, checks=checks, times=times, model=model)
        found = bench.run()
        steps, problem = _stages(guards, text, built, verdicts, retuned)
        assert found.built == (BAD not in guards and text is not None)
        value = None
        if problem is None and model:
            steps.append(("model", "model"))
            value = 123456.789
        elif problem is None:
            steps += [("around", "profile"), ("profile", "./new", "profile"), ("around", "left")]
            value = 1.5 if (RECORDED, 1.5) in times else None
            problem = None if value else f"no launch of {RECORDED} was recorded"
        assert (found.value, found.problem) == (value, problem)
        if value is not None:
            assert found.unit == ("cycles" if model else "ms")
        result = problem or ("123457 cycles" if model else "1.5 ms")
        told = ("told", f"tried out, which proves nothing: unrolled: {result}")
        assert bench.said == [*steps, told]
        assert list(root.rglob("*")) == [], "nothing is left"


def _stages(guards: Any, text: Any, built: Any, verdicts: Any, retuned: Any) -> tuple[list[Any], str | None]:
    """What begins before anything is timed, and what ends it there."""
    if BAD in guards:
        return [], "guard loops: one is gone"
    if text is None:
        return [], "nothing to build"
    host = None if retuned == "launches" else b"host"
    steps: list[Any] = [("step", "trying out: unrolled"), ("build", b"new", "build", host)]
    if built is FAILED:
        return steps, "it does not build: no brace"
    if built.host_code is not None and not built.host_code.passed:
        return steps, "other host code"
    steps += [("checks",), ("equivalence", "equivalence", retuned != "launches"), ("checks", "left")]
    return steps, "other results (check 1): by check 1" if "different" in verdicts else None


@pytest.mark.parametrize("error", [ApplicationError, TimeLimitError, BadDataError, MissingError])
def test_a_run_that_fails_is_the_candidates_fault_where_it_can_be(tmp_path, monkeypatch, error):
    looked = LookedAt(CANDIDATE, (GOOD,), b"new", None, None)
    bench = Bench(tmp_path / "root", monkeypatch, looked=looked, built=_built(None), raises=error("so it is"))
    if error is MissingError:  # of a tool: no candidate is to blame
        with pytest.raises(MissingError):
            bench.run()
    else:
        found = bench.run()
        assert (found.value, found.problem) == (None, "so it is")
        assert bench.said[-1] == ("told", "tried out, which proves nothing: unrolled: so it is")
    assert list((tmp_path / "root").rglob("*")) == []


@pytest.mark.parametrize(("kernel", "changes"), list(product(("k", None), (True, False))))
def test_constants_are_judged_by_the_whole_unit(monkeypatch, kernel, changes):
    """They stand alone: with another declared change, or no kernel, the edit is judged as any other."""
    retuned = attrs.evolve(Retuned(None), changes_launches=changes, workgroup=128)
    usual = SimpleNamespace(failures=(), verdicts=(), owner=None)
    monkeypatch.setattr(proposing, "judge_edit", lambda *_: usual)
    monkeypatch.setattr(proposing, "_checked", lambda candidate, source: ((GOOD,), b"text"))
    tuned = TunedConstants.__new__(TunedConstants)
    asked: list[Any] = []
    stage = ProposalStage(
        SimpleNamespace(value=SimpleNamespace(name="p"), plugin="p"), None, None, b"", lambda *_: (),
        None, None,
        judge_constants=lambda *given: asked.append(given) or retuned,
    )  # fmt: skip
    request = SimpleNamespace(
        source=KernelSource("k.hip", b"old", kernel), transformations=(), note=lambda _: None
    )
    for declares in ((tuned,), (tuned, object()), (object(),), ()):
        asked.clear()
        candidate = attrs.evolve(CANDIDATE, declares=declares, workgroup_limit=7, lds_growth=9)
        found = stage.look(candidate, request)
        alone = declares == (tuned,) and kernel is not None
        assert asked == ([(b"text", tuned, kernel)] if alone else [])
        promised = found.candidate.workgroup_limit, found.candidate.lds_growth
        assert promised == ((128, 65536) if alone else (None, None))
        assert found.retuned == (("launches" if changes else "device") if alone else None)
        assert (found.transformation is not None) == alone


def test_a_candidate_under_way_is_the_same_version_again(tmp_path):
    for text, source in ((b"new text", "candidate-3/k.hip"), (None, None)):
        data = ProposedData.model_construct(
            candidate=3, repairs=2, kernel="k", summary="s", changes_loop=True, workgroup_limit=64,
            lds_growth=12, transformation="unroll", source=source, retuned="launches",
        )  # fmt: skip
        unfinished = Unfinished(data, (GOOD,), text, b"the baseline")
        again, more = unfinished.proposed(tmp_path), unfinished.proposed(tmp_path)
        assert again.directory.is_dir()
        assert again.directory != more.directory, "a fresh one each time"
        candidate = again.candidate
        assert [(one.begin, one.end, one.replacement) for one in candidate.edits] == (
            [] if text is None else [(0, 12, b"new text")]
        )
        assert (again.number, again.repairs, again.text, again.guards) == (3, 2, text, (GOOD,))
        assert (candidate.id, candidate.kernel, candidate.summary) == ("resumed-3", "k", "s")
        assert (candidate.changes_loop, candidate.workgroup_limit, candidate.lds_growth) == (True, 64, 12)
        assert (again.transformation, again.retuned) == ("unroll", "launches")
        assert again.source == (None if source is None else tmp_path / source)
        for targets, found in ((("m", "k"), 1), (("m",), None), ((), None)):
            known = [SimpleNamespace(kernel=name) for name in targets]
            assert unfinished.find_target(known) is (None if found is None else known[found])
