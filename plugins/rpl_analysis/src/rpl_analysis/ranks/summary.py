"""What one rank did, in some ten kilobytes: all that an answer about a job of any size needs of it.

Whole nanoseconds on the rank's own clock. A rank is one process on one GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_analysis.critical_path.intervals import merge_intervals
from rpl_analysis.execution_graph.graph import work_nodes
from rpl_analysis.ranks.digest import KernelTimes, times_of
from rpl_analysis.ranks.report import collectives_among, rank_keys
from rpl_core.model.trace import COLLECTIVES, CollectiveLaunch
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.intervals import Intervals
    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.interfaces import CollectiveRule
    from rpl_core.model.trace import Trace

    Int64Column = NDArray[np.int64]

__all__ = ["Collective", "Operations", "RankIdentity", "RankSummary", "Strip", "summarise"]

#: Recorded operations that no rank gets past before all have come, as libraries call them without "_".
_WAIT_FOR_ALL = ("allreduce", "allgather", "reducescatter", "alltoall", "barrier")
#: The picture of a rank has at most so many columns (chosen).
_MOST_COLUMNS = 512


@frozen
class RankIdentity:
    """Which rank it is, and the order of ranks: as in ``profile.json``, by machine, GPU and process id.

    ``recording`` is what the user calls it by, ``position`` counts the ranks of one recording.
    """

    node: str
    agent: int
    process: int
    recording: str
    position: int

    def order(self) -> tuple[str, int, int, str, int]:
        return (self.node, self.agent, self.process, self.recording, self.position)


@frozen
class Collective:
    """A kernel that communicates. ``waits_for_all``: no rank gets past it before every rank has come.

    ``communicator`` (the group of ranks) and ``elements`` (the size) only where they are recorded.
    """

    name: str
    operation: str
    rule: str
    waits_for_all: bool
    communicator: str | None = None
    elements: int | None = None


@frozen(eq=False)
class Operations:
    """The rank's launches of collectives, ascending by begin.

    ``kind`` indexes the summary's collectives. ``exposed_ns`` is the part of each in which no other kernel
    ran; ``work_ns`` what other kernels and copies took between the end of the one before it (or the rank's
    begin) and its begin.
    """

    kind: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column
    exposed_ns: Int64Column
    work_ns: Int64Column


@frozen(eq=False)
class Strip:
    """A rank over time, in columns of ``1 << shift`` ns; the first one begins at ``first << shift``.

    ``computing_ns``: kernels other than collectives run, ``communicating_ns``: nothing but collectives does.
    """

    shift: int
    first: int
    computing_ns: Int64Column
    communicating_ns: Int64Column


@frozen(eq=False)
class RankSummary:
    """Sums are of the union of what ran at once, but ``kernel_ns`` of all durations.

    ``computing_ns``: kernels other than collectives, ``communicating_ns``: collectives, ``kernels_busy_ns``:
    either, ``busy_ns``: with copies. ``critical_path_ns`` is that of the process. ``phases`` are
    (name, ranges, host_ns, kernel_ns) of what the application marked.
    """

    identity: RankIdentity
    hostname: str | None
    product: str | None
    architecture: str | None
    origin: str
    launches: int
    kernel_ns: int
    begin_ns: int
    end_ns: int
    busy_ns: int
    kernels_busy_ns: int
    computing_ns: int
    communicating_ns: int
    critical_path_ns: int
    phases: tuple[tuple[str, int, int, int], ...]
    collectives: tuple[Collective, ...]
    kernels: KernelTimes
    operations: Operations
    strip: Strip

    @property
    def makespan_ns(self) -> int:
        return self.end_ns - self.begin_ns


def summarise(trace: Trace, recording: str, rules: Iterable[CollectiveRule]) -> tuple[RankSummary, ...]:
    """One summary for each rank of ``trace`` that launched a kernel."""
    # Who only merges summaries builds no graph.
    from rpl_analysis.execution_graph.build import process_lengths
    from rpl_analysis.phases import phase_report

    work = work_nodes(trace, include_copies=True)
    rank, keys = rank_keys(trace, work)
    if not keys:
        return ()
    found = collectives_among(work.symbol_names[: work.kernel_symbols], rules)
    lengths = process_lengths(trace, work)
    phases = phase_report(trace, 0) if len(keys) == 1 else None
    marked = tuple((p.name, p.ranges, p.host_ns, p.kernel_ns) for p in phases.phases) if phases else ()
    recorded = _recorded(trace)
    summaries = []
    for position, (process, agent) in enumerate(keys):
        own = work if len(keys) == 1 and bool((rank == 0).all()) else work.pick(rank == position)
        owner = trace.processes[process] if process >= 0 else None
        gpu = trace.agents[agent] if agent >= 0 else None
        identity = RankIdentity(
            node=owner.node if owner else gpu.node if gpu else "",
            agent=gpu.index if gpu else -1,
            process=owner.pid if owner else -1,
            recording=recording,
            position=position,
        )
        about = {
            "hostname": owner.hostname if owner else None,
            "product": gpu.product if gpu else None,
            "architecture": gpu.architecture if gpu else None,
            "origin": trace.origin.value,
            "critical_path_ns": lengths[process],
            "phases": marked,
        }
        summaries.append(_summary(own, _collectives(own, found, recorded.get(process, {})), identity, about))
    return tuple(summaries)


def _recorded(trace: Trace) -> dict[int, dict[int, CollectiveLaunch]]:
    """By process and correlation id, what is recorded of launches of collectives."""
    process = {(owner.guid, owner.pid): number for number, owner in enumerate(trace.processes)}
    recorded: dict[int, dict[int, CollectiveLaunch]] = {}
    for launch in trace.extras.get(COLLECTIVES, ()):
        number = process.get((launch.guid, launch.pid)) if isinstance(launch, CollectiveLaunch) else None
        if number is not None:
            recorded.setdefault(number, {})[launch.correlation_id] = launch
    return recorded


def _collectives(
    work: WorkNodes, rules: Mapping[int, CollectiveRule], recorded: Mapping[int, CollectiveLaunch]
) -> tuple[Int64Column, tuple[Collective, ...]]:
    """For each row of ``work`` the place of its collective, -1 for other work; and the collectives."""
    kind = np.full(len(work), -1, np.int64)
    known: dict[tuple[int, CollectiveLaunch | None], int] = {}
    found: list[Collective] = []
    candidates = np.isin(work.symbol, list(rules))
    if recorded:
        candidates |= np.isin(work.correlation_id, list(recorded))
    for row in np.flatnonzero(candidates & ~work.is_copy).tolist():
        symbol, launch = int(work.symbol[row]), recorded.get(int(work.correlation_id[row]))
        alike = None if launch is None else attrs.evolve(launch, correlation_id=0)
        if (symbol, alike) not in known:
            known[symbol, alike] = len(found)
            found.append(_collective(work.symbol_names[symbol], rules.get(symbol), launch))
        kind[row] = known[symbol, alike]
    return kind, tuple(found)


def _collective(name: str, rule: CollectiveRule | None, launch: CollectiveLaunch | None) -> Collective:
    if launch is None:
        assert rule is not None
        return Collective(name, rule.operation, rule.id, rule.waits.value == "all")
    said = launch.operation.lower().replace("_", "")
    waits = any(operation in said for operation in _WAIT_FOR_ALL)
    return Collective(
        name, launch.operation, rule.id if rule else "recorded", waits, launch.communicator, launch.elements
    )


def _summary(
    work: WorkNodes,
    collectives: tuple[Int64Column, tuple[Collective, ...]],
    identity: RankIdentity,
    about: dict[str, Any],
) -> RankSummary:
    kernels = ~work.is_copy
    kind, found = collectives
    collective = kind >= 0
    begin, end = work.begin_ns, work.end_ns
    computing = merge_intervals(begin[kernels & ~collective], end[kernels & ~collective])
    other = computing if kernels.all() else merge_intervals(begin[~collective], end[~collective])
    either = merge_intervals(begin[kernels], end[kernels])
    everything = either if kernels.all() else merge_intervals(begin, end)
    rows = np.flatnonzero(collective)
    first, last = begin[rows], end[rows]
    # A collective beside another one has no time between them: what ran before it counts once.
    before = np.maximum.accumulate(np.append(begin[:1], last))[:-1]
    into_computing, into_other = _time_before(computing), _time_before(other)
    return RankSummary(
        identity=identity,
        **about,
        launches=int(kernels.sum()),
        kernel_ns=int((end - begin)[kernels].sum()),
        begin_ns=int(begin[0]),
        end_ns=int(end.max()),
        busy_ns=_length(everything),
        kernels_busy_ns=_length(either),
        computing_ns=_length(computing),
        communicating_ns=_length(merge_intervals(first, last)),
        collectives=found,
        kernels=times_of(work.symbol_names, work.symbol[kernels], (end - begin)[kernels]),
        operations=Operations(
            kind=kind[rows],
            begin_ns=first,
            end_ns=last,
            exposed_ns=last - first - (into_computing(last) - into_computing(first)),
            work_ns=np.maximum(into_other(first) - into_other(np.minimum(before, first)), 0),
        ),
        strip=_strip(computing, either),
    )


def _length(union: Intervals) -> int:
    return int((union.end_ns - union.begin_ns).sum())


def _time_before(union: Intervals) -> Callable[[Int64Column], Int64Column]:
    """How much of ``union`` lies before each of some times, as a function of these."""
    begin, end = union.begin_ns, union.end_ns
    length = np.append(0, np.cumsum(end - begin))

    def time_before(time_ns: Int64Column) -> Int64Column:
        if not begin.size:
            return np.zeros(time_ns.size, np.int64)
        place = np.searchsorted(begin, time_ns, side="right")
        inside = np.maximum(end[place - 1] - time_ns, 0)
        return np.where(place > 0, length[place] - inside, 0)

    return time_before


def _strip(computing: Intervals, either: Intervals) -> Strip:
    begin, end = int(either.begin_ns[0]), int(either.end_ns[-1])
    shift = 0
    while (end >> shift) - (begin >> shift) >= _MOST_COLUMNS:
        shift += 1
    first = begin >> shift
    edges = np.arange(first, (end >> shift) + 2, dtype=np.int64) << shift
    own = np.diff(_time_before(computing)(edges))
    return Strip(shift, first, own, np.diff(_time_before(either)(edges)) - own)
