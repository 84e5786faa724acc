"""Single opcodes at their edges: not-a-number, infinities, denormals, zeros, shifts, carries, saturation.

Expected values are worked out by hand from the CDNA3 ISA document, not by the emulator's functions.
"""

from __future__ import annotations

import json
import math
import re
import struct
import subprocess

from rpl_testkit.requirements import require

NAN, SIGNALLING, INF = "7fc00000", "7f800001", "7f800000"
ALL_LANES = (1 << 64) - 1
#: Each lane holds its number.
NUMBERED = "v1=" + ",".join(f"{lane:x}" for lane in range(64))
#: Bytes 1 to 8; what is added to the four sums: 0, 1, 0, and 65535.
_SAD = "v0=04030201 v1=08070605 v6=00010000 v7=ffff0000"
#: A counter of 5 at 12, which M0 and an offset of 4 lead to.
_COUNTER = "m0=8 lds=" + "00" * 12 + "05000000"
#: Assembly with v1, v2, v3 and s1, s2 as sources; what these hold; register and value of the result.
CASES = (
    ("v_min_f32 v0, v1, v2", "v1=80000000 v2=0", "v0", 0x80000000),
    ("v_min_f32 v0, v1, v2", "v1=0 v2=80000000", "v0", 0x80000000),
    ("v_max_f32 v0, v1, v2", "v1=80000000 v2=0", "v0", 0),
    ("v_min_f32 v0, v1, v2", f"v1={NAN} v2=3f800000", "v0", 0x3F800000),
    ("v_min_f32 v0, v1, v2", f"v1={SIGNALLING} v2=3f800000", "v0", 0x7FC00001),
    ("v_max_f32 v0, v1, v2", f"v1=3f800000 v2={SIGNALLING}", "v0", 0x7FC00001),
    ("v_med3_f32 v0, v1, v2, v3", "v1=3f800000 v2=40400000 v3=40000000", "v0", 0x40000000),
    ("v_med3_f32 v0, v1, v2, v3", f"v1={NAN} v2=40400000 v3=40000000", "v0", 0x40000000),
    ("v_cvt_i32_f32 v0, v1", f"v1={NAN}", "v0", 0),
    ("v_cvt_i32_f32 v0, v1", f"v1={INF}", "v0", 0x7FFFFFFF),
    ("v_cvt_i32_f32 v0, v1", "v1=cf000001", "v0", 0x80000000),
    ("v_cvt_i32_f32 v0, v1", "v1=bfffffff", "v0", 0xFFFFFFFF),
    ("v_cvt_flr_i32_f32 v0, v1", "v1=bfc00000", "v0", 0xFFFFFFFE),
    ("v_sub_i16 v0, v1, v2", "v1=8000 v2=1", "v0", 0x7FFF),
    ("v_cvt_u32_f32 v0, v1", "v1=bf800000", "v0", 0),
    ("v_cvt_u32_f32 v0, v1", "v1=4f7fffff", "v0", 0xFFFFFF00),
    ("v_cvt_u32_f32 v0, v1", "v1=4f800000", "v0", 0xFFFFFFFF),
    ("v_cvt_f16_f32 v0, v1", "v1=3f801000", "v0", 0x3C00),
    ("v_cvt_f16_f32 v0, v1", "v1=3f803000", "v0", 0x3C02),
    ("v_cvt_f16_f32 v0, v1", "v1=477ff000", "v0", 0x7C00),
    ("v_cvt_f16_f32 v0, v1", "v1=33000000", "v0", 0),
    ("v_cvt_f16_f32 v0, v1", "v1=33000001", "v0", 1),
    ("v_cvt_f32_f16 v0, v1", "v1=0001", "v0", 0x33800000),
    ("v_cvt_f32_f16 v0, v1", "v1=fc00", "v0", 0xFF800000),
    ("v_cvt_pkrtz_f16_f32 v0, v1, v2", "v1=477fffff v2=bf801fff", "v0", 0xBC007BFF),
    ("v_add_f32 v0, v1, v2", "v1=00000001 v2=00000001", "v0", 2),
    ("v_mul_f32 v0, v1, v2", "v1=00800000 v2=3f000000", "v0", 0x00400000),
    ("v_fma_f32 v0, v1, v2, v3", "v1=3f800001 v2=3f800001 v3=bf800002", "v0", 0x28800000),
    ("v_fma_f16 v0, v1, v2, v3", "v0=abcd0000 v1=3c01 v2=3c01 v3=bc02", "v0", 0xABCD0010),
    ("v_add_f16 v0, v1, v2", "v0=abcd0000 v1=3c00 v2=1000", "v0", 0x3C00),
    ("v_ldexp_f32 v0, v1, v2", "v1=3f800000 v2=ffffff6b", "v0", 1),
    ("v_ldexp_f32 v0, v1, v2", "v1=3f800000 v2=80", "v0", 0x7F800000),
    ("v_fract_f32 v0, v1", "v1=80000001", "v0", 0x3F7FFFFF),
    ("v_frexp_exp_i32_f32 v0, v1", "v1=00000001", "v0", 0xFFFFFF6C),
    ("v_frexp_mant_f32 v0, v1", "v1=c0400000", "v0", 0xBF400000),
    ("v_cmp_class_f32 s[4:5], v1, v2", f"v1={SIGNALLING} v2=1", "s4", 0xFFFFFFFF),
    ("v_cmp_class_f32 s[4:5], v1, v2", "v1=80000001 v2=10", "s5", 0xFFFFFFFF),
    ("v_cmp_nlt_f32 s[4:5], v1, v2", f"v1={NAN} v2=0", "s4", 0xFFFFFFFF),
    ("v_cmp_lg_f32 s[4:5], v1, v2", f"v1={NAN} v2=0", "s4", 0),
    ("v_div_fixup_f32 v0, v1, v2, v3", "v1=3f800000 v2=0 v3=bf800000", "v0", 0xFF800000),
    ("v_div_fixup_f32 v0, v1, v2, v3", "v1=3f800000 v2=0 v3=80000000", "v0", 0xFFC00000),
    ("v_div_fixup_f32 v0, v1, v2, v3", f"v1=3f800000 v2={INF} v3=bf800000", "v0", 0x80000000),
    ("v_lshlrev_b32 v0, v1, v2", "v1=21 v2=1", "v0", 2),
    ("v_ashrrev_i32 v0, v1, v2", "v1=1f v2=80000000", "v0", 0xFFFFFFFF),
    ("v_bfe_i32 v0, v1, v2, v3", "v1=80000000 v2=1c v3=8", "v0", 0xFFFFFFF8),
    ("v_bfe_u32 v0, v1, v2, v3", "v1=ffffffff v2=0 v3=20", "v0", 0),
    ("v_perm_b32 v0, v1, v2, v3", "v1=80112233 v2=445566f7 v3=0d0c0b00", "v0", 0xFF00FFF7),
    ("v_alignbit_b32 v0, v1, v2, v3", "v1=1 v2=80000000 v3=3f", "v0", 3),
    ("v_ffbh_u32 v0, v1", "v1=0", "v0", 0xFFFFFFFF),
    ("v_ffbh_i32 v0, v1", "v1=ffffff00", "v0", 24),
    ("v_mul_hi_i32 v0, v1, v2", "v1=80000000 v2=80000000", "v0", 0x40000000),
    ("v_mul_i32_i24 v0, v1, v2", "v1=ffffff v2=5", "v0", 0xFFFFFFFB),
    ("v_add_u32 v0, v1, v2 clamp", "v1=ffffffff v2=2", "v0", 0xFFFFFFFF),
    ("v_sub_u32 v0, v1, v2 clamp", "v1=1 v2=2", "v0", 0),
    ("v_add_i32 v0, v1, v2 clamp", "v1=7fffffff v2=1", "v0", 0x7FFFFFFF),
    ("v_add_f32 v0, v1, v2 clamp", "v1=40000000 v2=3f800000", "v0", 0x3F800000),
    ("v_add_f32 v0, v1, v2 clamp", f"v1={NAN} v2=3f800000", "v0", 0),
    ("v_add_f32 v0, -v1, |v2|", "v1=40400000 v2=bf800000", "v0", 0xC0000000),
    ("v_addc_co_u32 v0, vcc, v1, v2, vcc", "v1=ffffffff v2=0 vcc=ffffffffffffffff", "vcc", ALL_LANES),
    ("v_subb_co_u32 v0, vcc, v1, v2, vcc", "v1=0 v2=0 vcc=ffffffffffffffff", "v0", 0xFFFFFFFF),
    ("v_mad_u64_u32 v[4:5], vcc, v1, v2, v[2:3]", "v1=ffffffff v2=ffffffff v3=ffffffff", "vcc", ALL_LANES),
    ("v_pk_add_u16 v0, v1, v2 clamp", "v1=ffff0001 v2=00020002", "v0", 0xFFFF0003),
    # A float between packed integers is its 32 bits: LLVM 22 writes <0, 16128> as 0.5 (3f000000).
    ("v_pk_add_u16 v0, v1, 0.5", "v1=00020001", "v0", 0x3F020001),
    ("v_pk_mad_u16 v0, v1, v2, 1.0", "v1=00020003 v2=00050007", "v0", 0x3F8A0015),
    ("v_pk_max_i16 v0, v1, 0.5 op_sel_hi:[1,0]", "v1=00020001", "v0", 0x00020001),
    ("v_pk_add_f16 v0, v1, 0.5 op_sel_hi:[1,0]", "v1=3c003c00", "v0", 0x3E003E00),
    ("v_pk_add_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]", "v1=40003c00 v2=3c003c00", "v0", 0x40004200),
    ("v_pack_b32_f16 v0, v1, v2 op_sel:[1,0,0]", "v1=12345678 v2=9abcdef0", "v0", 0xDEF01234),
    ("v_mov_b32_sdwa v0, v1 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1",
     "v0=aabbccdd v1=12345678", "v0", 0xAA34CCDD),
    ("v_cvt_pk_fp8_f32 v0, v1, v2", "v0=12345678 v1=43700000 v2=43800000", "v0", 0x1234807F),
    ("v_cvt_f32_bf8_sdwa v0, v1 src0_sel:BYTE_1", "v1=7f00", "v0", 0x47600000),
    ("s_add_i32 s0, s1, s2", "s1=7fffffff s2=1", "scc", 1),
    ("s_addc_u32 s0, s1, s2", "s1=ffffffff s2=0 scc=1", "scc", 1),
    ("s_subb_u32 s0, s1, s2", "s1=0 s2=ffffffff scc=1", "s0", 0),
    ("s_bfe_i32 s0, s1, s2", "s1=f0 s2=40004", "s0", 0xFFFFFFFF),
    ("s_lshl_b32 s0, s1, s2", "s1=1 s2=20", "s0", 1),
    ("s_flbit_i32 s0, s1", "s1=0", "s0", 0xFFFFFFFF),
    ("s_and_saveexec_b64 s[4:5], vcc", "exec=f vcc=3", "exec", 3),
    ("v_cmp_class_f16 s[4:5], v1, v2", "v1=bc00 v2=8", "s4", 0xFFFFFFFF),  # a negative number
    ("v_cmp_class_f16 s[4:5], v1, v2", "v1=3c00 v2=100", "s4", 0xFFFFFFFF),
    ("v_cmp_class_f16 s[4:5], v1, v2", "v1=7c01 v2=1", "s4", 0xFFFFFFFF),  # signalling
    ("v_cmp_class_f64 s[4:5], v[2:3], v1", "v2=1 v3=7ff00000 v1=1", "s4", 0xFFFFFFFF),
    ("s_cmpk_lg_u32 s1, 0x8001", "s1=8001", "scc", 0),
    ("s_cmpk_lg_u32 s1, 0x8001", "s1=1", "scc", 1),
    ("s_min_i32 s0, s1, s2", "s1=5 s2=5", "scc", 0),
    ("s_max_i32 s0, s1, s2", "s1=5 s2=5", "scc", 1),
    ("v_pk_min_f16 v0, v1, v2 neg_lo:[1,0] neg_hi:[0,1]", "v1=3c003c00 v2=40000000", "v0", 0xC000BC00),
    ("v_pk_min_f16 v0, v1, v2 clamp", "v1=40003800 v2=4200bc00", "v0", 0x3C000000),
    ("v_pk_max_f16 v0, v1, v2 neg_lo:[1,0] neg_hi:[0,1]", "v1=3c003c00 v2=40000000", "v0", 0x3C000000),
    ("v_pk_mov_b32 v[4:5], v[0:1], v[2:3] op_sel:[1,0]", "v0=a v1=b v2=c v3=d", "v4", 0xB),
    ("v_pk_mov_b32 v[4:5], v[0:1], v[2:3] op_sel:[1,0]", "v0=a v1=b v2=c v3=d", "v5", 0xC),
    ("v_pk_mov_b32 v[4:5], v[0:1], v[2:3] op_sel:[0,1]", "v0=a v1=b v2=c v3=d", "v4", 0xA),
    ("v_pk_mov_b32 v[4:5], v[0:1], v[2:3] op_sel:[0,1]", "v0=a v1=b v2=c v3=d", "v5", 0xD),
    ("v_msad_u8 v0, v1, v2, v3", "v1=01020304 v2=00050001 v3=10", "v0", 0x16),
    ("v_qsad_pk_u16_u8 v[4:5], v[0:1], v2, v[6:7]", f"{_SAD} v2=01010101", "v4", 0x000B0006),
    ("v_qsad_pk_u16_u8 v[4:5], v[0:1], v2, v[6:7]", f"{_SAD} v2=01010101", "v5", 0x0011000E),
    ("v_mqsad_pk_u16_u8 v[4:5], v[0:1], v2, v[6:7]", f"{_SAD} v2=01000001", "v4", 0x00060003),
    ("v_mqsad_pk_u16_u8 v[4:5], v[0:1], v2, v[6:7]", f"{_SAD} v2=01000001", "v5", 0x00080007),
    *(("v_mqsad_u32_u8 v[4:7], v[0:1], v2, v[8:11]", f"{_SAD} v2=01000001 v9=fffffffa", f"v{to}", found)
      for to, found in ((4, 3), (5, 0xFFFFFFFF), (6, 7), (7, 9))),
    ("v_cvt_off_f32_i4 v0, v1", "v1=7", "v0", 0x3EE00000),  # 7/16
    ("v_cvt_off_f32_i4 v0, v1", "v1=fffffff8", "v0", 0xBF000000),
    ("ds_cmpst_rtn_f32 v0, v1, v2, v3", "v1=0 v2=80000000 v3=7 exec=1", "v0", [0] * 64),
    ("v_dot4_i32_i8 v0, v1, v2, v3 clamp", "v1=7f7f7f7f v2=7f7f7f7f v3=7fffffff", "v0", 0x7FFFFFFF),
    ("v_dot4_i32_i8 v0, v1, v2, v3 clamp", "v1=80808080 v2=7f7f7f7f v3=80000000", "v0", 0x80000000),
    ("v_dot4_i32_i8 v0, v1, v2, v3", "v1=80808080 v2=7f7f7f7f v3=80000000", "v0", 0x7FFF0200),
    ("v_dot4_u32_u8 v0, v1, v2, v3 clamp", "v1=ffffffff v2=ffffffff v3=ffffffff", "v0", 0xFFFFFFFF),
    ("v_dot2_i32_i16 v0, v1, v2, v3 clamp", "v1=80008000 v2=80008000 v3=0", "v0", 0x7FFFFFFF),
    ("v_dot2_u32_u16 v0, v1, v2, v3 clamp", "v1=ffffffff v2=ffffffff v3=0", "v0", 0xFFFFFFFF),
    ("v_dot8_i32_i4 v0, v1, v2, v3 clamp", "v1=88888888 v2=77777777 v3=80000100", "v0", 0x80000000),
    ("v_dot8_u32_u4 v0, v1, v2, v3 clamp", "v1=11111111 v2=22222222 v3=5", "v0", 0x15),
    ("v_dot2_f32_f16 v0, v1, v2, v3 clamp", "v1=3c003c00 v2=3c003c00 v3=0", "v0", 0x3F800000),
    *((f"v_cube{what}_f32 v0, v1, v2, v3", xyz, "v0", found) for xyz, results in (
        ("v1=3f800000 v2=40000000 v3=c0400000", (0x40A00000, 0xBF800000, 0xC0000000, 0xC0C00000)),  # 1 2 -3
        ("v1=3f800000 v2=c0000000 v3=3f800000", (0x40400000, 0x3F800000, 0xBF800000, 0xC0800000)),  # 1 -2 1
        ("v1=c0400000 v2=3f800000 v3=40000000", (0x3F800000, 0x40000000, 0xBF800000, 0xC0C00000)),  # -3 1 2
        ("v1=3f800000 v2=3f800000 v3=3f800000", (0x40800000, 0x3F800000, 0xBF800000, 0x40000000)),  # equal: z
    ) for what, found in zip(("id", "sc", "tc", "ma"), results, strict=True)),
    ("ds_append v0 offset:4", f"{_COUNTER} exec=f0", "v0", [0] * 4 + [5] * 4 + [0] * 56),
    ("ds_consume v0 offset:4", f"{_COUNTER} exec=f0", "v0", [0] * 4 + [5] * 4 + [0] * 56),
    *((f"ds_swizzle_b32 v0, v1 offset:{how:#x}", NUMBERED, "v0", found) for how, found in (
        (0x311F, [j & 32 | (j & 31 | 8) ^ 12 for j in range(64)]),
        (0xC0A0, [j & 32 | (j + 5) % 32 for j in range(64)]),
        (0xC4A1, [j & 32 | j & 1 | (j - 5) % 32 & ~1 for j in range(64)]),
        (0xE000, [j & 32 | int(f"{j & 31:05b}"[::-1], 2) for j in range(64)]),
    )),
    *((f"v_mov_b32_dpp v0, v1 {way} row_mask:0xf bank_mask:0xf", f"v0=99 {NUMBERED}", "v0", found)
      for way, found in (
        ("row_mirror", [j & ~15 | 15 - j % 16 for j in range(64)]),
        ("row_half_mirror", [j & ~7 | 7 - j % 8 for j in range(64)]),
        ("row_ror:5", [j & ~15 | (j - 5) % 16 for j in range(64)]),
        ("row_newbcast:3", [j & ~15 | 3 for j in range(64)]),
        ("row_shl:2", [j + 2 if j % 16 < 14 else 0x99 for j in range(64)]),
        ("row_bcast:31", [31 if j >= 32 else 0x99 for j in range(64)]),
    )),
)  # fmt: skip


