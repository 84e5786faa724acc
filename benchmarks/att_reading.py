"""How fast and in how much memory thread traces are read, on generated folders (synthetic data).

    python benchmarks/att_reading.py               12 MB: less than 1 CPU second
    python benchmarks/att_reading.py --large       774 MB: less than 300 MB of memory

A wave is a loop of loads, waits and arithmetic. Each measurement runs in an interpreter of its own, whose CPU
time and peak memory count from its start.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BODY = (
    ("global_load_dword v1, v[2:3], off", 4, 8, 12),
    ("v_mul_f32_e32 v4, v1, v1", 6, 0, 4),
    ("s_waitcnt vmcnt(0)", 9, 400, 400),
    ("v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]", 6, 4, 8),
    ("ds_read_b64 v[6:7], v8", 5, 0, 4),
    ("s_waitcnt lgkmcnt(0)", 9, 60, 60),
    ("s_cbranch_scc1 65500", 7, 0, 4),
)
LIMITS = {"small": (12, 48, 1.0, None), "large": (774, 64, None, 300.0)}

MEASURE = """
import resource, sys, time
from pathlib import Path
from rpl_att.decoded_trace import read_decoded_trace
from rpl_att.analysis.att_block import att_block
block = att_block(read_decoded_trace(Path(sys.argv[1])), None)
peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(time.process_time(), peak_mb, block.instructions, block.status)
"""


def generate(folder: Path, megabytes: int, waves: int) -> int:
    """Write a decoded folder of about that size; returns its bytes."""
    folder.mkdir()
    iterations = megabytes * 1_000_000 // waves // _iteration_bytes()
    tree: dict[str, dict[str, dict[str, dict[str, list[object]]]]] = {}
    for number in range(waves):
        simd, slot = number % 4, number // 4
        name = f"se0_sm{simd}_sl{slot}_wv0.json"
        end = write_wave(folder / name, iterations, number)
        tree.setdefault("0", {}).setdefault(str(simd), {})[str(slot)] = {"0": [name, 1000, end]}
    hits = waves * iterations
    rows = [["; generated", 0, 0, "", 1, 256, 0, 0, 0, 0]]
    for line, (isa, _category, stall, duration) in enumerate(BODY, start=1):
        rows.append(
            [isa, 0, line, f"a.cpp:{line}", 1, 256 + 8 * line, hits, hits * duration, hits * stall, 0]
        )
    write(folder / "code.json", {"code": rows, "version": "3.0.0"})
    index = {"gfxip": 9, "version": "3.0.0", "counter_names": [], "rpl_origin": "synthetic"}
    write(folder / "filenames.json", {**index, "wave_filenames": tree})
    return sum(file.stat().st_size for file in folder.iterdir())


def _iteration_bytes() -> int:
    return sum(len(f"[10000000,{c},{s},{d},{n}],") for n, (_, c, s, d) in enumerate(BODY, start=1))


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, separators=(",", ":")), encoding="utf-8")


def write_wave(path: Path, iterations: int, number: int) -> int:
    """One wave without gaps; returns the clock of its end."""
    clock = 1000
    with path.open("w", encoding="utf-8") as stream:
        stream.write(f'{{"name":"SE0","wave":{{"cu":1,"begin":1000,"simd":{number % 4},"instructions":[')
        for iteration in range(iterations):
            parts = []
            for line, (_isa, category, stall, duration) in enumerate(BODY, start=1):
                parts.append(f"[{clock},{category},{stall},{duration},{line}]")
                clock += duration
            stream.write(("," if iteration else "") + ",".join(parts))
        stream.write(f'],"timeline":[[2,{clock - 1000}]],"waitcnt":null,"end":{clock}}}}}')
    return clock


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--large", action="store_true", help="774 MB instead of 12 MB")
    name = "large" if parser.parse_args().large else "small"
    megabytes, waves, cpu_limit_s, memory_limit_mb = LIMITS[name]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "ui_output_agent_1_dispatch_1"
        size = generate(folder, megabytes, waves)
        begun = time.perf_counter()
        answer = subprocess.run(
            [sys.executable, "-c", MEASURE, folder], check=True, capture_output=True, text=True
        ).stdout.split()
        wall_s = time.perf_counter() - begun
    cpu_s, peak_mb = float(answer[0]), float(answer[1])
    print(f"{size / 1e6:.0f} MB, {waves} waves, {int(answer[2]):,} instructions ({answer[3]})")
    print(f"CPU {cpu_s:.2f} s, wall {wall_s:.2f} s, peak memory {peak_mb:.0f} MB")
    ok = (cpu_limit_s is None or cpu_s < cpu_limit_s) and (
        memory_limit_mb is None or peak_mb < memory_limit_mb
    )
    print("within the limits" if ok else "OVER THE LIMIT")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
