"""(6) Ceilings of the card, measured: device memory, shared memory, FP32 and FP64, beside the data sheet."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import HERE, machine, run

from rpl_core.model.device import Pipe
from rpl_sm90.products import H100, H200


def main() -> int:
    scratch = Path(sys.argv[1])
    scratch.mkdir(parents=True, exist_ok=True)
    program = scratch / "ceilings"
    words = ["nvcc", "-O3", "-arch=sm_90", str(HERE / "ceilings.cu"), "-o", str(program)]
    subprocess.run(words, check=True)
    about = machine()
    model = H200 if "H200" in about["gpu"] else H100
    stated = {one.level: one.peak_gbps for one in model.memory_ceilings}
    rates = {one.data_type: one.peak_gflops for one in model.compute_ceilings if one.pipe is Pipe.VALU}
    sheet = {"copy": stated["hbm"], "read": stated["hbm"], "shared": stated["lds"]}
    sheet |= {"fma_f32": rates["F32"], "fma_f64": rates["F64"]}
    rows: list[dict[str, Any]] = []
    for row in run(program, 50):
        best, middle = (row["work"] / (f(row["ms"]) * 1e6) for f in (min, statistics.median))
        rows.append(
            row | {"median_per_ns": middle, "best_per_ns": best, "stated_per_ns": sheet[row["ceiling"]]}
        )
        of_sheet = middle / sheet[row["ceiling"]]
        print(f"{row['ceiling']:8} {middle:9.0f} G{row['unit']}/s, {of_sheet:.3f} of the data sheet")
    out = Path(os.environ.get("OUT", "."), f"ceilings_{model.name}.json")
    out.write_text(json.dumps({"machine": about, "device": model.name, "ceilings": rows}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
