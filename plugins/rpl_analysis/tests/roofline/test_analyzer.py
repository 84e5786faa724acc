"""The roofline analyzer: status, launches, coverage, and what it tells about them."""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.contracts.profile import StabilityPart
from rpl_analysis.contracts.roofline import RooflineStatus
from rpl_analysis.counters.quantities import KernelQuantities, QuantityValue
from rpl_analysis.facts import INSTRUCTION_MIX, KERNEL_QUANTITIES, KERNEL_TIMES, ROOFLINE
from rpl_analysis.instruction_mix import KernelMix, NoMix
from rpl_analysis.options import FLOP_MODEL
from rpl_analysis.roofline import RooflineAnalyzer
from rpl_analysis.runtime.timing import KernelResources, KernelTime
from rpl_codeobject.kernel_code import PackedMix
from rpl_core.interfaces.analyzer import AnalysisContext, Facts
from rpl_core.interfaces.options import Options
from rpl_core.model.metric import Exactness
from rpl_core.model.recording import Recording
from rpl_testkit.traces import TracedDispatch, make_trace

_TIMING = make_trace([("k", 0, 1000)])
_COUNTED = make_trace([TracedDispatch("k", 0, 1000, counters={"X": 1.0})])


def _time(name: str, total_ns: float, launches: float = 1.0) -> KernelTime:
    mean = total_ns / launches
    return KernelTime(
        name,
        launches,
        total_ns,
        0.5,
        mean,
        mean,
        int(mean),
        int(mean),
        StabilityPart(1, mean / 1e6),
        (256, 1, 1),
        (1024, 1, 1),
        KernelResources(None, None, None, None, None),
        1,
    )


@pytest.fixture
def quantities(metric):
    """``quantities("k", 2, flops=..., hbm_bytes=...)``: a kernel with figures per launch."""

    def build(name, launches, **figures):
        values = {n: QuantityValue(metric(v), metric(v), launches) for n, v in figures.items()}
        return KernelQuantities(name, launches, values)

    return build


@pytest.fixture
def analyze(make_device):
    def run(times, found, *, device="test-gpu", traces=(_TIMING, _COUNTED), mixes=None, flop_model="per_op"):
        given = {
            KERNEL_TIMES: {t.name: t for t in times},
            KERNEL_QUANTITIES: None if found is None else {q.name: q for q in found},
            INSTRUCTION_MIX: mixes,
        }
        recording, known = Recording(tuple(traces)), make_device() if device else None
        chosen = Options({FLOP_MODEL.name: flop_model})
        context = AnalysisContext(recording, known, chosen, Facts(given))
        outcome = RooflineAnalyzer().analyze(context)
        return outcome.facts[ROOFLINE], {d.code: d for d in outcome.diagnostics}

    return run


def test_without_counter_passes_it_says_how_to_collect(analyze):
    result, diagnostics = analyze([_time("k", 1000)], None, traces=(_TIMING,))
    assert result.status is RooflineStatus.NOT_COLLECTED
    assert "--roofline" in result.how_to_collect
    assert (dict(result.kernels), diagnostics) == ({}, {})


def test_counters_of_an_unknown_device_are_unavailable(analyze):
    result, _ = analyze([_time("k", 1000)], None, device=None)
    assert result.status is RooflineStatus.UNAVAILABLE
    assert "device" in result.reason


def test_counters_that_give_nothing_are_unavailable_with_the_reason(analyze, quantities):
    result, diagnostics = analyze([_time("k", 1000)], [quantities("k", 1, flops=None, hbm_bytes=None)])
    assert (result.status, result.reason) == (RooflineStatus.UNAVAILABLE, "not recorded: X")
    assert list(diagnostics) == ["roofline.unavailable"]


def test_time_is_the_mean_per_launch_of_the_timing_runs(analyze, quantities):
    result, _ = analyze([_time("k", 3000, launches=3)], [quantities("k", 3, flops=0, hbm_bytes=5000)])
    assert result.status is RooflineStatus.AVAILABLE
    assert result.kernels[0].time_ns.value == 1000
    assert result.kernels[0].achieved_gbps.value == 5


def test_other_launch_counts_compare_per_launch_as_estimates(analyze, quantities):
    result, diagnostics = analyze(
        [_time("k", 3000, launches=3)], [quantities("k", 1, flops=0, hbm_bytes=5000)]
    )
    kernel = result.kernels[0]
    assert (kernel.achieved_gbps.value, kernel.achieved_gbps.exactness) == (5, Exactness.ESTIMATE)
    assert (kernel.launches, kernel.counter_launches) == (3, 1)
    assert "3 launches per timing run and 1" in diagnostics["roofline.launches_differ"].fact


def test_zero_duration_gives_no_rate(analyze, quantities):
    result, diagnostics = analyze([_time("k", 0)], [quantities("k", 1, flops=0, hbm_bytes=5000)])
    assert result.kernels[0].achieved_gbps.value is None
    assert "duration of zero" in diagnostics["roofline.no_time"].fact


