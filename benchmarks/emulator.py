"""How fast the emulator runs kernels: wave-instructions per second, bytes copied, threads.

    python benchmarks/emulator.py build/native/emu/rpl-emu [--cpu avx2] [--repeat 5]
    python benchmarks/emulator.py build/native/emu/rpl-emu --against other/native/emu/rpl-emu

The second tells, kernel by kernel, the CPU time of one build over that of another, in turns: what a change
costs, such as marking the distinct lines that bytes over HBM's peak need (`TouchedLines`).

Rates count the CPU's time, the gain of two threads counts the clock; best of some runs. Nothing of it says
how fast a GPU is.
"""

from __future__ import annotations

import argparse
import array
import json
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

SOURCE = """
#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 256))) void
#define T int(__builtin_amdgcn_workitem_id_x())
#define G int(__builtin_amdgcn_workgroup_id_x())
#define I (G * 256 + T)
#define SYNC() __builtin_amdgcn_s_barrier()
typedef float f4 __attribute__((ext_vector_type(4)));
typedef _Float16 h4 __attribute__((ext_vector_type(4)));
KERNEL fma_loop(float* o, const float* a) {
  float x = a[I], y = a[I + 1], z = 0, w = 1;
  for (int k = 0; k < 4000; ++k) { z = __builtin_fmaf(x, z, y); w = __builtin_fmaf(y, w, x); }
  o[I] = z + w;
}
KERNEL xor_shift(unsigned* o, const unsigned* a) {
  unsigned x = a[I];
  for (int k = 0; k < 2000; ++k) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }
  o[I] = x;
}
KERNEL collatz(unsigned* o, const unsigned* a) {
  unsigned x = a[I] % 100000 + 1, n = 0;
  while (x != 1 && n < 400) { x = x & 1 ? 3 * x + 1 : x / 2; ++n; }
  o[I] = n;
}
KERNEL vector_add(float* o, const float* a) { o[I] = a[I] + a[I ^ 64]; }
KERNEL copy16(f4* o, const f4* a) { o[I] = a[I]; }
KERNEL reduce(float* o, const float* a) {
  __attribute__((shared)) static float s[256];
  s[T] = a[I];
  SYNC();
  for (int k = 128; k; k /= 2) { if (T < k) s[T] += s[T + k]; SYNC(); }
  if (T == 0) o[G] = s[0];
}
KERNEL gemm_tiled(float* o, const float* a) {
  __attribute__((shared)) static float x[16][16], y[16][16];
  const int i = T / 16, j = T % 16, n = 256, u = G / 16, v = G % 16;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    x[i][j] = a[(u * 16 + i) * n + k + j];
    y[i][j] = a[(k + i) * n + v * 16 + j];
    SYNC();
    for (int l = 0; l < 16; ++l) sum += x[i][l] * y[l][j];
    SYNC();
  }
  o[(u * 16 + i) * n + v * 16 + j] = sum;
}
KERNEL strided(float* o, const float* a) { o[I] = a[I * 8 % 262144]; }
KERNEL mfma_loop(f4* o, const h4* a) {
  f4 s = {0, 0, 0, 0};
  for (int k = 0; k < 200; ++k) s = __builtin_amdgcn_mfma_f32_16x16x16f16(a[I], a[I + k], s, 0, 0, 0);
  o[I] = s;
}
"""
#: Kernel, workgroups, bytes of output of a work-item. Inputs are random. Loops of 64 workgroups took 20 ms,
#: of which one time slice of another process is a fifth: too much to tell what two threads gain.
KERNELS = {
    "fma_loop": (512, 4), "xor_shift": (512, 4), "collatz": (1024, 4), "vector_add": (16384, 4),
    "copy16": (4096, 16), "reduce": (16384, 4), "gemm_tiled": (256, 4), "strided": (16384, 4),
    "mfma_loop": (256, 16),
}  # fmt: skip
COPIED = "copy16"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=Path)
    parser.add_argument("--cpu", default="")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--against", type=Path, help="another rpl-emu: print ratios of CPU time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, code, given = (Path(folder) / name for name in ("k.hip", "k.hsaco", "in.bin"))
        given.write_bytes(numbers(16 * 4096 * 256 + 4096))
        source.write_text(SOURCE)
        device = ["-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "--no-gpu-bundle-output"]
        command = ["clang++-22", *device, "-nogpulib", "-nogpuinc", "-w", "-O3", str(source), "-o", str(code)]
        subprocess.run(command, check=True)
        rates = []
        for kernel, (groups, out) in KERNELS.items():
            arguments = (f"zeros:{groups * 256 * out}", f"file:{given}")
            if options.against:
                rates.append(ratio(options, (code, kernel), groups, arguments))
                print(f"{kernel:12} {rates[-1]:.3f}", flush=True)
                continue
            one, clock, instructions = measure(options, (code, kernel), groups, arguments, 1)
            _, clock_of_two, _ = measure(options, (code, kernel), groups, arguments, 2)
            rates.append(instructions / one / 1e6)
            copied = f", {groups * 256 * out / one / 1e9:.2f} GB/s copied" if kernel == COPIED else ""
            line = f"{kernel:12} {rates[-1]:7.1f} M wave-instructions/s"
            print(f"{line}, two threads {clock / clock_of_two:.2f}x{copied}", flush=True)
        unit = "of the CPU time" if options.against else "M wave-instructions/s"
        print(f"median {statistics.median(rates):{'.3f' if options.against else '.1f'}} {unit}")


def numbers(count: int) -> bytes:
    """Random bytes: halves from 0.5 to 1, and as floats no denormal, which CPUs take longer for."""
    halves = array.array("H", random.Random(1).randbytes(count))
    return array.array("H", (0x3800 | half & 0x3FF for half in halves)).tobytes()


def ratio(
    options: argparse.Namespace, code: tuple[Path, str], groups: int, arguments: tuple[str, ...]
) -> float:
    """Median over pairs of runs, which of the two goes first taking turns."""
    found = []
    for i in range(options.repeat):
        pair = [options.program, options.against]
        took = {}
        for program in reversed(pair) if i % 2 else pair:
            one = argparse.Namespace(program=program, cpu=options.cpu, repeat=1)
            took[program] = measure(one, code, groups, arguments, 1)[0]
        found.append(took[options.program] / took[options.against])
    return statistics.median(found)


def measure(
    options: argparse.Namespace, code: tuple[Path, str], groups: int, arguments: tuple[str, ...], threads: int
) -> tuple[float, float, int]:
    """Best seconds of CPU and clock, and how many instructions."""
    words = [options.program, "launch", code[0], "--kernel", code[1], "--grid", str(groups * 256)]
    words += ["--block", "256", "--json", "--threads", str(threads)]
    words += [word for argument in arguments for word in ("--arg", argument)]
    words += ["--cpu", options.cpu] if options.cpu else []
    found = [
        json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        for _ in range(options.repeat)
    ]
    return (
        min(one["cpu_seconds"] for one in found),
        min(one["seconds"] for one in found),
        found[0]["instructions"],
    )


if __name__ == "__main__":
    main()
