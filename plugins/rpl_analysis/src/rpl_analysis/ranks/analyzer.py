"""The analyzer of GPUs and ranks that ran at once."""

from __future__ import annotations

from rpl_analysis.execution_graph.analyzer import median_run
from rpl_analysis.facts import RANKS
from rpl_analysis.hookspecs import COLLECTIVE_RULES
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer

__all__ = ["RanksAnalyzer"]


class RanksAnalyzer(Analyzer):
    """Fact ``RANKS`` of the run that the execution graph shows; counter passes keep GPUs waiting."""

    name = "ranks"
    summary = "time per GPU and rank, imbalance per kernel, collectives and the wait for the slowest"
    provides = frozenset({RANKS})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        from rpl_analysis.ranks.report import rank_report

        chosen = median_run(context.recording)
        if chosen is None:
            return AnalysisOutcome({RANKS: None})
        run, trace = chosen
        return AnalysisOutcome({RANKS: rank_report(trace, run, context.offered(COLLECTIVE_RULES))})
