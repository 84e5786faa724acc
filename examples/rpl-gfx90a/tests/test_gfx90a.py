"""A third-party device: its own counter names, checked on a real recording of an MI210-class GPU."""

from __future__ import annotations

import csv

import pytest

from rpl_analysis.counters.analyzer import CountersAnalyzer
from rpl_analysis.facts import KERNEL_QUANTITIES, OCCUPANCY, ROOFLINE
from rpl_analysis.occupancy.analyzer import OccupancyAnalyzer
from rpl_analysis.roofline.analyzer import RooflineAnalyzer
from rpl_analysis.runtime.analyzer import RuntimeAnalyzer
from rpl_core.interfaces.analyzer import AnalysisContext
from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_core.model.origin import Exactness
from rpl_core.model.recording import Recording
from rpl_core.model.trace import Agent
from rpl_core.schedule import Step, analyze
from rpl_gfx90a import plugin
from rpl_gfx90a.counter_map import COUNTER_MAP
from rpl_gfx90a.models import MI210, MI250X_GCD
from rpl_rocprofv3.collector.pass_planning import plan_passes
from rpl_testkit.contracts.device_model import assert_device_model

SPEC, MEASURED = CeilingOrigin.SPEC, CeilingOrigin.MEASURED


def _agent(**facts):
    return Agent(**{"node": "n", "index": 0, "kind": "GPU", "architecture": "gfx90a", **facts})


@pytest.fixture
def workload(rpl_shared_data):
    folder = rpl_shared_data / "counters_gfx942" / "path_MI200"
    if not folder.is_dir():
        pytest.skip("the recording path_MI200 is absent")
    return folder


@pytest.fixture
def recording(workload):
    from rpl_rocprofv3.readers.catalog import all_readers

    files = sorted(workload.rglob("*"))
    claims = [(reader, claim) for reader in all_readers() for claim in reader.claim(files)]
    return Recording(tuple(t for reader, claim in claims if not claim.refusal for t in reader.read(claim)))


@pytest.fixture
def facts(recording):
    """All facts of the real recording, with the device that the hooks of this plugin give."""
    analyzers = (RuntimeAnalyzer(), OccupancyAnalyzer(), CountersAnalyzer(), RooflineAnalyzer())
    device = plugin.rpl_detect_device(recording.gpu_agents)
    steps = [Step("analysis", analyzer) for analyzer in analyzers]
    return analyze(AnalysisContext(recording, device), steps).facts


@pytest.fixture
def quantity(facts):
    (kernel,) = facts[KERNEL_QUANTITIES].values()
    return kernel.per_launch


