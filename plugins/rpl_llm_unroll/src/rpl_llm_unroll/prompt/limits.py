"""Sections on what the kernel costs the application, and on what limits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.figures import duration_ns, milliseconds, number, percent
from rpl_llm_unroll.prompt.figures import NOT_COLLECTED, bullets, metric, missing
from rpl_llm_unroll.prompt.model import Section
from rpl_llm_unroll.prompt.quoting import sentence

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import ConditionEvidence, KernelAnalysis
    from rpl_analysis.contracts.dag import SpeedupForecastPart
    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument
    from rpl_analysis.contracts.roofline import KernelRooflineDoc, RoofPart
    from rpl_llm_unroll.prompt.facts import RunFacts

_ROOFLINE, _LABEL = "Roofline", "Bottleneck"
_SHOWN_UNKNOWN = 6
_TITLE = "What the kernel costs"


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


def weight_section(facts: RunFacts) -> Section:
    if facts.profile is None:
        return Section(_TITLE, missing("no run was given"))
    origin = facts.origin or "of unknown origin"
    rows = [("GPU time of the application per run", _runtime(facts.profile, origin))]
    timing = facts.timing
    if timing is None:
        rows.append(("this kernel", missing("the run does not launch it")))
    else:
        rows += _own_time(timing, origin)
    return Section(_TITLE, bullets([*rows, *_path(facts)]))


def _runtime(profile: ProfileDocument, origin: str) -> str:
    if profile.runtime_ms is None:
        return missing(profile.runtime_reason)
    stability = profile.stability
    spread = f", CV {percent(stability.cv, 2)}" if stability.cv is not None else ""
    runs = f", {stability.runs} runs" if stability.runs else ""
    exact = ", an estimate" if profile.runtime_exactness == "estimate" else ""
    return f"{milliseconds(profile.runtime_ms)} ({origin}{exact}{runs}{spread})"


def _own_time(timing: KernelProfile, origin: str) -> list[tuple[str, str]]:
    if timing.runtime_ms is None:
        return [("this kernel per run", missing(timing.runtime_reason))]
    share = (
        f"{percent(timing.time_share)} of the GPU time" if timing.time_share is not None else NOT_COLLECTED
    )
    per_launch = duration_ns(timing.median_ns)
    return [
        ("this kernel per run", f"{milliseconds(timing.runtime_ms)} ({origin}), {share}"),
        ("launches per run", number(timing.launches)),
        ("median of one launch", per_launch if timing.median_ns is not None else NOT_COLLECTED),
    ]


def _path(facts: RunFacts) -> list[tuple[str, str]]:
    if facts.dag is None or facts.dag.status != "available":
        return [("critical path", missing(facts.dag.reason if facts.dag else "no run was given"))]
    own = facts.criticality
    if own is None:
        return [("critical path", missing("this kernel has no entry in the execution graph"))]
    ceiling = "unbounded" if own.speedup_ceiling is None else f"{own.speedup_ceiling:.3g}x"
    share = (
        f"f = {percent(own.criticality_weight)}; ceiling of the path's speed-up by this kernel alone: "
        f"1/(1-f) = {ceiling}"
    )
    rows = [("share of the critical path", share)]
    if own.path_ceiling is not None:
        rows.append(("the same with other paths taking over", f"{own.path_ceiling:.3g}x (modelled)"))
    return rows + [_gain(step) for step in (facts.forecast.speedups if facts.forecast else ())]


def _gain(step: SpeedupForecastPart) -> tuple[str, str]:
    what = "it cost nothing" if step.speedup is None else f"it ran {step.speedup:g} times as fast"
    gain = duration_ns(step.application_gain_ns)
    speedup = "" if step.application_speedup is None else f", {step.application_speedup:.4g}x"
    if step.application_gain_at_most_ns is not None:
        most = duration_ns(step.application_gain_at_most_ns)
        return (f"gain of the application if {what} (modelled)", f"{gain} to {most}: stream order unknown")
    return (f"gain of the application if {what} (modelled)", f"{gain}{speedup}")
