"""One kernel on the roofline, with figures that a person can check in the head.

Ceilings of the test device: FP32 1000 GFLOP/s (2000 packed), FP64 500, FP16 matrix 8000, HBM 100 GB/s, so
that the FP32 ridge is 10 FLOP/B.
"""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.contracts.roofline import Bound
from rpl_core.model.device import Pipe
from rpl_core.model.metric import Exactness

LOWER, INTERVAL, ESTIMATE = Exactness.LOWER_BOUND, Exactness.INTERVAL, Exactness.ESTIMATE


def test_rates_are_per_launch_work_over_per_launch_time(place):
    kernel = place({"flops": 4000, "valu_flops_f32": 4000, "hbm_bytes": 50_000}, time_ns=1000)
    assert kernel.achieved_gflops.value == 4
    assert kernel.achieved_gbps.value == 50
    assert kernel.operational_intensity.value == pytest.approx(0.08)
    assert kernel.bound is Bound.MEMORY
    assert kernel.position.value == pytest.approx(0.5)  # 50 of 100 GB/s


def test_zero_flops_is_a_real_zero_on_the_memory_side(place):
    kernel = place({"flops": 0, "valu_flops_f32": 0, "hbm_bytes": 50_000})
    assert (kernel.operational_intensity.value, kernel.operational_intensity.exactness) == (
        0,
        Exactness.EXACT,
    )
    assert (kernel.achieved_gflops.value, kernel.dominant_type) == (0, None)
    assert (kernel.bound, kernel.bound_reason) == (Bound.MEMORY, "no arithmetic was counted")
    assert kernel.position.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("flops", "bound"), [(999, Bound.MEMORY), (1000, Bound.COMPUTE), (1001, Bound.COMPUTE)]
)
def test_the_ridge_divides_memory_from_compute(place, flops, bound):
    kernel = place({"flops": flops, "valu_flops_f32": flops, "hbm_bytes": 100})
    assert kernel.spec.ridge == 10
    assert kernel.bound is bound


def test_the_two_models_stand_side_by_side(place):
    kernel = place({"flops": 400, "valu_flops_f32": 400, "flops_valu_width": 100, "hbm_bytes": 10})
    assert (kernel.models.selected, kernel.models.ratio) == ("per_op", 0.25)
    assert kernel.flops.value == 400
    other = place(
        {"flops": 400, "valu_flops_f32": 400, "flops_valu_width": 100, "hbm_bytes": 10}, model="valu_width"
    )
    assert (other.models.selected, other.flops.value) == ("valu_width", 100)
    assert other.models.per_op.value == 400


def test_models_disagree_on_the_bound_of_a_pure_fma_kernel(place):
    # 100 FMAs per 8 bytes and lane: 64 * 200 FLOPs per 512 bytes; the documented model sees 8 each.
    figures = {
        "flops": 12_800,
        "valu_flops_f32": 12_800,
        "flops_valu_width": 800,
        "hbm_bytes": 512,
    }
    assert place(figures).operational_intensity.value == 25
    assert place(figures).bound is Bound.COMPUTE
    documented = place(figures, model="valu_width")
    assert documented.operational_intensity.value == 1.5625
    assert documented.bound is Bound.MEMORY


def test_the_ratio_of_a_kernel_without_flops_is_null_not_infinite(place):
    kernel = place({"flops": 0, "valu_flops_f32": 0, "flops_valu_width": 786_432, "hbm_bytes": 10})
    assert kernel.models.ratio is None


def test_the_other_model_stands_in_when_nothing_else_was_collected(place, metric):
    kernel = place({"flops": metric(0, LOWER), "flops_valu_width": 800, "hbm_bytes": 100})
    assert kernel.models.selected == "valu_width"
    assert kernel.models.fallback == "per_op was not collected, valu_width is used"


def test_a_partial_per_op_count_comes_before_the_other_model(place, metric):
    kernel = place({"flops": metric(50, LOWER), "flops_valu_width": 800, "hbm_bytes": 100})
    assert (kernel.models.selected, kernel.models.fallback) == ("per_op", None)


def test_unknown_flops_leave_the_bandwidth(place, metric):
    kernel = place({"flops": None, "flops_valu_width": None, "hbm_bytes": 50_000})
    assert (kernel.flops.value, kernel.models.selected, kernel.bound) == (None, None, None)
    assert kernel.bound_reason == "not recorded: X"
    assert kernel.achieved_gbps.value == 50
    assert (kernel.position.value, kernel.position.exactness) == (pytest.approx(0.5), LOWER)


