"""Corrections of the per-operation FLOP count, on kernels whose true FLOPs per wave are known."""

from __future__ import annotations

import pytest

from rpl_analysis.instruction_mix.mix import KernelMix, NoMix
from rpl_analysis.roofline.corrections import flop_corrections
from rpl_codeobject.kernel_code import PackedMix, packed_mix
from rpl_core.model.metric import Exactness

NONE = dict.fromkeys(
    (
        *("valu_flops_f64", "valu_flops_f32", "valu_flops_f16"),
        *("mfma_flops_f64", "mfma_flops_f32", "mfma_flops_f16", "mfma_flops_bf16", "mfma_flops_f8"),
    ),
    0.0,
)


@pytest.fixture
def correct(metric, make_device):
    def run(mix=None, device=None, **figures):
        found = mix if mix is None or isinstance(mix, NoMix) else KernelMix(mix, "app")
        device = make_device() if device is None else device
        return flop_corrections({n: metric(v) for n, v in {**NONE, **figures}.items()}, found, device)

    return run


def test_sixteen_packed_fmas_are_counted_by_half(correct):
    # 16 x v_pk_fma_f32 and nothing else: 2048 by the counters, 4096 in truth
    mix = packed_mix(["v_pk_fma_f32"] * 16 + ["s_endpgm", "v_mov_b32_e32", "global_load_dwordx2"])
    packed = correct(mix, valu_flops_f32=2048)["packed"]
    assert mix == {"F32": PackedMix(32, 32)}
    assert (packed.value, packed.exactness) == (4096, Exactness.ESTIMATE)


def test_mixed_code_counts_its_packed_share_twice(correct):
    mix = packed_mix(["v_pk_mul_f16", "v_add_f16_e32", "v_fma_f32", "v_pk_add_f16", "v_mul_f16_e64"])
    # FLOPs per lane as counted: packed 1 + 1, all of them 1 + 1 + 1 + 1
    assert mix == {"F16": PackedMix(2, 4), "F32": PackedMix(0, 2)}
    assert correct(mix, valu_flops_f16=100, valu_flops_f32=10)["packed"].value == 160


def test_an_fma_weighs_two_operations_and_transcendentals_are_never_packed():
    mix = packed_mix(["v_pk_fma_f32", "v_add_f32_e32", "v_rcp_f32_e32", "v_fmac_f32_e32"])
    assert mix == {"F32": PackedMix(2, 6)}


def test_the_reason_why_code_at_hand_says_nothing_is_passed_on(correct):
    packed = correct(NoMix("the file is for gfx90a only"), valu_flops_f32=1)["packed"]
    assert (packed.value, packed.reason) == (None, "the file is for gfx90a only")
    known = correct({"F32": PackedMix(1, 1)}, valu_flops_f32=1)["packed"]
    assert known.source == "instructions of app"


def test_matrix_and_packed_moves_are_not_packed_math():
    assert packed_mix(["v_mfma_f32_32x32x8_f16", "v_pk_mov_b32", "v_cvt_f32_f16", "v_", "v_pk"]) == {}


def test_without_a_code_object_the_packed_correction_is_unknown_and_says_why(correct):
    packed = correct(valu_flops_f32=2048)["packed"]
    assert packed.value is None
    assert "code object" in packed.reason


def test_fp64_and_matrix_work_needs_no_code_object(correct):
    assert correct(valu_flops_f64=10, mfma_flops_f16=1000)["packed"].value == 1010


def test_idle_lanes_do_no_work_but_matrix_units_have_none(correct):
    lanes = correct(valu_flops_f32=1000, mfma_flops_f16=500, active_lane_fraction=0.25)["active_lanes"]
    assert (lanes.value, lanes.exactness) == (750, Exactness.ESTIMATE)


def test_unknown_parts_leave_the_corrections_unknown(correct):
    found = correct({"F32": PackedMix(1, 1)}, valu_flops_f32=None, active_lane_fraction=0.5)
    assert found["active_lanes"].value is None
    assert "valu_flops_f32" in found["packed"].reason
    assert correct(valu_flops_f64=1)["active_lanes"].value is None
