"""The analyzer of the application's own ranges."""

from __future__ import annotations

from rpl_analysis.execution_graph.analyzer import median_run
from rpl_analysis.facts import PHASES
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.trace import RANGES

__all__ = ["PhasesAnalyzer"]


class PhasesAnalyzer(Analyzer):
    """Fact ``PHASES`` of the run that the execution graph shows; ``None`` where no range was recorded."""

    name = "phases"
    summary = "GPU time, share and dominant kernel of each range that the application marked"
    provides = frozenset({PHASES})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        chosen = median_run(context.recording)
        if chosen is None or not chosen[1].extras.get(RANGES):
            return AnalysisOutcome({PHASES: None})
        from rpl_analysis.phases.report import phase_report

        run, trace = chosen
        return AnalysisOutcome({PHASES: phase_report(trace, run)})
