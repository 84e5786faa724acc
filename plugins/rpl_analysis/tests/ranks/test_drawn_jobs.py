"""Drawn jobs on one clock, against a count of every nanosecond of every rank.

Each rank runs kernels, pauses, and meets the others in all-reduces, which it enters when its kernels are over
and leaves with all others. Definitions: the parts of ``rpl_analysis.contracts.rank_job`` and docs/scaling.md.
"""

from __future__ import annotations

import random
from statistics import median

import attrs
import pytest

from rpl_analysis.contracts.rank_job import RankJob
from rpl_analysis.ranks.answer import answer_of
from rpl_analysis.ranks.job import JobSummary
from rpl_analysis.ranks.report import builtin_collective_rules
from rpl_analysis.ranks.summary import summarise
from rpl_core.model.trace import Trace
from rpl_testkit.traces import TracedDispatch, make_trace, mi300x_agent

ALL = "oneShotAllReduceKernel"
Span = tuple[str, int, int]


@attrs.frozen
class _Rank:
    """Kernels and all-reduces in order of time, with their begin and end."""

    spans: list[Span]

    def clocks(self, *, collective: bool) -> set[int]:
        return {t for name, b, e in self.spans if (name == ALL) == collective for t in range(b, e)}

    @property
    def begin(self) -> int:
        return min(begin for _, begin, _ in self.spans)

    @property
    def end(self) -> int:
        return max(end for _, _, end in self.spans)

    def reduces(self) -> list[tuple[int, int]]:
        return [(begin, end) for name, begin, end in self.spans if name == ALL]

    def before(self, number: int) -> tuple[int, int]:
        """Time of kernels, and of nothing, between the reduce before this one and this one."""
        begin = self.reduces()[number - 1][1] if number else self.begin
        until = self.reduces()[number][0]
        work = len({t for t in self.clocks(collective=False) if begin <= t < until})
        return work, until - begin - work


def _drawn(rng: random.Random) -> list[_Rank]:
    """With one rank that is often slow, by its kernels or by its host."""
    ranks, steps = rng.choice((4, 5, 8)), rng.randint(3, 6)
    slow, by_host = rng.randrange(ranks), rng.random() < 0.5
    now = [1 + rng.randint(0, 9) for _ in range(ranks)]
    spans: list[list[Span]] = [[] for _ in range(ranks)]
    for _ in range(steps):
        entered = []
        for rank in range(ranks):
            time = now[rank]
            for name in ("gemm", "norm"):
                lasts = rng.randint(20, 30) + (40 if rank == slow and not by_host else 0)
                time += rng.randint(0, 5) + (50 if rank == slow and by_host and name == "norm" else 0)
                spans[rank].append((name, time, time + lasts))
                time += lasts
            entered.append(time + rng.randint(0, 3))
        left = max(entered) + rng.randint(5, 15)
        for rank in range(ranks):
            spans[rank].append((ALL, entered[rank], left))
            now[rank] = left
    for rank in range(ranks):
        last = rng.randint(1, 20)
        spans[rank].append(("end", now[rank], now[rank] + last))
    return [_Rank(one) for one in spans]


def _trace(number: int, rank: _Rank) -> Trace:
    dispatches = [TracedDispatch(*span) for span in rank.spans]
    trace = make_trace(dispatches, agent=attrs.evolve(mi300x_agent("node"), index=number), machines=("node",))
    (process,) = trace.processes
    return attrs.evolve(trace, processes=(attrs.evolve(process, guid=f"g{number}", pid=number),))


def _answer(ranks: list[_Rank]) -> RankJob:
    rules = builtin_collective_rules()
    traces = [_trace(number, rank) for number, rank in enumerate(ranks)]
    job = JobSummary.of(rank for trace in traces for rank in summarise(trace, "r", rules))
    groups = {number: f"group {number % 2}" for number in range(len(ranks))}
    return answer_of(job, range(len(ranks)), group_of=lambda _, number: groups[number])


@pytest.fixture(params=range(14))
def job(request: pytest.FixtureRequest) -> tuple[list[_Rank], RankJob]:
    ranks = _drawn(random.Random(request.param))
    return ranks, _answer(ranks)


