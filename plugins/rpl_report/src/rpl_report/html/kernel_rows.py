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
    title: str
    meaning: str
    numeric: bool = True


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
    left_out: int


_COLUMNS = (
    Column("Time", "mean over runs of the summed dispatch time"),
    Column("Share", "of all kernel time"),
    Column("Criticality", "share of the critical path"),
    Column("Slack", "least that one dispatch may grow before the path does; 0 is critical"),
    Column("Bottleneck", "label and confidence of the classifier", numeric=False),
    Column("Calls", "dispatches per run"),
    Column("Median", "of single dispatches"),
    Column("Occup.", "theoretical occupancy: an upper bound from resources"),
    Column("Bandwidth", "achieved, beyond L2"),
    Column("FLOP/s", "achieved"),
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
    rows = [
        _row(kernel, labels.get(kernel.name), symbols.get(kernel.name), names, colours)
        for kernel in ranked
        if names.of(kernel.name)
    ]
    known = [any(_is_known(row.cells[i]) for row in rows) for i in range(len(_COLUMNS))]
    return KernelTable(
        columns=tuple(column for column, keep in zip(_COLUMNS, known, strict=True) if keep),
        rows=tuple(
            attrs.evolve(row, cells=tuple(c for c, keep in zip(row.cells, known, strict=True) if keep))
            for row in rows
        ),
        left_out=len(profile.kernels) - len(ranked),
    )


def _is_known(cell: Cell) -> bool:
    """A column in which no row says anything is left out."""
    return cell.label != "unclassified" if cell.label else bool(cell.key)


def _row(
    kernel: KernelProfile,
    classified: KernelAnalysis | None,
    symbol: SymbolCriticality | None,
    names: KernelNames,
    colours: Colours,
) -> KernelRow:
    roofline = kernel.roofline
    gbps = roofline.achieved_gbps if roofline else None
    gflops = roofline.achieved_gflops if roofline else None
    per_byte = roofline.operational_intensity if roofline else None
    slack = symbol.min_slack_ns if symbol else kernel.slack_ns
    weight = kernel.criticality_weight
    label = classified.bottleneck if classified else "unclassified"
    return KernelRow(
        id=names.of(kernel.name) or "",
        name=names.short(kernel.name),
        css=f"c{colours.of(kernel.name)}",
        cells=(
            _cell(kernel.runtime_ms, q.duration(time_ns(kernel))),
            _cell(kernel.time_share, q.share(kernel.time_share), bar=kernel.time_share),
            _cell(weight, q.share(weight), bar=weight),
            _cell(slack, q.duration(slack)),
            Cell(classified.confidence if classified else "none", label, label=label),
            _cell(kernel.launches, q.count(kernel.launches)),
            _cell(kernel.median_ns, q.duration(kernel.median_ns)),
            _cell(kernel.occupancy.theoretical, _occupancy(kernel.occupancy)),
            _cell(gbps, q.bytes_per_s(gbps)),
            _cell(gflops, q.flops(gflops)),
            _cell(per_byte, q.plain(per_byte)),
        ),
    )


def _cell(value: float | None, text: str, bar: float | None = None) -> Cell:
    return Cell(text, "" if value is None else repr(value), None if bar is None else 100 * bar)


def _occupancy(occupancy: OccupancyPart) -> str:
    if occupancy.theoretical is None and occupancy.theoretical_range is not None:
        return " to ".join(q.share(end, 0) for end in occupancy.theoretical_range)
    return q.share(occupancy.theoretical, 0)
