"""What is known about GPUs and ranks that ran at once, in the run with the median time."""

from __future__ import annotations

from rpl_core.values import frozen

__all__ = ["Collective", "CollectiveShare", "GpuTime", "ImbalancedKernel", "RankReport", "RankTime"]


@frozen
class GpuTime:
    """One GPU between the begin of its first kernel or copy and the end of its last."""

    node: str
    agent: int | None
    product: str | None
    architecture: str | None
    launches: int
    kernel_ns: int  # sum of all dispatches
    busy_ns: int  # something runs, copies included
    makespan_ns: int
    concurrency: float | None  # durations over busy time: work at once on this GPU
    communication_ns: int  # a collective runs
    overlapped_ns: int  # ... and another kernel beside it


@frozen
class RankTime:
    """What one process did on one GPU. ``rank`` counts from 0, by machine, GPU and process."""

    rank: int
    node: str
    process: int  # OS pid
    agent: int | None
    launches: int
    kernel_ns: int
    makespan_ns: int
    collective_ns: int
    wait_ns: int | None  # in collectives, for the slowest of the recorded ranks
    last_arrivals: int | None  # how often the others waited for this one


@frozen
class ImbalancedKernel:
    """How unevenly the time of one kernel is spread over ranks: ``imbalance`` = max / mean - 1."""

    name: str
    mean_ns: float
    max_ns: int
    slowest_rank: int
    ranks: int  # that launched it
    imbalance: float


@frozen
class CollectiveShare:
    rank: int
    calls: int
    total_ns: int
    wait_ns: int | None
    last_arrivals: int | None


@frozen
class Collective:
    """One kernel that communicates. ``exactness`` is that of the waits; else ``wait_reason`` says why not."""

    name: str
    operation: str
    rule: str
    exactness: str | None
    wait_reason: str | None
    shares: tuple[CollectiveShare, ...]


@frozen
class RankReport:
    """``makespan_ns`` is unknown over several machines, whose clocks differ."""

    run: int
    runtime_ns: int
    makespan_ns: int | None
    gpus: tuple[GpuTime, ...]
    gpus_left_out: int
    ranks: tuple[RankTime, ...]
    ranks_left_out: int
    kernels: tuple[ImbalancedKernel, ...]
    collectives: tuple[Collective, ...]
