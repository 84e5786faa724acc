"""The table of kernels in the text report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from rpl_analysis.text.figures import UNKNOWN, duration_ns, in_unit, marked, occupancy_share, percent
from rpl_analysis.text.names import fit_table
from rpl_core.text.alike import did_you_mean
from rpl_core.text.safety import printable
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_report.options import ALL, KERNEL, TOP, chosen_kernels

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import AnalysisDocument, KernelAnalysis
    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument, ResourcesPart
    from rpl_analysis.contracts.roofline import RooflinePart
    from rpl_core.interfaces.renderer import RenderRequest

__all__ = ["NAME_WIDTH", "kernel_table"]

NAME_WIDTH = 48
_BAR = 8
#: What a column without any figure holds; it is left out.
_NOTHING = (UNKNOWN, "unclassified (none)", "-/-/0")


@frozen
class Column:
    """``cell`` makes the text from a kernel and its label.

    ``dropped`` says when the column goes where the width does not allow all: 1 first; ``None``: it stays.
    ``timed``: cells are durations, whose unit stands in the heading.
    """

    title: str
    cell: Callable[[KernelProfile, KernelAnalysis | None], str]
    right: bool = True
    dropped: int | None = None
    timed: bool = False


def _runtime_ns(kernel: KernelProfile) -> float | None:
    return None if kernel.runtime_ms is None else kernel.runtime_ms * 1e6


def _bandwidth(roofline: RooflinePart) -> str:
    """GB/s; a rate above the memory ceiling is marked, since it is no HBM bandwidth."""
    above = "hbm" in roofline.exceeds_ceiling
    rate = _figure(roofline, "achieved_gbps")
    return rate + (" (above HBM)" if above else "")


def _intensity(roofline: RooflinePart) -> str:
    return _figure(roofline, "operational_intensity")


def _figure(roofline: RooflinePart, name: str) -> str:
    return marked(getattr(roofline, name), roofline.exactness_of.get(name), roofline.upper_of.get(name))


def _resources(used: ResourcesPart) -> str:
    """Registers per work-item and per wave, bytes of LDS per workgroup; one dash where nothing is known.

    Where all kernels have no registers recorded and no LDS, the column says nothing either (``_NOTHING``).
    """
    counts = (used.vgpr_per_thread, used.sgpr_per_wave, used.lds_bytes)
    if all(count is None for count in counts):
        return UNKNOWN
    return "/".join(UNKNOWN if count is None else str(count) for count in counts)


def _label(label: KernelAnalysis | None) -> str:
    return f"{label.bottleneck} ({label.confidence})" if label else UNKNOWN


_COLUMNS = (
    Column("kernel", lambda k, _: k.name, right=False),
    Column("calls", lambda k, _: f"{k.launches:,.10g}", dropped=4),
    Column("time", lambda k, _: duration_ns(_runtime_ns(k)), timed=True),
    Column("share", lambda k, _: percent(k.time_share), dropped=9),
    Column("median", lambda k, _: duration_ns(k.median_ns), dropped=1, timed=True),
    Column("occup.", lambda k, _: occupancy_share(k.occupancy), dropped=6),
    Column("limiter", lambda k, _: k.occupancy.limiter or UNKNOWN, right=False, dropped=3),
    Column("VGPR/SGPR/LDS", lambda k, _: _resources(k.resources), dropped=2),
    Column("crit.", lambda k, _: percent(k.criticality_weight), dropped=8),
    Column("GB/s", lambda k, _: _bandwidth(k.roofline) if k.roofline else UNKNOWN, dropped=7),
    Column("FLOP/B", lambda k, _: _intensity(k.roofline) if k.roofline else UNKNOWN, dropped=5),
    Column("bottleneck", lambda _, found: _label(found), right=False),
)


def kernel_table(
    profile: ProfileDocument, analysis: AnalysisDocument, names: Mapping[str, str], request: RenderRequest
) -> str:
    """One line per kernel, with notes on what the width does not allow; the empty text without kernels.

    Columns in which nothing is known are folded into one line with the reason. Those for which there is no
    room stand in a second table. Times have the unit of the heading.
    """
    if not profile.kernels:
        return ""
    chosen = chosen_kernels(profile.kernels, names, request.options)
    if not chosen:
        wanted = request.options[KERNEL] or ""
        return (
            f"(no kernel's name holds {printable(wanted)}{printable(did_you_mean(wanted, names.values()))})"
        )
    labels = {entry.kernel: entry for entry in analysis.kernels}
    shown = chosen if request.options[ALL] else chosen[: request.options[TOP]]
    every = [
        (names.get(kernel.name, kernel.name), *_cells(kernel, labels.get(kernel.name), request))
        for kernel in shown
    ]
    told = [i for i in range(len(_COLUMNS)) if i == 0 or any(row[i] not in _NOTHING for row in every)]
    unit = in_unit(0)[1]
    columns = [evolve(c, title=f"{c.title} {unit}") if c.timed else c for c in (_COLUMNS[i] for i in told)]
    rows = [tuple(row[i] for i in told) for row in every]
    table, missed = _fitted(columns, rows, request.width)
    rest = chosen[len(shown) :]
    notes = [f"({_left_out(rest)}: --all shows them, profile.json holds them)"] if rest else []
    notes += _folded([_COLUMNS[i].title for i in range(len(_COLUMNS)) if i not in told], profile, request)
    if missed:
        left = [i for i, column in enumerate(columns) if column.title in missed]
        called = [line.split("  ", 1)[0] for line in table.splitlines()[1:]]  # as cut in the first table
        rows = [(name, *(row[i] for i in left)) for name, row in zip(called, rows, strict=True)]
        more, missed = _fitted([columns[i] for i in (0, *left)], rows, request.width)
        notes += ["", more]
    if missed:
        notes.append(f"(no room for {', '.join(missed)}: see profile.json, or use a wider terminal)")
    return "\n".join((table, *notes))


def _cells(kernel: KernelProfile, label: KernelAnalysis | None, request: RenderRequest) -> Iterator[str]:
    """The figures of one row; on a terminal the share of the time has a bar."""
    for column in _COLUMNS[1:]:
        cell = column.cell(kernel, label)
        if column.timed:
            cell = cell.partition(" ")[0]
        elif column.title == "share" and request.terminal and kernel.time_share is not None:
            cell = f"{cell} {bar(kernel.time_share, _BAR)}"
        yield cell


def bar(share: float, width: int) -> str:
    """A bar of ``width`` characters in eighths of a character, filled with blanks."""
    eighths = round(share * width * 8)
    part = " ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else ""
    return f"{'█' * (eighths // 8)}{part}".ljust(width)


def _left_out(kernels: Sequence[KernelProfile]) -> str:
    """How many kernels have no row, and how much time they take."""
    shares = [kernel.time_share for kernel in kernels]
    known = sum(share for share in shares if share is not None)
    share = f" with {percent(known)} of the time" if None not in shares else ""
    return f"{counted(len(kernels), 'more kernel')}{share}"


def _folded(titles: Sequence[str], profile: ProfileDocument, request: RenderRequest) -> Sequence[str]:
    """Columns without a figure, under the reason that explains them."""
    dag, roofline = request.documents.get("dag"), request.documents.get("roofline")
    resources = next((k.occupancy.reason for k in profile.kernels if k.occupancy.reason), None)
    reasons = {
        "crit.": getattr(dag, "reason", None),
        **dict.fromkeys(("GB/s", "FLOP/B"), getattr(roofline, "reason", None)),
        **dict.fromkeys(("occup.", "limiter"), resources),
        "VGPR/SGPR/LDS": "registers were not recorded",
        "bottleneck": "no rule is proven by what was recorded",
    }
    by_reason: dict[str, list[str]] = {}
    for title in titles:
        by_reason.setdefault(reasons.get(title) or "not recorded", []).append(title)
    return [f"(no {', '.join(same)}: {printable(reason)})" for reason, same in by_reason.items()]


def _fitted(
    columns: Sequence[Column], rows: Sequence[tuple[str, ...]], width: int
) -> tuple[str, Sequence[str]]:
    """The table in ``width``, and the titles of the columns that had no room."""
    ranked = sorted((column.dropped, column.title) for column in columns if column.dropped is not None)
    return fit_table(
        [column.title for column in columns],
        rows,
        width,
        right=[column.title for column in columns if column.right],
        droppable=[title for _, title in ranked],
        longest_name=NAME_WIDTH,
    )
