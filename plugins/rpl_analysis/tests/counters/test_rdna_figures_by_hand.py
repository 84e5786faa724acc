"""Figures of RDNA GPUs against arithmetic written by hand from AMD's definitions, for drawn counters.

Sources: rocprofiler-sdk ``counter_defs.yaml`` for gfx1030 and gfx1100 (FETCH_SIZE, WRITE_SIZE, L2CacheHit)
and panel 2.1 of rocprofiler-compute for gfx1151, as docs/reference/counters.md (3.6) has them. Nothing here
reads a counter map.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import rpl_gfx1030.plugin
import rpl_gfx1100.plugin
from rpl_core.model.device import DeviceModel
from rpl_core.model.metric import Exactness, Metric
from rpl_testkit.traces import launch_quantities

EXACT, ESTIMATE, INTERVAL = Exactness.EXACT, Exactness.ESTIMATE, Exactness.INTERVAL
LOWER_BOUND = Exactness.LOWER_BOUND
Counters = dict[str, float]
#: Lower end, upper end if it is another one, how exact.
Answer = tuple[float, float | None, Exactness]
MODELS = {
    model.name: model
    for plugin in (rpl_gfx1030.plugin, rpl_gfx1100.plugin)
    for model in plugin.rpl_device_models()
}
#: One of each instruction set; the last one's counters of requests to memory count something else.
WITH_BYTES = ("rx6950xt", "rx6700", "w6600", "rx7900xtx", "8060s")
WITHOUT_BYTES = ("rx9070xt",)


def _drawn(rng: random.Random) -> Counters:
    """Counters that don't contradict each other, all unlike; names as the profiler's sums have them."""

    def one(most: int = 9_000) -> int:
        return rng.randint(1_000, most)

    c: Counters = {f"GL2C_EA_RDREQ_{size}B": one() for size in (32, 64, 96, 128)}
    c["GL2C_MC_RDREQ"] = sum(c.values())
    c["GL2C_EA_WRREQ_64B"] = one()
    c["GL2C_MC_WRREQ"] = c["GL2C_EA_WRREQ_64B"] + one()
    c |= {f"GL1C_GL2_REQ_READ_{size}B": one() for size in (32, 64, 128)}
    c |= {"GL2C_HIT": one(), "GL2C_MISS": one()}
    for cache in ("TCP", "GL1C"):
        c[f"{cache}_REQ_MISS"] = one()
        c[f"{cache}_REQ"] = c[f"{cache}_REQ_MISS"] + one()
    for cache in ("DCACHE", "ICACHE"):
        c |= {f"SQC_{cache}_HITS": one(), f"SQC_{cache}_MISSES": one()}
    c |= {"SQ_WAVES": one(), "SQ_WAVE32_INSTS": one(), "SQ_WAVE64_INSTS": one()}
    c |= {"SQ_WAIT_ANY": one(), "SQ_WAIT_INST_ANY": one()}
    c["SQ_WAVE_CYCLES"] = c["SQ_WAIT_ANY"] + c["SQ_WAIT_INST_ANY"] + one()
    c["SQC_LDS_BANK_CONFLICT"] = one()
    c["SQC_LDS_IDX_ACTIVE"] = c["SQC_LDS_BANK_CONFLICT"] + one()
    return c


def _ratios(c: Counters) -> dict[str, Answer]:
    shares = {
        "l2_hit_rate": c["GL2C_HIT"] / (c["GL2C_HIT"] + c["GL2C_MISS"]),
        "vl1d_hit_rate": 1 - c["TCP_REQ_MISS"] / c["TCP_REQ"],
        "gl1_hit_rate": 1 - c["GL1C_REQ_MISS"] / c["GL1C_REQ"],
        "sl1d_hit_rate": c["SQC_DCACHE_HITS"] / (c["SQC_DCACHE_HITS"] + c["SQC_DCACHE_MISSES"]),
        "l1i_hit_rate": c["SQC_ICACHE_HITS"] / (c["SQC_ICACHE_HITS"] + c["SQC_ICACHE_MISSES"]),
        "dependency_wait_fraction": c["SQ_WAIT_ANY"] / c["SQ_WAVE_CYCLES"],
        "issue_wait_fraction": c["SQ_WAIT_INST_ANY"] / c["SQ_WAVE_CYCLES"],
        "lds_bank_conflict_share": c["SQC_LDS_BANK_CONFLICT"] / c["SQC_LDS_IDX_ACTIVE"],
        "wave32_instruction_share": c["SQ_WAVE32_INSTS"] / (c["SQ_WAVE32_INSTS"] + c["SQ_WAVE64_INSTS"]),
    }
    return {name: (share, None, EXACT) for name, share in shares.items()} | {
        "waves": (c["SQ_WAVES"], None, EXACT)
    }


def _bytes(c: Counters) -> dict[str, Answer]:
    read = sum(size * c[f"GL2C_EA_RDREQ_{size}B"] for size in (32, 64, 96, 128))
    full = c["GL2C_EA_WRREQ_64B"]
    write = 64 * full + 32 * (c["GL2C_MC_WRREQ"] - full)
    return {
        "hbm_read_bytes": (read, None, ESTIMATE),
        "hbm_write_bytes": (write, None, ESTIMATE),
        "hbm_bytes": (read + write, None, ESTIMATE),
        # What the L1 writes to L2 has no counter by size.
        "l2_bytes": (sum(s * c[f"GL1C_GL2_REQ_READ_{s}B"] for s in (32, 64, 128)), None, LOWER_BOUND),
        "vl1d_bytes": (64 * c["TCP_REQ"], None, ESTIMATE),
    }


def _found(device: DeviceModel, counters: Counters, *lost: str) -> Callable[[str], Metric | None]:
    left = {name: value for name, value in counters.items() if name not in lost}
    return launch_quantities(device, **{_as_recorded(name): value for name, value in left.items()})


def _as_recorded(name: str) -> str:
    """The profiler derives sums over the instances of a block; SQ's it sums by itself."""
    return f"{name}_sum" if name.startswith(("GL", "TCP")) else name


