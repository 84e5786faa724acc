"""Figures of CDNA GPUs against arithmetic written by hand from AMD's definitions, for drawn counters.

Sources: rocprofiler-sdk ``counter_defs.yaml`` (FETCH_SIZE, WRITE_SIZE, MeanOccupancyPerCU and others),
rocprofiler-compute ``pipeline-metrics.rst`` and its panels 2, 6, 10 to 17, and the data sheets of MI210,
MI300X and MI350X (docs/reference/counters.md). Nothing here reads a counter map.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs
import pytest

import rpl_gfx90a.plugin
import rpl_gfx942.plugin
import rpl_gfx950.plugin
from rpl_analysis.counters.join import join_counters
from rpl_analysis.counters.quantities import derive_quantities
from rpl_core.model.metric import Exactness, Origin
from rpl_core.model.recording import Recording
from rpl_testkit.traces import TracedDispatch, make_trace

EXACT, ESTIMATE, INTERVAL = Exactness.EXACT, Exactness.ESTIMATE, Exactness.INTERVAL
LOWER_BOUND = Exactness.LOWER_BOUND
#: Lower end, upper end if it is another one, how exact.
Answer = tuple[float, float | None, Exactness]
Counters = dict[str, float]
FLOAT_TYPES = ("F16", "F32", "F64")


@attrs.frozen
class Gpu:
    """What its data sheet says; ``mfma``: operations per clock and CU, sparse ones where they are more."""

    device: str
    units: int
    dies: int
    ea: str
    large_read: str | None
    l1_read_bytes: int
    mfma: dict[str, int]


GPUS = {
    gpu.device: gpu
    for gpu in (
        Gpu(
            "mi210",
            104,
            1,
            "TCC_EA",
            None,
            64,
            {"F64": 256, "F32": 256, "F16": 1024, "BF16": 1024, "I8": 1024},
        ),
        Gpu(
            "mi300x",
            304,
            8,
            "TCC_EA0",
            "TCC_BUBBLE",
            128,
            {"F64": 256, "F32": 1024, "F16": 4096, "BF16": 4096, "F8": 8192, "I8": 8192},
        ),
        Gpu(
            "mi350x",
            256,
            8,
            "TCC_EA0",
            "TCC_EA0_RDREQ_128B",
            128,
            {"F64": 128, "F32": 256, "F16": 8192, "BF16": 8192, "F8": 16384, "F6F4": 16384, "I8": 16384},
        ),
    )
}
MODELS = {
    model.name.lower(): model
    for plugin in (rpl_gfx90a.plugin, rpl_gfx942.plugin, rpl_gfx950.plugin)
    for model in plugin.rpl_device_models()
}


def _drawn(gpu: Gpu, rng: random.Random) -> Counters:
    """Counters that don't contradict each other, all unlike."""

    def one(most: int = 9_000) -> int:
        return rng.randint(1_000, most)

    c: Counters = {
        f"SQ_INSTS_VALU_{op}_{t}": one() for op in ("ADD", "MUL", "FMA", "TRANS") for t in FLOAT_TYPES
    }
    c |= {f"SQ_INSTS_VALU_MFMA_MOPS_{t}": one() for t in gpu.mfma}
    c |= {name: one() for name in ("SQ_INSTS_VALU_INT32", "SQ_INSTS_VALU_INT64", "SQ_WAVES")}
    c |= {name: one() for name in ("SQ_INSTS_VMEM_RD", "SQ_INSTS_VMEM_WR")}
    c["SQ_INSTS_VALU"] = one() + sum(c.values())
    c["SQ_INSTS"] = c["SQ_INSTS_VALU"] * 2 + one()
    c["SQ_BUSY_CU_CYCLES"] = one(90_000) + 200_000
    c["SQ_ACTIVE_INST_VALU"] = one() + 100_000
    c["SQ_THREAD_CYCLES_VALU"] = c["SQ_ACTIVE_INST_VALU"] * 64 - one(2_000_000)
    for name in ("SCA", "FLAT", "VMEM", "MISC"):
        c[f"SQ_ACTIVE_INST_{name}"] = one()
    c["SQ_VALU_MFMA_BUSY_CYCLES"] = one(90_000)
    c["SQ_WAVE_CYCLES"] = 10_000_000 + one()
    for name in ("SQ_WAIT_ANY", "SQ_WAIT_INST_ANY", "SQ_ACTIVE_INST_ANY"):
        c[name] = one(90_000)
    c["GRBM_GUI_ACTIVE"] = gpu.dies * (40_000 + one())
    reads, writes = f"{gpu.ea}_RDREQ", f"{gpu.ea}_WRREQ"
    c |= {f"{reads}_32B": one(), f"{reads}_DRAM": one(), f"{reads}_LEVEL": one(90_000) * 100}
    c |= {f"{writes}_64B": one(), f"{writes}_LEVEL": one(90_000) * 100}
    if gpu.large_read is not None:
        c[gpu.large_read] = one()
    c[reads] = one() + c[f"{reads}_32B"] + c.get(gpu.large_read or "", 0)
    c[writes] = one() + c[f"{writes}_64B"]
    c |= {f"TCP_TCC_{kind}": one() for kind in ("READ_REQ", "WRITE_REQ")}
    c |= {f"TCP_TCC_ATOMIC_{kind}_REQ": one() for kind in ("WITH_RET", "WITHOUT_RET")}
    c["TCP_TOTAL_CACHE_ACCESSES"] = 50_000 + one()
    c |= {"TCC_HIT": one(), "TCC_MISS": one()}
    for cache in ("DCACHE", "ICACHE"):
        c |= {f"SQC_{cache}_{kind}": one() for kind in ("HITS", "MISSES", "MISSES_DUPLICATE")}
    c["SQ_LDS_BANK_CONFLICT"] = one()
    c["SQ_LDS_IDX_ACTIVE"] = c["SQ_LDS_BANK_CONFLICT"] + one()
    return c


