"""Where GPUs wait: collectives over the recorded ranks, and idle time by the operator that ended it.

The n-th operation of a group belongs together on all ranks, by the number that the trace gives or by the
order of launches. No rank finishes before the last one has begun, so a rank waits from its own begin to the
last begin, and data moves from then on. Sizes and bus bandwidth are those of NCCL's tests: size / time times
a factor by which operations of any number of ranks compare with the hardware's
(https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Literal

import numpy as np

from rpl_core.values import frozen
from rpl_torch.contracts import TorchCollectivePart, TorchHostBoundPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Trace
    from rpl_torch.analysis.launches import Launches
    from rpl_torch.model import CollectiveCall

    Int64Column = NDArray[np.int64]

_ELEMENT_BYTES = {
    "Double": 8,
    "Long": 8,
    "UInt64": 8,
    "Float": 4,
    "Int": 4,
    "UInt32": 4,
    "Half": 2,
    "BFloat16": 2,
    "Short": 2,
    "Byte": 1,
    "Char": 1,
    "Bool": 1,
    "Float8_e4m3fn": 1,
    "Float8_e5m2": 1,
    "Float8_e4m3fnuz": 1,
    "Float8_e5m2fnuz": 1,
}
#: By operation, of n ranks ("Bus bandwidth" of that page).
BUS_FACTORS: dict[str, Callable[[int], float]] = {
    "allreduce": lambda n: 2 * (n - 1) / n,
    "allgather": lambda n: (n - 1) / n,
    "reducescatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "broadcast": lambda _: 1.0,
    "reduce": lambda _: 1.0,
    "send": lambda _: 1.0,
    "recv": lambda _: 1.0,
}
_SPELT = {
    "allreduce_coalesced": "allreduce",
    "_allgather_base": "allgather",
    "allgather_into_tensor_coalesced": "allgather",
    "all_gather": "allgather",
    "all_gather_into_tensor": "allgather",
    "_reduce_scatter_base": "reducescatter",
    "reduce_scatter": "reducescatter",
    "reduce_scatter_tensor": "reducescatter",
    "reduce_scatter_tensor_coalesced": "reducescatter",
    "all_reduce": "allreduce",
    "all_to_all": "alltoall",
    "all_to_allv": "alltoallv",
    "alltoall_base": "alltoall",
}


def plain_operation(recorded: str) -> str:
    """``allgather`` for ``_allgather_base`` and the other names that releases use."""
    name = recorded.removeprefix("nccl:").lower()
    return _SPELT.get(name, name)


def bus_factor(operation: str, ranks: int) -> float | None:
    """Bus bandwidth over algorithm bandwidth; ``None`` for operations that have no such definition."""
    factor = BUS_FACTORS.get(operation)
    return None if factor is None or ranks < 1 else factor(ranks)


def message_bytes(call: CollectiveCall) -> int | None:
    """The size of the operation: the whole of what is gathered or scattered, else what a rank gives."""
    size, given, taken = _ELEMENT_BYTES.get(call.dtype or ""), call.in_elements, call.out_elements
    operation = plain_operation(call.operation)
    elements = taken if operation == "allgather" else given
    return None if size is None or elements is None or elements < 0 else elements * size


#: Operation, group, ranks of the group, type, bytes.
_Key = tuple[str, str, tuple[int, ...], str, int]


@frozen
class _Taken:
    """One kernel of an operation on one rank."""

    rank: int | None
    process: int
    call: CollectiveCall
    begin_ns: int
    end_ns: int


def collective_parts(launches: Launches) -> list[TorchCollectivePart]:
    """By operation, group, type and size; those with the most time first."""
    by_correlation = _rows_by_correlation(launches)
    groups: defaultdict[_Key, dict[int, list[_Taken]]] = defaultdict(dict)
    for number, process in enumerate(launches.processes):
        # The order of launches is that of correlation ids.
        for call in sorted(process.collectives, key=lambda c: c.correlation_id):
            row = by_correlation.get((number, call.correlation_id))
            if row is None:
                continue
            size = message_bytes(call)
            bytes_or_none = -1 if size is None else size
            key = (
                plain_operation(call.operation),
                call.group or "",
                call.ranks,
                call.dtype or "",
                bytes_or_none,
            )
            taken = _Taken(process.rank, number, call, int(launches.begin_ns[row]), int(launches.end_ns[row]))
            groups[key].setdefault(number, []).append(taken)
    parts = [_part(key, list(by_process.values())) for key, by_process in groups.items()]
    return sorted(parts, key=lambda part: (-part.duration_ns, part.operation, part.group or ""))


def _rows_by_correlation(launches: Launches) -> dict[tuple[int, int], int]:
    """Row of the work by number of the torch process and correlation id, for collectives only."""
    wanted = [{call.correlation_id for call in process.collectives} for process in launches.processes]
    known: dict[tuple[int, int], int] = {}
    if not any(wanted):
        return known
    numbers = {process: number for number, process in enumerate(launches.torch_process)}
    for row, (process, correlation) in enumerate(
        zip(launches.process.tolist(), launches.correlation_id.tolist(), strict=True)
    ):
        number = numbers.get(process)
        if number is not None and correlation in wanted[number]:
            known[number, correlation] = row
    return known


def _part(key: _Key, ranks: Sequence[list[_Taken]]) -> TorchCollectivePart:
    operation, group, _, dtype, size = key
    first = ranks[0][0].call
    group_size = first.group_size or len(first.ranks) or None
    duration = sum(taken.end_ns - taken.begin_ns for calls in ranks for taken in calls)
    together, reason = _together(ranks, group_size)
    longest = sum(max(taken.end_ns - taken.begin_ns for taken in calls) for calls in _zipped(ranks))
    wait = transfer = spread = None
    last: Counter[str] = Counter()
    if reason is None:
        begins = np.array([[taken.begin_ns for taken in calls] for calls in together])
        ends = np.array([[taken.end_ns for taken in calls] for calls in together])
        latest = begins.max(axis=1)
        wait = int((latest[:, None] - begins).sum())
        transfer = int((ends.max(axis=1) - latest).sum())
        spread = int(np.median(ends.max(axis=1) - ends.min(axis=1)))
        last.update(
            _rank_name(calls[place])
            for calls, place in zip(together, begins.argmax(axis=1).tolist(), strict=True)
        )
    count = len(together) or max(len(calls) for calls in ranks)
    algorithm, bus, exactness, why = _bandwidth(operation, size, group_size, count, transfer, longest)
    return TorchCollectivePart(
        operation=operation,
        group=group or None,
        group_size=group_size,
        ranks_recorded=len(ranks),
        operations=count,
        message_bytes=size if size >= 0 else None,
        dtype=dtype or None,
        duration_ns=duration,
        wait_ns=wait,
        transfer_ns=transfer,
        wait_reason=reason,
        last_ranks=dict(sorted(last.items(), key=lambda item: (-item[1], item[0]))),
        end_spread_ns=spread,
        algorithm_gbps=algorithm,
        bus_gbps=bus,
        bandwidth_exactness=exactness,
        bandwidth_reason=why,
    )


def _rank_name(taken: _Taken) -> str:
    return str(taken.rank) if taken.rank is not None else f"process {taken.process}"


def _zipped(ranks: Sequence[list[_Taken]]) -> list[list[_Taken]]:
    """The n-th of each rank, as far as there are any."""
    longest = max(len(calls) for calls in ranks)
    return [[calls[i] for calls in ranks if i < len(calls)] for i in range(longest)]


def _together(ranks: Sequence[list[_Taken]], group_size: int | None) -> tuple[list[list[_Taken]], str | None]:
    """The kernels of each operation, one per rank; and why they can't be compared, if they can't."""
    recorded = len(ranks)
    if group_size is not None and recorded < group_size:
        return [], f"{recorded} of {group_size} ranks are recorded: another one may have come last"
    if recorded < 2:
        return [], "one rank alone is recorded"
    if group_size is not None and recorded > group_size:
        return [], f"{recorded} ranks ran it in groups of {group_size} of one name"
    told = [{taken.call.number: taken for taken in calls} for calls in ranks]
    if all(
        None not in numbers and len(numbers) == len(calls) for numbers, calls in zip(told, ranks, strict=True)
    ):
        # Profilers begin and end at different operations; the numbers tell which all of them saw.
        shared = set.intersection(*(set(numbers) for numbers in told))
        ranks = [[numbers[n] for n in sorted(shared, key=lambda n: n or 0)] for numbers in told]
        if not shared:
            return [], "no operation was recorded on all ranks"
    counts = sorted({len(calls) for calls in ranks})
    if len(counts) > 1:
        return [], f"the ranks ran it {counts[0]} to {counts[-1]} times: no pairs are known"
    together = [list(calls) for calls in zip(*ranks, strict=True)]
    early = sum(
        min(taken.end_ns for taken in calls) < max(taken.begin_ns for taken in calls) for calls in together
    )
    if early:
        return [], (
            f"in {early} of {len(together)} operations a rank ended before another began: "
            "they don't belong together, or the clocks of the ranks differ"
        )
    return together, None


_Bandwidth = tuple[
    "float | None", "float | None", "Literal['exact', 'lower_bound', 'estimate'] | None", "str | None"
]


def _bandwidth(
    operation: str, size: int, group_size: int | None, count: int, transfer: int | None, longest: int
) -> _Bandwidth:
    if size <= 0:
        return None, None, None, "the size of the message is not recorded"
    if group_size is None:
        return None, None, None, "the size of the group is not recorded"
    factor = bus_factor(operation, group_size)
    if factor is None:
        return None, None, None, f"bus bandwidth is not defined for {operation}"
    time = longest if transfer is None else transfer
    if time <= 0:
        return None, None, None, "the transfer took no time that the clock shows"
    algorithm = size * count / time
    # Where the wait is not known the time holds it too.
    return algorithm, algorithm * factor, "lower_bound" if transfer is None else "estimate", None


# GPU idle time by the operator whose work ended it, and stretches in which the host sets the pace.


@frozen(eq=False)
class Idle:
    """Per work row the idle time of its GPU right before it: the host's part, the queued and the unknown."""

    host_ns: Int64Column
    queued_ns: Int64Column
    unknown_ns: Int64Column
    order: tuple[NDArray[np.int64], ...]  # rows of each GPU by begin

    @property
    def total_ns(self) -> int:
        return int(self.host_ns.sum() + self.queued_ns.sum() + self.unknown_ns.sum())


