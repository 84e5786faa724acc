"""Drawn jobs on machines whose clocks differ, against every offset that their collectives allow, one by one.

What a recording of such a job tells: no rank leaves an all-reduce before the last one came to it. Each offset
for which that holds is a job that may have been; what is said for sure must hold in all of them. Definitions:
``ClockPart`` and ``JobRankPart`` of ``rpl_analysis.contracts.rank_job`` and docs/scaling.md.
"""

from __future__ import annotations

import base64
import random
import re
import struct
import zlib
from collections.abc import Iterator
from itertools import product

import attrs
import pytest

from rpl_analysis.contracts.rank_job import RankJob
from rpl_analysis.ranks.answer import answer_of
from rpl_analysis.ranks.job import JobSummary
from rpl_analysis.ranks.page import job_page
from rpl_analysis.ranks.report import builtin_collective_rules
from rpl_analysis.ranks.summary import summarise
from rpl_analysis.ranks.text import job_text
from rpl_core.model.trace import Trace
from rpl_testkit.traces import TracedDispatch, make_trace, mi300x_agent

ALL = "oneShotAllReduceKernel"


@attrs.frozen
class _Job:
    """Times are the truth; ``offset_ns`` of a rank's machine is what its clock shows too much.

    ``work`` is (begin, end) of the one kernel before each reduce, ``reduce`` that of the reduce.
    """

    machine: list[int]
    offset_ns: list[int]
    work: list[list[tuple[int, int]]]
    reduce: list[list[tuple[int, int]]]

    def traces(self) -> Iterator[Trace]:
        for rank, machine in enumerate(self.machine):
            spans = [("gemm", *span) for span in self.work[rank]] + [(ALL, *s) for s in self.reduce[rank]]
            by = self.offset_ns[machine]
            dispatches = [TracedDispatch(name, b + by, e + by) for name, b, e in sorted(spans, key=_begin)]
            node = f"node{machine}"
            agent = attrs.evolve(mi300x_agent(node), index=rank)
            trace = make_trace(dispatches, agent=agent, machines=(node,))
            (process,) = trace.processes
            yield attrs.evolve(trace, processes=(attrs.evolve(process, guid=f"g{rank}", pid=rank),))

    def operations(self) -> range:
        return range(len(self.reduce[0]))

    def shifts(self) -> list[tuple[int, ...]]:
        """By how much each machine's clock may be off from where it is, the first one's not."""
        machines = len(self.offset_ns)
        room = [range(-120, 121) if machine else range(1) for machine in range(machines)]
        rank_pairs = [(a, b) for a, b in product(range(len(self.machine)), repeat=2) if a != b]
        bounds: dict[tuple[int, int], int] = {}
        for (a, b), number in product(rank_pairs, self.operations()):
            pair = self.machine[a], self.machine[b]
            # a leaves after b came: end_a + shift_a >= begin_b + shift_b.
            left = self.reduce[a][number][1] - self.reduce[b][number][0]
            bounds[pair] = min(bounds.get(pair, left), left)
        return [
            shift
            for shift in product(*room)
            if all(shift[b] - shift[a] <= most for (a, b), most in bounds.items())
        ]

    def came(self, number: int, shift: tuple[int, ...]) -> list[int]:
        return [spans[number][0] + shift[self.machine[rank]] for rank, spans in enumerate(self.reduce)]

    def waits(self, shift: tuple[int, ...]) -> list[int]:
        total = [0] * len(self.machine)
        for number in self.operations():
            came = self.came(number, shift)
            for rank, time in enumerate(came):
                total[rank] += max(came) - time
        return total


def _begin(span: tuple[str, int, int]) -> int:
    return span[1]


def _drawn(rng: random.Random, machines: int) -> _Job:
    """All leave a reduce at once. No two ranks come to one at the same time on any clocks of one machine."""
    machine = sorted(rng.choices(range(machines), k=2 * machines) + list(range(machines)))
    offsets = [rng.randint(10**6, 10**9) for _ in range(machines)]
    work: list[list[tuple[int, int]]] = [[] for _ in machine]
    reduce: list[list[tuple[int, int]]] = [[] for _ in machine]
    now, slow = 16, rng.randrange(len(machine))
    for _ in range(rng.randint(3, 7)):
        ends = []
        for rank in range(len(machine)):
            begin = now + rng.randint(0, 5)
            end = now + 16 * rng.randint(1, 3) + (rng.choice((0, 32)) if rank == slow else 0) + rank
            work[rank].append((begin, end))
            ends.append(end)
        left = max(ends) + rng.randint(2, 30)
        for rank, end in enumerate(ends):
            reduce[rank].append((end, left))
        now = left + 1
    return _Job(machine, offsets, work, reduce)


def _answer(job: _Job) -> RankJob:
    rules = builtin_collective_rules()
    summaries = JobSummary.of(rank for trace in job.traces() for rank in summarise(trace, "r", rules))
    return answer_of(summaries, range(len(job.machine)))


