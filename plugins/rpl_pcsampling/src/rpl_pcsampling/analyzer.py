"""The analyzer of PC samples: blocks of all sampled kernels, and the figures that rules can test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_analysis.facts import KERNEL_QUANTITIES
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer, Fact
from rpl_core.interfaces.document import DocumentSection
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_pcsampling.samples import EXTRA, PC_SAMPLES, SAMPLED_ISSUE, SAMPLED_STALLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rpl_core.interfaces.document import DocumentContext
    from rpl_core.model.metric import Metric
    from rpl_pcsampling.contract import PcSampling, SampledKernel, StallShare

#: The fact of thread traces, by its name: they need not be installed.
_TRACES: Fact[Any] = Fact("att")
_UNNAMED = ""
_FORMULA = "samples of the kernel with this state / all of its samples, as a 95 % interval"


class PcSampleAnalyzer(Analyzer):
    """Gives nothing but empty facts for recordings without samples."""

    name = "pc-sampling"
    summary = "where waves are and why they do not issue: shares with intervals from PC samples"
    wants = frozenset({KERNEL_QUANTITIES, _TRACES})
    provides = frozenset({PC_SAMPLES, SAMPLED_ISSUE, *SAMPLED_STALLS.values()})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        recorded = [s for trace in context.recording.traces for s in trace.extras.get(EXTRA, ())]
        if not recorded:
            return AnalysisOutcome({PC_SAMPLES: {}, **dict.fromkeys(self.provides - {PC_SAMPLES})})
        # Imported for samples only: recordings without them are the rule.
        from rpl_pcsampling.counting import Beside, sampled_kernels

        beside = Beside(context.recording, context.facts.get(_TRACES), context.facts.get(KERNEL_QUANTITIES))
        kernels = [beside.joined(kernel) for samples in recorded for kernel in sampled_kernels(samples)]
        kernels.sort(key=lambda sampled: (-sampled.samples, sampled.kernel or _UNNAMED))
        by_name: dict[str, tuple[SampledKernel, ...]] = {}
        for kernel in kernels:
            name = kernel.kernel or _UNNAMED
            by_name[name] = (*by_name.get(name, ()), kernel)
        return AnalysisOutcome({PC_SAMPLES: by_name, **_figures(by_name)}, tuple(_diagnostics(kernels)))


def _figures(by_name: Mapping[str, tuple[SampledKernel, ...]]) -> Mapping[Fact[Any], Mapping[str, Metric]]:
    """Of the recording of each kernel with the most samples that tell of issue and stalls."""
    figures: dict[Fact[Any], dict[str, Metric]] = {SAMPLED_ISSUE: {}}
    figures |= {fact: {} for fact in SAMPLED_STALLS.values()}
    for name, blocks in by_name.items():
        block = next((kernel for kernel in blocks if kernel.stalls is not None), None)
        if name == _UNNAMED or block is None or block.stalls is None:
            continue
        for share in (block.issue_share, *block.stalls):
            if share is not None:
                fact = SAMPLED_STALLS.get(share.reason, SAMPLED_ISSUE if share.reason == "issued" else None)
                if fact is not None:
                    figures[fact][name] = _metric(share, block)
    return figures


def _metric(share: StallShare, block: SampledKernel) -> Metric:
    from rpl_core.model.metric import Exactness, Metric, Origin

    if block.status == "too_few_samples":
        return Metric.unknown("fraction", f"too few samples: {block.reason}")
    return Metric(
        value=share.share_low,
        upper=share.share_high,
        unit="fraction",
        exactness=Exactness.INTERVAL,
        origin=Origin(block.origin),
        formula=_FORMULA,
        source=f"{share.samples} of {block.samples} PC samples",
        note="of the sampled launches",
    )


def _diagnostics(kernels: Iterable[SampledKernel]) -> Iterator[Diagnostic]:
    few = [kernel for kernel in kernels if kernel.status == "too_few_samples"]
    if few:
        yield Diagnostic(
            "pcsampling.too_few_samples",
            "sampled kernels have too few samples to say where their time goes",
            severity=Severity.INFO,
            remedy="sample more often (--pc-interval), or let the application run longer",
            count=len(few),
        )
    for reason in sorted({kernel.kernel_reason for kernel in kernels if kernel.kernel_reason}):
        yield Diagnostic(
            "pcsampling.unnamed_kernels",
            f"PC samples have no kernel: {reason}",
            remedy="record the samples with --kernel-trace of rocprofv3 beside them",
        )
    if any(kernel.undecoded for kernel in kernels):
        yield Diagnostic(
            "pcsampling.undecoded",
            "samples are at instructions that the profiler could not decode",
            severity=Severity.INFO,
            cause="kernels of the runtime (copies, fills), or code that changes itself",
            count=sum(kernel.undecoded for kernel in kernels),
        )


# ``sections.pc_sampling`` of ``profile.json``.

FIELD = "pc_sampling"


class SamplesInProfile(DocumentSection):
    name = "pc-sampling"
    summary = "PC samples by kernel, source line and instruction, with intervals and stall reasons"
    document, field = "profile", FIELD

    def model(self) -> type[PcSampling]:
        from rpl_pcsampling.contract import PcSampling

        return PcSampling

    def draft(self, context: DocumentContext) -> PcSampling | None:
        kernels = [block for blocks in (context.facts.get(PC_SAMPLES) or {}).values() for block in blocks]
        if not kernels:
            return None
        from rpl_pcsampling.counting import CONFIDENCE, METHOD

        kernels.sort(key=lambda kernel: (-kernel.samples, kernel.kernel or ""))
        return self.model()(confidence=CONFIDENCE, interval=METHOD, kernels=tuple(kernels))
