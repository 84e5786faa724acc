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

import numpy as np
from simulated_job import PER_MACHINE, SimulatedJob

from rpl_analysis.ranks.answer import answer_of
from rpl_analysis.ranks.job import JobSummary
from rpl_analysis.ranks.summary_file import RecordedFile, SavedSummary, load_summary, save_summary
from rpl_core.cli.process_start import collect_garbage_rarely, keep_freed_memory

#: Targets: CPU seconds for a rank of 20 k dispatches, GB of a process, seconds to merge 4 096 summaries,
#: the exponent of that over ranks, and two processes against one.
RANK_CPU_S, PEAK_GB, MERGE_S, EXPONENT, TWO = 100 / 1024, 1.2, 5.0, 1.05, 1.8
#: Ranks whose summaries are merged, and how often each.
SIZES, TURNS = (256, 512, 1024, 2048, 4096), 3


def measured(words: list[str]) -> tuple[dict[str, Any], float, float, float]:
    """The answer, CPU seconds, wall seconds and peak GB of one `rpl ranks` and all that it started."""
    rpl = Path(sys.executable).with_name("rpl")
    with tempfile.TemporaryFile() as out:
        begin = time.monotonic()
        child = subprocess.Popen([rpl, "ranks", *words, "--json"], stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - begin
        if status:
            raise SystemExit(f"rpl ranks {' '.join(words)} failed")
        out.seek(0)
        answer = json.load(out)["job"]
    return answer, used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1e6


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
    words = [str(folder), "-o", str(place)]
    answer, cpu, wall, peak = measured([*words, *usual, "--jobs", "1"])
    each = 1000 * cpu / ranks
    print(f"  read     {cpu:7.1f} CPU-s ({each:.0f} ms a rank), {wall:.1f} s, peak {peak:.2f} GB")
    again, cpu_again, _, peak_again = measured([*words, *usual])
    print(f"  again    {cpu_again:7.1f} CPU-s from summaries, peak {peak_again:.2f} GB")
    found = faults_found(answer, job)
    for fault, is_found in found.items():
        print(f"  {'found' if is_found else 'MISSED':6}   {fault}")
    print(f"  clocks known to {answer['clock']['width_ns'] / 1000:.1f} us")
    good = all(found.values()) and again == answer and cpu / ranks <= RANK_CPU_S and peak <= PEAK_GB
    if two:
        shutil.rmtree(place)
        _, _, wall_two, peak_two = measured([*words, "--jobs", "2"])
        print(f"  two processes: {wall / wall_two:.2f} x as fast as one, peak {peak_two:.2f} GB of one")
        good = good and wall / wall_two >= TWO and peak_two <= PEAK_GB
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
        answer, cpu, _, peak = min((measured([name]) for _ in range(2)), key=lambda one: one[1])
        assert answer["ranks"] == SIZES[-1]
        print(f"  {SIZES[-1]} summaries: {cpu:.2f} CPU-s, peak {peak:.2f} GB, a whole process")
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
    return cpu <= MERGE_S and slope <= EXPONENT


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
