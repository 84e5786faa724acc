"""How fast a results JSON is read, beside plain passes over the same file.

    python benchmarks/read_json.py [--dispatches 60000] [--keep FILE]

Writes a synthetic document once, then measures each way in a process of its own: CPU seconds (best of three)
and peak memory, and the ratio to the reader. The pass of ijson only looks at every token and keeps nothing;
``json.load`` builds the whole document in memory.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUNS = 3
_KERNELS = 40
_STREAMS = 4
_GPU = 900
_KINDS = ("NONE", "HIP_RUNTIME_API_EXT", "KERNEL_DISPATCH")

_COMMON = """
import sys, time
from pathlib import Path
path = Path(sys.argv[1])
"""
_REPORT = """
peak = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line][0]
print(time.process_time() - start, int(peak) / 1024, count)
"""
_WAYS = {
    "rpl reader (whole trace)": """
from rpl_rocprofv3.readers.catalog import JsonReader
start = time.process_time()
reader = JsonReader()
count = len(reader.read(reader.claim([path])[0])[0].dispatches)
""",
    "ijson, one pass, nothing kept": """
import ijson
start = time.process_time()
with path.open("rb") as file:
    count = sum(event == "end_map" for event, _ in ijson.basic_parse(file, buf_size=1 << 18))
""",
    "json.load, all in memory": """
import json
start = time.process_time()
with path.open("rb") as file:
    count = len(json.load(file)["rocprofiler-sdk-tool"][0]["buffer_records"]["kernel_dispatch"])
""",
}


def _write(path: Path, dispatches: int) -> None:
    """A document of one process with a HIP call for every dispatch, written record by record."""
    with path.open("w") as file:
        file.write('{"rocprofiler-sdk-tool": [' + json.dumps(_small_sections())[:-1])
        file.write(', "buffer_records": {')
        _write_list(file, "kernel_dispatch", _dispatches(dispatches))
        file.write(", ")
        _write_list(file, "hip_api", _calls(dispatches))
        file.write("}}]}")


def _write_list(file: IO[str], name: str, records: Iterator[dict[str, Any]]) -> None:
    file.write(f'"{name}": [')
    for number, record in enumerate(records):
        file.write((", " if number else "") + json.dumps(record))
    file.write("]")


def _small_sections() -> dict[str, Any]:
    operations = ((), ("hipInit", "hipLaunchKernel"), ("NONE", "COMPLETE"))
    return {
        "metadata": {"pid": 4242, "init_time": 1, "fini_time": 10**15, "rpl_origin": "synthetic"},
        "agents": [{"id": {"handle": _GPU}, "type": 2, "name": "gfx942", "node_id": 2, "cu_count": 304}],
        "strings": {
            "buffer_records": [
                {"kind": kind, "operations": names} for kind, names in zip(_KINDS, operations, strict=True)
            ]
        },
        "kernel_symbols": [
            {
                "kernel_id": i + 1,
                "kernel_name": f"kernel_{i}.kd",
                "formatted_kernel_name": f"kernel_{i}(float*)",
            }
            for i in range(_KERNELS)
        ],
    }


def _dispatches(count: int) -> Iterator[dict[str, Any]]:
    rnd = random.Random(1)
    time_ns = 10**12
    for i in range(count):
        duration_ns = rnd.randrange(2_000, 90_000)
        yield {
            "size": 144,
            "kind": 2,
            "operation": 1,
            "thread_id": 7,
            "correlation_id": {"internal": i + 1, "external": 0, "ancestor": 0},
            "start_timestamp": time_ns,
            "end_timestamp": time_ns + duration_ns,
            "dispatch_info": {
                "size": 128,
                "agent_id": {"handle": _GPU},
                "queue_id": {"handle": i % _STREAMS + 1},
                "kernel_id": i % _KERNELS + 1,
                "dispatch_id": i + 1,
                "private_segment_size": 0,
                "group_segment_size": i % 3 * 1024,
                "workgroup_size": {"x": 256, "y": 1, "z": 1},
                "grid_size": {"x": 65_536 + i % 7 * 256, "y": 1, "z": 1},
            },
            "stream_id": {"handle": i % _STREAMS},
        }
        time_ns += duration_ns + rnd.randrange(100, 5_000)


def _calls(count: int) -> Iterator[dict[str, Any]]:
    for i in range(count):
        begin_ns = 10**12 - 10**6 + i * 5_000
        yield {
            "size": 56,
            "kind": 1,
            "operation": 1,
            "correlation_id": {"internal": i + 1, "external": 0, "ancestor": 0},
            "start_timestamp": begin_ns,
            "end_timestamp": begin_ns + 3_000,
            "thread_id": 7,
            "args": [
                {"type": "dim3", "name": "numBlocks", "value": "{z=1, y=1, x=256}"},
                {"type": "hipStream_t", "name": "stream", "value": f"0x55d0c0a0{i % _STREAMS}000"},
            ],
            "retval": {"hipError_t_retval": 0},
        }


def _measure(code: str, path: Path) -> tuple[float, float, int]:
    """Best CPU seconds, peak MiB and rows of a way."""
    best = (float("inf"), 0.0, 0)
    for _ in range(_RUNS):
        command = [sys.executable, "-c", _COMMON + code + _REPORT, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, peak, count = done.stdout.split()
        best = min(best, (float(seconds), float(peak), int(count)))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dispatches", type=int, default=60_000)
    parser.add_argument("--keep", type=Path, help="write the document here, or use it if it exists")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "1_results.json"
        if not path.exists():
            _write(path, options.dispatches)
        print(f"{path.stat().st_size / 1e6:.0f} MB, best of {_RUNS} runs, CPU time without imports")
        results = {name: _measure(code, path) for name, code in _WAYS.items()}
    own = next(iter(results.values()))[0]
    for name, (seconds, peak, count) in results.items():
        print(f"{name:32s} {seconds:7.2f} s {peak:7.0f} MiB {count:9d} rows  {seconds / own:5.1f} x")


if __name__ == "__main__":
    main()
