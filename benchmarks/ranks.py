"""CPU time and memory of `rpl ranks`, on a simulated job whose faults are known: all of them must be found.

Recordings are rocpd databases of benchmarks/simulated_job.py (seeded). Whole processes are measured, start
of the interpreter and imports included: CPU seconds of user and system of all of them, peak resident memory
of the largest. Page cache warm.

    python benchmarks/ranks.py                          # 128 ranks of 20 k dispatches, and merging
    python benchmarks/ranks.py --ranks 1024             # 20 M dispatches: 3.3 GB of disk, minutes to write
    python benchmarks/ranks.py --two                    # also two processes against one: needs two idle cores
    python benchmarks/ranks.py --check                  # exit 1 if a target is missed or a fault not found
    python benchmarks/ranks.py --keep DIR               # keep the recordings for the next time
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from execution_graph import environment
from simulated_job import PER_MACHINE, SimulatedJob

from rpl_analysis.ranks.answer import answer_of
from rpl_analysis.ranks.job import JobSummary
from rpl_analysis.ranks.summary_file import RecordedFile, SavedSummary, load_summary, save_summary
from rpl_core.process_start import collect_garbage_rarely, keep_freed_memory

#: Targets: CPU seconds for a rank of 20 k dispatches, GB of a process, seconds to merge 4 096 summaries,
#: the exponent of that over ranks, and two processes against one.
RANK_CPU_S, PEAK_GB, MERGE_S, EXPONENT, TWO = 100 / 1024, 1.2, 5.0, 1.05, 1.8
#: Ranks whose summaries are merged, and how often each.
SIZES, TURNS = (256, 512, 1024, 2048, 4096), 3


# The command, and in the file that is named first the CPU seconds of this process at its end.
_COMMAND = """
import atexit, sys, time
from pathlib import Path
own = Path(sys.argv.pop(1))
atexit.register(lambda: own.write_text(str(time.process_time())))
from rpl_core.cli import main
raise SystemExit(main())
"""


@attrs.frozen
class Used:
    """By one `rpl ranks` and all that it started; ``asking_s`` by the process that was asked alone."""

    answer: dict[str, Any]
    cpu_s: float
    asking_s: float
    wall_s: float
    peak_gb: float  # of the largest process


def measured(words: list[str]) -> Used:
    with tempfile.TemporaryDirectory() as folder:
        own, printed = Path(folder) / "own", Path(folder) / "printed"
        command = [sys.executable, "-c", _COMMAND, str(own), "ranks", *words, "--json"]
        begin = time.monotonic()
        with printed.open("wb") as out:
            child = subprocess.Popen(
                command, stdout=out, stderr=subprocess.DEVNULL, cwd=folder, env=environment()
            )
            _, status, used = os.wait4(child.pid, 0)
        wall_s = time.monotonic() - begin
        if status:
            raise SystemExit(f"rpl ranks {' '.join(words)} failed")
        return Used(
            answer=json.loads(printed.read_bytes())["job"],
            cpu_s=used.ru_utime + used.ru_stime,
            asking_s=float(own.read_text()),
            wall_s=wall_s,
            peak_gb=used.ru_maxrss / 1e6,
        )


def faults_found(answer: dict[str, Any], job: SimulatedJob) -> dict[str, bool]:
    """Each planted fault, and whether the answer names it; the clocks by what it says of waits and time."""
    ranks = {rank["number"]: rank for rank in answer["by_rank"]}
    outliers = {(one["what"], one["of"], one["name"].partition(" ")[0]) for one in answer["outliers"]}
    latest = sorted(ranks.values(), key=lambda rank: -rank["late_ns"])[:2]
    kernels = {one["rank"]: one["kernel"] for one in answer["outliers"] if one["what"] == "computing"}
    waits = job.waits_ns.tolist()
    bounded = all(
        rank["wait_least_ns"] <= waits[number] <= rank["wait_most_ns"] for number, rank in ranks.items()
    )
    slow, host = ranks[job.slow], ranks[job.slow_host]
    return {
        "the slow rank": slow in latest and kernels.get(job.slow, "").startswith("gemm"),
        "by its kernels": slow["last_by_kernel"] > 9 * slow["last_by_host"],
        "the slow host": host in latest and ("host", "rank", host["recording"]) in outliers,
        "by its host": host["last_by_host"] > 9 * host["last_by_kernel"],
        "the uneven ranks": ("computing", "group", str(job.uneven)) in outliers,
        "the clocks": answer["clock"]["reason"] is None and bounded,
        "the time of the job": abs(answer["job_ns"] - job.job_ns) <= answer["clock"]["width_ns"],
    }


def read_job(ranks: int, dispatches: int, keep: Path | None, *, two: bool) -> bool:
    job = SimulatedJob(ranks, dispatches)
    folder = Path(keep or tempfile.mkdtemp(prefix="rpl-ranks-")) / f"{ranks}-{dispatches}"
    usual = ["--group-by", str(PER_MACHINE)]
    begin = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        if not (folder / f"rank_{rank:05d}.db").exists():
            job.write_recording(folder, rank)
    print(f"{ranks} ranks x {dispatches} dispatches, written in {time.monotonic() - begin:.0f} s")
    place = folder.with_name(f"{folder.name}-job")
    shutil.rmtree(place, ignore_errors=True)
    words = [str(folder.resolve()), "-o", str(place.resolve())]
    measured([*map(str, sorted(folder.resolve().iterdir())[:2]), "--jobs", "2"])  # writes the byte code
    one = measured([*words, *usual, "--jobs", "1"])
    each = 1000 * one.cpu_s / ranks
    print(
        f"  read     {one.cpu_s:7.1f} CPU-s ({each:.0f} ms a rank), {one.wall_s:.1f} s, {one.peak_gb:.2f} GB"
    )
    again = measured([*words, *usual])
    print(f"  again    {again.cpu_s:7.1f} CPU-s from summaries, peak {again.peak_gb:.2f} GB")
    answer = one.answer
    found = faults_found(answer, job)
    for fault, is_found in found.items():
        print(f"  {'found' if is_found else 'MISSED':6}   {fault}")
    print(f"  clocks known to {answer['clock']['width_ns'] / 1000:.1f} us")
    good = all(found.values()) and again.answer == answer
    good = good and one.cpu_s / ranks <= RANK_CPU_S and one.peak_gb <= PEAK_GB
    if two:
        shutil.rmtree(place)
        both = measured([*words, *usual, "--jobs", "2"])
        shared_s = both.cpu_s - both.asking_s
        print(
            f"  two processes: {one.wall_s / both.wall_s:.2f} x as fast as one, {both.peak_gb:.2f} GB of one"
        )
        # Amdahl's law, if nothing of the process that asks ran beside the workers: what it takes is serial.
        print(
            f"  by CPU seconds: {both.asking_s:.1f} in the process that asks, {shared_s:.1f} in workers, "
            f"so {one.cpu_s / (both.asking_s + shared_s / 2):.2f} x at least if each has a core"
        )
        good = good and both.answer == answer
        good = good and one.wall_s / both.wall_s >= TWO and both.peak_gb <= PEAK_GB
    if keep is None:
        shutil.rmtree(folder.parent)
    return good


def merge_summaries(dispatches: int) -> bool:
    """From files of summaries to the answer: a whole process for the most ranks, and its growth over ranks.

    Growth is measured inside one process, CPU seconds only, each size in turn and its least of some turns:
    what starts a process is in none of them.
    """
    with tempfile.TemporaryDirectory(prefix="rpl-ranks-") as name:
        place = Path(name) / "summaries"
        place.mkdir()
        job = SimulatedJob(SIZES[-1], dispatches)
        files = [place / f"{rank:05d}.npz" for rank in range(SIZES[-1])]
        for rank, path in enumerate(files):
            file = RecordedFile(f"/gone/rank_{rank:05d}.db", 1, 1, "0" * 64)
            save_summary(path, SavedSummary((file,), (job.summary(rank),)))
        whole = min((measured([name]) for _ in range(2)), key=lambda one: one.cpu_s)
        assert whole.answer["ranks"] == SIZES[-1]
        print(
            f"  {SIZES[-1]} summaries: {whole.cpu_s:.2f} CPU-s, peak {whole.peak_gb:.2f} GB, a whole process"
        )
        collect_garbage_rarely()  # as in the command
        keep_freed_memory()
        times = np.full((TURNS, len(SIZES)), np.inf)
        for turn in times:
            for i, ranks in enumerate(SIZES):
                begin = time.process_time()
                summaries = [one for path in files[:ranks] for one in load_summary(path).ranks]
                answer_of(JobSummary.of(summaries), range(ranks))
                turn[i] = time.process_time() - begin
    for ranks, some in zip(SIZES, times.T, strict=True):
        print(
            f"  {ranks:5} summaries: {some.min():.3f} CPU-s inside, up to {some.max():.3f} in {TURNS} turns"
        )
    (slope, _), spread = np.polyfit(np.log(SIZES), np.log(times.min(axis=0)), 1, cov=True)
    print(f"  exponent over ranks {slope:.3f}, standard error {np.sqrt(spread[0, 0]):.3f}")
    return whole.cpu_s <= MERGE_S and slope <= EXPONENT


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=128)
    parser.add_argument("--dispatches", type=int, default=20_000)
    parser.add_argument("--two", action="store_true")
    parser.add_argument("--no-merge", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    good = read_job(asked.ranks, asked.dispatches, asked.keep, two=asked.two)
    if not asked.no_merge:
        good = merge_summaries(asked.dispatches) and good
    return int(asked.check and not good)


if __name__ == "__main__":
    sys.exit(main())
