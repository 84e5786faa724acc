"""The bottleneck analyzer: one label per kernel, by the rules that plugins contributed."""

from __future__ import annotations

from rpl_analysis.bottleneck.classify import classify
from rpl_analysis.bottleneck.figures import KernelEvidence, figures_of
from rpl_analysis.bottleneck.lds import kernels_without_lds
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer


class BottleneckAnalyzer(Analyzer):
    """Fact ``"bottlenecks"``: kernel name -> ``Classification``."""

    name = "bottleneck"
    summary = "one bottleneck label per kernel with its evidence"
    requires = frozenset(
        {"kernel_times", "occupancy", "kernel_quantities", "roofline", "att", "classifier_rules"}
    )
    provides = frozenset({"bottlenecks"})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        facts = context.facts
        quantities = facts["kernel_quantities"] or {}
        rooflines = facts["roofline"].kernels
        no_lds = kernels_without_lds(context.recording)
        found = {}
        for name, time in facts["kernel_times"].items():
            evidence = KernelEvidence(
                time=time,
                occupancy=facts["occupancy"].get(name),
                roofline=rooflines.get(name),
                quantities=quantities.get(name),
                thread_trace=facts["att"].get(name),
                uses_lds=name not in no_lds,
            )
            figures = figures_of(evidence, context.device, context.recording.origin)
            found[name] = classify(name, figures, facts["classifier_rules"])
        return AnalysisOutcome({"bottlenecks": found})