def _column_means(folder):
    with (folder / "pmc_perf.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    return lambda name: sum(float(row[name]) for row in rows) / len(rows)


def test_the_models_keep_the_contract():
    assert plugin.RPL_API == 1
    assert plugin.rpl_device_models() == (MI210, MI250X_GCD)
    for model in plugin.rpl_device_models():
        assert_device_model(model)


@pytest.mark.parametrize(("units", "name"), [(104, "mi210"), (110, "mi250x")])
def test_the_number_of_compute_units_tells_the_products_apart(units, name):
    assert plugin.rpl_detect_device((_agent(compute_units=units),)).name == name


@pytest.mark.parametrize(
    "facts", [{"compute_units": 64}, {}, {"architecture": "gfx942", "compute_units": 104}]
)
def test_others_are_not_guessed(facts):
    assert plugin.rpl_detect_device((_agent(**facts),)) is None


def test_two_products_are_no_device():
    assert plugin.rpl_detect_device((_agent(compute_units=104), _agent(compute_units=110))) is None


@pytest.mark.parametrize(
    ("model", "data_type", "pipe", "tflops"),
    [
        (MI210, "F64", Pipe.VALU, 22.6),
        (MI210, "F32", Pipe.VALU_PACKED, 45.3),
        (MI210, "F16", Pipe.MFMA, 181.0),
        (MI250X_GCD, "F64", Pipe.MFMA, 95.7 / 2),
        (MI250X_GCD, "F16", Pipe.MFMA, 383.0 / 2),
    ],
)
def test_peaks_equal_the_data_sheets(model, data_type, pipe, tflops):
    assert model.compute_ceiling(data_type, pipe, SPEC).peak_gflops / 1000 == pytest.approx(tflops, abs=0.06)


def test_measured_ceilings_are_those_of_the_recorded_benchmark(workload):
    with (workload / "roofline.csv").open(newline="") as text:
        row = next(csv.DictReader(text))
    for level, column in (("hbm", "HBMBw"), ("l2", "L2Bw"), ("vl1d", "L1Bw"), ("lds", "LDSBw")):
        assert MI210.memory_ceiling(level, MEASURED).peak_gbps == pytest.approx(float(row[column]), abs=0.01)
    for data_type, pipe, column in (
        ("F32", Pipe.VALU, "FP32Flops"),
        ("F64", Pipe.VALU, "FP64Flops"),
        ("BF16", Pipe.MFMA, "MFMABF16Flops"),
        ("F16", Pipe.MFMA, "MFMAF16Flops"),
        ("F32", Pipe.MFMA, "MFMAF32Flops"),
        ("F64", Pipe.MFMA, "MFMAF64Flops"),
        ("I8", Pipe.MFMA, "MFMAI8Ops"),
    ):
        peak = MI210.compute_ceiling(data_type, pipe, MEASURED).peak_gflops
        assert peak == pytest.approx(float(row[column]), abs=0.01)


def test_the_recommended_set_takes_three_passes():
    plan = plan_passes(COUNTER_MAP)
    assert (len(plan.passes), plan.refused) == (3, ())


def test_no_counter_of_gfx942_is_asked_for():
    assert not [c for c in COUNTER_MAP.recommended if "EA0" in c or "BUBBLE" in c or "F8" in c]


def test_the_recording_is_recognised(recording):
    assert plugin.rpl_detect_device(recording.gpu_agents) is MI210


def test_occupancy_follows_from_the_limits_of_this_plugin(facts):
    # 4 + 4 registers in steps of 8 and 256 work-items without LDS leave all 8 wave slots of a SIMD.
    (occupancy,) = facts[OCCUPANCY].values()
    assert (occupancy.waves_per_simd, occupancy.limiter) == (8, "wave_slots")


def test_reads_are_exact_without_128_byte_requests(quantity, workload):
    mean = _column_means(workload)
    metric = quantity("hbm_read_bytes")
    by_hand = 64 * (mean("TCC_EA_RDREQ_sum") - mean("TCC_EA_RDREQ_32B_sum")) + 32 * mean(
        "TCC_EA_RDREQ_32B_sum"
    )
    assert (metric.value, metric.exactness) == (pytest.approx(by_hand), Exactness.EXACT)
    assert metric.value == pytest.approx(8_388_608, rel=0.002)


def test_writes_are_less_than_stored_because_dirty_lines_stay_in_l2(quantity):
    # 8 388 608 bytes in the first launch, 5 828 608 and 5 831 232 in the others.
    metric = quantity("hbm_write_bytes")
    assert metric.value == pytest.approx((8_388_608 + 5_828_608 + 5_831_232) / 3)
    assert "Dirty lines" in metric.note


def test_a_copy_does_no_flops_and_none_is_missing(quantity):
    metric = quantity("flops")
    assert (metric.value, metric.exactness, metric.missing) == (0, Exactness.EXACT, ())


def test_the_documented_model_counts_every_instruction(quantity):
    assert quantity("flops_valu_width").value == 1_310_720


def test_traffic_between_l1_and_l2_is_the_analytic_value(quantity):
    assert quantity("l2_bytes").value == 16_777_216


def test_lanes_and_hit_rates(quantity):
    assert quantity("active_lanes").value == 64
    assert quantity("vl1d_hit_rate").value == pytest.approx(0.50, abs=1e-3)
    assert quantity("l2_hit_rate").value == pytest.approx(0.3509, abs=1e-3)


def test_the_kernel_is_on_the_memory_side_of_both_roofs(facts):
    (kernel,) = facts[ROOFLINE].kernels.values()
    assert kernel.bound.value == "memory"
    assert kernel.time_ns.value == pytest.approx((20_480 + 16_320 + 15_520) / 3)
    assert kernel.spec.memory_share.value < kernel.measured.memory_share.value < 1
