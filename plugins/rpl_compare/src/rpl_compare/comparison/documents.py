"""``compare.json`` from judged items: translation, nothing is computed here but ratios from shifts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rpl_compare.comparison.model import Method
from rpl_compare.contract import (
    CompareDocument,
    DriftPart,
    GatePart,
    ItemPart,
    MethodPart,
    OneSidedKernel,
    SamplePart,
    SidePart,
)
from rpl_core import __version__
from rpl_core.contracts.common import SCHEMA_VERSION, ProvenanceDoc
from rpl_core.documents import diagnostic_docs
from rpl_core.model.metric import Origin
from rpl_measure.estimates import median, robust_cv
from rpl_measure.samples import Kind, Sample, Statistic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_compare.comparison.compare import Comparison
    from rpl_compare.comparison.model import Judged
    from rpl_measure.series import Drift
    from rpl_measure.side import Side

UNPAIRED_TEST = "Mann-Whitney U, two-sided, exact up to 60 runs; Hodges-Lehmann ratio with its rank interval"
PAIRED_TEST = "Wilcoxon signed-rank on log ratios, two-sided, exact up to 50 pairs; Hodges-Lehmann ratio"


def compare_document(comparison: Comparison) -> CompareDocument:
    """The document; equal comparisons give equal documents."""
    items = [_item(judged, comparison.method) for judged in comparison.items]
    return CompareDocument(
        schema_version=SCHEMA_VERSION,
        provenance=ProvenanceDoc(
            tool_version=__version__,
            origin=Origin.weakest([comparison.base.origin, comparison.new.origin]).value,
        ),
        diagnostics=diagnostic_docs(comparison.diagnostics),
        method=_method(comparison),
        gate=_gate(comparison),
        base=_side(comparison.base),
        new=_side(comparison.new),
        application=tuple(item for item in items if item.kind != Kind.KERNEL.value),
        kernels=tuple(item for item in items if item.kind == Kind.KERNEL.value),
        only_base=_one_sided(comparison.only_base),
        only_new=_one_sided(comparison.only_new),
    )


def _method(comparison: Comparison) -> MethodPart:
    method, rule = comparison.method, comparison.rule
    return MethodPart(
        mode="interleaved" if method.paired else "unpaired",
        statistic=_statistic(comparison.statistic),
        test=PAIRED_TEST if method.paired else UNPAIRED_TEST,
        alpha=rule.alpha,
        looks=method.looks,
        pairs=len(comparison.base.runs) if method.paired else None,
        min_share=rule.min_share,
        forced=rule.forced,
    )


def _statistic(statistic: Statistic) -> str:
    return statistic.value


def _gate(comparison: Comparison) -> GatePart:
    gate = comparison.gate
    return GatePart(
        outcome=gate.outcome.value,
        reasons=gate.reasons,
        fail_above=comparison.rule.fail_above,
        gated_items=gate.gated_items,
        worst_item=gate.worst.key.name if gate.worst else None,
        worst_change=gate.worst_change,
    )


def _side(side: Side) -> SidePart:
    manifest = side.manifests[0] if side.manifests else None
    return SidePart(
        label=side.label,
        runs=len(side.runs),
        processes=max(run.processes for run in side.runs),
        origin=side.origin.value,
        device=_device(side),
        range=side.range,
        command=side.command,
        collector=manifest.collector if manifest else None,
        collector_version=manifest.collector_version if manifest else None,
        formats=tuple(sorted({fact.format for fact in side.facts})),
        provenance=ProvenanceDoc(
            tool_version=manifest.tool_version if manifest else None,
            origin=side.origin.value,
            device=manifest.device if manifest else None,
            device_source=manifest.device_source if manifest else None,
            artefacts=tuple(doc for fact in side.facts for doc in fact.artefacts),
            plugins=manifest.plugins if manifest else (),
        ),
    )


def _device(side: Side) -> str | None:
    names = {gpu.product or gpu.architecture for gpu in side.gpus} - {None}
    return ", ".join(sorted(str(name) for name in names)) or None


def _item(judged: Judged, method: Method) -> ItemPart:
    evidence = judged.evidence
    ratio = None if evidence.shift is None else math.exp(evidence.shift)
    low, high = evidence.interval or (None, None)
    return ItemPart(
        name=judged.key.name,
        kind=judged.key.kind.value,
        gated=judged.gated,
        verdict=judged.verdict.value,
        reason=judged.reason,
        excludes_regression=judged.excludes_regression,
        base=_sample(judged.base, evidence.base_drift),
        new=_sample(judged.new, evidence.new_drift),
        ratio=ratio,
        change=None if evidence.shift is None else math.expm1(evidence.shift),
        ratio_low=None if low is None else math.exp(low),
        ratio_high=None if high is None else math.exp(high),
        confidence=1 - method.alpha,
        p=evidence.p,
        p_adjusted=judged.p_adjusted,
        noise=evidence.cv,
        minimum_detectable_change=judged.minimum_detectable_change,
        runs_needed=judged.runs_needed,
    )


def _sample(sample: Sample, drift: Drift | None) -> SamplePart:
    return SamplePart(
        runs=len(sample.values_ns),
        values_ns=sample.values_ns,
        median_ns=median(sample.values_ns) if sample.values_ns else None,
        cv=robust_cv(sample.values_ns),
        launches=sample.launches,
        share=sample.share,
        drift=None
        if drift is None
        else DriftPart(rho=drift.rho, p=drift.p, change=drift.change, flagged=drift.flagged),
    )


def _one_sided(samples: Iterable[tuple[str, Sample]]) -> tuple[OneSidedKernel, ...]:
    """Largest first."""
    rows: Sequence[tuple[str, Sample]] = sorted(samples, key=lambda row: (-(row[1].share or 0.0), row[0]))
    return tuple(
        OneSidedKernel(
            name=name,
            runs=len(sample.values_ns),
            median_ns=median(sample.values_ns),
            launches=sample.launches or 0.0,
            share=sample.share,
        )
        for name, sample in rows
    )
