"""Single opcodes at their edges: not-a-number, infinities, denormals, zeros, shifts, carries, saturation.

Expected values are worked out by hand from the CDNA3 ISA document, not by the emulator's functions.
"""

from __future__ import annotations

import re
import subprocess

from rpl_testkit.requirements import require

NAN, SIGNALLING, INF = "7fc00000", "7f800001", "7f800000"
ALL_LANES = (1 << 64) - 1
#: Each lane holds its number.
NUMBERED = "v1=" + ",".join(f"{lane:x}" for lane in range(64))
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
