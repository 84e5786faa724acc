"""The answer about a job on one screen."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from typing import TYPE_CHECKING

from rpl_analysis.text import duration_ns, one_unit, shown_names, times_as_fast
from rpl_core.text import counted, format_table, shorten

if TYPE_CHECKING:
    from rpl_analysis.contracts.rank_job import RankJob

__all__ = ["job_text"]

_WIDTH = 44
#: Rows of each table: so all of it fits a screen (chosen).
_ROWS = 4
#: Chance of calling one of equal ranks slow (chosen).
_CHANCE = 0.01


def job_text(job: RankJob) -> str:
    """Lines of plain text, at most 40 of at most 100 characters."""
    with one_unit(job.job_ns or job.critical_path_ns):
        return (
            "\n".join((*_head(job), *_collectives(job), *_last(job), *_outliers(job), *_forecasts(job)))
            + "\n"
        )


def _head(job: RankJob) -> Iterator[str]:
    mark = "" if job.origin == "measured" else f"  [{job.origin}: not a measurement of hardware]"
    machines = f" on {counted(job.clock.machines, 'machine')}" if job.clock.machines > 1 else ""
    length = "unknown" if job.job_ns is None else duration_ns(job.job_ns)
    yield f"job        {length}, {counted(job.ranks, 'rank')}{machines}{mark}"
    if job.job_reason is not None:
        yield f"clocks     {job.job_reason}"
    elif job.clock.machines > 1 and job.clock.width_ns is not None:
        width = f"{job.clock.width_ns / 1000:,.3g} us"
        assumed = ", if each waits for all" if job.clock.assumed else ""
        yield f"clocks     known to {width} by the collectives{assumed}; nothing here rests on less"
    if job.shares is not None:
        s = job.shares
        parts = [("computing", s.computing), ("communication", s.communication), ("waiting", s.waiting)]
        parts += [("copies", s.copies), ("host", s.host)]
        shown = ", ".join(f"{name} {share:.1%}" for name, share in parts if share is not None)
        yield f"of it      {shown}"
    if job.missing:
        first = job.missing[0]
        more = f" and {len(job.missing) - 1} more" if len(job.missing) > 1 else ""
        yield f"missing    {first.recording}: {shorten(first.reason, 60)}{more}"


def _collectives(job: RankJob) -> Iterator[str]:
    if not job.collectives:
        return
    names = shown_names([c.name for c in job.collectives])
    rows = []
    for part in job.collectives[:_ROWS]:
        waiting = "unknown"
        if part.wait_ns is not None:
            bound = ">=" if part.exactness == "lower_bound" else "~"
            waiting = f"{bound}{part.wait_ns / max(part.total_ns, 1):.1%}"
        each = duration_ns(part.total_ns // max(part.ranks, 1))
        operations = "differs" if part.operations is None else f"{part.operations:,}"
        rows.append((shorten(names[part.name], _WIDTH), str(part.ranks), operations, each, waiting))
    yield ""
    order = all(part.communicator is None for part in job.collectives)
    title = "collective (n-th launch of each rank)" if order else "collective (by communicator and size)"
    columns = (title, "ranks", "operations", "time per rank", "waiting")
    yield format_table(columns, rows, right=columns[1:]).rstrip("\n")
    reason = next((c.wait_reason for c in job.collectives[:_ROWS] if c.wait_reason), None)
    if reason is not None:
        yield f"waiting unknown: {reason}"


def _last(job: RankJob) -> Iterator[str]:
    ranks = sorted(
        (rank for rank in job.by_rank if rank.last or rank.last_or_clock or rank.open_longest),
        key=lambda rank: (-(rank.late_ns or 0) - (rank.open_excess_ns or 0), -(rank.last or 0), rank.rank),
    )
    if not ranks:
        return
    operations = sum((rank.last or 0) + (rank.last_or_clock or 0) for rank in job.by_rank)
    rows = [
        (
            shorten(rank.recording, _WIDTH),
            f"{rank.last:,} of {operations:,}",
            f"{rank.last_by_kernel:,}",
            f"{rank.last_by_host:,}",
            f"{rank.last_or_clock:,}",
            duration_ns(rank.late_ns or 0),
        )
        for rank in ranks[:_ROWS]
    ]
    yield ""
    columns = ("came last", "operations", "by kernels", "by the host", "or its clock", "others waited")
    yield format_table(columns, rows, right=columns[1:]).rstrip("\n")
    undecided = sum(rank.last_or_clock or 0 for rank in job.by_rank)
    slow = max(job.by_rank, key=lambda rank: (rank.open_longest or 0, -rank.rank))
    if slow.open_longest and not _by_chance(slow.open_longest, undecided, job):
        excess = duration_ns(slow.open_excess_ns or 0)
        yield f"By its own clock {shorten(slow.recording, _WIDTH)} is slow: its kernels took longest before"
        yield f"{slow.open_longest:,} of {undecided:,} operations that no clock decides, by {excess} in all."


def _by_chance(longest: int, operations: int, job: RankJob) -> bool:
    """Whether any one of equal ranks might be the longest before so many of the operations.

    W. Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 58 (1963), theorem 1,
    for the fewest ranks that any collective has, times the ranks of which the longest is looked at.
    """
    fewest = min(part.ranks for part in job.collectives if part.wait_ns is not None)
    above = longest / operations - 1 / fewest
    return above <= 0 or job.ranks * exp(-2 * operations * above * above) > _CHANCE


def _outliers(job: RankJob) -> Iterator[str]:
    if not job.outliers and not job.groups:
        return
    yield ""
    if not job.outliers:
        yield "outliers   none (modified z-score above 3.5)"
    for one in job.outliers[:_ROWS]:
        why = ""
        if one.kernel is not None and one.kernel_excess_ns:
            names = shown_names([one.kernel])
            why = f", {shorten(names[one.kernel], 30)} +{duration_ns(one.kernel_excess_ns)}"
        kind = "group " if one.of == "group" else ""
        yield (
            f"outlier    {kind}{shorten(one.name, _WIDTH)}: {one.what} {duration_ns(one.value_ns)}, "
            f"median {duration_ns(one.median_ns)}{why}"
        )
    more = len(job.outliers) - _ROWS + job.outliers_left_out
    if more > 0:
        yield f"           and {more} more"
    for group in job.groups[:_ROWS]:
        last = "" if group.last is None else f", last {group.last:,} times"
        yield (
            f"group      {shorten(group.name, 24)}: {counted(group.ranks, 'rank')}, median computing "
            f"{duration_ns(group.computing_ns)}, host {duration_ns(group.host_ns)}{last}"
        )


def _forecasts(job: RankJob) -> Iterator[str]:
    if not job.what_if or job.job_ns is None:
        return
    yield ""
    for one in job.what_if:
        yield f"what if    {one.what}: {duration_ns(one.job_ns)}, {times_as_fast(job.job_ns, one.gain_ns)}"
    yield "           (modelled: from one collective to the next the slowest rank counts)"
