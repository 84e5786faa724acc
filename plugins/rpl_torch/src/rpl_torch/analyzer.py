"""The analyzer of torch.profiler traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.execution_graph.analyzer import median_run
from rpl_analysis.facts import EXECUTION_GRAPH
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.text import counted, shorten
from rpl_torch.model import TORCH, TORCH_REPORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_torch.contracts import TorchPart, TorchShapePart

__all__ = ["TorchAnalyzer"]

_SHOWN = 60


class TorchAnalyzer(Analyzer):
    """Fact ``TORCH_REPORT`` of the run that the execution graph shows."""

    name = "torch"
    summary = "time and path per operator, module, line and shape; modelled work; idle time; collectives"
    wants = frozenset({EXECUTION_GRAPH})
    provides = frozenset({TORCH_REPORT})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        chosen = median_run(context.recording)
        if chosen is None or not chosen[1].extras.get(TORCH):
            return AnalysisOutcome({TORCH_REPORT: None})
        # Imported for these traces only: recordings of other profilers are the rule.
        from rpl_torch.analysis import torch_report

        run, trace = chosen
        part = torch_report(trace, run, context.facts.get(EXECUTION_GRAPH), context.device)
        return AnalysisOutcome({TORCH_REPORT: part}, () if part is None else tuple(_diagnostics(part)))


def _diagnostics(part: TorchPart) -> Iterator[Diagnostic]:
    above = [shape for shape in part.shapes if shape.above_peak]
    if above:
        yield Diagnostic(
            "torch.above_peak",
            f"{counted(len(above), 'kind of call has', 'kinds of calls have')} a modelled rate above the "
            f"device's peak: {', '.join(map(_excess, above[:3]))}",
            severity=Severity.ERROR,
            cause="the implementation does less than the definition (Winograd, reduced precision), a cache "
            "serves what counts as memory traffic, or the recorded time is not the operator's",
            remedy="do not use these rates; counters tell what the hardware did",
            count=len(above),
        )
    if part.unmodelled:
        calls, time = sum(u.calls for u in part.unmodelled), sum(u.time_ns for u in part.unmodelled)
        names = list(dict.fromkeys(shorten(u.operator, _SHOWN) for u in part.unmodelled))
        share = time / part.time_ns if part.time_ns else 0.0
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield Diagnostic(
            "torch.no_formula",
            f"{counted(calls, 'call', 'calls')} of {counted(len(names), 'operator', 'operators')} with "
            f"{share:.1%} of the time {'has' if calls == 1 else 'have'} no modelled work: {shown}",
            severity=Severity.INFO,
            count=calls,
        )
    nobody = next((o for o in part.operators if o.name is None), None)
    if nobody is not None:
        yield Diagnostic(
            "torch.no_operator",
            counted(nobody.launches, "kernel or copy has", "kernels and copies have")
            + " no operator in the trace",
            severity=Severity.INFO,
            cause="launched before the profiler began, by a graph, or outside of PyTorch",
            count=nobody.launches,
        )


def _excess(shape: TorchShapePart) -> str:
    share = max(shape.compute_share or 0.0, shape.memory_share or 0.0)
    what = "compute" if (shape.compute_share or 0.0) >= (shape.memory_share or 0.0) else "memory"
    return (
        f"{shorten(shape.operator, _SHOWN)} {shorten(shape.dims, _SHOWN)} at {share:.0%} of the {what} peak"
    )