def find_idle(launches: Launches) -> Idle:
    """Idle time of each GPU between its first and its last work."""
    count = len(launches.begin_ns)
    host, queued, unknown = (np.zeros(count, np.int64) for _ in range(3))
    orders = []
    for agent in np.unique(launches.agent).tolist():
        rows = np.flatnonzero(launches.agent == agent)
        rows = rows[np.argsort(launches.begin_ns[rows], kind="stable")]
        orders.append(rows)
        begin = launches.begin_ns[rows]
        reached = np.maximum.accumulate(launches.end_ns[rows])
        since = np.concatenate([begin[:1], reached[:-1]])
        gap = np.maximum(begin - since, 0)
        submitted = launches.submitted_ns[rows]
        known = submitted >= 0
        of_host = np.clip(submitted - since, 0, gap)
        host[rows] = np.where(known, of_host, 0)
        queued[rows] = np.where(known, gap - of_host, 0)
        unknown[rows] = np.where(known, 0, gap)
    return Idle(host, queued, unknown, tuple(orders))


def host_bound_stretches(trace: Trace, launches: Launches, idle: Idle) -> list[TorchHostBoundPart]:
    """Maximal runs of two or more launches that each found their GPU drained, most idle time first."""
    first_ns = int(launches.begin_ns.min())
    stretches = []
    for rows in idle.order:
        drained = (idle.host_ns[rows] > 0).astype(np.int8)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], drained, [0]])))
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if end - begin > 1:
                stretches.append(_stretch(trace, launches, idle, rows[begin:end], first_ns))
    return sorted(stretches, key=lambda stretch: (-stretch.idle_ns, stretch.begin_ns, stretch.agent))