def _waits(ranks: list[_Rank], rank: _Rank) -> set[int]:
    """The time in reduces before the last rank had come to them."""
    waiting: set[int] = set()
    for number, (begin, _) in enumerate(rank.reduces()):
        waiting |= set(range(begin, max(other.reduces()[number][0] for other in ranks)))
    return waiting


def test_the_parts_of_each_rank_s_time(job) -> None:
    ranks, found = job
    whole = max(rank.end for rank in ranks) - min(rank.begin for rank in ranks)
    assert found.job_ns == whole
    sums = {"computing": 0, "communication": 0, "waiting": 0, "host": 0}
    for rank, part in zip(ranks, found.by_rank, strict=True):
        computing, reducing = rank.clocks(collective=False), rank.clocks(collective=True)
        waiting = _waits(ranks, rank)
        assert part.launches == len(rank.spans)
        assert part.kernel_ns == sum(end - begin for _, begin, end in rank.spans)
        assert part.makespan_ns == rank.end - rank.begin
        assert part.computing_ns == len(computing)
        assert (part.wait_ns, part.wait_least_ns, part.wait_most_ns) == (len(waiting),) * 3
        assert part.communication_ns == len(reducing - computing - waiting)
        assert part.host_ns == whole - len(computing | reducing)
        assert part.copies_ns == 0
        sums["computing"] += len(computing)
        sums["communication"] += len(reducing - computing - waiting)
        sums["waiting"] += len(waiting - computing)
        sums["host"] += whole - len(computing | reducing)
    shares = {name: ns / whole / len(ranks) for name, ns in sums.items()}
    assert attrs.asdict(found.shares) == pytest.approx(shares | {"copies": 0.0})


def test_who_was_last_and_why(job) -> None:
    ranks, found = job
    last, by_kernel, by_host, late = ([0] * len(ranks) for _ in range(4))
    for number in range(len(ranks[0].reduces())):
        begins = sorted((rank.reduces()[number][0], i) for i, rank in enumerate(ranks))
        (second, _), (first, who) = begins[-2:]
        if first == second:
            continue
        before = [rank.before(number) for rank in ranks]
        work, host = (before[who][part] - median(one[part] for one in before) for part in (0, 1))
        last[who] += 1
        by_kernel[who] += work >= host
        by_host[who] += work < host
        late[who] += first - second
    assert sum(last) > 0
    parts = found.by_rank
    assert [part.last for part in parts] == last
    assert [part.last_by_kernel for part in parts] == by_kernel
    assert [part.last_by_host for part in parts] == by_host
    assert [part.late_ns for part in parts] == late
    assert not any(part.last_or_clock or part.open_longest or part.open_excess_ns for part in parts)


def test_what_faster_ranks_would_bring(job) -> None:
    ranks, found = job
    late = [part.late_ns for part in found.by_rank]
    order = sorted(range(len(ranks)), key=lambda rank: (-late[rank], rank))
    counts = [1, 2, len(ranks)]
    assert [part.changed for part in found.what_if] == counts
    for count, part in zip(counts, found.what_if, strict=True):
        gain = 0
        for number in range(len(ranks[0].reduces())):
            took = [sum(rank.before(number)) for rank in ranks]
            usual = int(median(took))
            changed = [min(ns, usual) if rank in order[:count] else ns for rank, ns in enumerate(took)]
            gain += max(took) - max(changed)
        assert (part.gain_ns, part.job_ns) == (gain, found.job_ns - gain)
        assert part.speedup == pytest.approx(found.job_ns / (found.job_ns - gain))


