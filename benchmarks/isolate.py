"""What the capture tool costs: each launch that it does not capture, and a capture against a plain copy.

Needs the native build, its target isolate-callback-cost too, and `rpl emu get-runtime`. Runs over
the software KFD, so that the speed of a capture is that of this machine's memory and disk: what counts is its
ratio to a plain copy (read and write) of the same bytes to the same file system in the same run, hashing off.
The cost of a launch is CPU time.

    python benchmarks/isolate.py --folder /dev/shm/captures            # 2 GB dense, 11 GB sparse
    python benchmarks/isolate.py --folder /dev/shm/captures --check    # exit 1 if a target is missed
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "native"
PROGRAMS = ROOT / "native" / "tests" / "programs"
MOST_NS_PER_LAUNCH = 2000.0
LEAST_OF_PLAIN_COPY = 0.8
LARGEST_TOOL_KB = 256 << 10
_BLOCK_BYTES = 8 << 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--folder", type=Path, required=True, help="where captures go, on the file system meant"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dense-mb", type=int, default=2048)
    parser.add_argument("--sparse-mb", type=int, default=11264)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    cost = _callback_cost()
    print(f"callback: {cost:.0f} ns per launch that is not captured, median")
    missed = [cost > MOST_NS_PER_LAUNCH]
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        program = _Program(Path(folder))
        for content, megabytes in (("dense", arguments.dense_mb), ("sparse", arguments.sparse_mb)):
            ratios = [program.ratio(megabytes, content) for _ in range(arguments.rounds)]
            told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            print(
                f"{megabytes} MB {content}: {statistics.median(ratios):.2f} of a plain copy (rounds: {told})"
            )
            missed.append(statistics.median(ratios) < LEAST_OF_PLAIN_COPY)
        print(f"anonymous memory of the program with the tool: {program.largest_kb >> 10} MB")
        missed.append(program.largest_kb > LARGEST_TOOL_KB)
    return 1 if arguments.check and any(missed) else 0


def _callback_cost() -> float:
    tool = BUILD / "isolate" / "tests" / "isolate-callback-cost"
    done = subprocess.run([tool], check=True, capture_output=True, text=True)
    return statistics.median(float(line) for line in done.stdout.split())


class _Program:
    """native/tests/programs/large_memory.cpp, built for this runtime, and its captures."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        fetched = subprocess.run(
            [Path(sys.executable).with_name("rpl"), "emu", "get-runtime"],
            check=True,
            capture_output=True,
            text=True,
        )
        self._runtime = Path(fetched.stdout.strip())
        self.largest_kb = 0
        self._build()

    def _build(self) -> None:
        libraries = self._runtime / "usr" / "lib" / "x86_64-linux-gnu"
        headers = ["-I", self._runtime / "usr" / "include"]
        link = ["-L", libraries, "-l:libhsa-runtime64.so.1", "-Wl,--allow-shlib-undefined"]
        device = ["-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "--no-gpu-bundle-output"]
        plain = ["-nogpulib", "-nogpuinc", "-mcode-object-version=5", "-O3"]
        shared = ["-shared", "-fPIC", "-I", ROOT / "native" / "softkfd"]
        for command in (
            [
                "g++",
                "-std=c++20",
                "-O1",
                *headers,
                PROGRAMS / "large_memory.cpp",
                *link,
                "-o",
                self._at("program"),
            ],
            ["g++", "-std=c++20", "-O1", *shared, PROGRAMS / "shadows.cpp", "-o", self._at("shadows.so")],
            ["clang++-22", *device, *plain, PROGRAMS / "kernels.hip", "-o", self._at("kernels.hsaco")],
        ):
            subprocess.run(command, check=True)

    def _at(self, name: str) -> Path:
        return self._folder / name

    def ratio(self, megabytes: int, content: str) -> float:
        """Bytes per second of one capture, over those of a plain copy of what it wrote."""
        capture = self._at("capture")
        environment = {
            "SOFTKFD_SHADOWS": str(self._at("shadows.so")),
            "HSA_TOOLS_LIB": str(BUILD / "isolate" / "librpl_isolate.so"),
            "RPL_ISOLATE_OUTPUT": str(capture),
            "RPL_ISOLATE_HASH": "none",
            "RPL_ISOLATE_POST": "none",
        }
        launcher = [BUILD / "softkfd" / "softkfd-run", "--runtime", self._runtime]
        command = [*launcher, self._at("program"), self._at("kernels.hsaco"), str(megabytes), content]
        done = subprocess.run(
            command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
        )
        self.largest_kb = max(self.largest_kb, int(done.stdout.split()[1]))
        memory = json.loads((capture / "capture.json").read_text())["memory"]
        largest = max((capture / "memory").glob("*.bin"), key=lambda path: path.stat().st_size)
        plain_s = self._plain_copy(largest)
        plain = largest.stat().st_size / plain_s
        shutil.rmtree(capture)
        return float(memory["bytes"] / (memory["copy_ns"] / 1e9) / plain)

    def _plain_copy(self, source: Path) -> float:
        target = self._at("plain")
        block = memoryview(bytearray(_BLOCK_BYTES))
        start = time.perf_counter()
        with source.open("rb", buffering=0) as stream, target.open("wb", buffering=0) as copy:
            while count := stream.readinto(block):
                copy.write(block[:count])
        taken = time.perf_counter() - start
        target.unlink()
        return taken


if __name__ == "__main__":
    sys.exit(main())
