"""Details of one kernel: its full name, why it has its label, its metrics with how exact each is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpl_analysis.text.figures import unit_of
from rpl_core.text.safety import readable
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_report.html import figures as q
from rpl_report.html.kernel_identity import DETAILED_KERNELS, label_text, time_ns
from rpl_report.html.roofline.roofs import level_name, pipe_name

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import (
        AnalysisDocument,
        ConditionEvidence,
        KernelAnalysis,
        RuleEvidence,
    )
    from rpl_analysis.contracts.dag import DagDocument, SymbolCriticality
    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument
    from rpl_analysis.contracts.roofline import KernelRooflineDoc, RooflineDocument
    from rpl_core.model.metric import Metric
    from rpl_report.html.kernel_identity import Colours, KernelNames


@frozen
class MetricRow:
    name: str
    value: str
    exactness: str
    origin: str
    how: str


def metric_rows(kernel: KernelRooflineDoc) -> tuple[MetricRow, ...]:
    """Per launch: operations by data type, traffic by level, rates, cache behaviour."""
    return tuple(_row(name, metric) for name, metric in _metrics(kernel))


def _metrics(kernel: KernelRooflineDoc) -> Iterator[tuple[str, Metric]]:
    yield "FLOPs per launch", kernel.flops
    yield "FLOPs, per-op model", kernel.models.per_op
    yield "FLOPs, VALU-width model", kernel.models.valu_width
    for name, metric in sorted(kernel.corrections.items()):
        yield f"FLOPs, {name.replace('_', ' ')}", metric
    for work in kernel.types:
        yield f"{work.data_type} on {pipe_name(work.pipe)}", work.gops
    for level in kernel.levels:
        yield f"{level_name(level.level)} traffic", level.bytes
        yield f"{level_name(level.level)} rate", level.achieved_gbps
    yield "Share of the arithmetic ceiling (spec)", kernel.spec.compute_share
    yield "Share of the memory ceiling (spec)", kernel.spec.memory_share
    yield (
        f"Share of the memory ceiling ({kernel.measured.origin or 'measured'})",
        kernel.measured.memory_share,
    )
    for name, metric in sorted(kernel.caches.items()):
        yield name.replace("_", " "), metric


def _row(name: str, metric: Metric) -> MetricRow:
    return MetricRow(
        name=readable(name, 80),
        value=_metric_value(metric),
        exactness=(metric.exactness or "-").replace("_", " "),
        origin=metric.origin or "-",
        how=readable(_how(metric), 240),
    )


def _metric_value(metric: Metric) -> str:
    if metric.value is None:
        return "unknown"
    text = _with_unit(metric.value, metric.unit)
    return f"{text} to {_with_unit(metric.upper, metric.unit)}" if metric.upper is not None else text


def _with_unit(value: float, unit: str) -> str:
    if unit in ("", "1", "fraction", "ratio"):
        return q.share(value)
    if unit == "B":
        return q.bytes_per_s(value / 1e9).removesuffix("/s")
    if unit == "FLOP":
        return q.flops(value / 1e9).removesuffix("/s")
    if unit in ("GB/s", "GFLOP/s"):
        return q.bytes_per_s(value) if unit == "GB/s" else q.flops(value)
    return f"{q.plain(value)} {unit_of(value, unit)}"


def _how(metric: Metric) -> str:
    if metric.value is None:
        return metric.reason or "no reason given"
    if metric.missing:
        return f"{metric.formula or ''} (without {', '.join(metric.missing)})".strip()
    return metric.formula or metric.source or ""


@frozen
class ConditionRow:
    quantity: str
    test: str
    value: str
    verdict: str  # "yes", "no" or "unknown"
    source: str
    exactness: str
    how: str


@frozen
class RuleView:
    rule: str
    label: str
    explanation: str
    conditions: tuple[ConditionRow, ...]


@frozen
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
    metrics_left_out: bool


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
    details = []
    for rank, (name, identity) in enumerate(names.ids.items()):
        label = labels.get(name)
        entry = rooflines.get(name)
        details.append(
            KernelDetail(
                id=identity,
                css=f"c{colours.of(name)}",
                short=names.short(name),
                full=names.full[name],
                label=label_text(label.bottleneck) if label else "unclassified",
                confidence=label.confidence if label else "none",
                reason=readable(label.reason, 800) if label else "not classified",
                headroom=_headroom(label),
                facts=tuple(_facts(kernels[name], symbols.get(name))),
                evidence=tuple(_rule(rule) for rule in label.evidence) if label else (),
                near_misses=tuple(_rule(rule) for rule in label.near_misses) if label else (),
                unknown=tuple(readable(text, 300) for text in label.unknown) if label else (),
                metrics=metric_rows(entry) if entry and rank < DETAILED_KERNELS else (),
                metrics_left_out=entry is not None and rank >= DETAILED_KERNELS,
            )
        )
    return tuple(details)


def _headroom(label: KernelAnalysis | None) -> str:
    if label is None:
        return ""
    if label.headroom_fraction is None:
        return f"unknown ({readable(label.headroom_reason, 300)})" if label.headroom_reason else ""
    return f"{q.share(label.headroom_fraction)} ({readable(label.headroom_source or 'source unknown', 160)})"


def _facts(kernel: KernelProfile, symbol: SymbolCriticality | None) -> list[tuple[str, str]]:
    resources = kernel.resources
    registers = (resources.arch_vgpr, resources.accum_vgpr, resources.sgpr_per_wave)
    vgpr, agpr, sgpr = (_or_dash(value) for value in registers)
    launches = counted(kernel.launches, "dispatch", "dispatches", shown=q.count(kernel.launches))
    extent = f"{q.duration(kernel.min_ns)} to {q.duration(kernel.max_ns)}"
    facts = [
        ("Time per run", f"{q.duration(time_ns(kernel))} ({kernel.runtime_exactness}), {launches}"),
        (
            "One dispatch",
            f"median {q.duration(kernel.median_ns)}, {extent}",
        ),
        ("Launch", _launch(kernel)),
        ("Registers", f"{vgpr} VGPR + {agpr} AGPR, {sgpr} SGPR"),
        ("LDS", f"{_or_dash(resources.lds_bytes)} B per workgroup"),
        ("Scratch", f"{_or_dash(resources.scratch_bytes)} B per work-item"),
        ("Occupancy", _occupancy(kernel)),
    ]
    if symbol is not None:
        facts += _on_graph(symbol)
    if kernel.kernel.reason:
        facts.append(("Note", kernel.kernel.reason))
    return [(label, readable(text, 300)) for label, text in facts]


def _on_graph(symbol: SymbolCriticality) -> list[tuple[str, str]]:
    of = f"{q.count(symbol.critical_nodes)} of {q.count(symbol.nodes)} dispatches critical"
    slack = f"{q.duration(symbol.min_slack_ns)} least, {q.duration(symbol.median_slack_ns)} median"
    facts = [
        ("On the critical path", f"{q.duration(symbol.on_path_ns)}, {of}"),
        ("Slack of one dispatch", slack),
    ]
    if symbol.slack_ns is not None:
        facts.append(("May slow down by", f"{q.duration(symbol.slack_ns)} in all, spread evenly, at no cost"))
    return facts


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
    occupancy = kernel.occupancy
    if occupancy.theoretical is None:
        return f"unknown: {occupancy.reason or 'no reason given'}"
    waves = f"{occupancy.waves_per_simd} of {occupancy.max_waves_per_simd} waves per SIMD"
    text = f"{q.share(occupancy.theoretical, 0)}: {waves}"
    if occupancy.limiter:
        text += f", limited by {occupancy.limiter.replace('_', ' ')}"
    if occupancy.next_threshold:
        text += f"; one more wave at {occupancy.next_threshold}"
    return text


def _rule(rule: RuleEvidence) -> RuleView:
    return RuleView(
        rule=readable(rule.rule, 80),
        label=label_text(rule.label),
        explanation=readable(rule.explanation, 400),
        conditions=tuple(_condition(condition) for condition in rule.conditions),
    )


def _condition(condition: ConditionEvidence) -> ConditionRow:
    verdict = {True: "yes", False: "no", None: "unknown"}[condition.holds]
    comparison = "≥" if condition.comparison == ">=" else condition.comparison
    return ConditionRow(
        quantity=readable(condition.quantity, 80),
        test=f"{comparison} {q.plain(condition.threshold)}",
        value=_condition_value(condition),
        verdict=verdict,
        source=readable(condition.source, 300),
        exactness=condition.exactness or "-",
        how=readable("; ".join(text for text in (condition.formula, condition.note) if text), 300),
    )


def _condition_value(condition: ConditionEvidence) -> str:
    if condition.value is None or condition.upper is None:
        return q.plain(condition.value)
    return f"{q.plain(condition.value)} to {q.plain(condition.upper)}"
