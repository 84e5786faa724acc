"""Details of one kernel: its full name, why it has its label, what was measured and how exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.renderers.html import quantities as q
from rpl_core.renderers.html.metric_rows import MetricRow, metric_rows
from rpl_core.renderers.html.names import readable

if TYPE_CHECKING:
    from rpl_core.contracts.analysis import AnalysisDocument, ConditionEvidence, KernelAnalysis, RuleEvidence
    from rpl_core.contracts.dag import DagDocument, SymbolCriticality
    from rpl_core.contracts.profile import KernelProfile, ProfileDocument
    from rpl_core.contracts.roofline import RooflineDocument
    from rpl_core.renderers.html.colours import Colours
    from rpl_core.renderers.html.names import KernelNames

__all__ = ["ConditionRow", "KernelDetail", "RuleView", "kernel_details"]


@attrs.frozen
class ConditionRow:
    quantity: str
    test: str
    value: str
    verdict: str  # "yes", "no" or "unknown"
    source: str
    exactness: str


@attrs.frozen
class RuleView:
    rule: str
    label: str
    explanation: str
    conditions: tuple[ConditionRow, ...]


@attrs.frozen
class KernelDetail:
    id: str
    css: str
    short: str
    full: str
    label: str
    confidence: str
    reason: str
    headroom: str
    facts: tuple[tuple[str, str], ...]
    evidence: tuple[RuleView, ...]
    near_misses: tuple[RuleView, ...]
    unknown: tuple[str, ...]
    metrics: tuple[MetricRow, ...]


def kernel_details(
    profile: ProfileDocument,
    dag: DagDocument,
    analysis: AnalysisDocument,
    roofline: RooflineDocument,
    names: KernelNames,
    colours: Colours,
) -> tuple[KernelDetail, ...]:
    """One per kernel that has an id, in the order of the ids."""
    kernels = {kernel.name: kernel for kernel in profile.kernels}
    labels = {entry.kernel: entry for entry in analysis.kernels}
    symbols = {symbol.name: symbol for symbol in dag.symbols if symbol.kind == "kernel"}
    rooflines = {entry.name: entry for entry in roofline.kernels}
    found = []
    for name, identity in names.ids.items():
        label = labels.get(name)
        entry = rooflines.get(name)
        found.append(
            KernelDetail(
                id=identity,
                css=f"c{colours.of(name)}",
                short=names.short(name),
                full=names.full[name],
                label=label.bottleneck.replace("_", " ") if label else "unclassified",
                confidence=label.confidence if label else "none",
                reason=readable(label.reason, 800) if label else "not classified",
                headroom=_headroom(label),
                facts=tuple(_facts(kernels[name], symbols.get(name))),
                evidence=tuple(_rule(rule) for rule in label.evidence) if label else (),
                near_misses=tuple(_rule(rule) for rule in label.near_misses) if label else (),
                unknown=tuple(readable(text, 300) for text in label.unknown) if label else (),
                metrics=metric_rows(entry) if entry else (),
            )
        )
    return tuple(found)


def _headroom(label: KernelAnalysis | None) -> str:
    if label is None or label.headroom_fraction is None:
        return ""
    return f"{q.share(label.headroom_fraction)} ({readable(label.headroom_source or 'source unknown', 160)})"


def _facts(kernel: KernelProfile, symbol: SymbolCriticality | None) -> list[tuple[str, str]]:
    occupancy, resources, part = kernel.occupancy, kernel.resources, kernel.kernel
    facts = [
        (
            "Time per run",
            f"{q.duration(kernel.runtime_ms * 1e6)} ({kernel.runtime_exactness}), {q.count(kernel.launches)} dispatches",
        ),
        (
            "One dispatch",
            f"median {q.duration(kernel.median_ns)}, {q.duration(kernel.min_ns)} to {q.duration(kernel.max_ns)}",
        ),
        ("Launch", _launch(kernel)),
        (
            "Registers",
            f"{_or_dash(resources.arch_vgpr)} VGPR + {_or_dash(resources.accum_vgpr)} AGPR, {_or_dash(resources.sgpr_per_wave)} SGPR",
        ),
        (
            "LDS, scratch",
            f"{_or_dash(resources.lds_bytes)} B per workgroup, {_or_dash(resources.scratch_bytes)} B per work-item",
        ),
        (
            "Occupancy",
            _occupancy(kernel)
            if occupancy.theoretical is not None
            else f"unknown: {occupancy.reason or '?'}",
        ),
    ]
    if symbol is not None:
        facts.append(
            (
                "On the graph",
                f"{q.duration(symbol.on_path_ns)} on the path, {q.count(symbol.critical_nodes)} of "
                f"{q.count(symbol.nodes)} dispatches critical; slack {q.duration(symbol.min_slack_ns)} least, "
                f"{q.duration(symbol.median_slack_ns)} median",
            )
        )
        if symbol.slack_ns is not None:
            facts.append(
                ("May slow down by", f"{q.duration(symbol.slack_ns)} in all, spread evenly, at no cost")
            )
    if part.reason:
        facts.append(("Note", part.reason))
    return [(label, readable(text, 300)) for label, text in facts]


def _launch(kernel: KernelProfile) -> str:
    part = kernel.kernel
    if part.grid is None or part.block is None:
        return "not recorded"
    shapes = f", {part.shape_count} shapes" if part.shape_count and part.shape_count > 1 else ""
    return f"{_axes(part.grid)} workgroups of {_axes(part.block)}{shapes}"


def _axes(values: tuple[int, ...]) -> str:
    return " × ".join(str(value) for value in values)


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def _occupancy(kernel: KernelProfile) -> str:
    found = kernel.occupancy
    text = f"{q.share(found.theoretical, 0)}: {found.waves_per_simd} of {found.max_waves_per_simd} waves per SIMD"
    if found.limiter:
        text += f", limited by {found.limiter.replace('_', ' ')}"
    if found.next_threshold:
        text += f"; one more wave at {found.next_threshold}"
    return text


def _rule(rule: RuleEvidence) -> RuleView:
    return RuleView(
        rule=readable(rule.rule, 80),
        label=rule.label.replace("_", " "),
        explanation=readable(rule.explanation, 400),
        conditions=tuple(_condition(condition) for condition in rule.conditions),
    )


def _condition(condition: ConditionEvidence) -> ConditionRow:
    verdict = {True: "yes", False: "no", None: "unknown"}[condition.holds]
    return ConditionRow(
        quantity=readable(condition.quantity, 80),
        test=f"{'≥' if condition.comparison == '>=' else condition.comparison} {q.plain(condition.threshold)}",
        value=q.plain(condition.value),
        verdict=verdict,
        source=readable(condition.source, 300),
        exactness=condition.exactness or "-",
    )
