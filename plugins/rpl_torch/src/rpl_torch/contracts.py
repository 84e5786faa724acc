"""``sections.torch`` of ``profile.json``: what operators, modules, lines and shapes cost, and who waits.

Times in ns, of the run that the execution graph shows. ``share`` is of the time of all kernels and copies,
``path_share`` of the critical path; both are null where they are not known. What is ``modelled`` comes from
shapes, never from counters.
"""

from __future__ import annotations

from typing import Literal

from rpl_analysis.contracts import record


@record
class TorchTimePart:
    """Work that was launched inside of one thing; ``name`` null: launched by nobody that is recorded."""

    name: str | None
    launches: int
    time_ns: int
    share: float
    path_ns: int | None
    path_share: float | None


@record
class TorchModulePart:
    """One ``nn.Module``; ``time_ns`` is what it launched itself, ``inside_ns`` with the modules in it."""

    name: str | None
    launches: int
    time_ns: int
    share: float
    path_ns: int | None
    path_share: float | None
    inside_ns: int
    inside_share: float


@record
class TorchOperatorPart:
    """One operator, with the time in which its GPU idled before its work.

    ``idle_host_ns``: nothing was submitted, ``idle_queued_ns``: it was submitted and had not begun,
    ``idle_unknown_ns``: the launching call is not recorded. ``modelled_calls`` of ``calls`` have a formula.
    """

    name: str | None
    calls: int
    launches: int
    time_ns: int
    share: float
    path_ns: int | None
    path_share: float | None
    idle_host_ns: int
    idle_queued_ns: int
    idle_unknown_ns: int
    modelled_calls: int
    flops: int | None  # of the modelled calls
    bytes: int | None


@record
class TorchShapePart:
    """Calls of one operator with the same shapes and types; ``flops`` and ``bytes`` of one call.

    Rates are ``flops * calls`` and ``bytes * calls`` over the time of their kernels. Shares are of the
    device's data sheet: ``compute_share`` of the rate of the type, ``memory_share`` of HBM. ``bound`` is the
    larger one. ``reason`` says why there are no figures, ``ceiling_reason`` why there are no shares.
    """

    operator: str
    dims: str
    types: str
    calls: int
    launches: int
    time_ns: int
    share: float
    path_ns: int | None
    formula: str | None
    reason: str | None
    flops: int | None
    bytes: int | None
    intensity: float | None  # FLOP per byte
    data_type: str | None
    gflops: float | None
    gbps: float | None
    compute_share: float | None
    memory_share: float | None
    bound: Literal["memory", "compute"] | None  # in the order of roofline.json: equal unions are kept once
    above_peak: bool  # a rate that the device can't have: the formula counts what was not done
    ceiling_reason: str | None


@record
class TorchUnmodelledPart:
    """Calls without a formula, by operator and reason."""

    operator: str
    calls: int
    time_ns: int
    reason: str


@record
class TorchDecidingPart:
    """The kernel with the most time on the critical path, and who launched it there."""

    kernel: str
    path_ns: int
    operator: str | None
    operator_ns: int  # of path_ns
    module: str | None
    line: str | None
    dims: str | None


@record
class TorchKernelPart:
    """Who launched a kernel: those with the most of its time first."""

    kernel: str
    time_ns: int
    operators: tuple[TorchTimePart, ...]
    modules: tuple[TorchTimePart, ...]
    lines: tuple[TorchTimePart, ...]


@record
class TorchHostBoundPart:
    """A stretch in which each launch found its GPU drained: the host sets the pace.

    ``begin_ns`` counts from the first work of the run. ``operator`` is the one that most of the idle time was
    before, ``line`` its line.
    """

    process: int
    agent: int
    begin_ns: int
    length_ns: int
    idle_ns: int
    launches: int
    operator: str | None
    operator_idle_ns: int
    line: str | None


@record
class TorchCollectivePart:
    """Collectives of one operation, group and size. All times are sums over ``operations``.

    ``wait_ns``: summed over ranks, from a rank's begin to that of the last; ``transfer_ns``: from the last
    begin to the last end. ``bus_gbps`` and ``algorithm_gbps`` are over ``transfer_ns``, or over the longest
    duration where waiting is unknown, and are a lower bound then. ``end_spread_ns`` is the median difference
    between the ends of the ranks, by which clocks or the waits may be off.
    """

    operation: str
    group: str | None
    group_size: int | None
    ranks_recorded: int
    operations: int
    message_bytes: int | None  # as NCCL's tests count the size of an operation
    dtype: str | None
    duration_ns: int  # summed over ranks
    wait_ns: int | None
    transfer_ns: int | None
    wait_reason: str | None
    last_ranks: dict[str, int]  # how often each rank came last
    end_spread_ns: int | None
    algorithm_gbps: float | None
    bus_gbps: float | None
    bandwidth_exactness: Literal["exact", "lower_bound", "estimate"] | None
    bandwidth_reason: str | None


@record
class TorchRankPart:
    """One file. ``told_by`` says where its rank is from: the trace, or its file's name."""

    rank: int | None
    process: int
    world_size: int | None
    operators: int
    frames: int
    forward_backward_links: int


@record
class TorchPart:
    """All of it. ``*_left_out`` counts what lists do not show, those with the least time."""

    run: int
    ranks: tuple[TorchRankPart, ...]
    time_ns: int
    path_ns: int | None
    path_reason: str | None
    shapes_reason: str | None
    modules_reason: str | None
    lines_reason: str | None
    operators: tuple[TorchOperatorPart, ...]
    operators_left_out: int
    modules: tuple[TorchModulePart, ...]
    modules_left_out: int
    lines: tuple[TorchTimePart, ...]
    lines_left_out: int
    shapes: tuple[TorchShapePart, ...]
    shapes_left_out: int
    unmodelled: tuple[TorchUnmodelledPart, ...]
    modelled_share: float  # of time_ns
    deciding: TorchDecidingPart | None
    kernels: tuple[TorchKernelPart, ...]
    kernels_left_out: int
    idle_ns: int
    host_bound: tuple[TorchHostBoundPart, ...]
    host_bound_left_out: int
    collectives: tuple[TorchCollectivePart, ...]
    work_origin: Literal["modelled"]
