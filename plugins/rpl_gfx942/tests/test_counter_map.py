"""The counter map: four passes for the recommended set, formulas that hold on hand-computed counters."""

from __future__ import annotations

from collections import Counter

import pytest

from rpl_analysis.bottleneck import builtin_rules
from rpl_analysis.counters.formulas import counters_of, parse_expression
from rpl_analysis.counters.join import join_counters
from rpl_analysis.counters.quantities import derive_quantities
from rpl_analysis.roofline.kernel import CACHES, additive
from rpl_core.model.metric import Exactness, Origin
from rpl_core.model.recording import Recording
from rpl_gfx942.plugin import rpl_device_models
from rpl_gfx942.products import COUNTER_MAP
from rpl_rocprofv3.collector.passes import block_of, plan_passes
from rpl_testkit.traces import TracedDispatch, make_trace

QUANTITIES = {quantity.name: quantity for quantity in COUNTER_MAP.quantities}
MI300X = rpl_device_models()[0]
NO_MFMA = {f"SQ_INSTS_VALU_MFMA_MOPS_{t}": 0 for t in ("F64", "F32", "F16", "BF16", "F8", "I8")}
NO_VALU = {
    f"SQ_INSTS_VALU_{op}_{t}": 0 for op in ("ADD", "MUL", "FMA", "TRANS") for t in ("F16", "F32", "F64")
}


@pytest.fixture
def derive():
    """``derive(SQ_WAVES=1, ...)``: the quantities of one launch on an MI300X."""

    def run(**counters: float):
        trace = make_trace([TracedDispatch("k", 0, 1000, counters=dict(counters))])
        kernel = join_counters(Recording((trace,))).kernels["k"]
        return derive_quantities(kernel, MI300X, Origin.MEASURED)[0].per_launch

    return run


def _needed_by_rules() -> set[str]:
    """The counters of the first formula of everything that rules test, and of the arithmetic behind it."""
    by_name = {quantity.name: quantity for quantity in COUNTER_MAP.quantities}
    behind = {
        "hbm_utilization": "hbm_bytes",
        "l2_utilization": "l2_bytes",
        "lds_utilization": "lds_bytes_moved",
    }
    tested = {condition.quantity for rule in builtin_rules() for condition in rule.conditions}
    waiting = [behind.get(name, name) for name in tested] + [work.quantity for work in COUNTER_MAP.work]
    needed: set[str] = set()
    while waiting:
        quantity = by_name.get(waiting.pop())
        if quantity is not None:
            waiting += quantity.sum_of
            needed.update(*(counters_of(formula) for formula in quantity.formulas[:1]))
    return needed


