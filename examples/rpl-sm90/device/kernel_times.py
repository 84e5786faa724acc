"""(1) Kernel times of five programs against CUDA events, and the path of a program of known structure."""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path

import numpy as np
from bench import build, machine, record

KERNELS = ("triad", "fma", "chase", "gemm", "reduce")
LAUNCHES = 30


def main() -> int:
    scratch = Path(sys.argv[1])
    program = build(scratch)
    found = {"machine": machine(), "kernels": {}}
    for kernel in KERNELS:
        trace, (printed,), _ = record(scratch / f"times-{kernel}", program, "times", kernel, LAUNCHES, 1.0)
        recorded_ms = (trace.dispatches.duration_ns()[-LAUNCHES:] / 1e6).tolist()
        events_ms = printed["event_ms"]
        ratios = [ours / theirs for ours, theirs in zip(recorded_ms, events_ms, strict=True)]
        found["kernels"][kernel] = {
            "recorded_ms": recorded_ms,
            "event_ms": events_ms,
            "median_ms": statistics.median(recorded_ms),
            "median_ratio": statistics.median(ratios),
            "worst_ratio": max(ratios, key=lambda ratio: abs(ratio - 1)),
        }
    trace, (printed,), _ = record(scratch / "streams", program, "streams", calls=True)
    durations = trace.dispatches.duration_ns()
    begins = trace.dispatches.begin_ns - trace.dispatches.begin_ns.min()
    found["streams"] = {
        "clock_khz": printed["clock_khz"],
        "durations_ms": (durations / 1e6).tolist(),
        "begins_ms": (begins / 1e6).tolist(),
        "streams": [int(trace.streams[s].id) for s in trace.dispatches.stream],
        "calls": len(trace.api_calls) if trace.api_calls is not None else 0,
        "overlap_ms": float(
            np.sum(durations) - (trace.dispatches.end_ns.max() - trace.dispatches.begin_ns.min())
        )
        / 1e6,
    }
    Path(os.environ.get("OUT", "."), "kernel_times.json").write_text(json.dumps(found))
    for kernel, row in found["kernels"].items():
        print(
            f"{kernel:8} {row['median_ms']:9.4f} ms, recorded / event {row['median_ratio']:.5f}, "
            f"worst {row['worst_ratio']:.5f}"
        )
    print(json.dumps(found["streams"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
