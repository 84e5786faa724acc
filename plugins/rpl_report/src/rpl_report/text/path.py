"""The critical path in the text report: its length, what the GPU did meanwhile, and what could be gained."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rpl_analysis.text.figures import (
    UNKNOWN,
    between,
    duration_ns,
    faster_application,
    percent,
    work_name,
)
from rpl_analysis.text.names import fit_table, shorten_apart
from rpl_core.cli.output import USUAL_WIDTH
from rpl_core.text.safety import printable
from rpl_report.verdict import NOTEWORTHY, dominance_matters, is_notable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_analysis.contracts.dag import (
        ClockDomainPart,
        DagDocument,
        DominancePart,
        DominantWorkPart,
        ForecastPart,
        SpeedupForecastPart,
    )

__all__ = ["path_section"]

#: Kernels in the what-if table; dag.json holds more.
SHOWN_FORECASTS = 5
#: Calls that idle time is named by; dag.json holds all.
SHOWN_CALLS = 4
_NAME_WIDTH = 48


def path_section(
    dag: DagDocument, shown: Mapping[str, str] = MappingProxyType({}), width: int = USUAL_WIDTH
) -> str:
    """Everything the report says about the execution graph; ``shown`` is how kernels are called."""
    if dag.status != "available":
        return f"critical path  unknown: {printable(dag.reason or '')}"
    named = _Names(dag, shown)
    table = _what_if(dag, named, width)
    lines = (_length(dag, named), _bounds(dag), _host(dag), _spent(dag), table)
    return "\n".join(line for line in lines if line)


def _length(dag: DagDocument, named: _Names) -> str:
    path = f"critical path  {duration_ns(dag.critical_path_ns)} of {duration_ns(dag.makespan_ns)} makespan"
    work = dag.dominant_work
    if work is None:
        return path
    of_it = f"{path}, {percent(work.fraction)} of it in {named.of(work)}"
    most = work.application_ceiling_at_most if not dag.order_known else work.application_ceiling
    if most is not None and most < NOTEWORTHY:
        return f"{of_it}, without which the application would take as long{_doubt(dag)}"
    return f"{of_it}; at no cost of that the application would be {_ceiling(dag, work)}{_doubt(dag)}"


def _ceiling(dag: DagDocument, work: DominantWorkPart) -> str:
    least, most = work.application_ceiling, work.application_ceiling_at_most
    if least is None:
        return "nothing"
    if not dag.order_known:
        upper = "no limit" if most is None else f"{most:.3f}x"
        return f"{between(f'{least:.3f}x', upper)} as fast"
    # Without calls a gap counts as the time of what came before it, which the host may have needed anyway.
    return f"{'at most ' if dag.sync_info == 'none' else ''}{least:.3f}x as fast"


def _doubt(dag: DagDocument) -> str:
    """What the ceiling does not know, in its own line."""
    if not dag.order_known:
        missing = "no API calls" if dag.sync_info == "none" else "not all waits"
        return f" ({missing} recorded: which of the {dag.lanes} streams waited for which is unknown)"
    if dag.sync_info == "none":
        return " (no API calls recorded: every gap stays as it was)"
    return ""


def _bounds(dag: DagDocument) -> str:
    bounds = dag.bounds
    if bounds is None or dag.critical_path_ns is None:
        return ""
    most = bounds.any_order_ns or bounds.all_edges_ns
    if bounds.certain_only_ns == most:
        return ""
    last = "under any order of streams" if bounds.any_order_ns else "with guesses"
    return (
        f"  path between {duration_ns(bounds.certain_only_ns)} (certain dependencies only) "
        f"and {duration_ns(most)} ({last})"
    )


def _host(dag: DagDocument) -> str:
    """What gains rest on where more than one thread submits, or may: nothing recorded tells their order."""
    if (dag.host_threads or 0) > 1:
        return f"  gains hold while the {dag.host_threads} host threads submit in the same order"
    if not dag.order_known and dag.host_threads is None:
        return "  gains hold while the host submits in the same order, whatever its threads"
    return ""


def _spent(dag: DagDocument) -> str:
    """What the GPUs of the machine with the longest path did; the parts add up to the makespan."""
    machine = max(dag.clock_domains, key=lambda part: part.critical_path_ns, default=None)
    if machine is None or not machine.makespan_ns:
        return ""
    makespan, idle = machine.makespan_ns, machine.idle
    parts = [("kernels", machine.kernel_ns), ("copies alone", machine.copy_ns), ("idle", machine.idle_ns)]
    text = ", ".join(f"{name} {percent(ns / makespan)}" for name, ns in parts if ns)
    if idle is None or not machine.idle_ns:
        return f"  GPU time: {text}"
    causes = (
        ("host", idle.host_ns),
        ("waits", idle.sync_ns),
        ("probably copying (copies were not recorded)", idle.copying_ns),
        ("launch", idle.launch_ns),
        ("cause not recorded", idle.unattributed_ns),
    )
    named = ", ".join(f"{name} {percent(ns / makespan)}" for name, ns in causes if ns)
    return f"  GPU time: {text} ({named}){_host_calls(machine)}"


def _host_calls(machine: ClockDomainPart) -> str:
    """Which calls the host was in while the GPU idled, in shares of that."""
    shown = machine.idle_calls[:SHOWN_CALLS]
    if not shown:
        return ""
    named = [f"{printable(call.name) if call.name else 'no call'} {percent(call.share)}" for call in shown]
    rest = sum(call.share for call in machine.idle_calls[SHOWN_CALLS:])
    named += [f"others {percent(rest)}"] if rest else []
    return f"\n  of the idle time the host was in: {', '.join(named)}"


class _Names:
    """How kernels, copies and idle time are called in this section."""

    def __init__(self, dag: DagDocument, shown: Mapping[str, str]) -> None:
        self._shown = shown
        self._short = shorten_apart(shown.values(), _NAME_WIDTH)
        self._copies = {symbol.name for symbol in dag.symbols if symbol.kind == "copy"}

    def of(self, part: DominantWorkPart | ForecastPart) -> str:
        return self._named(part.name or "-", part.kind)

    def step(self, step: DominancePart) -> str:
        """Steps name a kernel or a copy direction; the list of symbols tells which."""
        name = step.dominant_symbol or "-"
        return self._named(name, "copy" if name in self._copies else "kernel")

    def _named(self, name: str, kind: str) -> str:
        if kind == "copy":
            return printable(work_name(name, kind))
        text = self._shown.get(name, printable(name))
        return self._short.get(text, text)


def _what_if(dag: DagDocument, named: _Names, width: int) -> str:
    """End-to-end speed-up of the application if one kernel were faster."""
    shown = [forecast for forecast in dag.forecasts if is_notable(forecast)][:SHOWN_FORECASTS]
    if not shown:
        return ""
    asked = [answer.speedup for answer in shown[0].speedups]
    labels = ["free" if speedup is None else f"{speedup:g}x" for speedup in asked]
    rows = [(named.of(forecast), *_gains(forecast, asked)) for forecast in shown]
    columns = ("what if faster by", *labels)
    if not dag.order_known:
        columns = ("what if faster by (at least - at most)", *labels)
    elif dag.sync_info == "none":
        columns = ("what if faster by (at most)", *labels)
    table, _ = fit_table(columns, rows, width, right=labels)
    return f"\n{table}{_shift(dag, named)}"


def _gains(forecast: ForecastPart, asked: list[float | None]) -> list[str]:
    """One cell per speed-up of the heading; documents come from anywhere and may lack some."""
    answers = {answer.speedup: answer for answer in forecast.speedups}
    return [_answered(answers.get(speedup)) for speedup in asked]


def _answered(answer: SpeedupForecastPart | None) -> str:
    if answer is None or answer.application_speedup is None:
        return UNKNOWN
    return faster_application(answer).replace(" to ", "-")


def _shift(dag: DagDocument, named: _Names) -> str:
    if not dominance_matters(dag):
        return ""
    dominant = dag.dominant_work.name if dag.dominant_work else None
    after = [step for step in dag.dominance if step.dominant_symbol not in (None, dominant)]
    if dag.dominance_shift_at is None or not after:
        return ""
    name = named.step(after[0])
    only = "" if dag.order_known else ", with the dependencies that are recorded"
    return f"\n(from {dag.dominance_shift_at:.4g}x on, {name} dominates the critical path{only})"
