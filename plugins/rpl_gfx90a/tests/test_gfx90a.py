"""gfx90a: its own counter names and sizes, checked on a real recording of a 104-CU GPU."""

from __future__ import annotations

import csv
import json

import pytest

from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_core.model.trace import Agent
from rpl_gfx90a.plugin import rpl_detect_device, rpl_device_models
from rpl_gfx90a.products import COUNTER_MAP
from rpl_rocprofv3.collector.passes import plan_passes

SPEC, PUBLISHED = CeilingOrigin.SPEC, CeilingOrigin.PUBLISHED
MODELS = {model.name: model for model in rpl_device_models()}
READS, READS_32, WRITES, WRITES_64 = (
    f"TCC_EA_{name}_sum" for name in ("RDREQ", "RDREQ_32B", "WRREQ", "WRREQ_64B")
)
TO_L2 = [f"TCP_TCC_{kind}_REQ_sum" for kind in ("READ", "WRITE", "ATOMIC_WITH_RET", "ATOMIC_WITHOUT_RET")]


def agent(**facts):
    return Agent(**{"node": "n", "index": 0, "kind": "GPU", "architecture": "gfx90a", **facts})


@pytest.fixture(scope="module")
def workload(rpl_shared_data):
    return rpl_shared_data / "counters_gfx942" / "path_MI200"


@pytest.fixture
def mean(workload):
    """``mean("counter")``: over the launches, by plain csv."""
    with (workload / "pmc_perf.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    return lambda name: sum(float(row[name]) for row in rows) / len(rows)


@pytest.fixture
def documents(workload, rpl_cli, tmp_path):
    rpl_cli("analyze", workload, "-o", tmp_path / "out").assert_ok()
    return {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")}


@pytest.mark.parametrize(
    ("facts", "name", "product"),
    [
        ({"chip_id": 29711, "compute_units": 104}, "mi210", "AMD Instinct MI210"),
        ({"chip_id": 29708, "compute_units": 104}, "mi250", "AMD Instinct MI250 (one GCD)"),
        ({"chip_id": 29708, "compute_units": 110}, "mi250x", "AMD Instinct MI250X (one GCD)"),
        ({"product": "AMD Instinct MI250X"}, "mi250x", "AMD Instinct MI250X (one GCD)"),
        ({"compute_units": 104}, "gfx90a", "AMD Instinct MI210 or AMD Instinct MI250 (one GCD)"),
        ({"compute_units": 64}, "gfx90a", "a gfx90a GPU"),
    ],
)
def test_chip_id_name_and_size_tell_the_products_apart(facts, name, product):
    found = rpl_detect_device((agent(**facts),))
    assert (found.name, found.product) == (name, product)


def test_what_two_products_share_is_stated_though_the_recording_leaves_both():
    found = rpl_detect_device((agent(compute_units=104),))
    assert found.memory_ceiling("hbm", SPEC).peak_gbps == 1638.4
    assert found.memory_ceiling("l2", PUBLISHED).peak_gbps == 5018.29


def test_others_are_left_to_others():
    assert rpl_detect_device((agent(architecture="gfx942", compute_units=104),)) is None
    assert rpl_detect_device((agent(compute_units=104), agent(compute_units=110))) is None


@pytest.mark.parametrize(
    ("name", "data_type", "pipe", "tflops"),
    [
        ("mi210", "F64", Pipe.VALU, 22.6),
        ("mi210", "F32", Pipe.VALU_PACKED, 45.3),
        ("mi210", "F16", Pipe.MFMA, 181.0),
        ("mi250x", "F64", Pipe.MFMA, 95.7 / 2),
        ("mi250x", "F16", Pipe.MFMA, 383.0 / 2),
    ],
)
def test_peaks_equal_the_data_sheets(name, data_type, pipe, tflops):
    assert MODELS[name].compute_ceiling(data_type, pipe, SPEC).peak_gflops / 1000 == pytest.approx(
        tflops, abs=0.06
    )


def test_the_chosen_rate_of_l2_says_that_its_source_differs():
    ceiling = MODELS["mi210"].memory_ceiling("l2", SPEC)
    assert ceiling.peak_gbps == pytest.approx(128 * 32 * 1.7)
    assert "panel 2.1 has 64" in ceiling.source


def test_measured_ceilings_are_those_of_the_recorded_benchmark(workload):
    with (workload / "roofline.csv").open(newline="") as text:
        row = next(csv.DictReader(text))
    for level, column in (("hbm", "HBMBw"), ("l2", "L2Bw"), ("vl1d", "L1Bw"), ("lds", "LDSBw")):
        ceiling = MODELS["mi210"].memory_ceiling(level, PUBLISHED)
        assert ceiling.peak_gbps == pytest.approx(float(row[column]), abs=0.01)
    columns = {"FP32": ("F32", Pipe.VALU), "FP64": ("F64", Pipe.VALU)}
    columns |= {f"MFMA{t}": (t, Pipe.MFMA) for t in ("BF16", "F16", "F32", "F64")}
    for column, (data_type, pipe) in columns.items():
        ceiling = MODELS["mi210"].compute_ceiling(data_type, pipe, PUBLISHED)
        assert ceiling.peak_gflops == pytest.approx(float(row[f"{column}Flops"]), abs=0.01)


def test_the_recommended_set_takes_three_passes_and_asks_for_nothing_of_gfx942():
    plan = plan_passes(COUNTER_MAP)
    assert (len(plan.passes), plan.refused) == (3, ())
    assert not [c for c in COUNTER_MAP.recommended if "EA0" in c or "BUBBLE" in c or "F8" in c]


def test_the_documents_equal_arithmetic_on_the_raw_counters(documents, mean):
    (kernel,) = documents["roofline"]["kernels"]
    reads = 64 * (mean(READS) - mean(READS_32)) + 32 * mean(READS_32)
    writes = 64 * mean(WRITES_64) + 32 * (mean(WRITES) - mean(WRITES_64))
    assert kernel["bytes"]["value"] == pytest.approx(reads + writes, rel=1e-12)
    assert kernel["bytes"]["exactness"] == "exact"
    assert reads == pytest.approx(8_388_608, rel=0.002)
    levels = {level["level"]: level["bytes"]["value"] for level in kernel["levels"]}
    assert levels["l2"] == 64 * sum(map(mean, TO_L2)) == 16_777_216
    assert (kernel["flops"]["value"], kernel["flops"]["exactness"]) == (0, "exact")
    caches = {name: metric["value"] for name, metric in kernel["caches"].items()}
    hits = mean("TCC_HIT_sum")
    assert caches["l2_hit_rate"] == pytest.approx(hits / (hits + mean("TCC_MISS_sum")))
    accesses = mean("TCP_TOTAL_CACHE_ACCESSES_sum")
    assert caches["vl1d_hit_rate"] == pytest.approx(1 - sum(map(mean, TO_L2)) / accesses)


def test_the_occupancy_of_the_recording(documents):
    # 8 registers in steps of 8 and 256 work-items without LDS leave all 8 wave slots of a SIMD.
    occupancy = documents["profile"]["occupancy"]
    assert (occupancy["waves_per_simd"], occupancy["limiter"]) == (8, "wave_slots")


def test_dirty_lines_that_stay_in_l2_are_mentioned(documents):
    (kernel,) = documents["roofline"]["kernels"]
    # The first launch writes 8 388 608 bytes, the others 5 828 608 and 5 831 232.
    assert kernel["bytes"]["value"] < 16_777_216 - 1_000_000
    assert "Dirty lines" in kernel["bytes"]["note"]
