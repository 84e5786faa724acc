"""Counter values per kernel, the quantities a device derives from them, and the passes to collect them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

from rpl_analysis.facts import KERNEL_COUNTERS, KERNEL_QUANTITIES
from rpl_analysis.occupancy import architecture_of
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer, Fact
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.metric import Origin

if TYPE_CHECKING:
    from rpl_analysis.counters.quantities import KernelQuantities


class CountersAnalyzer(Analyzer):
    """Joins counter passes and evaluates the device's counter map.

    Both facts are ``None`` when no counter pass was recorded; the quantities also when the device is
    unknown.
    """

    name = "counters"
    summary = "counter values and derived quantities per kernel"
    provides = frozenset({KERNEL_COUNTERS, KERNEL_QUANTITIES})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        passes = context.recording.counter_passes
        if not passes:
            return AnalysisOutcome({KERNEL_COUNTERS: None, KERNEL_QUANTITIES: None})
        # Imported for recordings with counters only: start-up is most of a small analysis.
        from rpl_analysis.counters.join import JoinRules, join_counters
        from rpl_analysis.counters.quantities import derive_quantities

        device = context.device
        joined = join_counters(context.recording, JoinRules.of(device, architecture_of(context)))
        if device is None:
            facts: dict[Fact[Any], Any] = {KERNEL_COUNTERS: joined.kernels, KERNEL_QUANTITIES: None}
            return AnalysisOutcome(facts, (*joined.diagnostics, _device_unknown()))
        origin = Origin.weakest([trace.origin for trace in passes])
        quantities: dict[str, KernelQuantities] = {}
        problems: Counter[Diagnostic] = Counter()
        for name, kernel in joined.kernels.items():
            quantities[name], diagnostics = derive_quantities(kernel, device, origin)
            problems.update(diagnostics)
        return AnalysisOutcome(
            {KERNEL_COUNTERS: joined.kernels, KERNEL_QUANTITIES: quantities},
            (
                *joined.diagnostics,
                *(attrs.evolve(problem, count=kernels) for problem, kernels in problems.items()),
            ),
        )


def _device_unknown() -> Diagnostic:
    return Diagnostic(
        "counters.device_unknown",
        "counters were recorded, but no device model says what they mean",
        Severity.WARNING,
        cause="the recording names no GPU that an installed plugin knows",
        remedy="name the device with --device (`rpl devices` lists the names), or install its plugin",
    )