def _arithmetic(gpu: Gpu, c: Counters) -> dict[str, Answer]:
    """An instruction is executed once per lane of 64, a multiply-add is two operations, a MOPS is 512."""
    by_type = {
        t: 64
        * sum(
            c[f"SQ_INSTS_VALU_{op}_{t}"] * n for op, n in (("ADD", 1), ("MUL", 1), ("TRANS", 1), ("FMA", 2))
        )
        for t in FLOAT_TYPES
    }
    answers: dict[str, Answer] = {f"valu_flops_{t.lower()}": (n, None, ESTIMATE) for t, n in by_type.items()}
    matrix = {t: 512 * c[f"SQ_INSTS_VALU_MFMA_MOPS_{t}"] for t in gpu.mfma}
    for t, operations in matrix.items():
        answers["mfma_ops_i8" if t == "I8" else f"mfma_flops_{t.lower()}"] = (operations, None, EXACT)
    floating = sum(by_type.values()) + sum(n for t, n in matrix.items() if t != "I8")
    integer = 64 * (c["SQ_INSTS_VALU_INT32"] + c["SQ_INSTS_VALU_INT64"])
    return answers | {"flops": (floating, None, ESTIMATE), "int_ops": (integer, None, ESTIMATE)}


def _bytes(gpu: Gpu, c: Counters) -> dict[str, Answer]:
    """Requests of 32, 64 and 128 bytes."""
    reads, small = c[f"{gpu.ea}_RDREQ"], c[f"{gpu.ea}_RDREQ_32B"]
    large = c[gpu.large_read] if gpu.large_read else 0
    read = 32 * small + 128 * large + 64 * (reads - small - large)
    writes, full = c[f"{gpu.ea}_WRREQ"], c[f"{gpu.ea}_WRREQ_64B"]
    write = 64 * full + 32 * (writes - full)
    others = c["TCP_TCC_WRITE_REQ"] + c["TCP_TCC_ATOMIC_WITH_RET_REQ"] + c["TCP_TCC_ATOMIC_WITHOUT_RET_REQ"]
    return {
        "hbm_read_bytes": (read, None, EXACT),
        "hbm_write_bytes": (write, None, EXACT),
        "hbm_bytes": (read + write, None, EXACT),
        "l2_bytes": (gpu.l1_read_bytes * c["TCP_TCC_READ_REQ"] + 64 * others, None, EXACT),
        "vl1d_bytes": (64 * c["TCP_TOTAL_CACHE_ACCESSES"], None, ESTIMATE),
        "lds_bytes_moved": (128 * (c["SQ_LDS_IDX_ACTIVE"] - c["SQ_LDS_BANK_CONFLICT"]), None, ESTIMATE),
        "dram_read_share": (c[f"{gpu.ea}_RDREQ_DRAM"] / reads, None, ESTIMATE),
        "fabric_read_latency": (c[f"{gpu.ea}_RDREQ_LEVEL"] / reads, None, EXACT),
        "fabric_write_latency": (c[f"{gpu.ea}_WRREQ_LEVEL"] / writes, None, EXACT),
        "lds_bank_conflicts_per_access": (
            c["SQ_LDS_BANK_CONFLICT"] / (c["SQ_LDS_IDX_ACTIVE"] - c["SQ_LDS_BANK_CONFLICT"]),
            None,
            EXACT,
        ),
        "l2_reads_per_load": (c["TCP_TCC_READ_REQ"] / c["SQ_INSTS_VMEM_RD"], None, EXACT),
        "l2_writes_per_store": (c["TCP_TCC_WRITE_REQ"] / c["SQ_INSTS_VMEM_WR"], None, EXACT),
        "l2_hit_rate": (c["TCC_HIT"] / (c["TCC_HIT"] + c["TCC_MISS"]), None, EXACT),
        "vl1d_hit_rate": (
            1 - (c["TCP_TCC_READ_REQ"] + others) / c["TCP_TOTAL_CACHE_ACCESSES"],
            None,
            ESTIMATE,
        ),
        "sl1d_hit_rate": _hits(c, "DCACHE"),
        "l1i_hit_rate": _hits(c, "ICACHE"),
    }