def _stretch(
    trace: Trace, launches: Launches, idle: Idle, rows: Int64Column, first_ns: int
) -> TorchHostBoundPart:
    waits = idle.host_ns[rows] + idle.queued_ns[rows]
    begin, end = int(launches.begin_ns[rows[0]] - waits[0]), int(launches.end_ns[rows].max())
    by_operator: Counter[int] = Counter()
    for operator, ns in zip(launches.operator[rows].tolist(), waits.tolist(), strict=True):
        by_operator[operator] += ns
    operator, ns = max(by_operator.items(), key=lambda item: (item[1], -item[0]))
    by_line: Counter[int] = Counter()
    of_operator = launches.operator[rows] == operator
    for line, wait in zip(
        launches.line[rows][of_operator].tolist(), waits[of_operator].tolist(), strict=True
    ):
        by_line[line] += wait
    line = max(by_line.items(), key=lambda item: (item[1], -item[0]))[0]
    process, agent = int(launches.process[rows[0]]), int(launches.agent[rows[0]])
    return TorchHostBoundPart(
        process=trace.processes[process].pid if process >= 0 else -1,
        agent=trace.agents[agent].index if agent >= 0 else -1,
        begin_ns=begin - first_ns,
        length_ns=end - begin,
        idle_ns=int(waits.sum()),
        launches=len(rows),
        operator=launches.operators[operator] if operator >= 0 else None,
        operator_idle_ns=ns,
        line=launches.lines[line] if line >= 0 else None,
    )
