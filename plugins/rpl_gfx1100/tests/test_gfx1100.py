"""RDNA 3, 3.5 and 4: products behind one chip id, counters by their sizes, a real recording of a gfx1151."""

from __future__ import annotations

import csv
import json

import pytest

from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_core.model.metric import Exactness
from rpl_core.model.trace import Agent
from rpl_gfx1100.plugin import rpl_detect_device, rpl_device_models
from rpl_rocprofv3.collector.passes import plan_passes
from rpl_testkit.traces import launch_quantities

SPEC = CeilingOrigin.SPEC
MODELS = {model.name: model for model in rpl_device_models()}


def agent(**facts):
    return Agent(**{"node": "n", "index": 0, "kind": "GPU", "architecture": "gfx1100", **facts})


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"chip_id": 0x744C, "compute_units": 96}, "rx7900xtx"),
        ({"chip_id": 0x744C, "compute_units": 84}, "rx7900xt"),
        ({"chip_id": 0x744C, "product": "AMD Radeon RX 7900 GRE"}, "rx7900gre"),
        ({"product": "AMD Radeon RX 7900 XTX", "compute_units": 96}, "rx7900xtx"),
        ({"product": "AMD Radeon PRO W7800 48GB"}, "w7800-48gb"),
        ({"chip_id": 0x7448, "product": "AMD Radeon Graphics"}, "w7900"),
        ({"compute_units": 96}, "gfx1100"),
        ({"architecture": "gfx1151", "compute_units": 40, "xcd_count": 1}, "8060s"),
        ({"architecture": "gfx1201", "chip_id": 0x7550, "compute_units": 56}, "rx9070"),
    ],
)
def test_products_of_one_chip_are_told_apart_by_name_and_size(facts, name):
    assert rpl_detect_device((agent(**facts),)).name == name


def test_what_a_chip_id_leaves_open_stays_open():
    found = rpl_detect_device((agent(chip_id=0x744C, xcd_count=1),))
    assert found.name == "gfx1100"
    assert (found.compute_units, found.l2_bytes, found.llc_bytes) == (None, 6 * 2**20, None)
    assert "the chip id leaves several products" in found.unknown_facts[0]


def test_others_are_left_to_others():
    assert rpl_detect_device((agent(architecture="gfx1030"),)) is None
    assert rpl_detect_device((agent(architecture="gfx1101"),)) is None


def test_the_published_peak_of_the_rx_7900_xtx():
    """61.4 TFLOP/s, which needs dual issue; the plain rate is half of it."""
    model = MODELS["rx7900xtx"]
    peaks = [model.compute_ceiling("F32", pipe, SPEC).peak_gflops for pipe in (Pipe.VALU, Pipe.VALU_PACKED)]
    assert peaks == [pytest.approx(30_720), pytest.approx(61_440)]
    assert model.memory_ceiling("hbm", SPEC).peak_gbps == 960.0


def test_where_no_source_states_a_rate_there_is_no_ceiling():
    found = rpl_detect_device(
        (agent(architecture="gfx1201", chip_id=0x7550, clock_mhz=2970, compute_units=64),)
    )
    assert (found.compute_ceilings, found.memory_ceilings) == ((), ())
    assert any("HBM bandwidth" in reason for reason in found.unknown_facts)


def test_two_passes_hold_the_recommended_set_and_gfx1201_is_not_asked_for_bytes():
    plan = plan_passes(MODELS["w7900"].counter_map)
    assert (len(plan.passes), plan.refused) == (2, ())
    gfx1201 = MODELS["rx9070xt"].counter_map
    assert not [name for name in gfx1201.recommended if "GL2C_EA" in name or "GL2C_MC" in name]
    assert launch_quantities(MODELS["rx9070xt"], GL2C_EA_RDREQ_128B_sum=4.0)("hbm_read_bytes") is None


def test_bytes_by_request_size():
    counters = {f"GL2C_EA_RDREQ_{size}B_sum": float(size) for size in (32, 64, 96, 128)}
    counters |= {"GL2C_MC_WRREQ_sum": 10.0, "GL2C_EA_WRREQ_64B_sum": 4.0}
    quantity = launch_quantities(MODELS["w7900"], **counters)
    read, write = quantity("hbm_read_bytes"), quantity("hbm_write_bytes")
    assert (read.value, read.exactness) == (32**2 + 64**2 + 96**2 + 128**2, Exactness.ESTIMATE)
    assert (write.value, write.exactness) == (4 * 64 + 6 * 32, Exactness.ESTIMATE)
    unsized = launch_quantities(MODELS["w7900"], GL2C_MC_RDREQ_sum=10.0)("hbm_read_bytes")
    assert (unsized.value, unsized.upper) == (320, 1280)


def test_hit_rates_of_all_levels_that_have_counters():
    quantity = launch_quantities(
        MODELS["8060s"],
        TCP_REQ_sum=100.0,
        TCP_REQ_MISS_sum=25.0,
        GL1C_REQ_sum=40.0,
        GL1C_REQ_MISS_sum=30.0,
        GL2C_HIT_sum=6.0,
        GL2C_MISS_sum=2.0,
    )
    rates = [quantity(name).value for name in ("vl1d_hit_rate", "gl1_hit_rate", "l2_hit_rate")]
    assert rates == [0.75, 0.25, 0.75]


@pytest.mark.data
def test_the_recording_of_a_gfx1151_equals_its_csv(rpl_shared_data, rpl_cli, tmp_path):
    folder = rpl_shared_data / "rocpd" / "llama-gfx1151-csv"
    rpl_cli("analyze", "--device", "gfx1151", folder, "-o", tmp_path / "out").assert_ok()
    found = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")}
    with (folder / "decode_fetch_counter_collection.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    fetched: dict[str, list[float]] = {}
    for row in rows:
        fetched.setdefault(row["Kernel_Name"], []).append(1024 * float(row["Counter_Value"]))
    kernels = {kernel["name"]: kernel for kernel in found["roofline"]["kernels"]}
    assert len(fetched) > 10
    for name, values in fetched.items():
        metric = kernels[name]["bytes"]
        # Nobody counted the writes, and nobody confirmed the sizes of the reads.
        assert metric["value"] == pytest.approx(sum(values) / len(values))
        assert (metric["exactness"], metric["partial"]) == ("estimate", True)
        assert kernels[name]["flops"]["value"] is None
    # 16 registers leave every wave slot, for waves of 32 lanes and of 64.
    occupancies = {
        kernel["name"]: kernel["occupancy"]["theoretical"] for kernel in found["profile"]["kernels"]
    }
    assert set(occupancies.values()) == {1.0}
