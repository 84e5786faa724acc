"""The analyzer that says what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.advice.next_steps import Known, next_steps
from rpl_analysis.facts import BOTTLENECKS, EXECUTION_GRAPH, KERNEL_QUANTITIES, NEXT_STEPS, RANKS
from rpl_analysis.hookspecs import ADVICE
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.metric import Origin

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording

__all__ = ["AdviceAnalyzer"]


class AdviceAnalyzer(Analyzer):
    """Fact ``NEXT_STEPS``, from the advice that plugins offer."""

    name = "advice"
    summary = "what to do next, in order of expected gain, and what would confirm it"
    requires = frozenset({BOTTLENECKS})
    wants = frozenset({EXECUTION_GRAPH, KERNEL_QUANTITIES, RANKS})
    provides = frozenset({NEXT_STEPS})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        facts = context.facts
        known = Known(
            classifications=facts[BOTTLENECKS],
            quantities=facts.get(KERNEL_QUANTITIES) or {},
            graph=facts.get(EXECUTION_GRAPH),
            ranks=facts.get(RANKS),
            device=context.device,
            has_counters=bool(context.recording.counter_passes),
            architectures=_architectures(context.recording),
            modelled=any(trace.origin is Origin.MODELLED for trace in context.recording.timing_runs),
        )
        return AnalysisOutcome({NEXT_STEPS: next_steps(known, tuple(context.offered(ADVICE)))})


def _architectures(recording: Recording) -> tuple[str, ...]:
    """Those that the recording names, sorted."""
    agents = (agent for trace in recording.traces for agent in trace.agents)
    return tuple(sorted({agent.architecture for agent in agents if agent.architecture}))
