"""A job of any number of ranks that never ran, seeded, with faults of which everybody knows where they are.

Machines of eight ranks run steps: some kernels, then an all-reduce that no rank leaves before the last one
came. Planted: one rank whose ``gemm`` is slow in every other step, one whose host is slow, ranks of one place
in every machine whose ``attention`` has more to do, and a clock of its own for each machine.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np
from synthetic_recording import BEGIN_NS

from rpl_analysis.ranks.digest import times_of
from rpl_analysis.ranks.summary import Collective, Operations, RankIdentity, RankSummary, Strip
from rpl_testkit.rocpd_writer import (
    AgentRow,
    CodeObjectRow,
    KernelRow,
    NodeRow,
    ProcessRow,
    QueueRow,
    RocpdContents,
    StreamRow,
    guid_from_seed,
    write_rocpd,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64Column = NDArray[np.int64]

__all__ = ["SimulatedJob"]

PER_MACHINE = 8
PER_STEP = 20  # launches, of which the last is the all-reduce
COLLECTIVE = "oneShotAllReduceKernel(float*)"
_KERNELS = ("attention(float*)", "gemm(float*)", "norm(float*)")
_LONGEST_SKEW_NS = 5_000_000
_STEP_SLOWER_NS = 40_000  # on average, of the slow rank's kernels and of the slow host's gap
_UNEVEN_NS = 12_000
_TABLES = "SELECT name FROM sqlite_master WHERE type='table'"


@attrs.frozen
class _Rank:
    """Launches (n,) in order of time on the rank's own clock; ``kernel`` indexes the names, ascending."""

    kernel: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column