def test_unknown_bytes_leave_the_arithmetic(place):
    kernel = place({"flops": 100_000, "valu_flops_f32": 100_000, "hbm_bytes": None})
    assert kernel.achieved_gflops.value == 100
    assert (kernel.operational_intensity.value, kernel.bound) == (None, None)
    assert kernel.roof.compute_share.value == pytest.approx(0.1)


def test_a_lower_bound_of_flops_below_the_ridge_decides_nothing(place, metric):
    kernel = place({"flops": metric(500, LOWER), "valu_flops_f32": 500, "hbm_bytes": 100})
    assert kernel.operational_intensity.exactness is LOWER
    assert kernel.bound is None
    assert kernel.bound_reason.startswith("undecided")


def test_an_estimate_of_a_part_of_the_flops_decides_nothing_below_the_ridge(place, metric):
    part = attrs.evolve(metric(500, ESTIMATE), partial=True)
    kernel = place({"flops": part, "valu_flops_f32": 500, "hbm_bytes": 100})
    assert (kernel.operational_intensity.exactness, kernel.operational_intensity.partial) == (ESTIMATE, True)
    assert kernel.bound is None


def test_a_lower_bound_of_flops_above_the_ridge_decides(place, metric):
    kernel = place({"flops": metric(5000, LOWER), "valu_flops_f32": 5000, "hbm_bytes": 100})
    assert kernel.bound is Bound.COMPUTE


@pytest.mark.parametrize(
    ("low", "high", "bound"), [(10, 20, Bound.COMPUTE), (90, 110, None), (200, 400, Bound.MEMORY)]
)
def test_an_interval_of_bytes_decides_when_both_ends_agree(place, metric, low, high, bound):
    kernel = place({"flops": 1000, "valu_flops_f32": 1000, "hbm_bytes": metric(low, INTERVAL, upper=high)})
    assert kernel.bound is bound


@pytest.mark.parametrize(("flops", "bound"), [(999, Bound.MEMORY), (1001, None)])
def test_a_lower_bound_of_bytes_decides_for_memory_only(place, metric, flops, bound):
    kernel = place({"flops": flops, "valu_flops_f32": flops, "hbm_bytes": metric(100, LOWER)})
    assert kernel.bound is bound


def test_no_bytes_beyond_l2_is_the_compute_side(place):
    kernel = place({"flops": 1000, "valu_flops_f32": 1000, "hbm_bytes": 0})
    assert (kernel.bound, kernel.operational_intensity.value) == (Bound.COMPUTE, None)


def test_the_legacy_byte_source_is_used_only_without_a_better_one(place):
    legacy = place({"flops": 10, "hbm_bytes": None, "tcc_bytes": 100})
    assert (legacy.byte_source, legacy.bytes.value) == ("tcc_bytes", 100)
    better = place({"flops": 10, "hbm_bytes": 50, "tcc_bytes": 100})
    assert (better.byte_source, better.bytes.value) == ("hbm_bytes", 50)


def test_the_dominant_type_is_the_one_that_needs_most_time_at_its_ceiling(place):
    # 1000 FP64 operations need 2 time units, 8000 FP16 matrix operations only 1.
    kernel = place({"flops": 9000, "valu_flops_f64": 1000, "mfma_flops_f16": 8000, "hbm_bytes": 100})
    assert (kernel.dominant_type, kernel.dominant_pipe) == ("F64", Pipe.VALU)
    assert kernel.spec.ridge == 5


def test_matrix_integer_operations_count_against_a_ceiling_but_not_as_flops(place):
    kernel = place({"flops": 0, "valu_flops_f32": 0, "mfma_ops_i8": 32_000, "hbm_bytes": 100})
    assert (kernel.flops.value, kernel.operational_intensity.value) == (0, 0)
    assert (kernel.dominant_type, kernel.dominant_pipe) == ("I8", Pipe.MFMA)
    assert kernel.bound is Bound.COMPUTE


def test_uncollected_integer_operations_leave_zero_flops_undecided(place):
    kernel = place({"flops": 0, "valu_flops_f32": 0, "mfma_ops_i8": None, "hbm_bytes": 100})
    assert kernel.bound is None


