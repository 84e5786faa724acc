"""Times of GPUs and ranks from one run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.contracts.profile import (
    CollectivePart,
    CollectiveSharePart,
    GpuTimePart,
    ImbalancedKernelPart,
    RanksPart,
    RankTimePart,
)
from rpl_analysis.critical_path.intervals import BusyTime, sum_busy_time
from rpl_analysis.execution_graph.graph import WorkNodes, number_keys, work_nodes
from rpl_analysis.interfaces import CollectiveRule, CollectiveWait, packaged_rules
from rpl_core.model.metric import Exactness
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Trace

    Int64Column = NDArray[np.int64]

# Which kernels communicate between GPUs, by the rules that plugins offer.

#: Longer names are searched so far: rules look at what a function is called.
_MOST_CHARACTERS = 512


@cache
def builtin_collective_rules() -> tuple[CollectiveRule, ...]:
    """The rules of ``collectives.toml`` beside this module."""
    entries = packaged_rules(__package__, "collectives.toml")
    return tuple(CollectiveRule(**{**entry, "waits": CollectiveWait(entry["waits"])}) for entry in entries)


def collectives_among(names: Sequence[str], rules: Iterable[CollectiveRule]) -> Mapping[int, CollectiveRule]:
    """The rule for each of ``names`` that communicates, by its place."""
    compiled = [(re.compile(rule.pattern, re.IGNORECASE), rule) for rule in rules]
    functions = [_function(name) for name in names]
    matches = {
        place: next((rule for pattern, rule in compiled if pattern.search(function)), None)
        for place, function in enumerate(functions)
    }
    return {place: rule for place, rule in matches.items() if rule is not None}


def _function(name: str) -> str:
    """What stands before template arguments and parameters."""
    text = name[:_MOST_CHARACTERS].replace("(anonymous namespace)", "")
    return re.split("[<(]", text, maxsplit=1)[0]


#: So many GPUs, ranks and kernels are listed (chosen).
MOST_ROWS = 256
_SEVERAL_CLOCKS = "the ranks ran on several machines, whose clocks differ"


@frozen(eq=False)
class _Run:
    """The work of one run. ``rank`` is that of each node, ``key`` (machine, GPU, process) of each rank."""

    trace: Trace
    work: WorkNodes
    rank: Int64Column
    keys: tuple[tuple[int, int], ...]  # indices of process and agent
    rules: Mapping[int, CollectiveRule]  # by symbol

    def node_of(self, rank: int) -> str:
        process, agent = self.keys[rank]
        return self.trace.processes[process].node if process >= 0 else self.trace.agents[agent].node

    def agent_of(self, rank: int) -> int | None:
        agent = self.keys[rank][1]
        return self.trace.agents[agent].index if agent >= 0 else None


def rank_report(trace: Trace, run: int, rules: Iterable[CollectiveRule]) -> RanksPart | None:
    """``None`` where nothing ran."""
    work = work_nodes(trace, include_copies=True)
    rank, keys = rank_keys(trace, work)
    if not keys:
        return None
    run_of_rank = _Run(
        trace, work, rank, keys, collectives_among(work.symbol_names[: work.kernel_symbols], rules)
    )
    collectives = tuple(_collective(run_of_rank, symbol) for symbol in run_of_rank.rules)
    collectives = tuple(sorted(collectives, key=lambda c: (-sum(s.total_ns for s in c.shares), c.name)))
    agents = tuple(dict.fromkeys(agent for _, agent in keys))
    clocks = {run_of_rank.node_of(rank) for rank in range(len(keys))}
    return RanksPart(
        run=run,
        runtime_ns=int(work.duration_ns()[~work.is_copy].sum()),
        makespan_ns=int(work.end_ns.max() - work.begin_ns.min()) if len(clocks) == 1 else None,
        gpus=tuple(_gpu(run_of_rank, agent) for agent in agents[:MOST_ROWS]),
        gpus_left_out=max(0, len(agents) - MOST_ROWS),
        ranks=tuple(_rank(run_of_rank, number, collectives) for number in range(len(keys[:MOST_ROWS]))),
        ranks_left_out=max(0, len(keys) - MOST_ROWS),
        kernels=_imbalances(run_of_rank) if len(keys) > 1 else (),
        collectives=collectives,
    )


def rank_keys(trace: Trace, work: WorkNodes) -> tuple[Int64Column, tuple[tuple[int, int], ...]]:
    """The rank of each node, and process and agent of each rank, by machine, GPU and process id.

    Ranks are those that launched kernels; copies of others have the rank -1.
    """
    width = len(trace.agents) + 1
    pair = work.process.astype(np.int64) * width + (work.agent + 1)
    found, number = number_keys(pair)
    launched = np.zeros(found.size, np.bool_)
    launched[number[~work.is_copy]] = True
    keys = {i: (int(found[i]) // width, int(found[i]) % width - 1) for i in np.flatnonzero(launched).tolist()}

    def place(i: int) -> tuple[str, int, int, int]:
        process, agent = keys[i]
        owner = trace.processes[process] if process >= 0 else None
        index = trace.agents[agent].index if agent >= 0 else -1
        return (owner.node if owner else "", index, owner.pid if owner else -1, process)

    order = sorted(keys, key=place)
    new = np.full(found.size, -1, np.int64)
    new[order] = np.arange(len(order))
    return new[number], tuple(keys[i] for i in order)


def _gpu(run: _Run, agent: int) -> GpuTimePart:
    work, rows = run.work, run.work.agent == agent
    kernels = rows & ~work.is_copy
    collective = np.isin(work.symbol, list(run.rules))
    everything, talk = _busy(work, rows), _busy(work, kernels & collective)
    hidden = 0
    if talk.busy_ns:
        hidden = talk.busy_ns + _busy(work, kernels & ~collective).busy_ns - _busy(work, kernels).busy_ns
    owner = run.trace.agents[agent] if agent >= 0 else None
    return GpuTimePart(
        node=owner.node if owner else run.node_of([key[1] for key in run.keys].index(agent)),
        agent=owner.index if owner else None,
        product=owner.product if owner else None,
        architecture=owner.architecture if owner else None,
        launches=int(kernels.sum()),
        kernel_ns=int(work.duration_ns()[kernels].sum()),
        busy_ns=everything.busy_ns,
        makespan_ns=everything.makespan_ns,
        concurrency=everything.concurrency,
        communication_ns=talk.busy_ns,
        overlapped_ns=hidden,
    )


def _busy(work: WorkNodes, rows: NDArray[np.bool_]) -> BusyTime:
    return sum_busy_time(work.begin_ns[rows], work.end_ns[rows])


def _rank(run: _Run, rank: int, collectives: Iterable[CollectivePart]) -> RankTimePart:
    work, rows = run.work, run.rank == rank
    kernels = rows & ~work.is_copy
    shares = [share for found in collectives for share in found.shares if share.rank == rank]
    waits = [share.wait_ns for share in shares if share.wait_ns is not None]
    process = run.keys[rank][0]
    return RankTimePart(
        rank=rank,
        node=run.node_of(rank),
        process=run.trace.processes[process].pid if process >= 0 else -1,
        agent=run.agent_of(rank),
        launches=int(kernels.sum()),
        kernel_ns=int(work.duration_ns()[kernels].sum()),
        makespan_ns=int(work.end_ns[rows].max() - work.begin_ns[rows].min()),
        collective_ns=sum(share.total_ns for share in shares),
        wait_ns=sum(waits) if waits else None,
        last_arrivals=sum(share.last_arrivals or 0 for share in shares) if waits else None,
    )


def _collective(run: _Run, symbol: int) -> CollectivePart:
    work, rule = run.work, run.rules[symbol]
    rows = [np.flatnonzero((run.rank == rank) & (work.symbol == symbol)) for rank in range(len(run.keys))]
    present = [rank for rank, own in enumerate(rows) if own.size]
    if len({run.node_of(rank) for rank in present}) > 1:
        arrivals = Arrivals(reason=_SEVERAL_CLOCKS)
    else:
        arrivals = compare_arrivals(
            [work.begin_ns[rows[rank]] for rank in present], [work.end_ns[rows[rank]] for rank in present]
        )
    known = arrivals.reason is None
    # A rank that was not recorded may have come later still.
    exactness = Exactness.LOWER_BOUND if rule.waits is CollectiveWait.ALL else Exactness.ESTIMATE
    return CollectivePart(
        name=work.symbol_names[symbol],
        operation=rule.operation,
        rule=rule.id,
        exactness=exactness if known else None,
        wait_reason=arrivals.reason,
        shares=tuple(
            CollectiveSharePart(
                rank=rank,
                calls=int(rows[rank].size),
                total_ns=int((work.end_ns[rows[rank]] - work.begin_ns[rows[rank]]).sum()),
                wait_ns=arrivals.wait_ns[place] if known else None,
                last_arrivals=arrivals.last[place] if known else None,
            )
            for place, rank in enumerate(present)
        ),
    )


def _imbalances(run: _Run) -> tuple[ImbalancedKernelPart, ...]:
    """Kernels whose time differs between ranks, by what the slowest spends above the mean.

    Collectives are left out: theirs is longest on the rank that waits, not on the slow one.
    """
    work, ranks = run.work, len(run.keys)
    kernels = ~work.is_copy & (run.rank >= 0) & ~np.isin(work.symbol, list(run.rules))
    cell = run.rank[kernels] * work.kernel_symbols + work.symbol[kernels]
    size = ranks * work.kernel_symbols
    sums = np.zeros(size, np.int64)
    np.add.at(sums, cell, work.duration_ns()[kernels])
    per_rank = sums.reshape(ranks, -1)
    counts = np.bincount(cell, minlength=size).reshape(ranks, -1)
    return uneven_kernels(work.symbol_names, per_rank, counts, MOST_ROWS)


def uneven_kernels(
    names: Sequence[str], total_ns: NDArray[np.int64], calls: NDArray[np.int64], most: int
) -> tuple[ImbalancedKernelPart, ...]:
    """``total_ns`` and ``calls`` are (ranks, kernels). By what the slowest spends above the mean."""
    longest, mean = total_ns.max(axis=0), total_ns.mean(axis=0)
    uneven = np.flatnonzero(longest > mean).tolist()
    uneven.sort(key=lambda i: (mean[i] - longest[i], names[i]))
    return tuple(
        ImbalancedKernelPart(
            name=names[i],
            mean_ns=float(mean[i]),
            max_ns=int(longest[i]),
            slowest_rank=int(total_ns[:, i].argmax()),
            ranks=int((calls[:, i] > 0).sum()),
            imbalance=float(longest[i] / mean[i] - 1),
        )
        for i in uneven[:most]
    )


@frozen(eq=False)
class Arrivals:
    """Per rank the time between its begins and the last begins, and how often it came last.

    With a ``reason`` nothing is known, and the others are empty.
    """

    wait_ns: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    reason: str | None = None


def compare_arrivals(begins: Sequence[Int64Column], ends: Sequence[Int64Column]) -> Arrivals:
    """One column per rank on one clock, each ascending by begin.

    The n-th launch of each rank belongs to the same operation only if all ranks have equally many, and no
    launch ends before another one of its operation begins.
    """
    if len(begins) < 2:
        return Arrivals(reason="one rank alone ran it")
    counts = sorted({column.size for column in begins})
    if len(counts) > 1:
        return Arrivals(reason=f"the ranks launched it {counts[0]} to {counts[-1]} times: no pairs are known")
    began, ended = np.stack(begins), np.stack(ends)
    last = began.max(axis=0)
    early = int((ended < last).any(axis=0).sum())
    if early:
        return Arrivals(
            reason=f"in {early} of {last.size} operations a rank ended before another began: "
            "the launches don't belong together, or the clocks differ"
        )
    waits = (last - began).sum(axis=1)
    # Where several came last at once nobody waited for the others; the first of them counts.
    latest = np.bincount(began.argmax(axis=0), minlength=len(begins))
    return Arrivals(wait_ns=tuple(waits.tolist()), last=tuple(latest.tolist()))
