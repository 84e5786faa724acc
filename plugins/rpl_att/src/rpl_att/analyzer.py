"""The analyzer of thread traces: the blocks of all traced kernels, and the figures that rules can test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_analysis.facts import KERNEL_TIMES
from rpl_att.analysis.figures import FIGURES, kernel_figures
from rpl_att.facts import ATT
from rpl_att.reader import EXTRA
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rpl_att.contract import AttPart
    from rpl_core.interfaces.fact import Fact

_UNNAMED = "(unknown kernel)"


class ThreadTraceAnalyzer(Analyzer):
    """Gives nothing but empty facts for recordings without a thread trace."""

    name = "thread-trace"
    summary = "why waves wait: stalls, latencies, loops and hot lines from instruction traces"
    requires = frozenset({KERNEL_TIMES})
    provides = frozenset({ATT, *FIGURES})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        traces = [t for recorded in context.recording.traces for t in recorded.extras.get(EXTRA, ())]
        if not traces:
            return AnalysisOutcome({ATT: {}, **dict.fromkeys(FIGURES)})
        # Imported for thread traces only: recordings without them are the rule.
        from rpl_analysis.architecture import architecture_of
        from rpl_att.analysis.att_block import att_block

        architecture = architecture_of(context) if context.device else None
        known = context.facts[KERNEL_TIMES] or {}
        blocks = [_named(att_block(trace, architecture), known) for trace in traces]
        by_kernel = {name: _joined(parts) for name, parts in _grouped(blocks).items()}
        facts: dict[Fact[Any], Any] = {ATT: by_kernel, **kernel_figures(by_kernel)}
        return AnalysisOutcome(facts, tuple(_diagnostics(blocks)))


def _named(block: AttPart, known: Iterable[str]) -> AttPart:
    """``block`` under the name that the timing runs use for the kernel, where they know it."""
    for name in known:
        if name in (block.kernel, block.symbol):
            return block.model_copy(update={"kernel": name})
    return block


def _grouped(blocks: Sequence[AttPart]) -> dict[str, list[AttPart]]:
    grouped: dict[str, list[AttPart]] = {}
    for block in blocks:
        grouped.setdefault(block.kernel or _UNNAMED, []).append(block)
    return dict(sorted(grouped.items()))


def _joined(blocks: list[AttPart]) -> AttPart:
    """The dispatch with the most traced instructions first; equal ones by dispatch id."""
    first, *others = sorted(blocks, key=lambda b: (-(b.instructions or 0), b.dispatch_id or 0, b.folder))
    return first.model_copy(update={"other_dispatches": tuple(others)})


def _diagnostics(blocks: Sequence[AttPart]) -> Iterable[Diagnostic]:
    for block in blocks:
        place = block.folder
        name = block.kernel or _UNNAMED
        if block.status in ("empty", "unreadable"):
            yield Diagnostic(
                "att.empty" if block.status == "empty" else "att.unreadable",
                f"the thread trace of {name} gives nothing: {block.reason}",
                where=place,
            )
        elif block.status == "partial":
            yield Diagnostic(
                "att.partial",
                f"the thread trace of {name} is partial: {block.reason}",
                severity=Severity.INFO,
                where=place,
            )
        for check in block.checks:
            if check.holds is False:
                yield Diagnostic(
                    "att.check_failed",
                    f"the thread trace of {name} contradicts itself: {check.name}: {check.detail}",
                    where=place,
                    remedy="do not rely on its figures; decode the trace again",
                )
        for warning in block.warnings:
            yield Diagnostic("att.damaged_part", warning, where=place)