@pytest.mark.parametrize("seed", range(12))
def test_two_machines_are_answered_as_by_trying_every_offset(seed: int) -> None:
    job = _drawn(random.Random(seed), 2)
    found, shifts = _answer(job), job.shifts()
    assert (0, 0) in shifts
    ends = [shift[1] for shift in shifts]
    assert (found.clock.machines, found.clock.width_ns) == (2, max(ends) - min(ends))
    assert (found.clock.reason, found.clock.assumed) == (None, False)
    waits = [job.waits(shift) for shift in shifts]
    for rank, part in enumerate(found.by_rank):
        assert part.node == f"node{job.machine[rank]}"
        # All left at once, so that the ends tell the clocks.
        assert part.wait_ns == job.waits((0, 0))[rank]
        assert part.wait_least_ns == min(one[rank] for one in waits)
        assert part.wait_most_ns == max(one[rank] for one in waits)
    (collective,) = found.collectives
    assert collective.wait_ns == sum(job.waits((0, 0)))
    assert collective.wait_least_ns == sum(min(one[r] for one in waits) for r in range(len(job.machine)))
    assert collective.wait_most_ns == sum(max(one[r] for one in waits) for r in range(len(job.machine)))
    assert [_order_of_arrival(job, shifts)[rank] for rank in range(len(job.machine))] == [
        (part.last, part.last_or_clock, part.late_ns, part.open_longest, part.open_excess_ns)
        for part in found.by_rank
    ]


