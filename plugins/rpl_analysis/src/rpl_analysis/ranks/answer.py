"""What a job of any number of ranks comes to: a function of their summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from rpl_analysis.contracts.profile import ImbalancedKernelPart
from rpl_analysis.contracts.rank_job import (
    ClockPart,
    GroupPart,
    JobCollectivePart,
    JobKernelPart,
    JobRankPart,
    MissingRankPart,
    OutlierPart,
    PhaseSumPart,
    PicturePart,
    RankJob,
    RankWhatIfPart,
    SharesPart,
)
from rpl_analysis.ranks.digest import RELATIVE_ERROR
from rpl_analysis.ranks.job import JobSummary, Waits, find_waits, two_highest
from rpl_analysis.ranks.report import uneven_kernels
from rpl_core.model.metric import Origin
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.ranks.summary import RankSummary

    Int64Column = NDArray[np.int64]

__all__ = ["Grouping", "answer_of"]

#: So many kernels, outliers and phases are listed (chosen).
MOST_ROWS = 256
#: From here on a modified z-score is an outlier's (Iglewicz, Hoaglin, "How to Detect and Handle Outliers",
#: ASQC 1993), ...
_OUTLIER_SCORE = 3.5
#: ... and below this part of the job's time it would not matter (chosen).
_OUTLIER_SHARE = 0.005
_PICTURE_ROWS = 256
_PICTURE_COLUMNS = 256

Grouping = Callable[["RankSummary", int], str]


@frozen(eq=False)
class _Times:
    """Per rank. The waits are ``None`` where nothing is known of them."""

    computing_ns: Int64Column
    communication_ns: Int64Column  # without ``exposed_wait_ns``
    exposed_wait_ns: Int64Column | None
    copies_ns: Int64Column
    host_ns: Int64Column
    wait_ns: Int64Column | None
    least_ns: Int64Column | None
    most_ns: Int64Column | None


@frozen(eq=False)
class _Last:
    """Per rank: how often it came last for sure, why, maybe, and for how long the others waited.

    ``open_longest`` counts what no clock decides and its kernels took longest before, ``open_excess_ns`` sums
    by how much.
    """

    sure: Int64Column
    by_kernel: Int64Column
    by_host: Int64Column
    maybe: Int64Column
    late_ns: Int64Column
    open_longest: Int64Column
    open_excess_ns: Int64Column


def answer_of(
    job: JobSummary,
    numbers: Sequence[int],
    *,
    missing: Sequence[MissingRankPart] = (),
    group_of: Grouping | None = None,
) -> RankJob:
    """``numbers`` are those of the ranks in the names of their recordings, else their places."""
    clocks, ranks = job.clocks, job.ranks
    waits = [find_waits(match, job.node, clocks) for match in job.matches]
    job_ns = None
    if clocks.reason is None:
        offset = clocks.likely_ns[job.node]
        begins = np.array([rank.begin_ns for rank in ranks]) + offset
        job_ns = int((np.array([rank.end_ns for rank in ranks]) + offset).max() - begins.min())
    times = _times(job, waits, job_ns)
    last = _last(job, waits)
    groups = list(map(group_of, ranks, numbers)) if group_of else None
    table = _table(job)
    outliers = _outliers(job, table, numbers, times, groups, job_ns)
    what_if, no_what_if = _what_if(job, waits, last, job_ns)
    return RankJob(
        origin=Origin.weakest([Origin(rank.origin) for rank in ranks]).value,
        ranks=len(ranks),
        missing=tuple(missing),
        job_ns=job_ns,
        job_reason=clocks.reason,
        critical_path_ns=max(rank.critical_path_ns for rank in ranks),
        clock=ClockPart(
            machines=len(clocks.nodes),
            width_ns=None if clocks.reason else clocks.width_ns,
            reason=clocks.reason,
            assumed=clocks.assumed and clocks.reason is None,
        ),
        shares=_shares(times, job_ns),
        relative_error=RELATIVE_ERROR,
        collectives=_collectives(job, waits),
        kernels=_kernels(job),
        imbalances=_imbalances(table),
        outliers=outliers[:MOST_ROWS],
        outliers_left_out=max(0, len(outliers) - MOST_ROWS),
        groups=_groups(times, last, groups),
        what_if=what_if,
        what_if_reason=no_what_if,
        phases=_phases(ranks),
        by_rank=_by_rank(job, numbers, times, last, groups),
        picture=_picture(job, job_ns),
    )


def _times(job: JobSummary, waits: Sequence[Waits], job_ns: int | None) -> _Times:
    ranks = job.ranks

    def of(name: str) -> Int64Column:
        return np.array([getattr(rank, name) for rank in ranks], np.int64)

    exposed = of("kernels_busy_ns") - of("computing_ns")
    whole = of("makespan_ns") if job_ns is None else np.full(len(ranks), job_ns)
    known = [(m, w) for m, w in zip(job.matches, waits, strict=True) if w.reason is None]
    sums = {name: np.zeros(len(ranks), np.int64) for name in ("wait", "least", "most", "exposed")}
    for match, found in known:
        sums["wait"][match.rows] += found.wait_ns
        sums["least"][match.rows] += found.least_ns
        sums["most"][match.rows] += found.most_ns
        # While a rank waits, kernels that run beside the collective are no waiting.
        sums["exposed"][match.rows] += found.exposed_ns
    waiting = np.clip(sums["exposed"], 0, exposed)
    return _Times(
        computing_ns=of("computing_ns"),
        communication_ns=exposed - waiting if known else exposed,
        exposed_wait_ns=waiting if known else None,
        copies_ns=of("busy_ns") - of("kernels_busy_ns"),
        host_ns=whole - of("busy_ns"),
        wait_ns=sums["wait"] if known else None,
        least_ns=sums["least"] if known else None,
        most_ns=sums["most"] if known else None,
    )


def _shares(times: _Times, job_ns: int | None) -> SharesPart | None:
    if not job_ns:
        return None
    whole = job_ns * times.host_ns.size

    def share(column: Int64Column) -> float:
        return int(column.sum()) / whole

    return SharesPart(
        computing=share(times.computing_ns),
        communication=share(times.communication_ns),
        waiting=None if times.exposed_wait_ns is None else share(times.exposed_wait_ns),
        copies=share(times.copies_ns),
        host=share(times.host_ns),
    )


def _last(job: JobSummary, waits: Sequence[Waits]) -> _Last | None:
    """Why a rank is last: what it did since the collective before, against the median rank.

    Where clocks leave open who is last, durations still tell who is slow: they need no common clock.
    """
    known = [(m, w) for m, w in zip(job.matches, waits, strict=True) if w.reason is None]
    if not known:
        return None
    sums = [np.zeros(len(job.ranks), np.int64) for _ in range(7)]
    for match, found in known:
        for block in match.blocks():
            last, second = found.last[block], found.second_ns[block]
            taken, idle = match.work_ns[:, block], match.host_ns[:, block]
            columns = np.arange(last.size)
            # Whoever is last with others at the same time keeps nobody waiting.
            sure = found.settled[block] & (second > 0)
            work = taken[last, columns] - np.median(taken, axis=0)
            host = idle[last, columns] - np.median(idle, axis=0)
            rows = match.rows[last]
            np.add.at(sums[0], rows[sure], 1)
            np.add.at(sums[1], rows[sure & (work >= host)], 1)
            np.add.at(sums[2], rows[sure & (work < host)], 1)
            open_ = (second > 0) & ~sure
            np.add.at(sums[3], rows[open_], 1)
            np.add.at(sums[4], rows[sure], second[sure])
            longest, slowest, shorter = two_highest(taken)
            slow = open_ & (longest > shorter)
            np.add.at(sums[5], match.rows[slowest[slow]], 1)
            np.add.at(sums[6], match.rows[slowest[slow]], (longest - shorter)[slow])
    return _Last(*sums)


def _collectives(job: JobSummary, waits: Sequence[Waits]) -> tuple[JobCollectivePart, ...]:
    parts, sure = [], not job.clocks.assumed
    for match, found in zip(job.matches, waits, strict=True):
        known, kind = found.reason is None, match.collective
        calls = int(match.calls[0]) if (match.calls == match.calls[0]).all() else None
        parts.append(
            JobCollectivePart(
                name=kind.name,
                operation=kind.operation,
                rule=kind.rule,
                ranks=match.rows.size,
                operations=calls,
                calls=int(match.calls.sum()),
                total_ns=int(match.total_ns.sum()),
                wait_ns=int(found.wait_ns.sum()) if known else None,
                wait_least_ns=int(found.least_ns.sum()) if known else None,
                wait_most_ns=int(found.most_ns.sum()) if known else None,
                matched_by="launch_order" if kind.communicator is None else "communicator",
                communicator=kind.communicator,
                elements=kind.elements,
                exactness=("lower_bound" if sure and kind.waits_for_all else "estimate") if known else None,
                wait_reason=found.reason,
            )
        )
    return tuple(sorted(parts, key=lambda part: (-part.total_ns, part.name)))


def _kernels(job: JobSummary) -> tuple[JobKernelPart, ...]:
    times = job.kernels
    order = sorted(range(len(times.names)), key=lambda i: (-int(times.total_ns[i]), times.names[i]))
    return tuple(
        JobKernelPart(
            name=times.names[i],
            calls=int(times.count[i]),
            total_ns=int(times.total_ns[i]),
            median_ns=times.quantile_ns(i, 0.5),
            p95_ns=times.quantile_ns(i, 0.95),
            exact=times.is_exact(i),
        )
        for i in order[:MOST_ROWS]
    )


@frozen(eq=False)
class _Table:
    """Sums per rank and kernel, kernels by name without collectives; a rank without it has 0."""

    names: tuple[str, ...]
    total_ns: Int64Column  # (ranks, kernels)
    count: Int64Column


def _table(job: JobSummary) -> _Table:
    collective = {c.name for rank in job.ranks for c in rank.collectives}
    names = tuple(name for name in job.kernels.names if name not in collective)
    place = {name: i for i, name in enumerate(names)}
    total = np.zeros((len(job.ranks), len(names)), np.int64)
    count = np.zeros_like(total)
    for row, rank in enumerate(job.ranks):
        own = [(i, place[name]) for i, name in enumerate(rank.kernels.names) if name in place]
        if own:
            here, there = map(list, zip(*own, strict=True))
            total[row, there] = rank.kernels.total_ns[here]
            count[row, there] = rank.kernels.count[here]
    return _Table(names, total, count)


def _imbalances(table: _Table) -> tuple[ImbalancedKernelPart, ...]:
    """As in ``profile.json``: by what the slowest rank spends above the mean."""
    if len(table.total_ns) < 2:
        return ()
    return uneven_kernels(table.names, table.total_ns, table.count, MOST_ROWS)


def _scores(values: Int64Column) -> tuple[float, NDArray[np.floating]]:
    """The median, and the modified z-score of each value; infinite where all others agree."""
    median = float(np.median(values))
    far = np.abs(values - median)
    spread = float(np.median(far))
    if spread == 0:
        return median, np.where(far > 0, np.inf, 0.0) * np.sign(values - median)
    return median, 0.6745 * (values - median) / spread


def _outliers(
    job: JobSummary,
    table: _Table,
    numbers: Sequence[int],
    times: _Times,
    groups: Sequence[str] | None,
    job_ns: int | None,
) -> tuple[OutlierPart, ...]:
    """Ranks and groups that take longer than the others; the furthest in time first."""
    if len(job.ranks) < 4 or not job_ns:  # of three, who is the odd one?
        return ()
    found = list[OutlierPart]()
    usual = np.median(table.total_ns, axis=0)
    metrics: list[tuple[Literal["computing", "host", "waiting"], Int64Column]]
    metrics = [("computing", times.computing_ns), ("host", times.host_ns)]
    metrics += [("waiting", times.exposed_wait_ns)] if times.exposed_wait_ns is not None else []
    for what, values in metrics:
        median, scores = _scores(values)
        for rank in _far(values, median, scores, job_ns):
            kernel = excess = None
            if what == "computing" and table.names:
                above = table.total_ns[rank] - usual
                kernel, excess = table.names[int(above.argmax())], int(above.max())
            name, score = job.ranks[rank].identity.recording, _finite(scores[rank])
            value = int(values[rank])
            found.append(
                OutlierPart(what, "rank", name, numbers[rank], value, int(median), score, kernel, excess)
            )
        if groups is not None:
            names, of = np.unique(np.array(groups), return_inverse=True)
            middle = np.array([int(np.median(values[of == i])) for i in range(names.size)], np.int64)
            median, scores = _scores(middle)
            for i in _far(middle, median, scores, job_ns) if names.size > 3 else ():
                name, score = str(names[i]), _finite(scores[i])
                value = int(middle[i])
                found.append(OutlierPart(what, "group", name, None, value, int(median), score, None, None))
    return tuple(sorted(found, key=lambda one: (one.median_ns - one.value_ns, one.what, one.name)))


def _far(values: Int64Column, median: float, scores: NDArray[np.floating], job_ns: int) -> list[int]:
    far = (scores > _OUTLIER_SCORE) & (values - median > _OUTLIER_SHARE * job_ns)
    return [int(i) for i in np.flatnonzero(far)]


def _finite(score: float) -> float | None:
    return float(score) if np.isfinite(score) else None


def _groups(times: _Times, last: _Last | None, groups: Sequence[str] | None) -> tuple[GroupPart, ...]:
    if groups is None:
        return ()
    names, of = np.unique(np.array(groups), return_inverse=True)
    parts = []
    for i, name in enumerate(names.tolist()):
        own = of == i
        parts.append(
            GroupPart(
                name=name,
                ranks=int(own.sum()),
                computing_ns=int(np.median(times.computing_ns[own])),
                host_ns=int(np.median(times.host_ns[own])),
                wait_ns=None if times.wait_ns is None else int(np.median(times.wait_ns[own])),
                last=None if last is None else int(last.sure[own].sum()),
            )
        )
    return tuple(sorted(parts, key=lambda part: (-(part.last or 0), -part.computing_ns, part.name)))


def _what_if(
    job: JobSummary, waits: Sequence[Waits], last: _Last | None, job_ns: int | None
) -> tuple[tuple[RankWhatIfPart, ...], str | None]:
    """From collective to collective the slowest rank counts; the collectives themselves stay as they are."""
    whole = [
        match
        for match, found in zip(job.matches, waits, strict=True)
        if found.reason is None and match.rows.size == len(job.ranks) and match.collective.waits_for_all
    ]
    if not whole or last is None or not job_ns or len(job.ranks) < 2:
        return (), "no collective is known to wait for all ranks"
    order = np.lexsort((np.arange(len(job.ranks)), -(last.late_ns + last.open_excess_ns)))
    asked = [("the rank that is late most were as fast as the median rank", 1)]
    hundredth = max(2, len(job.ranks) // 100)
    if len(job.ranks) > 2:
        asked.append((f"{counted(hundredth, 'rank')} that are late most were so", hundredth))
    asked.append(("no rank were slower than the median rank", len(job.ranks)))
    gains = [0] * len(asked)
    for match in whole:
        for block in match.blocks():
            took = match.work_ns[:, block] + match.host_ns[:, block]
            median, slowest = np.median(took, axis=0).astype(np.int64), took.max(axis=0)
            for i, (_, count) in enumerate(asked):
                changed = took.copy()
                changed[order[:count]] = np.minimum(took[order[:count]], median)
                gains[i] += int((slowest - changed.max(axis=0)).sum())
    parts = []
    for (what, count), gain in zip(asked, gains, strict=True):
        left = job_ns - gain
        parts.append(RankWhatIfPart(what, count, gain, left, job_ns / left if left > 0 else None))
    return tuple(parts), None


def _phases(ranks: Sequence[RankSummary]) -> tuple[PhaseSumPart, ...]:
    of: dict[str, list[tuple[int, int, int]]] = {}
    for number, rank in enumerate(ranks):
        for name, _, host, kernel in rank.phases:
            of.setdefault(name, []).append((host, kernel, number))
    parts = []
    for name, rows in of.items():
        host, _, slowest = max(rows, key=lambda row: (row[0], -row[2]))
        parts.append(
            PhaseSumPart(name, len(rows), sum(r[0] for r in rows), sum(r[1] for r in rows), slowest, host)
        )
    return tuple(sorted(parts, key=lambda part: (-part.host_ns, part.name))[:MOST_ROWS])


def _by_rank(
    job: JobSummary,
    numbers: Sequence[int],
    times: _Times,
    last: _Last | None,
    groups: Sequence[str] | None,
) -> tuple[JobRankPart, ...]:
    def at(column: Int64Column | None, i: int) -> int | None:
        return None if column is None else int(column[i])

    return tuple(
        JobRankPart(
            rank=i,
            recording=rank.identity.recording,
            number=numbers[i],
            group=groups[i] if groups is not None else None,
            node=rank.identity.node,
            process=rank.identity.process,
            agent=rank.identity.agent if rank.identity.agent >= 0 else None,
            launches=rank.launches,
            kernel_ns=rank.kernel_ns,
            makespan_ns=rank.makespan_ns,
            critical_path_ns=rank.critical_path_ns,
            computing_ns=rank.computing_ns,
            communication_ns=int(times.communication_ns[i]),
            copies_ns=int(times.copies_ns[i]),
            host_ns=int(times.host_ns[i]),
            wait_ns=at(times.wait_ns, i),
            wait_least_ns=at(times.least_ns, i),
            wait_most_ns=at(times.most_ns, i),
            last=at(last.sure if last else None, i),
            last_by_kernel=at(last.by_kernel if last else None, i),
            last_by_host=at(last.by_host if last else None, i),
            last_or_clock=at(last.maybe if last else None, i),
            late_ns=at(last.late_ns if last else None, i),
            open_longest=at(last.open_longest if last else None, i),
            open_excess_ns=at(last.open_excess_ns if last else None, i),
        )
        for i, rank in enumerate(job.ranks)
    )


def _picture(job: JobSummary, job_ns: int | None) -> PicturePart | None:
    """Ranks on common columns: those of a power of two add up without an error, offsets move whole ones."""
    if not job_ns:
        return None
    shift = max(rank.strip.shift for rank in job.ranks)
    while (job_ns >> shift) + 2 > _PICTURE_COLUMNS:
        shift += 1
    offset = job.clocks.likely_ns[job.node]
    begin = min(rank.begin_ns + int(own) for rank, own in zip(job.ranks, offset, strict=True)) >> shift
    columns = (job_ns >> shift) + 2
    per_row = -(-len(job.ranks) // _PICTURE_ROWS)
    rows = -(-len(job.ranks) // per_row)
    sums = np.zeros((2, rows, columns), np.int64)
    for i, rank in enumerate(job.ranks):
        strip = rank.strip
        # Each column is placed by its own middle.
        middles = ((strip.first + np.arange(strip.computing_ns.size)) << strip.shift) + (
            (1 << strip.shift) >> 1
        )
        place = np.clip(((middles + offset[i]) >> shift) - begin, 0, columns - 1)
        np.add.at(sums[0, i // per_row], place, strip.computing_ns)
        np.add.at(sums[1, i // per_row], place, strip.communicating_ns)
    held = np.minimum(per_row, len(job.ranks) - np.arange(rows) * per_row)[:, None] << shift
    parts = np.minimum(sums * 255 // held, 255).astype(np.uint8)
    return PicturePart(1 << shift, columns, rows, per_row, *(part.tobytes() for part in parts))