def _check(found: Metric | None, expected: Answer, what: object) -> None:
    low, high, exactness = expected
    assert found is not None, what
    assert found.value == pytest.approx(low, rel=1e-12), what
    assert found.upper == (None if high is None else pytest.approx(high, rel=1e-12)), what
    assert found.exactness is exactness, what


@pytest.mark.parametrize("device", [*WITH_BYTES, *WITHOUT_BYTES])
def test_every_figure_of_drawn_counters(device: str) -> None:
    rng = random.Random(device)
    for _ in range(3):
        c = _drawn(rng)
        figure = _found(MODELS[device], c)
        expected = _ratios(c) | (_bytes(c) if device in WITH_BYTES else {})
        for name, answer in expected.items():
            _check(figure(name), answer, (name, c))
        # Nothing counts operations.
        assert figure("flops") is None
        if device in WITHOUT_BYTES:
            assert [figure(name) for name in ("hbm_read_bytes", "hbm_write_bytes", "hbm_bytes")] == [None] * 3


@pytest.mark.parametrize("device", WITH_BYTES)
def test_what_is_said_without_some_counters(device: str) -> None:
    c = _drawn(random.Random(device))
    reads, writes = c["GL2C_MC_RDREQ"], c["GL2C_MC_WRREQ"]
    unsized = _found(MODELS[device], c, "GL2C_EA_RDREQ_96B", "GL2C_EA_WRREQ_64B")
    _check(unsized("hbm_read_bytes"), (32 * reads, 128 * reads, INTERVAL), "requests of any size")
    _check(unsized("hbm_write_bytes"), (32 * writes, 64 * writes, INTERVAL), "requests of any size")
    both = (32 * (reads + writes), 128 * reads + 64 * writes, INTERVAL)
    _check(unsized("hbm_bytes"), both, "requests of any size")
    derived = _found(MODELS[device], {"FETCH_SIZE": 3, "WRITE_SIZE": 2, "Wavefronts": 7})
    _check(derived("hbm_read_bytes"), (3072, None, ESTIMATE), "FETCH_SIZE is in KiB")
    _check(derived("hbm_write_bytes"), (2048, None, ESTIMATE), "WRITE_SIZE is in KiB")
    _check(derived("hbm_bytes"), (5120, None, ESTIMATE), "both")
    _check(derived("waves"), (7, None, EXACT), "Wavefronts")
    for counter, name in (
        ("GL2C_MISS", "l2_hit_rate"),
        ("TCP_REQ", "vl1d_hit_rate"),
        ("GL1C_REQ_MISS", "gl1_hit_rate"),
        ("SQ_WAVE_CYCLES", "issue_wait_fraction"),
        ("SQ_WAVE64_INSTS", "wave32_instruction_share"),
    ):
        unknown = _found(MODELS[device], c, counter)(name)
        assert unknown is not None
        assert (unknown.value, unknown.missing) == (None, (counter,))


def test_more_writes_of_64_bytes_than_writes_are_no_negative_rest() -> None:
    """Two passes count two launches; a negative number of small writes there is none."""
    found = _found(MODELS["rx7900xtx"], {"GL2C_MC_WRREQ": 10, "GL2C_EA_WRREQ_64B": 12})("hbm_write_bytes")
    _check(found, (12 * 64, None, ESTIMATE), "no rest")
