"""The bottleneck analyzer: one label per kernel, by the rules that plugins contributed."""

from __future__ import annotations

from rpl_analysis.bottleneck.classify import classify
from rpl_analysis.bottleneck.figures import KernelEvidence, figures_of
from rpl_analysis.bottleneck.lds import kernels_without_lds
from rpl_analysis.facts import BOTTLENECKS, KERNEL_QUANTITIES, KERNEL_TIMES, OCCUPANCY, ROOFLINE
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer


class BottleneckAnalyzer(Analyzer):
    """Fact ``BOTTLENECKS``: kernel name -> ``Classification``.

    Rules may test every scalar fact and every quantity of the device's counter map.
    """

    name = "bottleneck"
    summary = "one bottleneck label per kernel with its evidence"
    requires = frozenset({KERNEL_TIMES, OCCUPANCY, KERNEL_QUANTITIES, ROOFLINE})
    provides = frozenset({BOTTLENECKS})
    wants_figures = True

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        facts = context.facts
        quantities = facts.get(KERNEL_QUANTITIES) or {}
        rooflines = facts[ROOFLINE].kernels
        no_lds = kernels_without_lds(context.recording)
        found = {}
        for name, time in facts[KERNEL_TIMES].items():
            evidence = KernelEvidence(
                time=time,
                occupancy=facts[OCCUPANCY].get(name),
                roofline=rooflines.get(name),
                quantities=quantities.get(name),
                uses_lds=name not in no_lds,
                others=facts.figures(name),
            )
            figures = figures_of(evidence, context.device, context.recording.origin)
            found[name] = classify(name, figures, context.rules)
        return AnalysisOutcome({BOTTLENECKS: found})
