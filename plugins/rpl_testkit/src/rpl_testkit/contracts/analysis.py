"""Contracts of what analyses and shows: analyzers, classifier rules, renderers, doctor checks."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from rpl_testkit.contracts.violation import demand, demand_kind, no_side_effects, same_value

if TYPE_CHECKING:
    from rpl_analysis.interfaces import Rule
    from rpl_core.interfaces.analyzer import AnalysisContext, Analyzer
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.renderer import Renderer, RenderRequest


def assert_analyzer(analyzer: Analyzer, context: AnalysisContext) -> None:
    """Run ``analyzer`` twice on ``context``, which must hold the facts that it requires."""
    from rpl_core.interfaces.analyzer import AnalysisOutcome

    subject = demand_kind("rpl_analyzers", analyzer)
    demand(bool(analyzer.provides), subject, "provides nothing")
    demand(not analyzer.provides & analyzer.requires, subject, "requires what it provides")
    lacking = sorted(fact.name for fact in analyzer.requires if fact not in context.facts)
    demand(not lacking, subject, f"the test's context lacks the required facts {lacking}")
    analyzer.analyze(context)  # imports what it needs before files are forbidden
    with no_side_effects(subject):
        first = analyzer.analyze(context)
        second = analyzer.analyze(context)
    demand(isinstance(first, AnalysisOutcome), subject, "analyze() returns an AnalysisOutcome")
    promised, given = set(analyzer.provides), set(first.facts)
    names = [sorted(fact.name for fact in facts) for facts in (promised, given)]
    demand(given == promised, subject, f"provides {names[0]} but returned {names[1]}")
    for fact, value in first.facts.items():
        problem = fact.violation(value)
        demand(problem is None, subject, problem or "")
    demand(same_value(first, second), subject, "the same recording gives two different results")


def assert_rule(rule: Rule) -> None:
    """Check one rule."""
    from rpl_analysis.interfaces import Comparison

    subject = demand_kind("rpl_classifier_rules", rule)
    for condition in rule.conditions:
        what = f"condition on {condition.quantity!r}"
        demand(condition.quantity.isidentifier(), subject, f"{what} names no quantity")
        demand(isinstance(condition.comparison, Comparison), subject, f"{what} has no Comparison")
        demand(math.isfinite(condition.threshold), subject, f"{what} has no finite threshold")
        demand(bool(condition.source.strip()), subject, f"{what} must cite its source or say 'chosen'")


# The contracts of what people read: the text of a renderer, and what a doctor check found.

#: Generous for loaded test machines; the interface asks for a second or two.
_LIMIT_S = 20.0


def assert_renderer(renderer: Renderer, request: RenderRequest) -> None:
    """Check the output for ``request``; put hostile kernel names into its documents."""
    subject = demand_kind("rpl_renderers", renderer)
    demand(renderer.suffix.startswith("."), subject, "suffix begins with a dot")
    text = renderer.render(request)
    demand(isinstance(text, str), subject, "render() returns text")
    demand(bool(text.strip()), subject, "the output is empty")
    demand("\x1b" not in text, subject, "a name in the documents reached the output as a terminal escape")
    demand(renderer.render(request) == text, subject, "the same documents give two different outputs")


def assert_doctor_check(check: DoctorCheck) -> None:
    """Run the check once."""
    from rpl_core.interfaces.doctor import DoctorReport, DoctorStatus

    subject = demand_kind("rpl_doctor_checks", check)
    begin = time.monotonic()
    report = check.check()
    seconds = time.monotonic() - begin
    demand(isinstance(report, DoctorReport), subject, "check() returns a DoctorReport")
    demand(isinstance(report.status, DoctorStatus), subject, "status is a DoctorStatus")
    demand(bool(report.fact.strip()), subject, "the report states a fact")
    healthy = report.status is DoctorStatus.OK
    demand(healthy or bool((report.remedy or "").strip()), subject, "what is not ok needs a remedy")
    demand(healthy or bool(report.needed_for.strip()), subject, "what is not ok says what it is needed for")
    demand(seconds < _LIMIT_S, subject, f"it took {seconds:.0f} s")
