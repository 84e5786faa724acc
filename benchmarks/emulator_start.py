"""What a program on the emulated device costs before its kernels do any work: CPU seconds of a tiny program.

    python benchmarks/emulator_start.py build RUNTIME [--against OTHER_BUILD] [--repeat 5]

``RUNTIME`` is what `rpl emu get-runtime` prints (its device library at -O0 is full of
what the emulator does not offer). Prints the CPU time of one launch at -O0 over that at -O3, and of 1 000
launches; with another build both, in turns. Medians of some runs.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

SOURCE = """
#include <hip/hip_runtime.h>
#include <cstdlib>
__global__ void add_one(int* value) { *value += 1; }
int main(int, char** words) {
  const int launches = std::atoi(words[1]);
  int* value = nullptr;
  int found = 0;
  if (hipMalloc(&value, 4) != hipSuccess || hipMemset(value, 0, 4) != hipSuccess) return 70;
  for (int i = 0; i < launches; ++i) {
    add_one<<<1, 1>>>(value);
    if (words[2][0] == 'w' && hipDeviceSynchronize() != hipSuccess) return 70;
  }
  if (hipMemcpy(&found, value, 4, hipMemcpyDeviceToHost) != hipSuccess) return 70;
  return found == launches ? 0 : 1;
}
"""
#: Level of the compiler, launches, and whether the program waits for each.
CASES = (
    ("-O3", 1, "go"),
    ("-O0", 1, "go"),
    ("-O3", 1000, "go"),
    ("-O3", 1000, "wait"),
    ("-O0", 1000, "wait"),
)


def main() -> None:
    """Build, run in turns, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("runtime", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    builds = [given.build, *([given.against] if given.against else [])]
    with tempfile.TemporaryDirectory() as folder:
        programs = {level: compiled(level, given.runtime, Path(folder)) for level in ("-O3", "-O0")}
        taken: dict[tuple[int, int], list[float]] = {}
        for _ in range(given.repeat):
            for number, case in enumerate(CASES):
                for which, build in enumerate(builds):
                    spent = cpu_s(build, given.runtime, programs[case[0]], *case[1:])
                    taken.setdefault((which, number), []).append(spent)
    for number, (level, launches, how) in enumerate(CASES):
        medians = [statistics.median(taken[which, number]) for which in range(len(builds))]
        line = f"{level} {launches:5} launches, {'waits for each' if how == 'wait' else 'waits once':14}"
        ratio = f"   {medians[0] / medians[1]:.2f} of the other" if len(medians) > 1 else ""
        print(f"{line} {medians[0]:6.2f} CPU-s{ratio}")
    first = [statistics.median(taken[0, number]) for number in (0, 1)]
    print(f"one launch at -O0 over one at -O3: {first[1] / first[0]:.2f}")


def compiled(level: str, runtime: Path, folder: Path) -> Path:
    """The program at one level."""
    source, program = folder / "tiny.hip", folder / f"tiny{level}"
    source.write_text(SOURCE)
    libraries = runtime / "usr/lib/x86_64-linux-gnu"
    bitcode = next(runtime.glob("usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode"))
    library = next(libraries.glob("libamdhip64.so.?"))
    device = ["-x", "hip", "--offload-arch=gfx942", "-D__AMDGCN_WAVEFRONT_SIZE=64", "-mcode-object-version=5"]
    places = [f"--rocm-path={runtime / 'usr'}", f"--rocm-device-lib-path={bitcode}", "-w"]
    headers = ["-isystem", str(runtime / "usr/include")]
    link = ["-L", str(libraries), f"-l:{library.name}", "-Wl,--allow-shlib-undefined"]
    words = ["clang++-22", *device, level, *places, *headers, str(source), "-o", str(program), *link]
    subprocess.run(words, check=True)
    return program


def cpu_s(build: Path, runtime: Path, program: Path, launches: int, how: str) -> float:
    """User and system time of one run."""
    launcher = build / "native" / "softkfd" / "softkfd-run"
    words = [str(launcher), "--executor", "emu", "--runtime", str(runtime), str(program), str(launches), how]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