def _hits(c: Counters, cache: str) -> Answer:
    hits, misses, again = (c[f"SQC_{cache}_{kind}"] for kind in ("HITS", "MISSES", "MISSES_DUPLICATE"))
    return hits / (hits + misses + again), hits / (hits + misses), INTERVAL


def _time(gpu: Gpu, c: Counters) -> dict[str, Answer]:
    """SQ counts in steps of four cycles, of each of four SIMDs; GRBM sums over the dies."""
    window = c["GRBM_GUI_ACTIVE"] / gpu.dies * gpu.units
    busy = 4 * c["SQ_BUSY_CU_CYCLES"]
    cycles = {
        "valu_utilization": 4 * c["SQ_ACTIVE_INST_VALU"] / 4,
        "salu_utilization": 4 * c["SQ_ACTIVE_INST_SCA"] / 4,
        "vmem_utilization": 4 * (c["SQ_ACTIVE_INST_FLAT"] + c["SQ_ACTIVE_INST_VMEM"]) / 4,
        "branch_utilization": 4 * c["SQ_ACTIVE_INST_MISC"] / 4,
        "mfma_utilization": c["SQ_VALU_MFMA_BUSY_CYCLES"] / 4,  # in cycles already
    }
    answers: dict[str, Answer] = {n: (spent / window, spent / busy, INTERVAL) for n, spent in cycles.items()}
    lanes = c["SQ_THREAD_CYCLES_VALU"] / c["SQ_ACTIVE_INST_VALU"]
    waves = c["SQ_WAVE_CYCLES"] / c["SQ_BUSY_CU_CYCLES"]
    of_life = {
        "dependency_wait_fraction": "SQ_WAIT_ANY",
        "issue_wait_fraction": "SQ_WAIT_INST_ANY",
        "issuing_fraction": "SQ_ACTIVE_INST_ANY",
    }
    answers |= {name: (c[counter] / c["SQ_WAVE_CYCLES"], None, EXACT) for name, counter in of_life.items()}
    return answers | {
        "waves": (c["SQ_WAVES"], None, EXACT),
        "active_lanes": (lanes, None, EXACT),
        "active_lane_fraction": (lanes / 64, None, EXACT),
        "divergence_fraction": (1 - lanes / 64, None, EXACT),
        "ipc": (c["SQ_INSTS"] / c["SQ_BUSY_CU_CYCLES"], None, EXACT),
        "mean_waves_per_busy_cu": (waves, None, EXACT),
        "occupancy_of_busy_cu": (waves / (4 * 8), None, EXACT),
    }


