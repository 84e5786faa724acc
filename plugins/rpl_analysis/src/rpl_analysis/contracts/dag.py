"""``dag.json``, declared once: the execution graph of one run, condensed; and what ``rpl what-if`` answers.

It never grows with the dispatch count. All times in ns. A speed-up of ``None`` means that the kernel costs
nothing, or that no time is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from attrs import field

from rpl_analysis.contracts import (
    OR_EMPTY,
    OR_NULL,
    OR_ZERO,
    Limited,
    SchemaVersion,
    document_of,
    record,
)
from rpl_core.model.metric import Origin

Fraction = Annotated[float, Limited(ge=0, le=1)]
Confidence = Literal["certain", "probable", "guess"]


@record
class PathSegment:
    """Consecutive nodes of the critical path in one lane; ids are dispatch ids of their process."""

    process: int  # OS pid
    agent: int | None
    stream: int | None  # stream id, or null where queues stand in for streams
    queue: int | None = field(metadata=OR_NULL)
    first_dispatch: int | None  # null for a segment of copies only
    last_dispatch: int | None
    nodes: int
    busy_ns: int
    # Kind of the edge that leads here, null where the path begins.
    entered_by: str | None = field(metadata=OR_NULL)


@record
class SymbolCriticality:
    """A kernel or copy direction; ``criticality_weight`` is its share of the critical path."""

    name: str
    kind: Literal["kernel", "copy"]
    nodes: int
    total_ns: int
    on_path_ns: int
    criticality_weight: Fraction
    min_slack_ns: int
    median_slack_ns: int
    critical_nodes: int
    speedup_ceiling: float | None = field(metadata=OR_NULL)  # 1 / (1 - criticality_weight), null at 1
    # Of the path, re-solved with this kernel at no cost; null: no end.
    path_ceiling: float | None = field(metadata=OR_NULL)
    # Of the application: launches, host time and waits stay; at least, where the order is unknown.
    application_ceiling: float | None = field(metadata=OR_NULL)
    # Total slow-down, spread evenly, that leaves the path alone; lower bound.
    slack_ns: int | None = field(metadata=OR_NULL)


@record
class EdgeCount:
    kind: str
    confidence: Confidence
    count: int


@record
class IdlePart:
    """Idle time by what the work that ended it had waited for; the sum is ``idle_ns``."""

    host_ns: int  # nothing was queued: the launch call had not begun
    sync_ns: int  # an event, a stream or the return of a synchronisation
    launch_ns: int  # queued, not started
    unattributed_ns: int  # the API call, or what held queued work up, is not in the recording
    # Probably copying, which was not recorded: the host was in calls that copy, or waited for them.
    copying_ns: int = field(metadata=OR_ZERO)


@record
class IdleCallPart:
    """Idle time in which the thread that ended it was in a call; ``name`` null: in none that is recorded."""

    name: str | None
    idle_ns: int
    share: float  # of ``idle_ns`` of the machine


@record
class ClockDomainPart:
    """One node (machine) of the run; time stamps of different nodes never meet."""

    node: str
    makespan_ns: int
    critical_path_ns: int
    busy_ns: int  # union of all dispatches and copies
    # Union of all dispatches; kernel_ns + copy_ns + idle_ns == makespan_ns.
    kernel_ns: int = field(metadata=OR_ZERO)
    copy_ns: int = field(metadata=OR_ZERO)  # copies while no kernel ran
    idle_ns: int
    parallelism: float  # total / critical path
    total_ns: int = field(metadata=OR_ZERO)  # sum of all durations
    # Total - the sum of busy_ns over GPUs: hidden by running at once on one GPU.
    overlap_ns: int = field(metadata=OR_ZERO)
    # Busy - critical path: could still be hidden, by dependencies.
    overlap_potential_ns: int = field(metadata=OR_ZERO)
    concurrency: float | None = field(metadata=OR_NULL)  # total / the sum of busy_ns over GPUs
    idle: IdlePart | None = field(metadata=OR_NULL)
    # Longest first; without the idle time that ``idle`` calls unattributed.
    idle_calls: tuple[IdleCallPart, ...] = field(metadata=OR_EMPTY)


@record
class DevicePart:
    """One GPU between the begin of its first and the end of its last work."""

    node: str
    agent: int | None
    nodes: int
    total_ns: int
    busy_ns: int
    kernel_ns: int = field(metadata=OR_ZERO)  # as in ClockDomainPart
    copy_ns: int = field(metadata=OR_ZERO)
    idle_ns: int
    concurrency: float | None
    idle: IdlePart


@record
class ProcessPart:
    """One process: no edge joins two of them."""

    node: str
    process: int  # OS pid
    nodes: int
    critical_path_ns: int
    makespan_ns: int


@record
class BreakdownPart:
    """The as-executed path; the parts add up to ``makespan_ns`` exactly."""

    kernel_ns: int
    copy_ns: int
    launch_gap_ns: int
    host_gap_ns: int
    sync_wait_ns: int


@record
class PathBoundsPart:
    """The exec-only path with certain edges alone, and with guesses added."""

    certain_only_ns: int
    all_edges_ns: int
    any_order_ns: int | None = None  # no path can be longer; null where the order of streams is known


@record
class SpeedupForecastPart:
    """The graph solved again; ``speedup`` null means that the kernel costs nothing.

    Where the order of streams is unknown the gain is a range: ``application_gain_ns`` is its lower end, to
    which ``application_ns`` and ``application_speedup`` belong.
    """

    speedup: float | None
    critical_path_ns: int  # exec-only
    application_ns: int  # as executed: launches, host time and waits stay
    application_gain_ns: int
    application_speedup: float | None
    # The upper end under any order of streams; null where the order is known.
    application_gain_at_most_ns: int | None = None


@record
class ForecastPart:
    """What a faster kernel brings end to end."""

    name: str
    kind: Literal["kernel", "copy"]
    speedups: tuple[SpeedupForecastPart, ...]


@record
class DominantWorkPart:
    """The kernel or copy direction with the most time on the critical path."""

    name: str
    kind: Literal["kernel", "copy"]
    fraction: Fraction
    speedup_ceiling: float | None = field(metadata=OR_NULL)  # 1 / (1 - fraction), null at fraction 1
    # Of the application if this cost nothing; null: nothing left. At least, where the order is unknown.
    application_ceiling: float | None = field(metadata=OR_NULL)
    # Under any order of streams; null where it is known, or where nothing may be left.
    application_ceiling_at_most: float | None = field(metadata=OR_NULL)


@record
class GainPart:
    """What the application would save without this; gains of several do not add up.

    Where the order of streams is unknown ``gain_ns`` and ``application_speedup`` are the lower end.
    """

    kind: Literal["idle", "kernel", "copy"]
    name: str | None
    gain_ns: int
    application_speedup: float | None
    # The upper end under any order of streams; null where it is known.
    gain_at_most_ns: int | None = None


@record
class DominancePart:
    """What dominates once ``dominant_work`` of the document runs ``speedup`` times as fast."""

    speedup: float | None  # null: it costs nothing
    dominant_symbol: str | None
    fraction: Fraction | None


@record
class PathSharePart:
    name: str
    on_path_ns: int


@record
class NearPathPart:
    """The longest path through a kernel that is not on the critical path, and who takes most of it."""

    through: str
    length_ns: int
    slack_ns: int
    shares: tuple[PathSharePart, ...]


@record
class SymbolEdgePart:
    """Edges between nodes of two kernels, added up; ``gap_ns`` sums begin - end, at least 0 each."""

    source: str
    target: str
    kind: str
    count: int
    gap_ns: int


@record(kw_only=True)
class UnresolvedPart:
    """What the recording asked for and could not be turned into edges."""

    waits: int = 0  # the stream of the wait or of the record is unknown
    waits_without_record: int = 0  # the event was never recorded: no edge, by definition
    syncs: int = 0  # the stream, event or device is unknown
    submissions: int = 0  # work whose API call is not in the recording
    late_syncs: int = 0  # the clocks contradict the wait


@record(kw_only=True)
class GraphResult:
    """Exec-only path: the longest sum of dispatch and copy intervals along dependencies."""

    # Without a path there is a ``reason`` and nothing else.

    status: Literal["available", "unavailable"]
    reason: str | None = None
    origin: Origin | None = None
    run: int | None = None  # which timing run was taken (the one with the median runtime)
    range: str | None = None  # --range: only what these ranges launched is in the document; null: all work
    sync_info: Literal["none", "api_names", "api_calls", "measured_events"] | None = None
    nodes: int = 0
    host_syncs: int = 0  # further nodes without duration: returns of waits, and where their threads begin
    edges: tuple[EdgeCount, ...] = ()
    inconsistent_edges: int = 0
    implied_edges: int = 0
    chain_overlaps: int = 0
    submission_disagreements: int = 0  # neighbours in a lane that began in another order than submitted
    unresolved: UnresolvedPart = UnresolvedPart()
    critical_path_ns: int | None = None
    makespan_ns: int | None = None
    dominant_symbol: str | None = None
    fraction: Fraction | None = None
    speedup_ceiling: float | None = None  # 1 / (1 - fraction), null at fraction 1
    application_ceiling: float | None = None  # of the application if dominant_symbol cost nothing
    application_ceiling_at_most: float | None = None  # as in dominant_work
    dominant_work: DominantWorkPart | None = None
    gains: tuple[GainPart, ...] = ()  # idle time, kernels and copies in one list, largest (at most) first
    lanes: int = 0  # streams, or queues where they stand in, of the machine with the longest path
    order_known: bool = True  # false: waits between these lanes are not (all) in the recording
    host_threads: int | None = None  # that submitted work, of the process with most; null: no call tells
    critical_path_count: Literal["one", "several"] | None = None
    bounds: PathBoundsPart | None = None
    path_edges: tuple[EdgeCount, ...] = ()
    path_confidence: Fraction | None = None  # share of certain ones among path_edges
    breakdown: BreakdownPart | None = None
    gaps_attributed: bool = False  # false: no API calls, so launch_gap_ns holds the host's part too
    clock_domains: tuple[ClockDomainPart, ...] = ()
    devices: tuple[DevicePart, ...] = ()
    devices_left_out: int = 0
    processes: tuple[ProcessPart, ...] = ()
    processes_left_out: int = 0
    segments: tuple[PathSegment, ...] = ()
    segments_left_out: int = 0
    symbols: tuple[SymbolCriticality, ...] = ()
    forecasts: tuple[ForecastPart, ...] = ()  # ranked by gain (at most) at twice the speed
    dominance: tuple[DominancePart, ...] = ()
    dominance_shift_at: float | None = None  # speed-up from which on something else dominates, null: none
    near_paths: tuple[NearPathPart, ...] = ()
    symbol_edges: tuple[SymbolEdgePart, ...] = ()
    symbol_edges_left_out: int = 0


# What ``rpl what-if --json`` prints: the application as recorded, and as predicted with faster kernels.


@record
class FasterKernelPart:
    """``factor`` is null where the kernel was taken for free."""

    name: str
    factor: float | None


@record
class WhatIfAnswerPart:
    """``application_speedup`` is recorded / predicted, null if no time is left.

    ``application_gain_at_most_ns`` is the upper end where the order of streams is unknown, and the others the
    lower one; null where it is known.
    """

    changes: tuple[FasterKernelPart, ...]
    application_ns: int
    application_gain_ns: int
    application_speedup: float | None
    application_gain_at_most_ns: int | None = None


@record(kw_only=True)
class WhatIf:
    """``alone`` holds one answer per kernel where several were asked, ``together`` all of them at once.

    Predictions are modelled; ``origin`` is that of the recording. ``machine`` has the longest path among
    ``machines``; ``run`` counts timing runs from zero. With ``at_most`` gains are upper ends: of a single
    stream without API calls nothing tells which gaps the host needed for itself.
    """

    schema_version: SchemaVersion
    origin: Literal["measured", "modelled", "synthetic"]
    run: int
    range: str | None = None  # --range: only what these ranges launched; null: all work
    machine: str
    machines: int
    recorded_ns: int
    alone: tuple[WhatIfAnswerPart, ...] = ()
    together: WhatIfAnswerPart
    at_most: bool = False


if TYPE_CHECKING:
    from rpl_core.contracts.common import Document, Part

    class DagDocument(GraphResult, Document):
        """``dag.json`` as it is read back."""

    class WhatIfDocument(WhatIf, Part):
        """The answer as a document."""


def __getattr__(name: str) -> Any:
    if name == "DagDocument":
        return document_of(GraphResult, name)
    if name == "WhatIfDocument":
        return document_of(WhatIf, name, in_envelope=False)
    raise AttributeError(name)
