"""The contract of an analyzer: a pure function from recording and facts to exactly its promised facts."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs

from rpl_testkit.contracts.same_value import same_value
from rpl_testkit.contracts.side_effects import no_side_effects
from rpl_testkit.contracts.violation import demand, demand_kind

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import AnalysisContext, Analyzer


def assert_analyzer(analyzer: Analyzer, context: AnalysisContext) -> None:
    """Run ``analyzer`` twice on ``context``, which must hold the facts that it requires."""
    from rpl_core.interfaces.analyzer import AnalysisOutcome

    subject = demand_kind("rpl_analyzers", analyzer)
    demand(bool(analyzer.provides), subject, "provides nothing")
    demand(not analyzer.provides & analyzer.requires, subject, "requires what it provides")
    lacking = sorted(analyzer.requires - set(context.facts))
    demand(not lacking, subject, f"the test's context lacks the required facts {lacking}")
    sealed = attrs.evolve(context, facts=MappingProxyType(dict(context.facts)))
    analyzer.analyze(sealed)  # imports what it needs before files are forbidden
    with no_side_effects(subject):
        first = analyzer.analyze(sealed)
        second = analyzer.analyze(sealed)
    demand(isinstance(first, AnalysisOutcome), subject, "analyze() returns an AnalysisOutcome")
    promised, given = set(analyzer.provides), set(first.facts)
    demand(given == promised, subject, f"provides {sorted(promised)} but returned {sorted(given)}")
    demand(same_value(first, second), subject, "the same recording gives two different results")
