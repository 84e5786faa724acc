"""The critical path section: what the makespan went into, who is on the path, which edges it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text.safety import readable
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_report.html.figures import count, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.dag import (
        ClockDomainPart,
        DagDocument,
        DevicePart,
        EdgeCount,
        NearPathPart,
        ProcessPart,
        SymbolCriticality,
        SymbolEdgePart,
    )
    from rpl_report.html.kernel_identity import Colours, KernelNames

__all__ = ["BarPart", "NearPathRow", "PathView", "SharedBar", "SymbolEdgeRow", "dependency_name", "path_view"]

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
    values = [(_named(s, names), s.on_path_ns, f"c{colours.of(s.name, s.kind)}") for s in shown]
    if rest:
        values.append((counted(len(rest), "other"), sum(s.on_path_ns for s in rest), "c9"))
    return _bar(values, total)


def _named(symbol: SymbolCriticality, names: KernelNames) -> str:
    return names.work(symbol.name, symbol.kind) if symbol.kind == "copy" else names.short(symbol.name)


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