def _codes(lines: list[str]) -> list[str]:
    command = [require("llvm-mc-22"), "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "--show-encoding"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ["".join(re.findall(r"0x(\w\w)", line)) for line in re.findall(r"encoding: \[(.*)\]", done.stdout)]


def test_opcodes_at_their_edges(emulator):
    codes = _codes([assembly for assembly, *_ in CASES])
    assert len(codes) == len(CASES)
    lines = [f"code={c} {given} out={out}" for c, (_, given, out, _) in zip(codes, CASES, strict=True)]
    wrong = []
    for (assembly, given, out, expected), answer in zip(CASES, emulator.step(*lines), strict=True):
        value = answer.get(out)
        if value not in (expected, [expected] * 64):
            wrong.append((assembly, given, answer if value is None else value, hex(expected)))
    assert wrong == []


#: A base at the stepper's memory, no stride, 256 bytes.
_BUFFER = "s8=0 s9=2000 s10=100 s11=0"
_BYTES = "memory=" + "".join(f"{n:02x}" for n in range(256))


def _word(hex_bytes: str, at: int) -> int:
    return int.from_bytes(bytes.fromhex(hex_bytes)[at : at + 4], "little")


def test_loads_to_lds_go_by_the_lane_s_number(emulator):
    """The offset counts for both addresses (LLVM, IntrinsicsAMDGPU.td); M0 and 4 bytes a lane for LDS."""
    lanes = "exec=b m0=10 "  # lanes 0, 1 and 3
    addresses = "v2=" + ",".join(f"{8 * lane:x}" for lane in range(64)) + " v3=2000"
    cases = (
        ("global_load_lds_dword v[2:3], off offset:8", {24: 0x0B0A0908, 28: 0x13121110, 36: 0x23222120}),
        ("global_load_lds_sbyte v[2:3], off offset:120", {136: 0x78, 140: 0xFFFFFF80, 148: 0xFFFFFF90}),
        (
            "buffer_load_dword v2, s[8:11], 0 offen offset:4 lds",
            {20: 0x07060504, 24: 0x0F0E0D0C, 32: 0x1F1E1D1C},
        ),
        (
            "buffer_load_ushort v2, s[8:11], 0 offen offset:240 lds",
            {256: 0xF1F0, 260: 0xF9F8, 268: 0},
        ),  # the last is outside
    )
    codes = _codes([assembly for assembly, _ in cases])
    lines = [f"code={code} {lanes} {_BUFFER} {addresses} {_BYTES} lds={'ee' * 320} out=lds" for code in codes]
    for (assembly, expected), answer in zip(cases, emulator.step(*lines), strict=True):
        lds = answer["lds"]
        found = {at: _word(lds, at) for at in range(0, 320, 4) if _word(lds, at) != 0xEEEEEEEE}
        assert found == expected, (assembly, answer.get("refused"))


def test_buffers_offer_what_global_memory_does(emulator):
    """Result and memory at 16, of one lane, by the CDNA3 ISA document. Outside of a buffer loads give 0."""
    low, high = 0x13121110, 0x17161514
    cases = (
        ("buffer_atomic_inc v4, off, s[8:11], 0 offset:16 sc0", "v4=ffffffff", low, low + 1),
        ("buffer_atomic_dec v4, off, s[8:11], 0 offset:16 sc0", "v4=5", low, 5),
        ("buffer_atomic_cmpswap v[4:5], off, s[8:11], 0 offset:16 sc0", f"v4=abc v5={low:x}", low, 0xABC),
        ("buffer_atomic_cmpswap v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=abc v5=0", low, low),
        ("buffer_atomic_cmpswap_x2 v[4:7], off, s[8:11], 0 offset:16", f"v4=1 v6={low:x} v7={high:x}", 1, 1),
        ("buffer_atomic_swap_x2 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=9 v5=8", low, 9),
        ("buffer_atomic_sub_x2 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=1 v5=0", low, low - 1),
        ("buffer_atomic_and_x2 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=ff v5=0", low, 0x10),
        ("buffer_atomic_or_x2 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=ff v5=0", low, 0x131211FF),
        ("buffer_atomic_xor_x2 v[4:5], off, s[8:11], 0 offset:16 sc0", f"v4={low:x} v5=0", low, 0),
        ("buffer_atomic_umin_x2 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=7 v5=0", low, 7),
        ("buffer_atomic_umax_x2 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=7 v5=ffffffff", low, 7),
        ("buffer_atomic_smax_x2 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=7 v5=ffffffff", low, low),
        ("buffer_atomic_smin_x2 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=7 v5=ffffffff", low, 7),
        ("buffer_atomic_inc_x2 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=0 v5=0", low, 0),
        ("buffer_atomic_max_f64 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=3 v5=40000000", low, 3),
        ("buffer_atomic_min_f64 v[4:5], off, s[8:11], 0 offset:16 sc0", "v4=3 v5=40000000", low, low),
        ("buffer_load_ubyte_d16 v4, off, s[8:11], 0 offset:144", "v4=abcdef01", 0xABCD0090, low),
        ("buffer_load_sbyte_d16 v4, off, s[8:11], 0 offset:144", "v4=abcdef01", 0xABCDFF90, low),
        ("buffer_load_sbyte_d16_hi v4, off, s[8:11], 0 offset:144", "v4=abcdef01", 0xFF90EF01, low),
        ("buffer_load_short_d16_hi v4, off, s[8:11], 0 offset:144", "v4=abcdef01", 0x9190EF01, low),
        ("buffer_load_short_d16_hi v4, off, s[8:11], 0 offset:256", "v4=abcdef01", 0xEF01, low),
        ("buffer_load_short_d16 v4, off, s[8:11], 0 offset:256", "v4=abcdef01", 0xABCD0000, low),
        ("buffer_store_short_d16_hi v4, off, s[8:11], 0 offset:16", "v4=abcdef01", 0xABCDEF01, 0x1312ABCD),
        ("buffer_store_byte_d16_hi v4, off, s[8:11], 0 offset:17", "v4=abcdef01", 0xABCDEF01, 0x1312CD10),
    )  # fmt: skip
    codes = _codes([assembly for assembly, *_ in cases])
    lines = [
        f"code={code} exec=1 {_BUFFER} {_BYTES} {given} out=v4,memory"
        for code, (_, given, *_) in zip(codes, cases, strict=True)
    ]
    for (assembly, _, result, memory), answer in zip(cases, emulator.step(*lines), strict=True):
        assert "refused" not in answer, answer
        assert (answer["v4"][0], _word(answer["memory"], 16)) == (result, memory), assembly


def test_counters_of_lds_go_by_the_lanes_that_are_on(emulator):
    for assembly, left in (("ds_append v0 offset:4", 9), ("ds_consume v0 offset:4", 1)):
        (answer,) = emulator.step(f"code={_codes([assembly])[0]} {_COUNTER} exec=f0 out=lds")
        assert _word(answer["lds"], 12) == left


#: Words 0 to 127: each holds its number, and 0x1000 more.
_WORDS = "lds=" + "".join((0x1000 + k).to_bytes(4, "little").hex() for k in range(128))
_TWO = "v1=8 v2=a v3=b v4=c v5=d"


def test_lds_is_exchanged_wrapped_and_read_by_the_lane_s_number(emulator):
    """CDNA3 ISA, DS_WRXCHG2_RTN, DS_WRAP_RTN_B32, DS_*_ADDTID_B32: results of lane 0, words that change."""
    cases = (
        ("ds_wrxchg2_rtn_b32 v[6:7], v1, v2, v3 offset0:1 offset1:3", _TWO, [0x1003, 0x1005],
         {3: 0xA, 5: 0xB}),
        ("ds_wrxchg2st64_rtn_b32 v[6:7], v1, v2, v3 offset1:1", _TWO, [0x1002, 0x1042], {2: 0xA, 66: 0xB}),
        ("ds_wrxchg2_rtn_b64 v[6:9], v1, v[2:3], v[4:5] offset1:1", _TWO, [0x1002, 0x1003, 0x1004, 0x1005],
         {2: 0xA, 3: 0xB, 4: 0xC, 5: 0xD}),
        # Both places are read before one is written: the second datum stays where they are the same.
        ("ds_wrxchg2_rtn_b32 v[6:7], v1, v2, v3", _TWO, [0x1002, 0x1002], {2: 0xB}),
        ("ds_wrap_rtn_b32 v6, v1, v2, v3 offset:4", "v1=8 v2=1003 v3=5", [0x1003], {3: 0}),
        ("ds_wrap_rtn_b32 v6, v1, v2, v3 offset:4", "v1=8 v2=1004 v3=5", [0x1003], {3: 0x1008}),
        ("ds_write_addtid_b32 v2 offset:8", "m0=10004 v2=a", [], {3: 0xA}),
        ("ds_read_addtid_b32 v6 offset:8", "m0=10004", [0x1003], {}),
    )  # fmt: skip
    codes = _codes([assembly for assembly, *_ in cases])
    lines = [
        f"code={code} exec=1 {_WORDS} {given} out=v6,v7,v8,v9,lds"
        for code, (_, given, *_) in zip(codes, cases, strict=True)
    ]
    for (assembly, _, results, changed), answer in zip(cases, emulator.step(*lines), strict=True):
        assert "refused" not in answer, answer
        assert [answer[f"v{6 + k}"][0] for k in range(len(results))] == results, assembly
        words = {k: _word(answer["lds"], 4 * k) for k in range(128)}
        assert {k: word for k, word in words.items() if word != 0x1000 + k} == changed, assembly
    code = _codes(["ds_read_addtid_b32 v6"])[0]
    (answer,) = emulator.step(f"code={code} exec=8000000000000021 {_WORDS} out=v6")
    assert {k: x for k, x in enumerate(answer["v6"]) if x} == {0: 0x1000, 5: 0x1005, 63: 0x103F}


def test_scalar_registers_are_relative_to_m0(emulator):
    """CDNA3 ISA, S_MOVRELS and S_MOVRELD; what lies beyond the program's registers is refused."""
    given = "s4=a s5=b s6=c s7=d s8=e s9=f"
    cases = (
        ("s_movrels_b32 s0, s4", "m0=3", "s0", 0xD),
        ("s_movrels_b64 s[0:1], s[4:5]", "m0=4", "s1", 0xF),
        ("s_movreld_b32 s4, s9", "m0=2", "s6", 0xF),
        ("s_movreld_b64 s[4:5], s[8:9]", "m0=2", "s7", 0xF),
        ("s_movreld_b32 s4, -1", "m0=61", "s101", 0xFFFFFFFF),
    )
    codes = _codes([assembly for assembly, *_ in cases])
    lines = [
        f"code={code} {given} {m0} out={out}" for code, (_, m0, out, _) in zip(codes, cases, strict=True)
    ]
    for (assembly, _, out, expected), answer in zip(cases, emulator.step(*lines), strict=True):
        assert answer.get(out) == expected, (assembly, answer)
    for code, m0 in ((codes[0], "62"), (codes[1], "61"), (codes[1], "3"), (codes[2], "fffffffc")):
        (answer,) = emulator.step(f"code={code} {given} m0={m0} out=s0")
        assert "beyond" in answer.get("refused", "") or (m0 == "fffffffc"), (m0, answer)


def _arc(numerator: int, denominator: int, bits: int) -> int:
    """The arc tangent of a fraction, in units of 2^-bits."""
    term = total = (numerator << bits) // denominator
    for k in range(3, bits, 2):
        term = term * numerator * numerator // (denominator * denominator)
        total += (-1) ** (k // 2) * (term // k)
    return total


def test_segments_of_two_over_pi_are_exact(emulator):
    """V_TRIG_PREOP_F64 by whole numbers; pi by Euler's 20 atan(1/7) + 8 atan(3/79)."""
    bits = 1600
    two_over_pi = (2 << 2 * bits) // (20 * _arc(1, 7, bits) + 8 * _arc(3, 79, bits)) >> bits - 1201
    cases = [
        (e, s) for e in (0, 1, 1023, 1077, 1078, 1100, 1500, 1967, 1968, 2046) for s in (0, 1, 2, 9, 22, 31)
    ]
    code = _codes(["v_trig_preop_f64 v[4:5], v[0:1], v2"])[0]
    lines = [f"code={code} v0=12345678 v1={e << 20 | 0x54321:x} v2={s:x} out=v4,v5" for e, s in cases]
    for (exponent, segment), answer in zip(cases, emulator.step(*lines), strict=True):
        shift = 53 * segment + max(0, exponent - 1077)
        part = (two_over_pi << 53 + shift >> 1201) & (1 << 53) - 1
        expected = math.ldexp(part, -53 - shift + (128 if exponent >= 1968 else 0))
        found = struct.unpack("<d", struct.pack("<II", answer["v4"][0], answer["v5"][0]))[0]
        assert found == expected, (exponent, segment)


def test_the_table_of_known_opcodes_says_what_is_offered(emulator):
    done = subprocess.run(
        [emulator.program, "opcodes", "--known"], capture_output=True, text=True, check=True
    )
    known = {one["opcode"]: one for one in json.loads(done.stdout)["opcodes"]}
    assert len(known) > 1000
    assert known["v_trig_preop_f64"]["offered"]
    assert known["ds_append"]["encodings"] == ["DS"]
    assert known["s_rfe_b64"]["why"] == "unknown instruction"
    offered = sum(one["offered"] for one in known.values())
    assert offered >= 1015, offered  # what is offered stays so


def test_what_llvm_marks_as_invalid_is_refused(emulator):
    """``s_setpc_b64 -12/*Invalid immediate*/``: drawn words led to it."""
    (answer,) = emulator.step("code=cc1ddbbe out=s0")
    assert "Invalid" in answer["refused"]


def test_sums_are_rounded_as_the_mode_register_says(emulator):
    """MODE: 1 up, 2 down, 3 to zero; bits 0, 1 of floats, 2, 3 of doubles. Denormals are kept (0xf0)."""
    single, twice = _codes(["v_add_f32 v0, v1, v2", "v_add_f64 v[4:5], v[0:1], v[2:3]"])
    exact = "v1=3f800000 v2=33000000"  # 1 + 2^-25
    negative = "v1=bf800000 v2=b3000000"
    for mode, plus, minus in ((0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 0, 0), (12, 0, 0), (7, 0, 0)):
        answers = emulator.step(
            *(f"code={single} mode={mode | 0xF0:x} {given} out=v0" for given in (exact, negative))
        )
        assert [one["v0"][0] & 0xFF for one in answers] == [plus, minus], mode
    for mode, low in ((0, 0), (4, 1), (8, 0), (12, 0), (1, 0)):  # 1 + 2^-54
        (answer,) = emulator.step(f"code={twice} mode={mode | 0xF0:x} v1=3ff00000 v3=3c900000 out=v4,v5")
        assert (answer["v4"][0], answer["v5"][0]) == (low, 0x3FF00000), mode
    # Of halves 1 + 2^-12, -(1 + 2^-12), 65504 + 32; of a conversion 65536 and -2^-26; of a double 1 + 2^-24.
    add, convert, shorten = _codes(
        ["v_add_f16 v0, v1, v2", "v_cvt_f16_f32 v0, v1", "v_cvt_f32_f64 v0, v[2:3]"]
    )
    given = (
        f"code={add} v1=3c00 v2=c00", f"code={add} v1=bc00 v2=8c00", f"code={add} v1=7bff v2=5000",
        f"code={convert} v1=47800000", f"code={convert} v1=b2800000",
        f"code={shorten} v3=3ff00000 v2=10000000",
    )  # fmt: skip
    expected = {
        0: (0x3C00, 0xBC00, 0x7C00, 0x7C00, 0x8000, 0x3F800000),
        4: (0x3C01, 0xBC00, 0x7C00, 0x7C00, 0x8000, 0x3F800001),
        8: (0x3C00, 0xBC01, 0x7BFF, 0x7BFF, 0x8001, 0x3F800000),
        12: (0x3C00, 0xBC00, 0x7BFF, 0x7BFF, 0x8000, 0x3F800000),
        1: (0x3C00, 0xBC00, 0x7C00, 0x7C00, 0x8000, 0x3F800000),
    }
    for mode, values in expected.items():
        answers = emulator.step(*(f"{one} mode={mode | 0xF0:x} out=v0" for one in given))
        assert tuple(one["v0"][0] for one in answers) == values, mode


def test_packed_floats_and_matrices_while_denormals_are_flushed(emulator):
    """MODE 0xc0: floats lose denormals, halves keep them. Matrices run where no denormal can be met."""
    add, moved, halves, matrix = _codes(
        [
            "v_pk_add_f32 v[4:5], v[0:1], v[2:3]",
            "v_pk_mov_b32 v[4:5], v[0:1], v[2:3]",
            "v_pk_add_f16 v4, v0, v2",
            "v_mfma_f32_4x4x4_16b_f16 v[4:7], v[0:1], v[2:3], v[8:11]",
        ]
    )
    given = "v0=1 v1=800000 v2=2 v3=80000001"
    for mode, floats in (("c0", [0, 0x800000]), ("f0", [3, 0x7FFFFF]), ("30", [3, 0x7FFFFF])):
        (answer,) = emulator.step(f"code={add} mode={mode} {given} out=v4,v5")
        assert [answer["v4"][0], answer["v5"][0]] == floats, mode
        (answer,) = emulator.step(f"code={moved} mode={mode} {given} out=v4,v5")
        assert [answer["v4"][0], answer["v5"][0]] == [1, 2], mode
        (answer,) = emulator.step(f"code={halves} mode={mode} v0=10002 v2=10003 out=v4")
        assert answer["v4"][0] == (0 if mode == "30" else 0x20005), mode
    ones = "v0=3c003c00 v1=3c003c00 v2=40004000 v3=40004000"
    for mode, given, runs in (
        ("c0", ones, True),
        ("c0", f"{ones} v8=3f800000", True),
        ("c0", f"{ones} v8=800000", False),  # the least normal number: sums may lie below
        ("f0", f"{ones} v8=800000", True),
        ("c0", ones.replace("v0=3c003c00", "v0=3c000001"), False),  # a denormal half
        ("f1", ones, False),
    ):
        (answer,) = emulator.step(f"code={matrix} mode={mode} {given} out=v4,v5")
        assert ("refused" not in answer) == runs, (mode, given, answer.get("refused"))
        if runs:
            assert answer["v5"][0] == 0x41000000
