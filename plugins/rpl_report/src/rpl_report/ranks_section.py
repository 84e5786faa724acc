"""The section on GPUs and ranks that worked side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_analysis.text.figures import UNKNOWN, duration_ns, percent
from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest, Table
from rpl_core.text.safety import shorten
from rpl_core.text.table import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.ranks import (
        CollectivePart,
        CollectiveSharePart,
        GpuTimePart,
        RanksPart,
        RankTimePart,
    )

__all__ = ["RanksSection"]

_NAME_WIDTH = 48
#: Rows of each table; profile.json holds more.
_SHOWN_RANKS, _SHOWN_KERNELS, _SHOWN_COLLECTIVES = 16, 5, 5
_MARKS = {"lower_bound": ">=", "estimate": "~"}


class RanksSection(ReportSection):
    """Nothing for one GPU of one process that runs no collective."""

    name = "ranks"
    summary = "time of each GPU and rank, imbalance, collectives and who waits for whom"
    title = "GPUs and ranks"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        ranks = _ranks_of(request)
        if ranks is None or (len(ranks.ranks) < 2 and not ranks.collectives):
            return ()
        return (*_ranks(ranks), *_imbalances(ranks, request), *_collectives(ranks, request))


def _ranks_of(request: SectionRequest) -> RanksPart | None:
    profile: Any = request.documents.get("profile")
    ranks: RanksPart | None = getattr(profile, "ranks", None)
    return ranks


def _ranks(told: RanksPart) -> Iterator[Block]:
    makespan = (
        f"in a makespan of {duration_ns(told.makespan_ns)}"
        if told.makespan_ns is not None
        else "on machines whose clocks differ"
    )
    ranks = counted(len(told.ranks) + told.ranks_left_out, "rank")
    gpus = counted(len(told.gpus) + told.gpus_left_out, "GPU")
    yield Paragraph(f"{ranks} on {gpus}: {duration_ns(told.runtime_ns)} of kernels {makespan}.")
    columns = ("rank", "GPU", "kernels", "makespan")
    communicating = ("collectives", "waiting", "comes last", "beside kernels") if told.collectives else ()
    columns = (*columns, *communicating, "GPU busy", "at once", "process")
    rows = tuple(
        (*_rank(rank), *(_communication(told, rank) if communicating else ()), *_load(told, rank))
        for rank in told.ranks[:_SHOWN_RANKS]
    )
    yield Table(columns, rows, right=columns)
    rest = len(told.ranks) - len(rows) + told.ranks_left_out
    if rest:
        yield Paragraph(f"({counted(rest, 'more rank')} in profile.json)")


def _rank(rank: RankTimePart) -> tuple[str, ...]:
    agent = UNKNOWN if rank.agent is None else str(rank.agent)
    return str(rank.rank), agent, duration_ns(rank.kernel_ns), duration_ns(rank.makespan_ns)


def _load(ranks: RanksPart, rank: RankTimePart) -> tuple[str, ...]:
    gpu = _gpu_of(ranks, rank)
    busy = gpu.busy_ns / gpu.makespan_ns if gpu and gpu.makespan_ns else None
    at_once = gpu.concurrency if gpu else None
    return percent(busy), UNKNOWN if at_once is None else f"{at_once:.2f}", str(rank.process)


def _gpu_of(ranks: RanksPart, rank: RankTimePart) -> GpuTimePart | None:
    return next((gpu for gpu in ranks.gpus if (gpu.node, gpu.agent) == (rank.node, rank.agent)), None)


def _communication(ranks: RanksPart, rank: RankTimePart) -> tuple[str, ...]:
    """Time in collectives, the part of it hidden behind other kernels of the GPU, and who waited."""
    gpu = _gpu_of(ranks, rank)
    hidden = gpu.overlapped_ns / gpu.communication_ns if gpu and gpu.communication_ns else None
    operations = sum(share.calls for c in ranks.collectives if c.exactness for share in _of(c, rank.rank))
    last = UNKNOWN if rank.last_arrivals is None else f"{rank.last_arrivals:,} of {operations:,}"
    return duration_ns(rank.collective_ns), _wait(ranks, rank), last, percent(hidden)


def _of(collective: CollectivePart, rank: int) -> list[CollectiveSharePart]:
    return [share for share in collective.shares if share.rank == rank]


def _wait(ranks: RanksPart, rank: RankTimePart) -> str:
    if rank.wait_ns is None:
        return UNKNOWN
    exactness = {c.exactness for c in ranks.collectives if c.exactness and _of(c, rank.rank)}
    mark = "~" if "estimate" in exactness else ">="
    return f"{mark}{duration_ns(rank.wait_ns)}"


def _imbalances(ranks: RanksPart, request: SectionRequest) -> Iterator[Block]:
    shown = ranks.kernels[:_SHOWN_KERNELS]
    if shown:
        rows = tuple(
            (
                _short(kernel.name, request),
                duration_ns(kernel.mean_ns),
                duration_ns(kernel.max_ns),
                str(kernel.slowest_rank),
                f"+{percent(kernel.imbalance)}",
            )
            for kernel in shown
        )
        columns = ("most uneven kernel", "mean", "slowest", "rank", "above mean")
        yield Table(columns, rows, right=columns[1:])


def _collectives(ranks: RanksPart, request: SectionRequest) -> Iterator[Block]:
    shown = ranks.collectives[:_SHOWN_COLLECTIVES]
    if not shown:
        return
    rows = tuple(
        (
            _short(each.name, request),
            each.operation.replace("_", " "),
            f"{max(share.calls for share in each.shares):,}",
            duration_ns(min(share.total_ns for share in each.shares)),
            duration_ns(max(share.total_ns for share in each.shares)),
            _longest_wait(each),
        )
        for each in shown
    )
    columns = ("collective", "operation", "calls", "shortest rank", "longest rank", "longest wait")
    yield Table(columns, rows, right=columns[2:])
    for each in shown:
        if each.wait_reason is not None:
            yield Paragraph(f"Waits in {_short(each.name, request)} are unknown: {each.wait_reason}.")


def _longest_wait(each: CollectivePart) -> str:
    waits = [share.wait_ns for share in each.shares if share.wait_ns is not None]
    return f"{_MARKS.get(each.exactness or '', '')}{duration_ns(max(waits))}" if waits else UNKNOWN


def _short(name: str, request: SectionRequest) -> str:
    return request.short_names.get(name) or shorten(name, _NAME_WIDTH)
