"""The execution-graph analyzer: the graph of the timing run with the median runtime."""

from __future__ import annotations

from rpl_core.analysis.execution_graph.build import execution_graph
from rpl_core.analysis.execution_graph.model import ExecutionGraph
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.recording import Recording
from rpl_core.model.trace import Trace


class ExecutionGraphAnalyzer(Analyzer):
    """Fact ``"execution_graph"``. Counter passes serialise dispatches and never become a graph."""

    name = "execution-graph"
    summary = "critical path, slack and criticality per kernel"
    provides = frozenset({"execution_graph"})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        chosen = _median_run(context.recording)
        if chosen is None:
            reason = _why_not(context.recording)
            return AnalysisOutcome({"execution_graph": ExecutionGraph(reason=reason)})
        run, trace = chosen
        graph = execution_graph(trace, run, include_copies=context.options.include_copies)
        return AnalysisOutcome({"execution_graph": graph}, _diagnostics(graph))


def _median_run(recording: Recording) -> tuple[int, Trace] | None:
    """The timing run whose summed dispatch time is the (lower) median: a whole run, not a mixture."""
    runs = [
        (int(trace.dispatches.duration_ns().sum()), number, trace)
        for number, trace in enumerate(recording.timing_runs)
        if len(trace.dispatches)
    ]
    if not runs:
        return None
    _, number, trace = sorted(runs, key=lambda entry: entry[:2])[(len(runs) - 1) // 2]
    return number, trace


def _why_not(recording: Recording) -> str:
    if recording.counter_passes:
        return (
            "only counter passes were recorded: they serialise dispatches, so no order can be read from them"
        )
    if recording.process_ms:
        return "only the process was timed: no GPU trace exists"
    return "no kernel dispatch was recorded"


def _diagnostics(graph: ExecutionGraph) -> tuple[Diagnostic, ...]:
    found = []
    if graph.edges and graph.edges[0].kind == "queue":
        found.append(
            Diagnostic(
                "graph.queues_for_streams",
                "the recording has no usable stream ids: hardware queues stand in for streams",
                cause="--group-by-queue, an old profiler, or a program that uses the null stream only",
                remedy="record with rocprofv3 of ROCm 7.0 or later without --group-by-queue",
                severity=Severity.INFO,
            )
        )
    if graph.chain_overlaps:
        found.append(
            Diagnostic(
                "graph.chain_overlap",
                f"{graph.chain_overlaps} nodes overlap their predecessor in the same stream or queue "
                "and hang on the last one that had ended",
                cause="several streams share the queue, or clock inaccuracies of the firmware",
                severity=Severity.INFO,
                count=graph.chain_overlaps,
            )
        )
    return tuple(found)