def test_kernels_come_by_time_then_those_without_time_by_name(analyze, quantities):
    found = [quantities(name, 1, flops=1, hbm_bytes=1) for name in ("z", "b", "a")]
    result, diagnostics = analyze([_time("slow", 9000), _time("b", 10)], found)
    assert [kernel.name for kernel in result.kernels] == ["slow", "b", "a", "z"]
    assert diagnostics["roofline.no_time"].count == 2
    assert diagnostics["roofline.no_counters"].count == 1


def test_the_application_sums_work_and_time_of_one_run(analyze, quantities):
    times = [_time("a", 3000, launches=3), _time("b", 1000)]
    found = [quantities("a", 3, flops=0, hbm_bytes=1000), quantities("b", 1, flops=0, hbm_bytes=5000)]
    application = analyze(times, found)[0].application
    assert application.roofline.bytes.value == 3 * 1000 + 5000
    assert application.roofline.time_ns.value == 4000
    assert application.roofline.achieved_gbps.value == 2
    assert (application.kernels, application.kernels_with_counters, application.time_share) == (2, 2, 1)


def test_a_kernel_without_counters_makes_the_application_a_lower_bound(analyze, quantities):
    times = [_time("a", 3000), _time("b", 1000)]
    application = analyze(times, [quantities("a", 1, flops=0, hbm_bytes=1000)])[0].application
    assert application.roofline.bytes.exactness is Exactness.LOWER_BOUND
    assert application.roofline.bytes.note == "known for 1 of 2 kernels"
    assert application.time_share == 0.75


def test_bandwidth_above_the_data_sheet_is_explained_by_the_cache_when_it_fits(analyze, quantities):
    found = [quantities("k", 1, flops=0, hbm_bytes=9000)]
    result, diagnostics = analyze([_time("k", 10)], found)
    assert result.kernels[0].exceeds_ceiling == ("hbm",)
    assert diagnostics["roofline.above_bandwidth"].severity.value == "info"
    too_large = [quantities("k", 1, flops=0, hbm_bytes=90_000)]
    assert analyze([_time("k", 10)], too_large)[1]["roofline.above_bandwidth"].severity.value == "warning"


def test_arithmetic_above_the_data_sheet_is_called_wrong(analyze, quantities):
    found = [quantities("k", 1, flops=1e6, valu_flops_f64=1e6, hbm_bytes=1)]
    assert "F64 valu" in analyze([_time("k", 10)], found)[1]["roofline.above_peak"].fact


def test_a_fallback_of_the_flop_model_is_told(analyze, quantities):
    found = [quantities("k", 1, flops=None, flops_valu_width=8, hbm_bytes=1)]
    assert "valu_width is used" in analyze([_time("k", 10)], found)[1]["roofline.other_flop_model"].fact


def test_the_flop_model_option_selects(analyze, quantities):
    found = [quantities("k", 1, flops=4, flops_valu_width=8, hbm_bytes=1)]
    assert analyze([_time("k", 10)], found, flop_model="valu_width")[0].kernels[0].flops.value == 8


def test_the_legacy_byte_source_is_told(analyze, quantities):
    found = [quantities("k", 1, flops=4, hbm_bytes=None, tcc_bytes=100)]
    assert "tcc_bytes" in analyze([_time("k", 10)], found)[1]["roofline.legacy_bytes"].fact


_WITHOUT = dict.fromkeys(
    (
        *("valu_flops_f64", "valu_flops_f16"),
        *("mfma_flops_f64", "mfma_flops_f32", "mfma_flops_f16", "mfma_flops_bf16", "mfma_flops_f8"),
    ),
    0,
)


def test_a_mix_corrects_beside_the_count_and_changes_nothing_else(analyze, quantities):
    found = [quantities("k", 1, flops=100, valu_flops_f32=100, hbm_bytes=10, **_WITHOUT)]
    plain = analyze([_time("k", 1000)], found)[0]
    mixed = analyze([_time("k", 1000)], found, mixes={"k": KernelMix({"F32": PackedMix(1, 2)}, "app")})[0]
    packed = mixed.kernels[0].corrections["packed"]
    assert (packed.value, packed.exactness) == (150, Exactness.ESTIMATE)
    assert plain.kernels[0].corrections["packed"].value is None
    assert attrs.evolve(mixed.kernels[0], corrections={}) == attrs.evolve(plain.kernels[0], corrections={})


def test_the_correction_of_the_application_is_that_of_its_kernels(analyze, quantities):
    found = [
        quantities(name, n, flops=100, valu_flops_f32=100, hbm_bytes=10, **_WITHOUT)
        for name, n in (("a", 3), ("b", 1))
    ]
    mixes = {"a": KernelMix({"F32": PackedMix(1, 1)}, "app"), "b": KernelMix({}, "app")}
    times = [_time("a", 3000, launches=3), _time("b", 1000)]
    whole = analyze(times, found, mixes=mixes)[0].application.roofline.corrections["packed"]
    assert (whole.value, whole.exactness) == (3 * 200 + 100, Exactness.ESTIMATE)
    partly = analyze(times, found, mixes={"a": mixes["a"], "b": NoMix("why")})[0].application
    assert partly.roofline.corrections["packed"].reason == "b: why"
