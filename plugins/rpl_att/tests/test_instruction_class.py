"""Classes of instructions, counters that they occupy, and what waits wait for."""

from __future__ import annotations

import pytest

from rpl_att.instruction_class import classify, memory_operation, wait_of


@pytest.mark.parametrize(
    ("isa", "kind"),
    [
        ("v_mfma_f32_16x16x32_bf16 a[0:3], v[0:3], v[4:7], a[0:3]", "MFMA"),
        ("v_smfmac_f32_16x16x32_f16 a[0:3], v[0:1], v[2:5], v6", "MFMA"),
        ("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", "MFMA"),
        ("v_accvgpr_read_b32 v0, a0", "VALU"),
        ("v_readfirstlane_b32 s2, v6", "VALU"),
        ("buffer_load_dwordx4 v5, s[12:15], 0 offen lds", "VMEM"),
        ("scratch_store_dword off, v0, off", "VMEM"),
        ("global_atomic_add v0, v1, s[0:1]", "VMEM"),
        ("image_sample v0, v1, s[0:7], s[8:11]", "VMEM"),
        ("flat_load_dword v0, v[1:2]", "FLAT"),
        ("ds_read_b64 v[0:1], v2", "LDS"),
        ("s_load_dwordx2 s[2:3], s[0:1], 0x0", "SMEM"),
        ("s_buffer_load_dword s0, s[4:7], 0x0", "SMEM"),
        ("s_memtime s[0:1]", "SMEM"),
        ("s_dcache_wb", "SMEM"),
        ("s_waitcnt vmcnt(0)", "WAITCNT"),
        ("s_waitcnt_depctr 0xfffe", "WAITCNT"),
        ("s_wait_loadcnt 0x0", "WAITCNT"),
        ("s_barrier", "BARRIER"),
        ("s_barrier_signal -1", "BARRIER"),
        ("s_cbranch_scc1 65431", "BRANCH"),
        ("s_branch 4", "BRANCH"),
        ("s_setpc_b64 s[30:31]", "BRANCH"),
        ("s_nop 0", "INTERNAL"),
        ("s_setprio 1", "INTERNAL"),
        ("s_endpgm", "INTERNAL"),
        ("s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)", "INTERNAL"),
        ("s_delay_alu instid0(VALU_DEP_1)", "INTERNAL"),
        ("s_mov_b32 s0, 0", "SALU"),
        ("s_and_saveexec_b64 s[0:1], vcc", "SALU"),
        ("exp mrt0 v0, v1, v2, v3", "OTHER"),
    ],
)
def test_class(isa, kind):
    assert classify(isa).value == kind


@pytest.mark.parametrize(
    ("isa", "gfx9", "gfx11", "gfx12"),
    [
        ("global_load_dword v0, v[1:2], off", ["vmcnt"], ["vmcnt"], ["loadcnt"]),
        ("global_store_dword v[1:2], v0, off", ["vmcnt"], ["vscnt"], ["storecnt"]),
        ("global_atomic_add v0, v1, v2, s[0:1] glc", ["vmcnt"], ["vmcnt"], ["loadcnt"]),
        ("global_atomic_add v1, v2, s[0:1]", ["vmcnt"], ["vscnt"], ["storecnt"]),
        ("flat_load_dword v0, v[1:2]", ["vmcnt", "lgkmcnt"], ["vmcnt", "lgkmcnt"], ["loadcnt", "dscnt"]),
        ("ds_read_b32 v0, v1", ["lgkmcnt"], ["lgkmcnt"], ["dscnt"]),
        ("s_load_dword s0, s[2:3], 0x0", ["lgkmcnt"], ["lgkmcnt"], ["kmcnt"]),
        ("image_sample v0, v1, s[0:7], s[8:11]", ["vmcnt"], ["vmcnt"], ["samplecnt"]),
    ],
)
def test_counters_of_memory_operations(isa, gfx9, gfx11, gfx12):
    found = [list(memory_operation(isa, gfx).counters) for gfx in (9, 11, 12)]
    assert found == [gfx9, gfx11, gfx12]


def test_scalar_and_flat_loads_return_out_of_order_and_others_in_order():
    assert not memory_operation("s_load_dword s0, s[2:3], 0x0", 9).in_order
    assert not memory_operation("flat_load_dword v0, v[1:2]", 9).in_order
    assert memory_operation("global_load_dword v0, v1, s[0:1]", 9).in_order
    assert memory_operation("ds_read_b32 v0, v1", 9).in_order
    assert memory_operation("v_nop", 9) is None


@pytest.mark.parametrize(
    ("isa", "limits", "label"),
    [
        ("s_waitcnt vmcnt(3)", (("vmcnt", 3),), "vmcnt"),
        ("s_waitcnt vmcnt(0) lgkmcnt(1)", (("vmcnt", 0), ("lgkmcnt", 1)), "vmcnt+lgkmcnt"),
        ("s_waitcnt vmcnt(0) & lgkmcnt(0)", (("vmcnt", 0), ("lgkmcnt", 0)), "vmcnt+lgkmcnt"),
        ("s_waitcnt_vscnt null, 0x2", (("vscnt", 2),), "vscnt"),
        ("s_wait_loadcnt 0x1", (("loadcnt", 1),), "loadcnt"),
        ("s_wait_kmcnt 0x0", (("kmcnt", 0),), "kmcnt"),
        ("s_wait_loadcnt_dscnt 0x301", (("loadcnt", 3), ("dscnt", 1)), "loadcnt+dscnt"),
        ("s_waitcnt_depctr 0xfffe", (), "depctr"),
        ("s_wait_alu 0xfffe", (), "alu"),
        ("s_waitcnt 0xc07f", (), "unnamed"),
    ],
)
def test_what_a_wait_waits_for(isa, limits, label):
    wait = wait_of(isa)
    assert (wait.limits, wait.label) == (limits, label)


def test_other_instructions_are_no_waits():
    assert wait_of("s_barrier") is None
