"""The execution-graph analyzer: the graph of the timing run with the median runtime."""

from __future__ import annotations

from rpl_analysis.execution_graph.build import execution_graph
from rpl_analysis.execution_graph.results.findings import graph_diagnostics
from rpl_analysis.execution_graph.results.model import ExecutionGraph
from rpl_analysis.facts import EXECUTION_GRAPH
from rpl_analysis.options import COPIES, FULL_GRAPH
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.recording import Recording
from rpl_core.model.trace import Trace


class ExecutionGraphAnalyzer(Analyzer):
    """Fact ``EXECUTION_GRAPH``. Counter passes serialise dispatches and never become a graph."""

    name = "execution-graph"
    summary = "critical path, slack, what-if and idle time from the real dependencies of a run"
    provides = frozenset({EXECUTION_GRAPH})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        chosen = median_run(context.recording)
        if chosen is None:
            reason = why_no_graph(context.recording)
            none = ExecutionGraph(status="unavailable", reason=reason)
            return AnalysisOutcome({EXECUTION_GRAPH: none})
        run, trace = chosen
        options = context.options
        graph = execution_graph(trace, run, include_copies=options[COPIES], with_columns=options[FULL_GRAPH])
        return AnalysisOutcome({EXECUTION_GRAPH: graph}, graph_diagnostics(graph, trace))


def median_run(recording: Recording) -> tuple[int, Trace] | None:
    """The timing run whose summed dispatch time is the (lower) median: a whole run, not a mixture."""
    runs = [entry for entry in enumerate(recording.timing_runs) if len(entry[1].dispatches)]
    if len(runs) < 2:
        return runs[0] if runs else None
    timed = [(int(trace.dispatches.duration_ns().sum()), number, trace) for number, trace in runs]
    _, number, trace = sorted(timed, key=lambda entry: entry[:2])[(len(timed) - 1) // 2]
    return number, trace


def why_no_graph(recording: Recording) -> str:
    if recording.counter_passes:
        return (
            "only counter passes were recorded: they serialise dispatches, so no order can be read from them"
        )
    if recording.process_ms:
        return "only the process was timed: no GPU trace exists"
    return "no kernel dispatch was recorded"