def _order_of_arrival(job: _Job, shifts: list[tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    """Per rank: last for sure, last or a clock is off, ns late, longest before an open one, by how much."""
    answers = {rank: [0] * 5 for rank in range(len(job.machine))}
    for number in job.operations():
        came = job.came(number, (0,) * len(job.offset_ns))
        who = came.index(max(came))
        if all(times[who] == max(times) for times in (job.came(number, shift) for shift in shifts)):
            answers[who][0] += 1
            answers[who][2] += max(came) - sorted(came)[-2]
            continue
        answers[who][1] += 1
        took = [spans[number][1] - spans[number][0] for spans in job.work]
        second, first = sorted(took)[-2:]
        if first > second:
            answers[took.index(first)][3] += 1
            answers[took.index(first)][4] += first - second
    return {rank: tuple(numbers) for rank, numbers in answers.items()}


@pytest.mark.parametrize("seed", range(3))
def test_what_is_said_of_three_machines_holds_for_all_their_offsets(seed: int) -> None:
    """Each clock by itself is known as well as it can be; together they may be known better than is said."""
    job = _drawn(random.Random(seed), 3)
    found, shifts = _answer(job), job.shifts()
    widths = [max(s[m] for s in shifts) - min(s[m] for s in shifts) for m in (1, 2)]
    assert (found.clock.machines, found.clock.width_ns) == (3, max(widths))
    waits = [job.waits(shift) for shift in shifts]
    for rank, part in enumerate(found.by_rank):
        assert part.wait_ns == job.waits((0, 0, 0))[rank]
        assert part.wait_least_ns is not None
        assert part.wait_most_ns is not None
        assert part.wait_least_ns <= min(one[rank] for one in waits)
        assert max(one[rank] for one in waits) <= part.wait_most_ns
    exact = _order_of_arrival(job, shifts)
    for rank, part in enumerate(found.by_rank):
        assert part.last is not None
        assert part.last <= exact[rank][0]
        assert part.last + (part.last_or_clock or 0) == sum(exact[rank][:2])


def test_clocks_that_nothing_connects_are_unknown() -> None:
    """A rank that launched it once more leaves no pairs, and kernels alone bound no clock."""
    job = _drawn(random.Random(0), 2)
    job.reduce[0].append((job.reduce[0][-1][1] + 5, job.reduce[0][-1][1] + 9))
    found = _answer(job)
    assert (found.clock.machines, found.clock.width_ns) == (2, None)
    assert found.clock.reason
    assert {part.wait_ns for part in found.by_rank} == {None}
    assert found.job_ns is None


def test_a_rank_that_left_before_another_came_on_every_clock_is_a_contradiction() -> None:
    """On one machine by 1 ns, on the other by 1 ns: no offset mends both."""
    job = _Job(
        [0, 1], [0, 77], [[(1, 9)] * 2, [(1, 9)] * 2], [[(10, 20), (121, 130)], [(21, 30), (110, 120)]]
    )
    assert job.shifts() == []
    found = _answer(job)
    assert (found.clock.width_ns, found.job_ns) == (None, None)
    assert "before another began" in (found.clock.reason or "")


# What people see of such a job, read back.

_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 10**9}


def _is_time(text: str, ns: int) -> bool:
    value, unit = text.split(" ")
    return float(value.replace(",", "")) * _NS[unit] == pytest.approx(ns, rel=5.01e-4, abs=1e-6)


def _cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


@pytest.mark.parametrize("seed", range(8))
def test_the_text_of_a_job(seed: int) -> None:
    found = _answer(_drawn(random.Random(seed), 1 + seed % 2))
    text = job_text(found)
    lines = text.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert found.job_ns is not None
    assert found.shares is not None
    length, ranks = re.fullmatch(  # type: ignore[union-attr]
        r"job        ([\d.,]+ \w+), (\d+) ranks(?: on 2 machines)?(?:  \[.*\])?", lines[0]
    ).groups()
    assert _is_time(length, found.job_ns)
    assert int(ranks) == len(found.by_rank)
    assert ("on 2 machines" in lines[0]) == (found.clock.machines == 2) == ("clocks     known to" in text)
    if found.clock.machines == 2:
        assert found.clock.width_ns is not None
        (width,) = re.findall(r"known to ([\d.]+) us by", text)
        assert float(width) == pytest.approx(found.clock.width_ns / 1000, rel=5e-3)
    (parts,) = re.findall(r"of it      (.*)", text)
    shares = {name: float(share) for name, share in re.findall(r"(\w+) ([\d.]+)%", parts)}
    assert shares == {
        name: pytest.approx(100 * share, abs=0.0501)
        for name, share in attrs.asdict(found.shares).items()
        if share is not None
    }
    (collective,) = found.collectives
    row = _cells(next(line for line in lines if line.startswith(ALL)))
    assert row[:3] == [ALL, str(collective.ranks), str(collective.operations)]
    assert _is_time(row[3], collective.total_ns // collective.ranks)
    assert collective.wait_ns is not None
    assert row[4].startswith(">=")
    assert float(row[4][2:-1]) == pytest.approx(100 * collective.wait_ns / collective.total_ns, abs=0.0501)
    _check_who_came_last(found, text)
    for part in found.what_if:
        shown, faster = re.findall(rf"what if    {re.escape(part.what)}: (.*?), ([\d.]+)x\n", text)[0]
        assert _is_time(shown, part.job_ns)
        assert float(faster) == pytest.approx(found.job_ns / (found.job_ns - part.gain_ns), abs=5.01e-4)


def _check_who_came_last(found: RankJob, text: str) -> None:
    numbers = {
        part.rank: part for part in found.by_rank if part.last or part.last_or_clock or part.open_longest
    }
    most = sorted(
        numbers.values(),
        key=lambda p: (-(p.late_ns or 0) - (p.open_excess_ns or 0), -(p.last or 0), p.rank),
    )[:4]
    operations = sum((part.last or 0) + (part.last_or_clock or 0) for part in found.by_rank)
    table = text.split("others waited\n")[1].splitlines() if most else []
    for line, part in zip(table, most, strict=False):
        name, last, by_kernels, by_host, clock, late = _cells(line)
        assert name == part.recording
        assert last == f"{part.last} of {operations}"
        assert [int(by_kernels), int(by_host), int(clock)] == [
            *(part.last_by_kernel, part.last_by_host, part.last_or_clock)
        ]
        assert _is_time(late, part.late_ns or 0)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_page_of_a_job(seed: int) -> None:
    found = _answer(_drawn(random.Random(seed), 1 + seed % 2))
    page = job_page(found)
    heads = re.findall(r"<th>(.*?)</th>", page)
    rows = re.findall(r"<tr>(<td>.*?)</tr>", page)
    assert len(rows) == len(found.by_rank)
    for row, part in zip(rows, found.by_rank, strict=True):
        cells = dict(zip(heads, re.findall(r"<td>(.*?)</td>", row), strict=True))
        assert cells.pop("rank") == part.recording
        for head, cell in cells.items():
            value = getattr(part, head.replace(" ", "_"))
            assert cell == ("-" if value is None else f"{value:,}")
        assert ("open longest" in cells) == any(one.open_longest for one in found.by_rank)
    picture = found.picture
    if picture is None:
        assert "No picture" in page
        return
    pixels = _pixels(base64.b64decode(re.findall(r'base64,(.*?)"', page)[0]))
    assert (len(pixels), len(pixels[0])) == (picture.rows, picture.columns)
    for place, pixel in enumerate(pixel for row in pixels for pixel in row):
        blue, orange = (part[place] / 255 for part in (picture.computing, picture.communicating))
        # Wong's blue and orange by their shares of the column, on white.
        white = max(0.0, 1 - blue - orange)
        for found_byte, b, o in zip(pixel, (0, 114, 178), (230, 159, 0), strict=True):
            assert abs(found_byte - min(255, blue * b + orange * o + white * 255)) <= 1
    assert f"a column {picture.column_ns:,} ns" in page


def _pixels(content: bytes) -> list[list[tuple[int, int, int]]]:
    """Of a PNG with three bytes per pixel and no filter (W3C, Portable Network Graphics)."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, parts = 8, {}
    while at < len(content):
        size, kind = struct.unpack(">I4s", content[at : at + 8])
        data = content[at + 8 : at + 8 + size]
        assert struct.unpack(">I", content[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + data),)
        parts[kind] = data
        at += 12 + size
    width, height, *form = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert form == [8, 2, 0, 0, 0]
    rows = zlib.decompress(parts[b"IDAT"])
    line = 1 + 3 * width
    assert len(rows) == height * line
    found = []
    for number in range(height):
        row = rows[number * line : (number + 1) * line]
        assert row[0] == 0
        found.append([(row[i], row[i + 1], row[i + 2]) for i in range(1, line, 3)])
    return found
