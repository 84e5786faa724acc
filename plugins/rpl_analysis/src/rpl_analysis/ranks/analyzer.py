"""The analyzer of GPUs and ranks that ran at once."""

from __future__ import annotations

from rpl_analysis.execution_graph.analyzer import median_run
from rpl_analysis.facts import RANKS
from rpl_analysis.hookspecs import COLLECTIVE_RULES
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.text import counted

__all__ = ["MANY_RANKS", "RanksAnalyzer"]

#: From so many ranks on the command that sums them up one by one is named (chosen: four machines of eight).
MANY_RANKS = 32


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
        report = rank_report(trace, run, context.offered(COLLECTIVE_RULES))
        ranks = 0 if report is None else len(report.ranks) + report.ranks_left_out
        return AnalysisOutcome({RANKS: report}, (_many_ranks(ranks),) if ranks >= MANY_RANKS else ())


def _many_ranks(ranks: int) -> Diagnostic:
    return Diagnostic(
        "ingest.many_ranks",
        f"{counted(ranks, 'rank was', 'ranks were')} held in memory at once",
        severity=Severity.INFO,
        remedy="`rpl ranks FOLDER` reads one after the other, any number of them",
    )
