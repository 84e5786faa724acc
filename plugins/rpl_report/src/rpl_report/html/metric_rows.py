"""Metrics of a kernel as table rows: value, how exact, and the formula or the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpl_analysis.text.figures import unit_of
from rpl_core.text.safety import readable
from rpl_core.values import frozen
from rpl_report.html import figures as q
from rpl_report.html.roofline.roofs import level_name, pipe_name

if TYPE_CHECKING:
    from rpl_analysis.contracts.roofline import KernelRooflineDoc
    from rpl_core.contracts.common import MetricDoc

__all__ = ["MetricRow", "metric_rows"]


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


def _metrics(kernel: KernelRooflineDoc) -> Iterator[tuple[str, MetricDoc]]:
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


def _row(name: str, metric: MetricDoc) -> MetricRow:
    return MetricRow(
        name=readable(name, 80),
        value=_value(metric),
        exactness=(metric.exactness or "-").replace("_", " "),
        origin=metric.origin or "-",
        how=readable(_how(metric), 240),
    )


def _value(metric: MetricDoc) -> str:
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


def _how(metric: MetricDoc) -> str:
    if metric.value is None:
        return metric.reason or "no reason given"
    if metric.missing:
        return f"{metric.formula or ''} (without {', '.join(metric.missing)})".strip()
    return metric.formula or metric.source or ""
