"""The four documents of a made-up run of the kernel ``blend``, as plain JSON values."""

from __future__ import annotations

NAME = "void blend<float, 4>(float*, float const*, int)"


def metric(value, unit="x", **more):
    return {"value": value, "unit": unit, "origin": "measured", **more}


def documents_of(name: str = NAME) -> dict:
    base = {"schema_version": "1.0", "provenance": {"origin": "measured"}}
    empty = {part: {} for part in ("kernel", "stability", "resources", "occupancy")}
    hot = {"source": "/home/someone/src/k.hip:14", "instructions": 3, "hits": 9, "latency": 70, "share": 0.7}
    row = {
        "line": 1,
        "code_object": 0,
        "vaddr": 0,
        "isa": "s_waitcnt vmcnt(0)",
        "kind": "wait",
        "hits": 9,
        "latency": 60,
        "share": 0.6,
    }
    att = {
        "status": "available",
        "level": "waves",
        "folder": "att",
        "kernel": name,
        "issue_fraction": 0.2,
        "cycles": {"latency": 100},
        "hot_lines": [hot],
        "hot_instructions": [row],
    }
    kernel = {
        "name": name,
        "launches": 4,
        "time_share": 0.75,
        "runtime_ms": 6.0,
        "mean_ns": 1.5e6,
        "median_ns": 1.4e6,
        "min_ns": 1,
        "max_ns": 2,
        **empty,
        "att": att,
        "kernel": {"name": name, "grid": [8, 2], "block": [256]},
        "resources": {"vgpr_per_thread": 96, "arch_vgpr": 64, "accum_vgpr": 32, "lds_bytes": 256},
        "occupancy": {
            "theoretical": 0.5,
            "waves_per_simd": 4,
            "max_waves_per_simd": 8,
            "limiter": "vgpr",
            "next_threshold": "5 waves at 96 VGPRs",
        },
    }
    gpu = {"architecture": "gfx942", "product": "AMD Instinct MI300X", "wave_size": 64, "compute_units": 304}
    profile = {**base, **empty, "gpu": gpu, "runtime_ms": 8.0, "roofline": None, "kernels": [kernel]}
    symbol = {
        "name": name,
        "kind": "kernel",
        "nodes": 4,
        "total_ns": 1,
        "on_path_ns": 1,
        "min_slack_ns": 0,
        "criticality_weight": 0.75,
        "median_slack_ns": 0,
        "critical_nodes": 4,
        "speedup_ceiling": 4.0,
    }
    step = {
        "speedup": 2.0,
        "critical_path_ns": 1,
        "application_ns": 1,
        "application_gain_ns": 3_000_000,
        "application_speedup": 1.6,
    }
    forecast = {"name": name, "kind": "kernel", "speedups": [step]}
    dag = {**base, "status": "available", "symbols": [symbol], "forecasts": [forecast]}
    condition = {
        "quantity": "dependency_wait_fraction",
        "comparison": ">=",
        "threshold": 0.5,
        "source": "chosen",
        "value": 0.61,
        "holds": True,
        "exactness": "estimate",
    }
    rule = {"rule": "waits", "label": "latency_bound", "explanation": "x", "conditions": [condition]}
    label = {
        "kernel": name,
        "time_ms": 6,
        "operational_intensity": None,
        "roofline_position": None,
        "critical_path_score": 0.75,
        "bottleneck": "latency_bound",
        "confidence": "high",
        "reason": "Waves wait.",
        "evidence": [rule],
        "unknown": ["l2: no counters"],
        "headroom_fraction": 0.4,
        "headroom_source": "the trace",
    }
    roofline = {**base, "status": "not_collected", "reason": "no counter pass was recorded"}
    return {"profile": profile, "dag": dag, "roofline": roofline, "analysis": {**base, "kernels": [label]}}
