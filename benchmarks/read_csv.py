"""How fast a kernel trace in CSV is read, beside libraries that read tables.

    python benchmarks/read_csv.py [--dispatches 1000000] [--keep FILE]

Writes a table as rocprofv3 does, then measures each way in a process of its own: CPU seconds (best of
three), peak memory above that of the bare imports, and the ratio to pandas. Libraries that are not
installed are left out. The reader makes a checked trace (kernels, shapes, streams, order); the others
make columns.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

_RUNS = 3
_HEADER = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
    '"Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count",'
    '"Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
)
_COMMON = """
import sys, time
from pathlib import Path
path = Path(sys.argv[1])
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return [int(line.split()[1]) for line in lines if "VmHWM" in line][0] / 1024
"""
_WAYS = {
    "rpl reader (whole trace)": (
        "from rpl_rocprofv3.readers.catalog import CsvReader\nimport numpy",
        "reader = CsvReader(); count = len(reader.read(reader.claim([path])[0])[0].dispatches)",
    ),
    "pandas": ("import pandas", "count = len(pandas.read_csv(path))"),
    "pyarrow": ("import pyarrow.csv", "count = pyarrow.csv.read_csv(path).num_rows"),
    "polars": ("import polars", "count = polars.read_csv(path).height"),
    "csv module, nothing kept": (
        "import csv",
        "count = sum(1 for _ in csv.reader(path.open(newline=''))) - 1",
    ),
}


def _write(path: Path, dispatches: int) -> None:
    draw = random.Random(1)
    names = [
        f"void kernel_{i}<4, float, std::array<char*, {i}> >(int, functor_{i}<float>)" for i in range(40)
    ]
    time_ns = 812_345_678_901_234
    with path.open("w") as file:
        file.write(_HEADER)
        for i in range(dispatches):
            kernel, duration = draw.randrange(40), draw.randrange(2_000, 200_000)
            time_ns += draw.randrange(500, 9_000)
            ids = f'"Agent 4",{1 + i % 4},{i % 8},4242,{i + 1},{kernel + 10},"{names[kernel]}",{i + 1}'
            registers = f"0,0,{32 + 8 * (kernel % 5)},4,{48 + 16 * (kernel % 3)}"
            shape = f"256,1,1,{256 * (1 + kernel * kernel)},1,1"
            file.write(f'"KERNEL_DISPATCH",{ids},{time_ns},{time_ns + duration},{registers},{shape}\n')
            time_ns += duration


def _measured(imports: str, reading: str, path: Path) -> tuple[float, float, int] | None:
    """CPU seconds, MiB above the imports, rows; ``None`` where the library is not installed."""
    code = (
        f"{_COMMON}\n{imports}\nbefore, start = peak(), time.process_time()\n{reading}\n"
        "print(time.process_time() - start, peak() - before, count)"
    )
    best: tuple[float, float, int] | None = None
    for _ in range(_RUNS):
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            if "ModuleNotFoundError" in done.stderr:
                return None
            raise RuntimeError(done.stderr)
        seconds, memory, count = done.stdout.split()
        if best is None or float(seconds) < best[0]:
            best = float(seconds), float(memory), int(count)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dispatches", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="write the table here and leave it")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = (asked.keep or Path(folder)) / "1_kernel_trace.csv"
        _write(path, asked.dispatches)
        print(f"{asked.dispatches} dispatches, {path.stat().st_size / 1e6:.0f} MB")
        found = {name: _measured(*way, path) for name, way in _WAYS.items()}
    reference = found["pandas"]
    for name, result in found.items():
        if result is None:
            print(f"{name:28} not installed")
            continue
        seconds, memory, count = result
        ratio = f"{seconds / reference[0]:.2f} of pandas" if reference else "pandas is not installed"
        print(f"{name:28} {seconds:6.2f} CPU-s  {memory:6.0f} MiB  {ratio}  {count} rows")


if __name__ == "__main__":
    main()