def test_the_recommended_set_feeds_every_rule_in_the_fewest_passes():
    plan, needed = plan_passes(COUNTER_MAP), _needed_by_rules()
    recommended = {counter.removesuffix("_sum") for counter in COUNTER_MAP.recommended}
    assert needed <= recommended
    assert {"SQ_WAIT_ANY", "SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE"} <= needed
    of_sq = [counter for counter in needed if block_of(counter, COUNTER_MAP) == "SQ"]
    assert len(plan.passes) == -(-len(of_sq) // COUNTER_MAP.block_limits["SQ"]) == 4
    assert plan.refused == ()


def test_waits_are_read_beside_the_time_that_they_are_a_share_of():
    waits = {"SQ_WAIT_ANY", "SQ_WAVE_CYCLES", "SQ_BUSY_CU_CYCLES", "SQ_VALU_MFMA_BUSY_CYCLES"}
    local = {"SQ_LDS_IDX_ACTIVE", "SQ_LDS_BANK_CONFLICT"}
    for group in (waits, local):
        assert sum(group <= set(one) for one in plan_passes(COUNTER_MAP).passes) == 1


def test_no_pass_exceeds_a_block():
    for one in plan_passes(COUNTER_MAP).passes:
        for block, count in Counter(block_of(counter, COUNTER_MAP) for counter in one).items():
            assert count <= COUNTER_MAP.block_limits[block]


def test_reads_of_all_sizes_are_in_one_pass():
    reads = {"TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_BUBBLE_sum"}
    assert sum(reads <= set(one) for one in plan_passes(COUNTER_MAP).passes) == 1


@pytest.mark.parametrize("counter", ["MALL_BANDWIDTH_ALL", "HBM_READ_BYTES"])
def test_data_fabric_counters_are_refused(counter):
    plan = plan_passes(COUNTER_MAP, [counter])
    assert plan.passes == ()
    assert "priv_cp_queues" in plan.refused[0].reason


def test_every_formula_parses_and_names_only_known_blocks_or_derived_metrics():
    derived = {"FETCH_SIZE", "WRITE_SIZE"}
    for quantity in COUNTER_MAP.quantities:
        for formula in quantity.formulas:
            parse_expression(formula.expression)
            for counter in counters_of(formula):
                assert counter in derived or block_of(counter, COUNTER_MAP), counter


def test_every_formula_cites_a_source():
    assert all(len(f.source) > 5 for quantity in COUNTER_MAP.quantities for f in quantity.formulas)


def test_the_map_defines_what_the_roofline_asks_for():
    assert {*additive(COUNTER_MAP), *CACHES} <= set(QUANTITIES)


def test_the_recommended_set_covers_flops_and_bytes():
    recorded = {counter.removesuffix("_sum") for counter in COUNTER_MAP.recommended}
    for name in (*additive(COUNTER_MAP), "active_lanes", "valu_utilization", "l2_hit_rate", "vl1d_hit_rate"):
        if name in ("tcc_bytes", "lds_bytes_moved") or not QUANTITIES[name].formulas:
            continue
        assert set(counters_of(QUANTITIES[name].formulas[0])) <= recorded, name


# Instruction counts per wave of straight-line kernels as clang-22 compiled them; true FLOPs per wave.
@pytest.mark.parametrize(
    ("counters", "flops", "documented"),
    [
        ({"SQ_INSTS_VALU": 6}, 0, 48),  # copy
        ({"SQ_INSTS_VALU": 7, "SQ_INSTS_VALU_FMA_F32": 1}, 128, 56),  # saxpy
        ({"SQ_INSTS_VALU": 20, "SQ_INSTS_VALU_FMA_F32": 16}, 2048, 160),
        ({"SQ_INSTS_VALU": 19, "SQ_INSTS_VALU_ADD_F64": 16}, 1024, 152),
        ({"SQ_INSTS_VALU": 10, "SQ_INSTS_VALU_MFMA_MOPS_F16": 256}, 131_072, 80),
        ({"SQ_INSTS_VALU": 8, "SQ_INSTS_VALU_MFMA_MOPS_F32": 64}, 32_768, 32_832),
    ],
)
def test_both_flop_models_on_kernels_of_known_work(derive, counters, flops, documented):
    figure = derive(**{**NO_VALU, **NO_MFMA, **counters})
    assert figure("flops").value == flops
    assert figure("flops_valu_width").value == documented


def test_fp32_operations_are_an_estimate_because_packed_ones_count_once(derive):
    all_lanes = {"SQ_ACTIVE_INST_VALU": 1, "SQ_THREAD_CYCLES_VALU": 64}
    figure = derive(**{**NO_VALU, **NO_MFMA, **all_lanes, "SQ_INSTS_VALU_FMA_F32": 1})
    assert figure("valu_flops_f32").exactness is Exactness.ESTIMATE
    assert "Packed" in figure("flops").note


@pytest.mark.parametrize(("lane_cycles", "exactness"), [(640, Exactness.EXACT), (639, Exactness.ESTIMATE)])
def test_fp64_operations_are_exact_when_no_lane_idles(derive, lane_cycles, exactness):
    counters = {"SQ_INSTS_VALU_FMA_F64": 2, "SQ_ACTIVE_INST_VALU": 10, "SQ_THREAD_CYCLES_VALU": lane_cycles}
    figure = derive(**{**NO_VALU, **NO_MFMA, **counters})("valu_flops_f64")
    assert (figure.value, figure.exactness) == (256, exactness)


@pytest.mark.parametrize(
    ("lane_cycles", "exactness", "partial"),
    [
        (6400, Exactness.LOWER_BOUND, False),
        (3200, Exactness.ESTIMATE, True),
        (None, Exactness.ESTIMATE, True),
    ],
)
def test_a_part_of_the_operations_bounds_them_where_no_lane_idles(derive, lane_cycles, exactness, partial):
    """100 additions on 64 lanes count as 6 400 operations; with half of the lanes idle 3 200 happened."""
    counters = {**NO_VALU, **NO_MFMA, "SQ_INSTS_VALU_ADD_F32": 100}
    del counters["SQ_INSTS_VALU_FMA_F32"]
    if lane_cycles is not None:
        counters |= {"SQ_ACTIVE_INST_VALU": 100, "SQ_THREAD_CYCLES_VALU": lane_cycles}
    figure = derive(**counters)("flops")
    assert (figure.value, figure.exactness, figure.partial) == (6400, exactness, partial)
    assert figure.missing == ("SQ_INSTS_VALU_FMA_F32",)


def test_an_unknown_part_beside_an_estimate_is_no_bound(derive):
    counters = _without_f8(SQ_INSTS_VALU_ADD_F32=100, SQ_ACTIVE_INST_VALU=100, SQ_THREAD_CYCLES_VALU=3200)
    figure = derive(**counters)("flops")
    assert (figure.value, figure.exactness, figure.partial) == (6400, Exactness.ESTIMATE, True)


def test_hit_rates_on_which_panels_disagree_are_intervals(derive):
    hits = {"SQC_DCACHE_HITS": 90, "SQC_DCACHE_MISSES": 1}
    figure = derive(**hits, SQC_DCACHE_MISSES_DUPLICATE=9)("sl1d_hit_rate")
    assert (figure.value, figure.upper, figure.exactness) == (0.9, 90 / 91, Exactness.INTERVAL)
    assert derive(**hits)("sl1d_hit_rate").exactness is Exactness.ESTIMATE
    assert "disagree" in derive(TCP_TOTAL_CACHE_ACCESSES_sum=1)("vl1d_bytes").note


def _without_f8(**more: float) -> dict[str, float]:
    counters = {**NO_VALU, **NO_MFMA, **more}
    del counters["SQ_INSTS_VALU_MFMA_MOPS_F8"]
    return counters


def test_uncounted_fp8_is_unknown_not_zero(derive):
    figure = derive(**_without_f8())
    assert figure("mfma_flops_f8").value is None
    assert (figure("flops").exactness, figure("flops").missing) == (
        Exactness.LOWER_BOUND,
        ("SQ_INSTS_VALU_MFMA_MOPS_F8",),
    )


def test_fp8_is_zero_when_every_matrix_instruction_is_of_another_type(derive):
    kinds = {f"SQ_INSTS_VALU_MFMA_{t}": 0 for t in ("I8", "BF16", "F32", "F64")}
    figure = derive(**_without_f8(SQ_INSTS_MFMA=7, SQ_INSTS_VALU_MFMA_F16=7, **kinds))("mfma_flops_f8")
    assert (figure.value, figure.exactness) == (0, Exactness.EXACT)


def test_unaccounted_matrix_instructions_bound_fp8(derive):
    kinds = {f"SQ_INSTS_VALU_MFMA_{t}": 0 for t in ("I8", "BF16", "F32", "F64")}
    figure = derive(**_without_f8(SQ_INSTS_MFMA=9, SQ_INSTS_VALU_MFMA_F16=7, **kinds))("mfma_flops_f8")
    assert (figure.value, figure.upper, figure.exactness) == (0, 2 * 65_536, Exactness.INTERVAL)


def test_reads_by_request_size(derive):
    figure = derive(TCC_EA0_RDREQ=100, TCC_EA0_RDREQ_32B=10, TCC_BUBBLE=60)("hbm_read_bytes")
    assert (figure.value, figure.exactness) == (128 * 60 + 64 * 30 + 32 * 10, Exactness.EXACT)


def test_without_bubble_reads_are_an_interval_of_factor_two(derive):
    figure = derive(TCC_EA0_RDREQ=100, TCC_EA0_RDREQ_32B=0)("hbm_read_bytes")
    assert (figure.value, figure.upper, figure.exactness) == (6400, 12_800, Exactness.INTERVAL)
    assert figure.missing == ("TCC_BUBBLE",)


@pytest.mark.parametrize(
    ("counters", "low", "high"),
    [({"TCC_EA0_RDREQ": 10}, 320, 1280), ({"TCC_EA0_RDREQ": 10, "TCC_BUBBLE": 6}, 896, 1024)],
)
def test_every_partial_set_of_reads_encloses_the_truth(derive, counters, low, high):
    figure = derive(**counters)("hbm_read_bytes")
    assert (figure.value, figure.upper) == (low, high)


def test_the_sizes_of_the_sdk_are_an_estimate_in_kib(derive):
    figure = derive(FETCH_SIZE=8, WRITE_SIZE=4)("hbm_bytes")
    assert (figure.value, figure.exactness) == (12_288, Exactness.ESTIMATE)


def test_writes_by_request_size(derive):
    assert derive(TCC_EA0_WRREQ=10, TCC_EA0_WRREQ_64B=6)("hbm_write_bytes").value == 64 * 6 + 32 * 4


def test_reads_alone_make_total_bytes_a_lower_bound(derive):
    figure = derive(TCC_EA0_RDREQ=1, TCC_EA0_RDREQ_32B=0, TCC_BUBBLE=1)("hbm_bytes")
    assert (figure.value, figure.exactness) == (128, Exactness.LOWER_BOUND)
    assert figure.missing == ("TCC_EA0_WRREQ", "TCC_EA0_WRREQ_64B")


def test_utilization_lies_between_counter_window_and_busy_units(derive):
    counters = {"SQ_ACTIVE_INST_VALU": 304, "GRBM_GUI_ACTIVE": 800, "SQ_BUSY_CU_CYCLES": 304}
    figure = derive(**counters)("valu_utilization")
    assert (figure.value, figure.upper, figure.exactness) == (0.01, 0.25, Exactness.INTERVAL)


def test_lds_traffic_leaves_out_conflict_cycles(derive):
    figure = derive(SQ_LDS_IDX_ACTIVE=10, SQ_LDS_BANK_CONFLICT=2)
    assert figure("lds_bytes_moved").value == 8 * 128
    assert figure("lds_bank_conflicts_per_access").value == 0.25


RECOMMENDED_MFMA = {f"SQ_INSTS_VALU_MFMA_MOPS_{t}": 0 for t in ("F64", "F32", "F16", "BF16", "F8", "I8")}


def test_kernel_without_mfma_operations_leaves_the_matrix_units_idle(derive):
    figure = derive(**RECOMMENDED_MFMA, GRBM_GUI_ACTIVE=800)("mfma_utilization")
    assert (figure.value, figure.exactness) == (0, Exactness.EXACT)
    assert derive(**RECOMMENDED_MFMA)("mfma_utilization").exactness is Exactness.EXACT


def test_mfma_operations_bound_the_matrix_units_from_below(derive):
    # 304 CUs for 100 cycles hold 304 * 100 * 256 F64 operations; a quarter of them was done.
    counters = {**RECOMMENDED_MFMA, "SQ_INSTS_VALU_MFMA_MOPS_F64": 304 * 100 * 256 / 512 / 4}
    figure = derive(**counters, GRBM_GUI_ACTIVE=800)("mfma_utilization")
    assert figure.value == pytest.approx(0.25)
    assert figure.exactness is Exactness.LOWER_BOUND


def test_busy_cycles_of_the_matrix_units_are_preferred(derive):
    busy = {"SQ_VALU_MFMA_BUSY_CYCLES": 4 * 304 * 50, "SQ_BUSY_CU_CYCLES": 304 * 20, "GRBM_GUI_ACTIVE": 800}
    figure = derive(**RECOMMENDED_MFMA, **busy)("mfma_utilization")
    assert (figure.value, figure.upper) == (pytest.approx(0.5), pytest.approx(0.625))


def test_l2_look_ups_enclose_l2_traffic_where_l1_requests_were_not_read(derive):
    # the copy of 2^20 doubles: one 128-byte read and two 64-byte writes per line
    figure = derive(TCC_HIT=65_536, TCC_MISS=131_072)("l2_bytes")
    assert figure.exactness is Exactness.INTERVAL
    assert figure.value <= 16_777_216 <= figure.upper