def test_kernels_collectives_and_groups_add_up(job) -> None:
    ranks, found = job
    every = [span for rank in ranks for span in rank.spans]
    times = {
        name: sorted(end - begin for n, begin, end in every if n == name)
        for name in ("gemm", "norm", "end", ALL)
    }
    assert {part.name for part in found.kernels} == set(times)
    totals = [part.total_ns for part in found.kernels]
    assert totals == sorted(totals, reverse=True)
    for part in found.kernels:
        own = times[part.name]
        assert (part.calls, part.total_ns) == (len(own), sum(own))
        assert own[0] <= part.median_ns <= part.p95_ns <= own[-1]
        below = sum(ns <= part.median_ns for ns in own)
        assert below >= len(own) / 2 - 1
    (collective,) = found.collectives
    assert (collective.name, collective.ranks, collective.matched_by) == (ALL, len(ranks), "launch_order")
    assert (collective.operations, collective.calls) == (len(ranks[0].reduces()), len(times[ALL]))
    waits = sum(len(_waits(ranks, rank)) for rank in ranks)
    assert (collective.total_ns, collective.wait_ns) == (sum(times[ALL]), waits)
    assert (collective.wait_least_ns, collective.wait_most_ns) == (waits, waits)
    assert (collective.exactness, collective.wait_reason) == ("lower_bound", None)
    for group in found.groups:
        own = [part for part in found.by_rank if part.group == group.name]
        assert group.ranks == len(own) == len(ranks[int(group.name[-1]) :: 2])
        for field in ("computing_ns", "host_ns", "wait_ns"):
            assert getattr(group, field) == int(median(getattr(part, field) for part in own))
        assert group.last == sum(part.last for part in own)
    keys = [(-group.last, -group.computing_ns, group.name) for group in found.groups]
    assert len(keys) == 2
    assert keys == sorted(keys)


def test_outliers_are_far_by_the_median_of_distances(job) -> None:
    """0.6745 (x - median) / MAD above 3.5, and more than 0.5 % of the job's time."""
    ranks, found = job
    expected = {}
    for what in ("computing", "host", "waiting"):
        if what == "waiting":
            waits = [_waits(ranks, rank) for rank in ranks]
            values = [len(w - rank.clocks(collective=False)) for w, rank in zip(waits, ranks, strict=True)]
        else:
            values = [getattr(part, f"{what}_ns") for part in found.by_rank]
        middle = median(values)
        spread = median(abs(value - middle) for value in values)
        for rank, value in enumerate(values):
            far = value - middle
            score = float("inf") if not spread else 0.6745 * far / spread
            if far > 0.005 * found.job_ns and score > 3.5:
                expected[what, rank] = (value, int(middle), score if spread else None)
    outliers = [part for part in found.outliers if part.of == "rank"]
    assert {(part.what, part.rank): (part.value_ns, part.median_ns) for part in outliers} == {
        key: answer[:2] for key, answer in expected.items()
    }
    for part in outliers:
        score = expected[part.what, part.rank][2]
        assert part.score == (None if score is None else pytest.approx(score))
        if part.what == "computing":
            spent = {
                name: [sum(e - b for n, b, e in rank.spans if n == name) for rank in ranks]
                for name in ("gemm", "norm", "end")
            }
            above = {name: of[part.rank] - median(of) for name, of in spent.items()}
            assert part.kernel_excess_ns == int(max(above.values()))
            assert above[part.kernel] == max(above.values())
    far = [part.value_ns - part.median_ns for part in found.outliers]
    assert far == sorted(far, reverse=True)


def test_the_picture_shows_what_ran_in_each_column(job) -> None:
    """Columns of a power of two, the narrowest of which 256 are enough; 255 is all of a column."""
    ranks, found = job
    picture = found.picture
    assert (picture.rows, picture.ranks_per_row) == (len(ranks), 1)
    width = picture.column_ns
    assert width & (width - 1) == 0
    assert picture.columns == found.job_ns // width + 2 <= 256
    first = min(rank.begin for rank in ranks) // width
    for row, rank in enumerate(ranks):
        computing, reducing = rank.clocks(collective=False), rank.clocks(collective=True)
        for shown, clocks in ((picture.computing, computing), (picture.communicating, reducing - computing)):
            held = [0] * picture.columns
            for clock in clocks:
                held[clock // width - first] += 1
            expected = bytes(255 * ns // width for ns in held)
            assert shown[row * picture.columns : (row + 1) * picture.columns] == expected