def _without(gpu: Gpu, c: Counters) -> Iterator[tuple[set[str], str, Answer]]:
    """What is left to say where these counters were not recorded."""
    reads, small = f"{gpu.ea}_RDREQ", f"{gpu.ea}_RDREQ_32B"
    writes, full = f"{gpu.ea}_WRREQ", f"{gpu.ea}_WRREQ_64B"
    yield {full}, "hbm_write_bytes", (32 * c[writes], 64 * c[writes], INTERVAL)
    if gpu.large_read is None:
        yield {small}, "hbm_read_bytes", (32 * c[reads], 64 * c[reads], INTERVAL)
    else:
        large = c[gpu.large_read]
        rest = c[reads] - c[small]
        both_ends = (64 * rest + 32 * c[small], 128 * rest + 32 * c[small], INTERVAL)
        yield {gpu.large_read}, "hbm_read_bytes", both_ends
        of_two = (128 * large + 32 * (c[reads] - large), 128 * large + 64 * (c[reads] - large), INTERVAL)
        yield {small}, "hbm_read_bytes", of_two
        yield {small, gpu.large_read}, "hbm_read_bytes", (32 * c[reads], 128 * c[reads], INTERVAL)
    looked_up = c["TCC_HIT"] + c["TCC_MISS"]
    yield {"TCP_TCC_WRITE_REQ"}, "l2_bytes", (64 * looked_up, 128 * looked_up, INTERVAL)
    atomics = c["TCP_TCC_ATOMIC_WITH_RET_REQ"] + c["TCP_TCC_ATOMIC_WITHOUT_RET_REQ"]
    at_least = gpu.l1_read_bytes * c["TCP_TCC_READ_REQ"] + 64 * atomics
    yield {"TCP_TCC_WRITE_REQ", "TCC_HIT"}, "l2_bytes", (at_least, None, LOWER_BOUND)
    window = c["GRBM_GUI_ACTIVE"] / gpu.dies * gpu.units
    busy = 4 * c["SQ_BUSY_CU_CYCLES"]
    valu = c["SQ_ACTIVE_INST_VALU"]
    yield {"SQ_BUSY_CU_CYCLES"}, "valu_utilization", (valu / window, None, LOWER_BOUND)
    yield {"GRBM_GUI_ACTIVE"}, "valu_utilization", (0, valu / busy, INTERVAL)
    spent = sum(512 * c[f"SQ_INSTS_VALU_MFMA_MOPS_{t}"] / rate for t, rate in gpu.mfma.items())
    lost = {"SQ_VALU_MFMA_BUSY_CYCLES"}
    yield lost, "mfma_utilization", (spent / window, None, LOWER_BOUND)
    yield {*lost, "GRBM_GUI_ACTIVE"}, "mfma_utilization", (0, None, LOWER_BOUND)
    for name, cache in (("sl1d_hit_rate", "DCACHE"), ("l1i_hit_rate", "ICACHE")):
        first = _hits(c, cache)[1]
        assert first is not None
        yield {f"SQC_{cache}_MISSES_DUPLICATE"}, name, (first, None, ESTIMATE)


def _figures(gpu: Gpu, counters: Counters):
    trace = make_trace([TracedDispatch("k", 0, 1000, counters=dict(counters))])
    kernel = join_counters(Recording((trace,))).kernels["k"]
    return derive_quantities(kernel, MODELS[gpu.device], Origin.MEASURED)[0].per_launch


def _check(found, expected: Answer, what: object) -> None:
    low, high, exactness = expected
    assert found.value == pytest.approx(low, rel=1e-12), what
    assert found.upper == (None if high is None else pytest.approx(high, rel=1e-12)), what
    assert found.exactness is exactness, what