class SimulatedJob:
    """``dispatches`` of each rank are rounded down to whole steps."""

    def __init__(self, ranks: int, dispatches: int, seed: int = 33) -> None:
        self.ranks, self.steps, self.seed = ranks, dispatches // PER_STEP, seed
        self.slow, self.slow_host = ranks * 3 // 7, ranks * 5 // 7
        self.uneven = 3  # of PER_MACHINE
        machines = -(-ranks // PER_MACHINE)
        draw = np.random.default_rng([seed, 1])
        self.skew_ns = draw.integers(-_LONGEST_SKEW_NS, _LONGEST_SKEW_NS, machines)
        self.skew_ns[0] = 0
        work = np.stack([self._launches(rank)[2].sum(axis=1) for rank in range(ranks)])
        self.arrival_ns, self.leaving_ns = self._steps(work, draw)

    def machine(self, rank: int) -> int:
        return rank // PER_MACHINE

    @property
    def waits_ns(self) -> Int64Column:
        """The truth, per rank."""
        waits: Int64Column = (self.arrival_ns.max(axis=0) - self.arrival_ns).sum(axis=1)
        return waits

    @property
    def job_ns(self) -> int:
        first = min(
            int(self.rank(r).begin_ns[0]) + int(self.skew_ns[self.machine(r)]) for r in range(self.ranks)
        )
        return int(self.leaving_ns.max()) - first

    def _launches(self, rank: int) -> tuple[Int64Column, Int64Column, Int64Column]:
        """Of one rank, (steps, launches): kernel, duration, and duration with the gap before it."""
        draw = np.random.default_rng([self.seed, 2, rank])
        shape = (self.steps, PER_STEP - 1)
        kernel = np.broadcast_to(np.arange(PER_STEP - 1) % len(_KERNELS), shape)
        duration = draw.integers(8_000, 12_000, shape)
        gap = draw.integers(200, 900, shape)
        each = PER_STEP // len(_KERNELS)
        if rank == self.slow:
            # Not in every step: else no step would tell how far its machine's clock is off.
            odd = np.arange(self.steps)[:, None] % 2
            duration += np.where(kernel == 1, odd * 2 * _STEP_SLOWER_NS // each, 0)
        if rank == self.slow_host:
            gap[:, 0] += draw.integers(0, 2 * _STEP_SLOWER_NS, self.steps)
        if rank % PER_MACHINE == self.uneven:
            duration += np.where(kernel == 0, _UNEVEN_NS // each, 0)
        return kernel, duration, duration + gap

    def _steps(self, work: Int64Column, draw: np.random.Generator) -> tuple[Int64Column, Int64Column]:
        """Begin and end of each rank's all-reduces in true time."""
        arrival, leaving = np.empty_like(work), np.empty_like(work)
        now = np.full(self.ranks, BEGIN_NS)
        for step in range(self.steps):
            arrival[:, step] = now + work[:, step]
            moves = draw.integers(6_000, 9_000)
            now = arrival[:, step].max() + moves + draw.integers(0, 300, self.ranks)
            leaving[:, step] = now
        return arrival, leaving

    def rank(self, rank: int) -> _Rank:
        kernel, duration, taken = self._launches(rank)
        before = np.append(BEGIN_NS, self.leaving_ns[rank, :-1])[:, None]
        end = before + np.cumsum(taken, axis=1)
        begin = np.concatenate([end - duration, self.arrival_ns[rank, :, None]], axis=1).ravel()
        end = np.concatenate([end, self.leaving_ns[rank, :, None]], axis=1).ravel()
        talk = np.full((self.steps, 1), len(_KERNELS))
        skew = int(self.skew_ns[self.machine(rank)])
        return _Rank(np.concatenate([kernel, talk], axis=1).ravel(), begin - skew, end - skew)

    def write_recording(self, folder: Path, rank: int) -> Path:
        """``rank_NNNN.db``: rocpd as rocprofv3 writes it; the rows of work go in as they are."""
        path = folder / f"rank_{rank:05d}.db"
        guid = guid_from_seed(f"job {self.seed} {rank}")
        machine = self.machine(rank)
        contents = RocpdContents(
            guid=guid,
            node=NodeRow(machine + 1, f"machine-{machine:04d}", f"host-{machine:04d}"),
            process=ProcessRow(1000 + rank, "./train", BEGIN_NS - 10**9, BEGIN_NS + 10**12),
            agents=(
                AgentRow(index=0, kind="CPU", name="cpu", product_name="cpu"),
                AgentRow(
                    index=1 + rank % PER_MACHINE,
                    kind="GPU",
                    name="gfx942",
                    product_name="MI300X",
                    device_id=29857,
                ),
            ),
            kernels=tuple(KernelRow(n + 1, name, name) for n, name in enumerate((*_KERNELS, COLLECTIVE))),
            code_objects=(CodeObjectRow(1, 1 + rank % PER_MACHINE, "file://train"),),
            queues=(QueueRow(1, "Queue 0"),),
            streams=(StreamRow(1, "Stream 0"),),
            thread_ids=(1000 + rank,),
        )
        write_rocpd(path, contents, synthetic=True)
        self._insert(path, rank, machine + 1)
        return path

    def _insert(self, path: Path, rank: int, node: int) -> None:
        rows, pid, agent = self.rank(rank), 1000 + rank, 1 + rank % PER_MACHINE
        count = range(1, rows.kernel.size + 1)
        with closing(sqlite3.connect(path)) as database:
            tables = [name for (name,) in database.execute(_TABLES)]
            event = next(t for t in tables if t.startswith("rocpd_event_"))
            dispatch = next(t for t in tables if t.startswith("rocpd_kernel_dispatch_"))
            texts = next(t for t in tables if t.startswith("rocpd_string_"))
            database.execute("PRAGMA journal_mode=OFF")
            database.execute(f"INSERT INTO {texts} (string) VALUES ('KERNEL_DISPATCH')")
            (category,) = database.execute(
                f"SELECT id FROM {texts} WHERE string='KERNEL_DISPATCH'"
            ).fetchone()
            database.executemany(
                f"INSERT INTO {event} (id, category_id, stack_id, parent_stack_id, correlation_id) "
                f"VALUES (?, {category}, ?, 0, 0)",
                zip(count, count, strict=True),
            )
            database.executemany(
                f"INSERT INTO {dispatch} (id, nid, pid, tid, agent_id, kernel_id, dispatch_id, queue_id, "
                "stream_id, start, end, private_segment_size, group_segment_size, workgroup_size_x, "
                "workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, region_name_id, "
                f"event_id) VALUES (?, {node}, {pid}, {pid}, {agent}, ?, ?, 1, 1, ?, ?, 0, 0, 256, 1, 1, "
                "65536, 1, 1, 1, ?)",
                zip(
                    count,
                    (rows.kernel + 1).tolist(),
                    count,
                    rows.begin_ns.tolist(),
                    rows.end_ns.tolist(),
                    count,
                    strict=True,
                ),
            )
            database.commit()

    def summary(self, rank: int) -> RankSummary:
        """What reading the recording would give, written down without one."""
        rows = self.rank(rank)
        names = (*_KERNELS, COLLECTIVE)
        length = rows.end_ns - rows.begin_ns
        talk = rows.kernel == len(_KERNELS)
        work = np.add.reduceat(np.where(talk, 0, length), np.arange(0, length.size, PER_STEP))
        busy, computing = int(length.sum()), int(length[~talk].sum())
        begin, end = int(rows.begin_ns[0]), int(rows.end_ns[-1])
        shift = max(0, (end - begin).bit_length() - 8)
        columns = (end >> shift) - (begin >> shift) + 1
        place = (rows.begin_ns >> shift) - (begin >> shift)
        strips = [np.bincount(place[own], length[own], columns).astype(np.int64) for own in (~talk, talk)]
        machine = self.machine(rank)
        return RankSummary(
            identity=RankIdentity(f"machine-{machine:04d}", 1 + rank % PER_MACHINE, 1000 + rank, "", 0),
            hostname=f"host-{machine:04d}",
            product="MI300X",
            architecture="gfx942",
            origin="synthetic",
            launches=length.size,
            kernel_ns=busy,
            begin_ns=begin,
            end_ns=end,
            busy_ns=busy,
            kernels_busy_ns=busy,
            computing_ns=computing,
            communicating_ns=busy - computing,
            critical_path_ns=busy,
            phases=(),
            collectives=(Collective(COLLECTIVE, "all_reduce", "all-reduce", True),),
            kernels=times_of(names, rows.kernel, length),
            operations=Operations(
                np.zeros(self.steps, np.int64), rows.begin_ns[talk], rows.end_ns[talk], length[talk], work
            ),
            strip=Strip(shift, begin >> shift, *strips),
        )
