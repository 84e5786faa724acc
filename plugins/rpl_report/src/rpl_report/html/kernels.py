"""The table of kernels, with the values that the script sorts by, and the details of each kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.text import unit_of
from rpl_core.text import counted, readable
from rpl_core.values import frozen
from rpl_report.html import figures as q
from rpl_report.html.figures import DETAILED_KERNELS, SHOWN_KERNELS, by_time, label_text, time_ns
from rpl_report.html.roofs import level_name, pipe_name

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import (
        AnalysisDocument,
        ConditionEvidence,
        KernelAnalysis,
        RuleEvidence,
    )
    from rpl_analysis.contracts.dag import DagDocument, SymbolCriticality
    from rpl_analysis.contracts.profile import KernelProfile, OccupancyPart, ProfileDocument
    from rpl_analysis.contracts.roofline import KernelRooflineDoc, RooflineDocument
    from rpl_core.model.metric import Metric
    from rpl_report.html.figures import Colours, KernelNames


@frozen
class Column:
    """``time``: its cells hold times without their unit, which the header tells."""

    title: str
    meaning: str
    numeric: bool = True
    time: bool = False


@frozen
class Cell:
    """``key`` is what sorting compares: a number, or text; "" for the unknown, which sorts last."""

    text: str
    key: str
    bar: float | None = None  # percent of the cell's width
    label: str | None = None  # a bottleneck label; ``text`` is then its confidence


@frozen
class KernelRow:
    id: str
    name: str
    css: str
    cells: tuple[Cell, ...]


@frozen
class KernelTable:
    columns: tuple[Column, ...]
    rows: tuple[KernelRow, ...]
    time_unit: str
    left_out: int


_COLUMNS = (
    Column("Time", "mean over runs of the summed dispatch time", time=True),
    Column("Share", "of all kernel time"),
    Column("Criticality", "share of the critical path"),
    Column("Slack", "least that one dispatch may grow before the path does; 0 is critical", time=True),
    Column("Bottleneck", "label and confidence of the classifier", numeric=False),
    Column("Calls", "dispatches per run"),
    Column("Median", "of single dispatches", time=True),
    Column("Occup.", "theoretical occupancy: an upper bound from resources"),
    Column("GB/s", "achieved bandwidth, beyond L2"),
    Column("GFLOP/s", "achieved"),
    Column("FLOP/B", "operational intensity"),
)


def kernel_table(
    profile: ProfileDocument,
    dag: DagDocument,
    analysis: AnalysisDocument,
    names: KernelNames,
    colours: Colours,
) -> KernelTable:
    """The kernels with the most time, longest first."""
    labels = {entry.kernel: entry for entry in analysis.kernels}
    symbols = {symbol.name: symbol for symbol in dag.symbols if symbol.kind == "kernel"}
    ranked = by_time(profile)[:SHOWN_KERNELS]
    times = [_times_ns(kernel, symbols.get(kernel.name)) for kernel in ranked]
    longest_ns = max((ns for kernel_times in times for ns in kernel_times if ns is not None), default=None)
    rows = [
        _table_row(
            kernel,
            labels.get(kernel.name),
            [_cell(ns, q.table_time(ns, longest_ns)) for ns in kernel_times],
            names,
            colours,
        )
        for kernel, kernel_times in zip(ranked, times, strict=True)
        if names.of(kernel.name)
    ]
    known = [any(_is_known(row.cells[i]) for row in rows) for i in range(len(_COLUMNS))]
    return KernelTable(
        columns=tuple(column for column, keep in zip(_COLUMNS, known, strict=True) if keep),
        rows=tuple(
            attrs.evolve(row, cells=tuple(c for c, keep in zip(row.cells, known, strict=True) if keep))
            for row in rows
        ),
        time_unit=q.table_unit(longest_ns),
        left_out=len(profile.kernels) - len(ranked),
    )


def _times_ns(kernel: KernelProfile, symbol: SymbolCriticality | None) -> tuple[float | None, ...]:
    """Time per run, slack, median."""
    return time_ns(kernel), symbol.min_slack_ns if symbol else kernel.slack_ns, kernel.median_ns


def _is_known(cell: Cell) -> bool:
    """A column in which no row says anything is left out."""
    return cell.label != "unclassified" if cell.label else bool(cell.key)


def _table_row(
    kernel: KernelProfile,
    classified: KernelAnalysis | None,
    times: list[Cell],
    names: KernelNames,
    colours: Colours,
) -> KernelRow:
    roofline = kernel.roofline
    gbps = roofline.achieved_gbps if roofline else None
    gflops = roofline.achieved_gflops if roofline else None
    per_byte = roofline.operational_intensity if roofline else None
    time, slack, median = times
    weight = kernel.criticality_weight
    label = classified.bottleneck if classified else "unclassified"
    return KernelRow(
        id=names.of(kernel.name) or "",
        name=names.short(kernel.name),
        css=f"c{colours.of(kernel.name)}",
        cells=(
            time,
            _cell(kernel.time_share, q.share(kernel.time_share), bar=kernel.time_share),
            _cell(weight, q.share(weight), bar=weight),
            slack,
            Cell(classified.confidence if classified else "none", label, label=label),
            _cell(kernel.launches, q.count(kernel.launches)),
            median,
            _cell(kernel.occupancy.theoretical, _occupancy_share(kernel.occupancy)),
            _cell(gbps, q.plain(gbps)),
            _cell(gflops, q.plain(gflops)),
            _cell(per_byte, q.plain(per_byte)),
        ),
    )


def _cell(value: float | None, text: str, bar: float | None = None) -> Cell:
    return Cell(text, "" if value is None else repr(value), None if bar is None else 100 * bar)


def _occupancy_share(occupancy: OccupancyPart) -> str:
    if occupancy.theoretical is None and occupancy.theoretical_range is not None:
        return " to ".join(q.share(end, 0) for end in occupancy.theoretical_range)
    return q.share(occupancy.theoretical, 0)


# Details of one kernel: its full name, why it has its label, its metrics with how exact each is.


@frozen
class MetricRow:
    name: str
    value: str
    exactness: str
    origin: str
    how: str


def metric_rows(kernel: KernelRooflineDoc) -> tuple[MetricRow, ...]:
    """Per launch: operations by data type, traffic by level, rates, cache behaviour."""
    return tuple(_metric_row(name, metric) for name, metric in _metrics(kernel))


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


def _metric_row(name: str, metric: Metric) -> MetricRow:
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
        ("Occupancy", _occupancy_sentence(kernel)),
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


def _occupancy_sentence(kernel: KernelProfile) -> str:
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
