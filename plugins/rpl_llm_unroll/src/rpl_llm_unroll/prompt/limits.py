"""Sections on what limits the kernel: roofline by data type, and the bottleneck label with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.figures import number, percent
from rpl_llm_unroll.prompt.figures import NOT_COLLECTED, bullets, metric, missing
from rpl_llm_unroll.prompt.model import Section
from rpl_llm_unroll.prompt.quoting import sentence

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import ConditionEvidence, KernelAnalysis
    from rpl_analysis.contracts.roofline import KernelRooflineDoc, RoofPart
    from rpl_llm_unroll.prompt.facts import RunFacts

_ROOFLINE, _LABEL = "Roofline", "Bottleneck"
_SHOWN_UNKNOWN = 6


def roofline_section(facts: RunFacts) -> Section:
    """Per launch, from hardware counters; never invented where none were collected."""
    if facts.roofline is None:
        return Section(_ROOFLINE, missing("no run was given"))
    if facts.roofline.status != "available":
        return Section(_ROOFLINE, missing(facts.roofline.reason))
    work = facts.work
    if work is None:
        return Section(_ROOFLINE, missing("no counters of this kernel"))
    rows = [
        ("operational intensity (FLOP per byte of HBM)", metric(work.operational_intensity, "FLOP/B")),
        ("achieved arithmetic", metric(work.achieved_gflops)),
        ("achieved memory traffic", metric(work.achieved_gbps)),
        ("bound", f"{work.bound or 'not decided'}: {sentence(work.bound_reason)}"),
        ("achieved / attainable at this intensity", metric(work.position, "")),
    ]
    rows += _roof("data-sheet ceilings", work.spec) + _roof(
        f"{work.measured.origin or 'measured'} ceilings", work.measured
    )
    return Section(_ROOFLINE, bullets([*rows, *_types(work), *_levels(work)]))


def _roof(name: str, roof: RoofPart) -> list[tuple[str, str]]:
    if roof.peak_gflops is None and roof.peak_gbps is None:
        return []
    ridge = f", ridge at {number(roof.ridge)} FLOP/B" if roof.ridge is not None else ""
    shares = f"compute {metric(roof.compute_share, '')}, memory {metric(roof.memory_share, '')}"
    return [(f"shares of the {name}", f"{shares}{ridge}")]


def _types(work: KernelRooflineDoc) -> list[tuple[str, str]]:
    if not work.types:
        known = "none was counted" if work.flops.value is not None else missing(work.flops.reason)
        return [("operations by data type", known)]
    return [
        (
            f"{t.data_type} operations on {t.pipe} per launch",
            f"{metric(t.operations, '')}, rate {metric(t.gops, '10^9/s')}",
        )
        for t in work.types
    ]


def _levels(work: KernelRooflineDoc) -> list[tuple[str, str]]:
    return [(f"{level.level} traffic per launch", metric(level.bytes)) for level in work.levels]


def bottleneck_section(facts: RunFacts, *, evidence: bool = True) -> Section:
    """The label, how sure it is, what decided it and the headroom."""
    if facts.analysis is None:
        return Section(_LABEL, missing("no run was given"))
    label = facts.label
    if label is None:
        return Section(_LABEL, missing("the run has no analysis of this kernel"))
    headroom = missing(label.headroom_reason)
    if label.headroom_fraction is not None:
        source = sentence(label.headroom_source or "an unnamed source")
        headroom = f"{percent(label.headroom_fraction)} of its time (estimate from {source})"
    rows = [
        ("label", f"{label.bottleneck}, confidence {label.confidence}"),
        ("why", sentence(label.reason)),
        ("headroom", headroom),
    ]
    return Section(_LABEL, bullets(rows + (_evidence(label) if evidence else [])))


def _evidence(label: KernelAnalysis) -> list[tuple[str, str]]:
    rows = [
        (f"evidence ({rule.rule})", _condition(part)) for rule in label.evidence for part in rule.conditions
    ]
    rows += [
        (f"nearly ({rule.label}, {rule.rule})", "; ".join(_condition(part) for part in rule.conditions))
        for rule in label.near_misses
    ]
    if label.unknown:
        shown = "; ".join(sentence(text) for text in label.unknown[:_SHOWN_UNKNOWN])
        rest = len(label.unknown) - _SHOWN_UNKNOWN
        rows.append(("not collected", shown + (f"; and {rest} more" if rest > 0 else "")))
    return rows


def _condition(part: ConditionEvidence) -> str:
    value = number(part.value) if part.value is not None else NOT_COLLECTED
    exact = f" ({part.exactness})" if part.exactness and part.exactness != "exact" else ""
    return f"{part.quantity} = {value}{exact}, tested {part.comparison} {part.threshold:g}"