@pytest.mark.parametrize("device", GPUS)
def test_every_figure_of_drawn_counters(device: str) -> None:
    gpu, rng = GPUS[device], random.Random(device)
    for _ in range(3):
        c = _drawn(gpu, rng)
        figure = _figures(gpu, c)
        for name, expected in (_arithmetic(gpu, c) | _bytes(gpu, c) | _time(gpu, c)).items():
            _check(figure(name), expected, (name, c))


@pytest.mark.parametrize("device", GPUS)
def test_what_is_said_without_some_counters(device: str) -> None:
    gpu = GPUS[device]
    c = _drawn(gpu, random.Random(device))
    for lost, name, expected in _without(gpu, c):
        figure = _figures(gpu, {counter: value for counter, value in c.items() if counter not in lost})
        _check(figure(name), expected, (name, lost))


@pytest.mark.parametrize("device", GPUS)
def test_what_was_not_executed_is_exactly_zero(device: str) -> None:
    """And FP64 work is exact where no lane idled: nothing packs it."""
    gpu, rng = GPUS[device], random.Random(device)
    for data_type in FLOAT_TYPES:
        c = _drawn(gpu, rng)
        none = {name: 0 for name in c if name.startswith("SQ_INSTS_VALU_") and name.endswith(f"_{data_type}")}
        found = _figures(gpu, c | none)(f"valu_flops_{data_type.lower()}")
        assert (found.value, found.exactness) == (0, EXACT)
    full = c | {"SQ_THREAD_CYCLES_VALU": 64 * c["SQ_ACTIVE_INST_VALU"]}
    of_type = {t: _figures(gpu, full)(f"valu_flops_{t.lower()}").exactness for t in FLOAT_TYPES}
    assert of_type == {"F16": ESTIMATE, "F32": ESTIMATE, "F64": EXACT}


def test_reads_of_mi350x_may_be_counted_by_size_alone() -> None:
    sizes = {"TCC_EA0_RDREQ_32B": 5, "TCC_EA0_RDREQ_64B": 7, "TCC_EA0_RDREQ_128B": 11}
    _check(
        _figures(GPUS["mi350x"], sizes)("hbm_read_bytes"), (5 * 32 + 7 * 64 + 11 * 128, None, EXACT), "sizes"
    )
    fetched = _figures(GPUS["mi350x"], {"FETCH_SIZE": 3})("hbm_read_bytes")
    _check(fetched, (3 * 1024, 3 * 2048, INTERVAL), "FETCH_SIZE")
    moved = {f"SQ_INSTS_LDS_{kind}_BANDWIDTH": n for kind, n in (("LOAD", 2), ("STORE", 3), ("ATOMIC", 5))}
    _check(_figures(GPUS["mi350x"], moved)("lds_bytes_moved"), (640, None, ESTIMATE), "LDS")


@pytest.mark.parametrize("device", ["mi210", "mi300x"])
def test_sizes_that_the_profiler_derives_are_in_kib(device: str) -> None:
    figure = _figures(GPUS[device], {"FETCH_SIZE": 3, "WRITE_SIZE": 2})
    _check(figure("hbm_read_bytes"), (3072, None, ESTIMATE), "FETCH_SIZE")
    _check(figure("hbm_write_bytes"), (2048, None, ESTIMATE), "WRITE_SIZE")
    _check(figure("hbm_bytes"), (5120, None, ESTIMATE), "both")


def test_rest_of_matrix_instructions_bounds_fp8_of_mi300x() -> None:
    """v_smfmac_f32_32x32x32_fp8_fp8 is the largest: 2 * 32 * 32 * 32 operations."""
    counted = {
        f"SQ_INSTS_VALU_MFMA_{t}": n for n, t in enumerate(("I8", "F16", "BF16", "F32", "F64"), start=1)
    }
    found = _figures(GPUS["mi300x"], counted | {"SQ_INSTS_MFMA": 15 + 4})("mfma_flops_f8")
    _check(found, (0, 4 * 65536, INTERVAL), "F8")
