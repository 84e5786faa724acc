"""The analyzer of the application's own ranges."""

from __future__ import annotations

from rpl_analysis.execution_graph.analyzer import median_run
from rpl_analysis.facts import PHASES
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer

__all__ = ["PhasesAnalyzer"]


class PhasesAnalyzer(Analyzer):
    """Fact ``PHASES`` of the run that the execution graph shows; ``None`` where no range was recorded."""

    name = "phases"
    summary = "GPU time, share and dominant kernel of each range that the application marked"
    provides = frozenset({PHASES})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        from rpl_analysis.phases.report import phase_report

        chosen = median_run(context.recording)
        return AnalysisOutcome({PHASES: None if chosen is None else phase_report(chosen[1], chosen[0])})
