"""The critical path in the text report: its length, what the makespan was spent on, and the what-if table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.distinct import shorten_apart
from rpl_analysis.text.figures import UNKNOWN, duration_ns, percent
from rpl_analysis.text.fit import fit_table
from rpl_core.cli.output import USUAL_WIDTH
from rpl_core.text.safety import printable

if TYPE_CHECKING:
    from rpl_analysis.contracts.dag import DagDocument, ForecastPart

__all__ = ["path_section"]

#: Kernels in the what-if table; dag.json holds more.
SHOWN_FORECASTS = 5
_NAME_WIDTH = 48


def path_section(dag: DagDocument, width: int = USUAL_WIDTH) -> str:
    """Everything the report says about the execution graph."""
    if dag.status != "available":
        return f"critical path  unknown: {printable(dag.reason or '')}"
    return "\n".join(line for line in (_length(dag), _bounds(dag), _spent(dag), _what_if(dag, width)) if line)


def _length(dag: DagDocument) -> str:
    ceiling = f"{dag.speedup_ceiling:.3g}x" if dag.speedup_ceiling else "unbounded (it is the whole path)"
    return (
        f"critical path  {duration_ns(dag.critical_path_ns)} of {duration_ns(dag.makespan_ns)} makespan, "
        f"{percent(dag.fraction)} of it in {_names(dag)[printable(dag.dominant_symbol or '-')]}; "
        f"speed-up ceiling of that kernel {ceiling}"
    )


def _bounds(dag: DagDocument) -> str:
    bounds = dag.bounds
    if bounds is None or bounds.certain_only_ns == bounds.all_edges_ns:
        return ""
    return (
        f"  between {duration_ns(bounds.certain_only_ns)} (certain edges only) "
        f"and {duration_ns(bounds.all_edges_ns)} (with guesses)"
    )


def _spent(dag: DagDocument) -> str:
    spent, makespan = dag.breakdown, dag.makespan_ns
    if spent is None or not makespan:
        return ""
    gap = "launch gaps" if dag.gaps_attributed else "gaps (launch and host)"
    parts = (
        ("kernels", spent.kernel_ns),
        ("copies", spent.copy_ns),
        (gap, spent.launch_gap_ns),
        ("host", spent.host_gap_ns),
        ("waits", spent.sync_wait_ns),
    )
    return "  makespan: " + ", ".join(f"{name} {percent(ns / makespan)}" for name, ns in parts if ns)


def _what_if(dag: DagDocument, width: int) -> str:
    """End-to-end speed-up of the application if one kernel were faster."""
    shown = dag.forecasts[:SHOWN_FORECASTS]
    if not shown:
        return ""
    asked = [answer.speedup for answer in shown[0].speedups]
    labels = ["free" if speedup is None else f"{speedup:g}x" for speedup in asked]
    names = _names(dag)
    rows = [(names[printable(forecast.name)], *_gains(forecast, asked)) for forecast in shown]
    columns = ("what if faster by", *labels)
    table, _ = fit_table(columns, rows, width, right=tuple(range(1, len(columns))))
    return f"\n{table}{_shift(dag)}"


def _names(dag: DagDocument) -> dict[str, str]:
    """Short forms of all names in this section, such that the same kernel reads the same everywhere."""
    shown = [forecast.name for forecast in dag.forecasts[:SHOWN_FORECASTS]]
    shown += [step.dominant_symbol or "-" for step in dag.dominance]
    return shorten_apart(map(printable, (*shown, dag.dominant_symbol or "-")), _NAME_WIDTH)


def _gains(forecast: ForecastPart, asked: list[float | None]) -> list[str]:
    """One cell per speed-up of the heading; documents come from anywhere and may lack some."""
    answers = {answer.speedup: answer.application_speedup for answer in forecast.speedups}
    gains = [answers.get(speedup) for speedup in asked]
    return [UNKNOWN if gain is None else f"{gain:.3f}x" for gain in gains]


def _shift(dag: DagDocument) -> str:
    after = [step for step in dag.dominance if step.dominant_symbol not in (None, dag.dominant_symbol)]
    if dag.dominance_shift_at is None or not after:
        return ""
    name = _names(dag)[printable(after[0].dominant_symbol or "-")]
    return f"\n(from {dag.dominance_shift_at:g}x on, {name} dominates the critical path)"
