"""Order, refusals and error boundaries of the analysis steps."""

from __future__ import annotations

from rpl_core.errors import BadDataError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer, Fact, Facts
from rpl_core.model.recording import Recording
from rpl_core.schedule import Step, analyze, schedule


class FakeAnalyzer(Analyzer):
    summary = "for tests"

    def __init__(self, name, requires=(), provides=(), answer=None, wants=()):
        self.name = name
        self.requires = frozenset(map(Fact, requires))
        self.wants = frozenset(map(Fact, wants))
        self.provides = frozenset(map(Fact, provides))
        self.answer = answer

    def analyze(self, context):
        if isinstance(self.answer, BaseException):
            raise self.answer
        facts = self.answer if self.answer is not None else dict.fromkeys(self.provides, self.name)
        return AnalysisOutcome(facts)


def steps(*analyzers):
    return [Step("p", a) for a in analyzers]


def run(*analyzers, given=None):
    context = AnalysisContext(Recording(traces=()), None, facts=Facts(keyed(given or {})))
    return analyze(context, steps(*analyzers))


def keyed(values):
    return {Fact(name): value for name, value in values.items()}


def values(facts):
    return {fact.name: facts[fact] for fact in facts}


def test_steps_run_after_what_they_require():
    plan = schedule(
        steps(
            FakeAnalyzer("a", requires=["y"], provides=["z"]),
            FakeAnalyzer("b", requires=["x"], provides=["y"]),
            FakeAnalyzer("c", provides=["x"]),
        )
    )

    assert [s.analyzer.name for s in plan.steps] == ["c", "b", "a"]


def test_what_is_wanted_comes_first_and_may_be_missing():
    plan = schedule(
        steps(
            FakeAnalyzer("a", wants=["x", "never"], provides=["y"]),
            FakeAnalyzer("b", provides=["x"]),
        )
    )

    assert [s.analyzer.name for s in plan.steps] == ["b", "a"]
    assert plan.diagnostics == ()


def test_order_does_not_depend_on_the_order_of_registration():
    analyzers = [FakeAnalyzer(name, provides=[name]) for name in "dbca"]

    orders = {
        tuple(s.analyzer.name for s in schedule(steps(*rotated)).steps)
        for rotated in (analyzers, analyzers[::-1])
    }

    assert orders == {("a", "b", "c", "d")}


def test_second_provider_of_a_fact_is_refused_by_name():
    plan = schedule(
        [Step("p", FakeAnalyzer("a", provides=["x"])), Step("q", FakeAnalyzer("b", provides=["x"]))]
    )

    assert [s.plugin for s in plan.steps] == ["p"]
    assert "p:a already provides x" in plan.diagnostics[0].fact


def test_cycle_is_reported_with_its_members_and_costs_only_them():
    plan = schedule(
        steps(
            FakeAnalyzer("a", requires=["y"], provides=["x"]),
            FakeAnalyzer("b", requires=["x"], provides=["y"]),
            FakeAnalyzer("c", provides=["z"]),
        )
    )

    assert [s.analyzer.name for s in plan.steps] == ["c"]
    assert all("p:a, p:b" in d.fact for d in plan.diagnostics)


def test_step_without_a_provider_is_refused_with_what_depends_on_it():
    plan = schedule(
        steps(
            FakeAnalyzer("a", requires=["nothing"], provides=["x"]),
            FakeAnalyzer("b", requires=["x"], provides=["y"]),
        )
    )

    assert plan.steps == ()
    assert {d.code for d in plan.diagnostics} == {"analyzer.refused"}


def test_given_facts_count_as_provided():
    result = run(FakeAnalyzer("a", requires=["g"], provides=["x"]), given={"g": 1})

    assert values(result.facts) == {"g": 1, "x": "a"}


def test_failing_step_costs_its_facts_and_those_that_need_them():
    result = run(
        FakeAnalyzer("a", provides=["x"], answer=ZeroDivisionError("boom")),
        FakeAnalyzer("b", requires=["x"], provides=["y"]),
        FakeAnalyzer("c", provides=["z"]),
    )

    assert values(result.facts) == {"z": "c"}
    assert [d.code for d in result.diagnostics] == ["analyzer.failed", "analyzer.skipped"]
    assert "ZeroDivisionError: boom" in result.diagnostics[0].fact


def test_expected_failure_of_a_step_shows_its_one_line():
    result = run(FakeAnalyzer("a", provides=["x"], answer=BadDataError("no rows")))

    assert "no rows" in result.diagnostics[0].fact


def test_fact_of_another_kind_is_no_fact():
    fact = Fact("x", int)
    analyzer = FakeAnalyzer("a", answer={fact: "1"})
    analyzer.provides = frozenset({fact})
    result = run(analyzer)

    assert fact not in result.facts
    assert "the fact 'x' is int, not str" in result.diagnostics[0].fact


def test_step_that_breaks_its_promise_is_reported():
    result = run(FakeAnalyzer("a", provides=["x"], answer=keyed({"other": 1})))

    assert Fact("x") not in result.facts
    assert "promised the facts x and gave other" in result.diagnostics[0].fact


class Remarking(Analyzer):
    summary = "for tests"

    def __init__(self, name, remarks):
        self.name, self.remarks = name, remarks

    def analyze(self, context):
        return AnalysisOutcome({}, remarks=self.remarks)


def test_remarks_are_kept_in_order_and_those_of_strangers_are_looked_at():
    sound = Remarking("a", ("of the machine", "of its clock"))
    kept = run(sound, Remarking("b", "no tuple"), Remarking("c", (1,)))
    assert kept.remarks == ("of the machine", "of its clock")
    assert [one.code for one in kept.diagnostics] == ["analyzer.failed"] * 2
    assert "which are no tuple of texts" in kept.diagnostics[0].fact
