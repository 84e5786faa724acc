"""The contracts of an analyzer, a pure function to exactly its facts, and of a classifier rule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rpl_testkit.contracts.same_value import same_value
from rpl_testkit.contracts.side_effects import no_side_effects
from rpl_testkit.contracts.violation import demand, demand_kind

if TYPE_CHECKING:
    from rpl_analysis.interfaces import Rule
    from rpl_core.interfaces.analyzer import AnalysisContext, Analyzer


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
