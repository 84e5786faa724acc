"""The table of kernels: one row each, with the values that the script sorts by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen
from rpl_report.html import figures as q
from rpl_report.html.kernel_identity import SHOWN_KERNELS, by_time, time_ns

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import AnalysisDocument, KernelAnalysis
    from rpl_analysis.contracts.dag import DagDocument, SymbolCriticality
    from rpl_analysis.contracts.profile import KernelProfile, OccupancyPart, ProfileDocument
    from rpl_report.html.kernel_identity import Colours, KernelNames

__all__ = ["Cell", "Column", "KernelRow", "KernelTable", "kernel_table"]


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
    longest_ns = max((ns for own in times for ns in own if ns is not None), default=None)
    rows = [
        _row(
            kernel,
            labels.get(kernel.name),
            [_cell(ns, q.table_time(ns, longest_ns)) for ns in own],
            names,
            colours,
        )
        for kernel, own in zip(ranked, times, strict=True)
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


def _row(
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
            _cell(kernel.occupancy.theoretical, _occupancy(kernel.occupancy)),
            _cell(gbps, q.plain(gbps)),
            _cell(gflops, q.plain(gflops)),
            _cell(per_byte, q.plain(per_byte)),
        ),
    )


def _cell(value: float | None, text: str, bar: float | None = None) -> Cell:
    return Cell(text, "" if value is None else repr(value), None if bar is None else 100 * bar)


def _occupancy(occupancy: OccupancyPart) -> str:
    if occupancy.theoretical is None and occupancy.theoretical_range is not None:
        return " to ".join(q.share(end, 0) for end in occupancy.theoretical_range)
    return q.share(occupancy.theoretical, 0)
