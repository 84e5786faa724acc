"""A stranger's GPU, installed like any plugin: what rpl knows of it stands in its device model only."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from rpl_testkit.fixtures import Launch

PLUGIN = """
from rpl_core import hookimpl

RPL_API = 2


@hookimpl
def rpl_device_models():
    from rpl_strange_gpu.device import MODEL
    return (MODEL,)


@hookimpl
def rpl_detect_device(agents):
    from rpl_strange_gpu.device import MODEL
    return MODEL if {agent.architecture for agent in agents} == {MODEL.architecture} else None
"""

#: Nothing of it is as on any GPU that rpl knows: sizes, steps, waves, data types, counters.
DEVICE = """
from rpl_core.model.device import Architecture, MatrixRates, OccupancyLimits, RecordQuirks, RegisterFile
from rpl_core.model.device import (
    CeilingOrigin, ComputeCeiling, CounterMap, DeviceModel, Formula, MemoryCeiling, Pipe, Quantity, TypedWork
)
from rpl_core.model.metric import Exactness

SAYS = "the stranger's data sheet"
FACTS = Architecture(
    name="gfx1250",
    occupancy=OccupancyLimits(
        register_files=(RegisterFile(wave_size=64, registers=900, granule=30, most_used=300),),
        scalar_file=None, has_accum_vgprs=False, waves_per_simd=10, simds_per_cu=3,
        workgroup_slots_per_cu=28, lds_bytes_per_cu=100_000, lds_granule_bytes=5000,
        max_lds_bytes_per_workgroup=90_000, max_workgroup_size=640, source=SAYS,
    ),
    matrix_rates=MatrixRates(operations_per_cycle=(("F6F4", 16384),), source=SAYS),
    record_quirks=RecordQuirks(
        vgprs_may_be_halved=True, vgpr_granule=30, wave_counter="XQ_WAVES_SEEN", source=SAYS
    ),
    source=SAYS,
)
COUNTERS = CounterMap(
    quantities=(
        Quantity("flops", "FLOP", sum_of=("tensor_work",)),
        Quantity("tensor_work", "FLOP", (Formula("1000 * XQ_TENSOR", Exactness.EXACT, SAYS),)),
        Quantity("hbm_bytes", "B", (Formula("10 * XQ_MEMORY", Exactness.EXACT, SAYS),)),
    ),
    recommended=("XQ_WAVES_SEEN", "XQ_TENSOR", "XQ_MEMORY"),
    work=(TypedWork("tensor_work", "F6F4", Pipe.MFMA),),
)
MODEL = DeviceModel(
    name="strange-1", architecture="gfx1250", product="Strange One", chip_ids=(), compute_units=5,
    xcd_count=1, simd_per_cu=3, wave_size=64, max_waves_per_simd=10, lds_bytes_per_cu=100_000,
    clock_mhz=1000.0, l2_bytes=None, llc_bytes=None, l2_channels=None, fp32_valu_width=None,
    compute_ceilings=(ComputeCeiling("F6F4", Pipe.MFMA, 10_000.0, CeilingOrigin.SPEC, SAYS),),
    memory_ceilings=(MemoryCeiling("hbm", 1000.0, CeilingOrigin.SPEC, SAYS),),
    counter_map=COUNTERS, source=SAYS, architecture_facts=FACTS,
    unknown_facts=("caches, FP32 width: nobody says",),
)
"""
#: 60 % of the peak in F6F4 for 10 us: 10 000 GFLOP/s * 10 us * 0.6 = 6e7 FLOP; 1 % of the bandwidth.
SIXTY = {"XQ_TENSOR": 60_000.0, "XQ_MEMORY": 10.0}


@pytest.fixture
def strange(site, rpl_make_rocpd, tmp_path):
    """``strange(waves=..., vgprs=..., lds=...)``: what is said of one kernel of a GPU that only they know."""
    modules = {"plugin": PLUGIN, "device": DEVICE}
    site.install("rpl-strange-gpu", modules, {"rpl.plugins": {"strange-gpu": "rpl_strange_gpu.plugin"}})

    def documents(*, waves: int = 1200, vgprs: int = 90, lds: int = 0) -> dict[str, dict]:
        counters = {**SIXTY, "XQ_WAVES_SEEN": waves}
        launch = Launch("k", 0, 10_000, grid=(64 * 1200, 1, 1), workgroup=(128, 1, 1), counters=counters)
        recording = rpl_make_rocpd([launch])
        with closing(sqlite3.connect(recording)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()

            def change(table: str, changed: str) -> None:
                (name,) = (name for (name,) in tables if name.startswith(table))
                assert connection.execute(f"UPDATE {name} SET {changed}").rowcount == 1

            change("rocpd_info_agent", "name = 'gfx1250' WHERE type = 'GPU'")
            change("rocpd_info_kernel_symbol", f"arch_vgpr_count = {vgprs}")
            change("rocpd_kernel_dispatch", f"group_segment_size = {lds}")
            connection.commit()
        site.rpl("analyze", recording, "-o", tmp_path / "out").assert_ok()
        return {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")}

    return documents


def _codes(found: dict[str, dict]) -> set[str]:
    return {diagnostic["code"] for diagnostic in found["profile"]["diagnostics"]}


def test_its_data_type_decides_label_and_headroom(strange):
    found = strange()
    (kernel,) = found["analysis"]["kernels"]
    assert (kernel["bottleneck"], kernel["headroom_fraction"]) == ("compute_throughput_limited", 0.4)
    assert kernel["roofline_position"] == pytest.approx(0.6)
    assert found["roofline"]["kernels"][0]["dominant_type"] == "F6F4"
    assert found["profile"]["gpu"]["product"] == "Strange One"
    assert found["profile"]["occupancy"]["waves_per_simd"] == 10  # 900 / 90, and no more
    assert _codes(found) == {"time.estimated"}  # times of a counter pass: nothing about the device


@pytest.mark.parametrize(
    ("vgprs", "lds", "waves_per_simd", "limiter"),
    [
        (120, 0, 7, "vgpr"),  # floor(900 / 120)
        (30, 5100, 7, "lds"),  # 10 groups of 10 000 bytes: 20 waves on 3 SIMDs, one of them with 7
    ],
)
def test_its_limits_decide_occupancy(strange, vgprs, lds, waves_per_simd, limiter):
    occupancy = strange(vgprs=vgprs, lds=lds)["profile"]["occupancy"]
    assert (occupancy["waves_per_simd"], occupancy["limiter"]) == (waves_per_simd, limiter)
    assert (occupancy["max_waves_per_simd"], occupancy["wave_size"]) == (10, 64)


def test_its_quirks_decide_which_records_are_believed(strange):
    found = strange(vgprs=100, waves=1000)
    assert _codes(found) >= {"kernel.impossible_registers", "counters.waves_mismatch"}
    assert found["profile"]["resources"]["vgpr_per_thread"] is None
    assert found["profile"]["roofline"] is None
