"""(4) Every configuration of a GEMM measured once, as a cache file of Kernel Tuner's format.

``rpl autotune --recorded`` and peers search the file afterwards; nothing of that needs a GPU. Configurations
are compiled side by side and run one after the other, in an order drawn at random.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from bench import HERE, Results, machine

SPACE = {
    "BLOCK_M": (32, 64, 128),
    "BLOCK_N": (32, 64, 128),
    "BLOCK_K": (8, 16, 32),
    "THREAD_M": (2, 4, 8),
    "THREAD_N": (2, 4, 8),
    "UNROLL": (1, 4),
    "PAD": (0, 1),
}
THREADS = (64, 256)
#: Of static shared memory (CUDA C++ Programming Guide, technical specifications).
SHARED_BYTES = 48 << 10


def configurations() -> list[dict[str, int]]:
    """Those that the constraints allow: 64 to 256 threads, both tiles in shared memory."""
    found = []
    for values in itertools.product(*SPACE.values()):
        one = dict(zip(SPACE, values, strict=True))
        threads = one["BLOCK_M"] // one["THREAD_M"] * (one["BLOCK_N"] // one["THREAD_N"])
        shared = 4 * one["BLOCK_K"] * (one["BLOCK_M"] + one["PAD"] + one["BLOCK_N"])
        if THREADS[0] <= threads <= THREADS[1] and shared <= SHARED_BYTES:
            found.append(one)
    return found


def compiled(one: dict[str, int], folder: Path) -> Path | str:
    """The program, or the compiler's first error."""
    program = folder / ("gemm-" + "-".join(str(value) for value in one.values()))
    macros = [f"-D{name}={value}" for name, value in one.items()]
    words = ["nvcc", "-O3", "-arch=sm_90", *macros, str(HERE / "gemm_space.cu"), "-o", str(program)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return program
    lines = done.stderr.splitlines()
    return next((line for line in lines if "error" in line), lines[0] if lines else "nvcc failed")


def measured(program: Path | str) -> dict[str, Any]:
    if isinstance(program, str):
        return {"time": "CompilationFailedConfig", "reason": program}
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        return {"time": "RuntimeFailedConfig"}
    if done.stdout.startswith("wrong"):
        return {"time": "WrongResult", "reason": done.stdout.strip()}
    times = [float(word) for word in done.stdout.split()]
    return {"time": statistics.median(times), "times": times}


def main() -> int:
    scratch, seconds = Path(sys.argv[1]), float(sys.argv[2])
    scratch.mkdir(parents=True, exist_ok=True)
    every = configurations()
    order = np.random.default_rng(20261123).permutation(len(every)).tolist()
    results = Results("gemm_space.jsonl", seconds)
    begin = len(results.known())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        programs = {number: pool.submit(compiled, every[number], scratch) for number in order[begin:]}
        for number in order[begin:]:
            program = programs[number].result()
            if not results.there_is_time():
                for waiting in programs.values():
                    waiting.cancel()
                break
            results.add(**every[number], **measured(program))
    rows = results.known()
    if len(rows) == len(every):
        write_cache(rows, results.path.with_name("gemm_space.json"))
    times = [row["time"] for row in rows if not isinstance(row["time"], str)]
    ends = f": {min(times)} to {max(times)} ms" if times else ""
    print(f"{len(rows)} of {len(every)} measured, {len(times)} valid{ends}")
    return 0


def write_cache(rows: list[dict[str, Any]], path: Path) -> None:
    cache = {",".join(str(row[name]) for name in SPACE): row for row in rows}
    document = {
        "device_name": machine()["gpu"].split(",")[0],
        "kernel_name": "gemm",
        "problem_size": [2048, 2048, 2048],
        "tune_params_keys": list(SPACE),
        "tune_params": {name: list(values) for name, values in SPACE.items()},
        "objective": "time",
        "cache": cache,
    }
    path.write_text(json.dumps(document))


if __name__ == "__main__":
    sys.exit(main())
