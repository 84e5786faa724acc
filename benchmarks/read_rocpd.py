"""How fast a rocpd database is read, beside the two plain ways to do it with the standard library.

    python benchmarks/read_rocpd.py [--dispatches 1000000] [--with-calls] [--keep FILE]

Writes a synthetic database once, then measures each way in a process of its own: CPU seconds (best of
three) and peak memory, and the ratio to the reader. The plain ways read the dispatch table only (the
columns that a trace holds), without events, names, calls, checks or ordering.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from synthetic_recording import BEGIN_NS, CATEGORY, LAUNCH_ARGUMENTS, contents, stream_argument

from rpl_testkit.rocpd_writer import DispatchRow, RegionRow, write_rocpd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_testkit.rocpd_writer import RocpdContents

_RUNS = 3
_KERNELS = 40
_STREAMS = 4

_COMMON = """
import resource, sys, time
from pathlib import Path
path = Path(sys.argv[1])
COLUMNS = ("pid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id", "start", "end",
           "private_segment_size", "group_segment_size", "workgroup_size_x", "workgroup_size_y",
           "workgroup_size_z", "grid_size_x", "grid_size_y", "grid_size_z", "event_id")
QUERY = "SELECT " + ", ".join(f'"{c}"' for c in COLUMNS) + " FROM rocpd_kernel_dispatch"
"""
_REPORT = """
peak = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line][0]
print(time.process_time() - start, int(peak) / 1024, count)
"""
_WAYS = {
    "rpl reader (whole trace)": """
from rpl_rocprofv3.readers.catalog import RocpdReader
start = time.process_time()
reader = RocpdReader()
count = len(reader.read(reader.claim([path])[0])[0].dispatches)
""",
    "sqlite3 fetchall + np.array": """
import sqlite3, numpy
start = time.process_time()
count = len(numpy.array(sqlite3.connect(path).execute(QUERY).fetchall()))
""",
    "sqlite3 iterate, nothing kept": """
import sqlite3
start = time.process_time()
count = sum(1 for _ in sqlite3.connect(path).execute(QUERY))
""",
}


def _contents(dispatches: int, *, with_calls: bool) -> RocpdContents:
    return contents(
        f"benchmark {dispatches}",
        kernels=_KERNELS,
        queues=_STREAMS,
        stream_ids=range(1, _STREAMS),
        dispatches=_dispatches(dispatches),
        regions=_launch_calls(dispatches) if with_calls else (),
    )


def _dispatches(count: int) -> Iterator[DispatchRow]:
    rnd = random.Random(1)
    time_ns = BEGIN_NS
    for i in range(count):
        duration_ns = rnd.randrange(2_000, 90_000)
        yield DispatchRow(
            dispatch_id=i + 1,
            kernel_id=i % _KERNELS + 1,
            agent=1,
            queue_id=i % _STREAMS + 1,
            stream_id=i % _STREAMS,
            begin_ns=time_ns,
            end_ns=time_ns + duration_ns,
            grid=(65_536 + i % 7 * 256, 1, 1),
            workgroup=(256, 1, 1),
            lds_bytes=i % 3 * 1024,
            stack_id=i + 1,
        )
        time_ns += duration_ns + rnd.randrange(100, 5_000)


def _launch_calls(count: int) -> Iterator[RegionRow]:
    for i in range(count):
        begin_ns = BEGIN_NS - 10**6 + i * 5_000
        arguments = (*LAUNCH_ARGUMENTS, stream_argument(i % _STREAMS))
        yield RegionRow("hipLaunchKernel", CATEGORY, i + 1, begin_ns, begin_ns + 3_000, arguments)


def _measure(code: str, path: Path) -> tuple[float, float, int]:
    """Best CPU seconds, peak MiB and rows of a way."""
    best = (float("inf"), 0.0, 0)
    for _ in range(_RUNS):
        command = [sys.executable, "-c", _COMMON + code + _REPORT, str(path)]
        seconds, peak, count = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.split()
        best = min(best, (float(seconds), float(peak), int(count)))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dispatches", type=int, default=1_000_000)
    parser.add_argument("--with-calls", action="store_true", help="add a HIP call with six arguments each")
    parser.add_argument("--keep", type=Path, help="write the database here, or use it if it exists")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "benchmark_results.db"
        if not path.exists():
            write_rocpd(path, _contents(options.dispatches, with_calls=options.with_calls), synthetic=True)
        print(f"{path.stat().st_size / 1e6:.0f} MB, best of {_RUNS} runs, CPU time without imports")
        results = {name: _measure(code, path) for name, code in _WAYS.items()}
    own = next(iter(results.values()))[0]
    for name, (seconds, peak, count) in results.items():
        print(f"{name:32s} {seconds:7.2f} s {peak:7.0f} MiB {count:9d} rows  {seconds / own:5.1f} x")


if __name__ == "__main__":
    main()
