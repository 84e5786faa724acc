"""The analyzer of thread traces: a block per traced kernel, figures for rules, fields of ``profile.json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rpl_analysis.facts import KERNEL_TIMES
from rpl_att.reader import EXTRA
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer, Fact, KernelFigure
from rpl_core.interfaces.document import DocumentContext, DocumentSection
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.metric import Exactness, Metric, Origin

if TYPE_CHECKING:
    from rpl_att.contract import AttPart
    from rpl_core.contracts.common import MetricDoc

# The facts that thread traces give, by key.

#: Kernel name -> block of its most traced dispatch, with the others inside. Kernels by name.
ATT: Fact[Mapping[str, AttPart]] = Fact("att", Mapping)
#: Part of the traced waves' life in which they waited for memory or were idle.
TRACE_HEADROOM = KernelFigure("trace_headroom")
# Under the names of quantities that counters give, too: a trace answers where there are no counters.
DEPENDENCY_WAIT_FRACTION = KernelFigure("dependency_wait_fraction")
VALU_UTILIZATION = KernelFigure("valu_utilization")
MFMA_UTILIZATION = KernelFigure("mfma_utilization")


FIGURES = (TRACE_HEADROOM, DEPENDENCY_WAIT_FRACTION, VALU_UTILIZATION, MFMA_UTILIZATION)
_NOTE = "of the traced waves of one dispatch"


def kernel_figures(traces: Mapping[str, AttPart]) -> Mapping[Fact[Any], Mapping[str, Metric]]:
    """Each figure by kernel name, for the kernels whose traces allow it."""
    figures: dict[Fact[Any], dict[str, Metric]] = {figure: {} for figure in FIGURES}
    for kernel, part in traces.items():
        for figure, metric in _figures(part).items():
            if metric is not None:
                figures[figure][kernel] = metric
    return figures


def _figures(part: AttPart) -> Mapping[Fact[Any], Metric | None]:
    waiting = part.stall_split.memory_wait_fraction if part.stall_split else None
    return {
        TRACE_HEADROOM: _metric(part.headroom_fraction, "(memory wait + idle) / total", part.headroom_source),
        DEPENDENCY_WAIT_FRACTION: _metric(waiting, "memory wait / total", "thread trace"),
        VALU_UTILIZATION: _sampled(part.valu_utilization),
        MFMA_UTILIZATION: _sampled(part.mfma_utilization),
    }


def _sampled(doc: MetricDoc | None) -> Metric | None:
    """Only what counters beside the trace measured: a modelled utilisation is no evidence for a label."""
    if doc is None or doc.origin != "measured":
        return None
    return _metric(doc.value, doc.formula, "thread trace, sampled counters")


def _metric(value: float | None, formula: str | None, source: str | None) -> Metric | None:
    if value is None:
        return None
    return Metric(
        value=min(1.0, value),
        unit="fraction",
        exactness=Exactness.ESTIMATE,
        origin=Origin.MEASURED,
        formula=formula,
        source=source,
        note=_NOTE,
    )


# The analyzer.

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
        from rpl_analysis.occupancy import architecture_of
        from rpl_att.analysis.att_block import att_block

        architecture = architecture_of(context) if context.device else None
        known = context.facts[KERNEL_TIMES] or {}
        blocks = [_with_known_name(att_block(trace, architecture), known) for trace in traces]
        by_kernel = {name: _joined(parts) for name, parts in _grouped(blocks).items()}
        facts: dict[Fact[Any], Any] = {ATT: by_kernel, **kernel_figures(by_kernel)}
        return AnalysisOutcome(facts, tuple(_diagnostics(blocks)))


def _with_known_name(block: AttPart, known: Iterable[str]) -> AttPart:
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


# The fields of ``profile.json`` that hold thread traces.


class _ThreadTraces(DocumentSection):
    document = "profile"

    def model(self) -> type[AttPart]:
        from rpl_att.contract import AttPart

        return AttPart


class TimedTraces(_ThreadTraces):
    """``att`` of the application and of each kernel that the document knows."""

    name = "thread-traces"
    summary = "the thread trace of each kernel, and that of the longest-running one"
    field = "att"

    def draft(self, context: DocumentContext) -> AttPart | None:
        """That of the longest-running traced kernel; without times, that with most instructions."""
        timed = self.kernels(context)
        if timed:
            return next(iter(timed.values()))
        return max(_traces(context).values(), key=lambda part: part.instructions or 0, default=None)

    def kernels(self, context: DocumentContext) -> Mapping[str, AttPart]:
        traces = _traces(context)
        return {name: traces[name] for name in _timed(context) if name in traces}


class UntimedTraces(_ThreadTraces):
    """Traces of kernels that the timing runs do not know, or that nobody timed."""

    name = "untimed-thread-traces"
    summary = "thread traces of kernels without a time in the document"
    field = "untimed_thread_traces"

    def draft(self, context: DocumentContext) -> tuple[AttPart, ...] | None:
        timed = _timed(context)
        return tuple(part for name, part in _traces(context).items() if name not in timed) or None


def _traces(context: DocumentContext) -> Mapping[str, AttPart]:
    return context.facts.get(ATT) or {}


def _timed(context: DocumentContext) -> Mapping[str, object]:
    """Kernels with a time, the longest-running first."""
    return context.facts.get(KERNEL_TIMES) or {}