def test_compute_utilization_adds_types_on_the_same_pipe(place):
    kernel = place(
        {"flops": 300_000, "valu_flops_f64": 100_000, "valu_flops_f32": 200_000, "hbm_bytes": 1}, time_ns=1000
    )
    assert kernel.roof.compute_share.value == pytest.approx(100 / 500 + 200 / 1000)


def test_measured_and_spec_ceilings_stay_apart(place):
    kernel = place({"flops": 100_000, "valu_flops_f32": 100_000, "hbm_bytes": 40_000})
    assert (kernel.spec.memory_share.value, kernel.measured.memory_share.value) == (0.4, 0.5)
    assert kernel.measured.ridge == 1200 / 80  # FP32 was benchmarked at the packed rate only
    assert kernel.spec.position.value == 0.4


def test_without_a_data_sheet_the_measured_roof_decides(place, make_device):
    measured_only = tuple(c for c in make_device().memory_ceilings if c.origin.value == "measured")
    kernel = place(
        {"flops": 0, "valu_flops_f32": 0, "hbm_bytes": 40_000},
        memory_ceilings=measured_only,
        compute_ceilings=(),
    )
    assert kernel.spec.memory_share.value is None
    assert kernel.position.value == 0.5


def test_above_the_memory_ceiling_is_flagged(place):
    assert place({"flops": 0, "hbm_bytes": 100_000}).exceeds_ceiling == ()
    assert place({"flops": 0, "hbm_bytes": 100_001}).exceeds_ceiling == ("hbm",)


def test_fp32_may_reach_the_packed_rate_before_it_is_flagged(place):
    under = place({"flops": 2_000_000, "valu_flops_f32": 2_000_000, "hbm_bytes": 1})
    over = place({"flops": 2_000_001, "valu_flops_f32": 2_000_001, "hbm_bytes": 1})
    assert (under.exceeds_ceiling, over.exceeds_ceiling) == ((), ("F32 valu",))


def test_without_a_time_there_are_no_rates_but_an_intensity(place):
    kernel = place({"flops": 100, "valu_flops_f32": 100, "hbm_bytes": 100}, time_ns=None)
    assert (kernel.achieved_gbps.value, kernel.position.value) == (None, None)
    assert (kernel.operational_intensity.value, kernel.bound) == (1, Bound.MEMORY)


def test_an_estimated_time_makes_estimated_rates(place, metric):
    kernel = place({"flops": 100, "valu_flops_f32": 100, "hbm_bytes": 100}, time_ns=metric(50, ESTIMATE))
    assert kernel.achieved_gbps.exactness is ESTIMATE
    assert kernel.operational_intensity.exactness is Exactness.EXACT


def test_every_level_has_bytes_intensity_rate_and_peaks(place):
    kernel = place({"flops": 100, "hbm_bytes": 50, "l2_bytes": 200, "vl1d_bytes": None})
    levels = {level.level: level for level in kernel.levels}
    assert list(levels) == ["hbm", "l2", "vl1d"]
    assert (levels["l2"].operational_intensity.value, levels["l2"].achieved_gbps.value) == (0.5, 0.2)
    assert (levels["l2"].spec_gbps, levels["l2"].measured_gbps) == (400, None)
    assert levels["vl1d"].bytes.value is None


def test_level_above_its_ceiling_is_flagged(place):
    # 400 GB/s is the ceiling of L2; 500 bytes per ns are more
    assert place({"flops": 1, "hbm_bytes": 10, "l2_bytes": 500_000}).exceeds_ceiling == ("l2",)
    assert place({"flops": 1, "hbm_bytes": 10, "l2_bytes": 300_000}).exceeds_ceiling == ()


@pytest.mark.parametrize(("model", "bound"), [(None, Bound.COMPUTE), ("valu_width", Bound.MEMORY)])
def test_integers_count_beside_flops_of_instructions_and_not_beside_those_of_the_documented_model(
    place, model, bound
):
    """400 FLOPs for 100 bytes are far below any ridge, 32 400 operations are above."""
    figures = {
        "flops": 400,
        "flops_valu_width": 400,
        "valu_flops_f32": 400,
        "mfma_ops_i8": 32_000,
        "hbm_bytes": 100,
    }
    kernel = place(figures) if model is None else place(figures, model=model)
    assert (kernel.flops.value, kernel.bound) == (400, bound)


def test_integers_alone_say_nothing_where_flops_are_unknown(place):
    kernel = place({"flops": None, "mfma_ops_i8": 1000, "hbm_bytes": 100})
    assert (kernel.flops.value, kernel.bound) == (None, None)
