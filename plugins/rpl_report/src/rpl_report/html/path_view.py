"""The critical path section: what the makespan went into, who is on the path and by which edges, and what
faster kernels bring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text import between
from rpl_core.text import counted, readable
from rpl_core.values import frozen
from rpl_report.html.figures import count, factor, share, table_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rpl_analysis.contracts.dag import (
        ClockDomainPart,
        DagDocument,
        DevicePart,
        DominancePart,
        EdgeCount,
        NearPathPart,
        ProcessPart,
        SpeedupForecastPart,
        SymbolEdgePart,
    )
    from rpl_report.html.figures import Colours, KernelNames

_ON_PATH_SHOWN = 12
_ROWS_SHOWN = 16
_EDGES_SHOWN = 30

_BREAKDOWN = (
    ("kernel_ns", "kernels", "kernel"),
    ("copy_ns", "copies", "copy"),
    ("launch_gap_ns", "launch gaps", "launch"),
    ("host_gap_ns", "host gaps", "host"),
    ("sync_wait_ns", "sync waits", "sync"),
)


@frozen
class BarPart:
    """A part of a stacked bar: from ``start`` for ``width`` percent. ``css`` names its colour."""

    label: str
    ns: int
    start: float
    width: float
    css: str


@frozen
class SharedBar:
    """Parts that add up to ``total_ns``."""

    total_ns: int
    parts: tuple[BarPart, ...]


@frozen
class NearPathRow:
    through: str
    length_ns: int
    slack_ns: int
    shares: str


@frozen
class SymbolEdgeRow:
    source: str
    target: str
    kind: str
    count: int
    gap_ns: int


@frozen
class PathView:
    """``reason`` is set when there is no graph, and nothing else then.

    ``device_time`` adds up to the makespan over all streams, ``breakdown`` along the as-executed path.
    """

    reason: str | None
    device_time: SharedBar | None = None
    breakdown: SharedBar | None = None
    gaps_attributed: bool = False
    on_path: SharedBar | None = None
    dag: DagDocument | None = None
    domains: tuple[ClockDomainPart, ...] = ()
    devices: tuple[DevicePart, ...] = ()
    copying: bool = False  # whether a GPU was idle while copies probably ran that were not recorded
    edges: tuple[tuple[EdgeCount, int], ...] = ()  # all, and how many of them on the path
    near: tuple[NearPathRow, ...] = ()
    waits: tuple[SymbolEdgeRow, ...] = ()
    waits_left_out: int = 0
    doubts: tuple[str, ...] = ()
    processes: tuple[ProcessPart, ...] = ()
    sync_info: str = ""
    run_number: int = 0
    runs: int = 1


_SYNC_INFO = {
    "none": "none: order is known inside streams only",
    "api_names": "names of API calls without their arguments",
    "api_calls": "API calls with their arguments",
    "measured_events": "events measured by the runtime",
}


#: Kinds of dependencies in words; others are shown as they are.
_DEPENDENCIES = {
    "stream": "serialised by stream order",
    "queue": "serialised by queue order",
    "graph_launch": "serialised in a graph",
    "event": "waits for an event",
    "measured_event": "waits for an event (measured)",
    "host_sync": "submitted after a host wait",
    "blocking_call": "submitted after a blocking call",
    "null_stream": "serialised by the null stream",
    "host_order": "submitted after a host wait",
    "inferred": "inferred from times",
}


def dependency_name(kind: str) -> str:
    """Why one part of the work waits for another."""
    return _DEPENDENCIES.get(kind) or readable(kind.replace("_", " "), 40)


def path_view(dag: DagDocument, names: KernelNames, colours: Colours, runs: int) -> PathView:
    if dag.status != "available":
        return PathView(reason=readable(dag.reason or "unknown", 400))
    on_path = {(edge.kind, edge.confidence): edge.count for edge in dag.path_edges}
    return PathView(
        reason=None,
        device_time=_device_time(dag),
        breakdown=_breakdown(dag),
        gaps_attributed=dag.gaps_attributed,
        on_path=_symbols_on_path(dag, names, colours),
        dag=dag,
        domains=dag.clock_domains[:_ROWS_SHOWN],
        devices=dag.devices[:_ROWS_SHOWN],
        copying=any(device.idle.copying_ns for device in dag.devices[:_ROWS_SHOWN]),
        edges=tuple((edge, on_path.get((edge.kind, edge.confidence), 0)) for edge in dag.edges),
        near=tuple(_near(path, names) for path in dag.near_paths[:_ROWS_SHOWN]),
        waits=tuple(_edge(edge, names) for edge in dag.symbol_edges[:_EDGES_SHOWN]),
        waits_left_out=dag.symbol_edges_left_out + max(0, len(dag.symbol_edges) - _EDGES_SHOWN),
        doubts=tuple(_doubts(dag)),
        processes=dag.processes[:_ROWS_SHOWN] if len(dag.processes) > 1 else (),
        sync_info=_SYNC_INFO.get(dag.sync_info or "none", "unknown"),
        run_number=(dag.run or 0) + 1,
        runs=runs,
    )


def _doubts(dag: DagDocument) -> Iterator[str]:
    """What the graph does not know or had to repair, each with its number."""
    unresolved = dag.unresolved
    told = (
        (
            unresolved.waits,
            "wait for an event of an unknown stream",
            "waits for events of an unknown stream",
            "gave no dependency",
        ),
        (
            unresolved.waits_without_record,
            "wait for an event that was",
            "waits for events that were",
            "never recorded (no dependency by definition)",
        ),
        (
            unresolved.syncs,
            "synchronisation",
            "synchronisations",
            "with an unknown stream, event or device gave no dependency",
        ),
        (
            unresolved.submissions,
            "dispatch or copy has",
            "dispatches and copies have",
            "no API call in the recording",
        ),
        (
            unresolved.late_syncs,
            "synchronisation contradicts",
            "synchronisations contradict",
            "the clocks",
        ),
        (
            dag.inconsistent_edges,
            "dependency was dropped: its source ended after its target",
            "dependencies were dropped: their source ended after their target",
            "began",
        ),
        (
            dag.chain_overlaps,
            "dispatch overlaps its",
            "dispatches overlap their",
            "own stream",
        ),
        (
            dag.submission_disagreements,
            "neighbour",
            "neighbours",
            "of a stream began in another order than submitted",
        ),
    )
    for number, one, several, fact in told:
        if number:
            yield f"{count(number)} {one if number == 1 else several} {fact}"


def _edge(edge: SymbolEdgePart, names: KernelNames) -> SymbolEdgeRow:
    return SymbolEdgeRow(
        source=names.short(edge.source),
        target=names.short(edge.target),
        kind=dependency_name(edge.kind),
        count=edge.count,
        gap_ns=edge.gap_ns,
    )


def _breakdown(dag: DagDocument) -> SharedBar | None:
    if dag.breakdown is None or not dag.makespan_ns:
        return None
    values = [(label, int(getattr(dag.breakdown, field)), css) for field, label, css in _BREAKDOWN]
    return _bar(values, dag.makespan_ns)


def _device_time(dag: DagDocument) -> SharedBar | None:
    machine = max(dag.clock_domains, key=lambda part: part.critical_path_ns, default=None)
    if machine is None or machine.idle is None or not machine.makespan_ns:
        return None
    values = [
        ("kernels", machine.kernel_ns, "kernel"),
        ("copies alone", machine.copy_ns, "copy"),
        ("idle: launch", machine.idle.launch_ns, "launch"),
        ("idle: host", machine.idle.host_ns, "host"),
        ("idle: waits", machine.idle.sync_ns, "sync"),
        ("idle: probably copying, copies were not recorded", machine.idle.copying_ns, "copy"),
        ("idle: cause not recorded", machine.idle.unattributed_ns, "unknown"),
    ]
    return _bar(values, machine.makespan_ns)


def _symbols_on_path(dag: DagDocument, names: KernelNames, colours: Colours) -> SharedBar | None:
    symbols = sorted((s for s in dag.symbols if s.on_path_ns > 0), key=lambda s: (-s.on_path_ns, s.name))
    total = sum(symbol.on_path_ns for symbol in symbols)
    if not total:
        return None
    shown, rest = symbols[:_ON_PATH_SHOWN], symbols[_ON_PATH_SHOWN:]
    values = [
        (_work_label(s.name, s.kind, names), s.on_path_ns, f"c{colours.of(s.name, s.kind)}") for s in shown
    ]
    if rest:
        values.append((counted(len(rest), "other"), sum(s.on_path_ns for s in rest), "c9"))
    return _bar(values, total)


def _bar(values: list[tuple[str, int, str]], total: int) -> SharedBar:
    parts, start = [], 0
    for label, ns, css in values:
        if not ns:
            continue
        parts.append(BarPart(label, ns, 100 * start / total, 100 * ns / total, css))
        start += ns
    return SharedBar(total, tuple(parts))


def _near(path: NearPathPart, names: KernelNames) -> NearPathRow:
    shares = ", ".join(
        f"{names.short(part.name)} {share(part.on_path_ns / path.length_ns)}"
        for part in path.shares
        if path.length_ns
    )
    return NearPathRow(names.short(path.through), path.length_ns, path.slack_ns, shares)


@frozen
class GainStep:
    """``gain`` and ``application`` with both ends where they differ; ``width``: of the widest, in percent."""

    speedup: str
    gain: str
    application: str
    width: float


@frozen
class ForecastBar:
    name: str
    target: str | None
    css: str
    kind: str
    steps: tuple[GainStep, ...]  # ascending speed-up; the last one is the ceiling
    path_ceiling: float | None
    speedup_ceiling: float | None


@frozen
class ForecastView:
    bars: tuple[ForecastBar, ...] = ()
    speedups: tuple[str, ...] = ()
    makespan_ns: int | None = None
    dominance: tuple[tuple[str, str, float | None], ...] = ()  # speed-up, then dominant kernel, its share
    dominant: str | None = None
    shift_at: str | None = None
    order_known: bool = True
    at_most: bool = False  # upper ends: nothing tells which gaps the host needed
    host_threads: int = 0


def forecast_view(dag: DagDocument, names: KernelNames, colours: Colours) -> ForecastView:
    gains = [_most(step) for entry in dag.forecasts for step in entry.speedups]
    widest = max(gains, default=0)
    symbols = {(symbol.name, symbol.kind): symbol for symbol in dag.symbols}
    bars = []
    for entry in dag.forecasts:
        symbol = symbols.get((entry.name, entry.kind))
        bars.append(
            ForecastBar(
                name=_work_label(entry.name, entry.kind, names),
                target=names.of(entry.name) if entry.kind == "kernel" else None,
                css=f"c{colours.of(entry.name, entry.kind)}",
                kind=entry.kind,
                steps=tuple(
                    GainStep(
                        speedup=factor(step.speedup),
                        gain=between(*(table_time(gain, dag.makespan_ns) for gain in _ends(step))),
                        application=between(*(_as_fast(step, gain) for gain in _ends(step))),
                        width=100 * max(_most(step), 0) / widest if widest > 0 else 0,
                    )
                    for step in entry.speedups
                ),
                path_ceiling=symbol.path_ceiling if symbol else None,
                speedup_ceiling=symbol.speedup_ceiling if symbol else None,
            )
        )
    first = dag.dominant_work
    kinds = {symbol.name: symbol.kind for symbol in dag.symbols}
    return ForecastView(
        bars=tuple(bars),
        speedups=tuple(factor(step.speedup) for step in dag.forecasts[0].speedups) if dag.forecasts else (),
        makespan_ns=dag.makespan_ns,
        order_known=dag.order_known,
        at_most=dag.order_known and dag.sync_info == "none",
        host_threads=dag.host_threads or 0,
        dominance=tuple(_step(part, kinds, names) for part in dag.dominance),
        dominant=_work_label(first.name, first.kind, names) if first else None,
        shift_at=factor(dag.dominance_shift_at) if dag.dominance_shift_at is not None else None,
    )


def _ends(step: SpeedupForecastPart) -> tuple[int, ...]:
    most = step.application_gain_at_most_ns
    return (step.application_gain_ns,) if most is None else (step.application_gain_ns, most)


def _most(step: SpeedupForecastPart) -> int:
    return _ends(step)[-1]


def _as_fast(step: SpeedupForecastPart, gain_ns: int) -> str:
    """How many times as fast the application becomes by the gain."""
    if gain_ns == step.application_gain_ns:
        return factor(step.application_speedup)
    makespan = step.application_ns + step.application_gain_ns
    return factor(makespan / (makespan - gain_ns) if makespan > gain_ns else None)


def _step(part: DominancePart, kinds: Mapping[str, str], names: KernelNames) -> tuple[str, str, float | None]:
    dominant = part.dominant_symbol
    name = _work_label(dominant, kinds.get(dominant, "kernel"), names) if dominant else "nothing"
    return factor(part.speedup), name, part.fraction


def _work_label(name: str, kind: str, names: KernelNames) -> str:
    return names.work(name, kind) if kind == "copy" else names.short(name)
