"""``ranks`` of ``profile.json``: GPUs and ranks of one run beside each other."""

from __future__ import annotations

from attrs import field

from rpl_analysis.contracts.record import OR_EMPTY, OR_ZERO, record
from rpl_core.model.metric import Exactness


@record
class GpuTimePart:
    """One GPU between the begin of its first kernel or copy and the end of its last."""

    node: str
    agent: int | None
    product: str | None
    architecture: str | None
    launches: int
    kernel_ns: int  # sum of all dispatches
    busy_ns: int  # something runs, copies included
    makespan_ns: int
    concurrency: float | None  # durations / busy_ns: work at once on this GPU
    communication_ns: int  # a collective runs
    overlapped_ns: int  # a collective and another kernel run


@record
class RankTimePart:
    """What one process did on one GPU; ``rank`` counts by machine, GPU and process."""

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


@record
class ImbalancedKernelPart:
    """Over all ranks; ``imbalance`` = max_ns / mean_ns - 1."""

    name: str
    mean_ns: float
    max_ns: int
    slowest_rank: int
    ranks: int  # that launched it
    imbalance: float


@record
class CollectiveSharePart:
    rank: int
    calls: int
    total_ns: int
    wait_ns: int | None
    last_arrivals: int | None


@record
class CollectivePart:
    """``exactness`` is that of the waits; ``wait_reason`` says why they are unknown."""

    name: str
    operation: str
    rule: str
    exactness: Exactness | None
    wait_reason: str | None
    shares: tuple[CollectiveSharePart, ...]


@record
class RanksPart:
    """Of the run with the median time. ``makespan_ns`` is null over machines whose clocks differ."""

    run: int
    runtime_ns: int
    makespan_ns: int | None
    gpus: tuple[GpuTimePart, ...]
    gpus_left_out: int = field(metadata=OR_ZERO)
    ranks: tuple[RankTimePart, ...]
    ranks_left_out: int = field(metadata=OR_ZERO)
    kernels: tuple[ImbalancedKernelPart, ...] = field(metadata=OR_EMPTY)
    collectives: tuple[CollectivePart, ...] = field(metadata=OR_EMPTY)
