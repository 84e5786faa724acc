// Integer and bit operations of 32 bits, and moves. Semantics: "AMD Instinct MI300" CDNA3 ISA, section 12.
#include "opcodes/lanes.h"
#include "opcodes/lists.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

constexpr u32 low24(u32 a) { return a & 0xffffff; }
constexpr i32 signed24(u32 a) { return static_cast<i32>(a << 8) >> 8; }
template <class T> constexpr T smaller(T a, T b) { return b < a ? b : a; }
template <class T> constexpr T larger(T a, T b) { return a < b ? b : a; }
template <class T> constexpr T middle(T a, T b, T c) { return larger(smaller(a, b), smaller(larger(a, b), c)); }

u32 leading(u32 a) { return a == 0 ? ~0U : static_cast<u32>(std::countl_zero(a)); }
u32 trailing(u32 a) { return a == 0 ? ~0U : static_cast<u32>(std::countr_zero(a)); }
u32 reversed(u32 a) {
  a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
  a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(a);
}
// From the highest bit: how many bits equal the sign, but for a number of equal bits -1.
u32 sign_bits(u32 a) { return leading(static_cast<i32>(a) < 0 ? ~a : a); }

u32 field_mask(u32 width) { return (1U << (width & 31)) - 1; }
u32 extract(u32 a, u32 at, u32 width) { return a >> (at & 31) & field_mask(width); }
u32 extract_signed(u32 a, u32 at, u32 width) {
  const u32 field = static_cast<u32>(static_cast<i32>(a) >> (at & 31)) & field_mask(width);
  const u32 sign = (1U << (width & 31)) >> 1;
  return (field ^ sign) - sign;
}
// Byte of {a, b} by selector: 0-3 b, 4-7 a, 8-11 a sign, 12 zero, above all ones.
u32 pick(u64 both, u32 selector) {
  if (selector > 12) return 0xff;
  if (selector == 12) return 0;
  if (selector >= 8) {
    const u32 at = (selector - 8) * 16 + 15;
    return both >> at & 1 ? 0xff : 0;
  }
  return static_cast<u32>(both >> (8 * selector)) & 0xff;
}
u32 permuted(u32 a, u32 b, u32 selector) {
  const u64 both = u64{a} << 32 | b;
  u32 out = 0;
  for (unsigned k = 0; k < 4; ++k) out |= pick(both, selector >> (8 * k) & 0xff) << (8 * k);
  return out;
}
u32 distance8(u32 a, u32 b) {
  u32 sum = 0;
  for (unsigned k = 0; k < 32; k += 8) {
    const i32 d = static_cast<i32>(a >> k & 0xff) - static_cast<i32>(b >> k & 0xff);
    sum += static_cast<u32>(d < 0 ? -d : d);
  }
  return sum;
}
u32 distance16(u32 a, u32 b) {
  u32 sum = 0;
  for (unsigned k = 0; k < 32; k += 16) {
    const i32 d = static_cast<i32>(a >> k & 0xffff) - static_cast<i32>(b >> k & 0xffff);
    sum += static_cast<u32>(d < 0 ? -d : d);
  }
  return sum;
}
u32 average8(u32 a, u32 b, u32 round) {
  u32 out = 0;
  for (unsigned k = 0; k < 32; k += 8) out |= ((a >> k & 0xff) + (b >> k & 0xff) + (round >> k & 1)) >> 1 << k;
  return out;
}
u32 saturated(i64 a) { return static_cast<u32>(a > INT32_MAX ? INT32_MAX : a < INT32_MIN ? INT32_MIN : a); }

void read_first_lane(Wave& w, const Instruction& i) {
  const u64 exec = w.exec();
  const unsigned lane = exec == 0 ? 0 : static_cast<unsigned>(std::countr_zero(exec));
  w.s[i.to[0].index] = i.from[0].place == Place::vector ? w.v[i.from[0].index][lane] : w.scalar(i.from[0]);
}
void read_lane(Wave& w, const Instruction& i) {
  const unsigned lane = w.scalar(i.from[1]) & 63;
  w.s[i.to[0].index] = i.from[0].place == Place::vector ? w.v[i.from[0].index][lane] : w.scalar(i.from[0]);
}
void write_lane(Wave& w, const Instruction& i) {
  w.v[i.to[0].index][w.scalar(i.from[1]) & 63] = w.scalar(i.from[0]);
}
void bits_below(Wave& w, const Instruction& i, unsigned first) {
  Temporary ta, tb, tr;
  const u32* a = source_rows<u32>(w, i.from[0], ta);
  const u32* b = source_rows<u32>(w, i.from[1], tb);
  for (unsigned j = 0; j < kLanes; ++j) {
    const u32 mask = j < first ? 0 : j >= first + 32 ? ~0U : (1U << (j - first)) - 1;
    tr.words[j] = static_cast<u32>(std::popcount(a[j] & mask)) + b[j];
  }
  merge_rows(w.v[i.to[0].index], tr.words, w.exec(), 1);
}
void count_low(Wave& w, const Instruction& i) { bits_below(w, i, 0); }
void count_high(Wave& w, const Instruction& i) { bits_below(w, i, 32); }

void exchange(Wave& w, const Instruction& i) {
  Temporary old;
  u32* a = w.v[i.to[0].index];
  u32* b = w.v[i.from[0].index];
  std::memcpy(old.words, a, sizeof(u32) * kLanes);
  merge_rows(a, b, w.exec(), 1);
  merge_rows(b, old.words, w.exec(), 1);
}
void nothing(Wave&, const Instruction&) {}

constexpr Carried add_out(u32 a, u32 b, u32 c) { return {a + b + c, u64{a} + b + c > 0xffffffffU}; }
constexpr Carried sub_out(u32 a, u32 b, u32 c) { return {a - b - c, u64{b} + c > a}; }
constexpr Carried sub_rev_out(u32 a, u32 b, u32 c) { return sub_out(b, a, c); }

// The second destination is bit 64 of the sum.
template <bool Signed>
void wide_multiply_add(Wave& w, const Instruction& i) {
  Temporary ta, tb, tc, tr, tm;
  const u32* a = source_rows<u32>(w, i.from[0], ta);
  const u32* b = source_rows<u32>(w, i.from[1], tb);
  const u32* c = source_rows<u64>(w, i.from[2], tc);
  for (unsigned j = 0; j < kLanes; ++j) {
    const u64 product = Signed ? static_cast<u64>(i64{static_cast<i32>(a[j])} * static_cast<i32>(b[j]))
                               : u64{a[j]} * b[j];
    const u64 add = lane_get<u64>(c, j);
    const u64 sum = product + add;
    const u64 carry = Signed ? (product & add) | ((product | add) & sum) : (product & add) | ((product | add) & ~sum);
    lane_put<u64>(tr.words, j, sum);
    tm.words[j] = static_cast<u32>(static_cast<i64>(carry) >> 63);
  }
  merge_rows(w.v[i.to[0].index], tr.words, w.exec(), 2);
  w.set64(i.to[1].index, gather_bits(tm.words) & w.exec());
}

// Of the bytes that are not 0 in the reference, `b`.
u32 masked_distance8(u32 a, u32 b) {
  u32 mask = 0;
  for (unsigned k = 0; k < 32; k += 8) mask |= b >> k & 0xff ? 0xffU << k : 0;
  return distance8(a & mask, b);
}
// CDNA3 ISA, V_QSAD_PK_U16_U8: four sums of 16 bits, each of the reference and four bytes of `a` from another byte on.
template <class F>
u64 four_distances(F distance, u64 a, u32 b, u64 c) {
  u64 out = 0;
  for (unsigned k = 0; k < 4; ++k) out |= ((distance(static_cast<u32>(a >> (8 * k)), b) + (c >> (16 * k))) & 0xffff) << (16 * k);
  return out;
}

// CDNA3 ISA, V_MQSAD_U32_U8: as above, of 32 bits, so that sources and result have two and four words.
void four_masked_distances(Wave& w, const Instruction& i) {
  Temporary ta, tb, low, high;
  const u32* a = source_rows<u64>(w, i.from[0], ta);
  const u32* b = source_rows<u32>(w, i.from[1], tb);
  const u32(*c)[kLanes] = &w.v[i.from[2].index];
  for (unsigned j = 0; j < kLanes; ++j) {
    const u64 both = lane_get<u64>(a, j);
    const auto sum = [&](unsigned k) { return masked_distance8(static_cast<u32>(both >> (8 * k)), b[j]) + c[k][j]; };
    lane_put<u64>(low.words, j, sum(0) | u64{sum(1)} << 32);
    lane_put<u64>(high.words, j, sum(2) | u64{sum(3)} << 32);
  }
  merge_rows(w.v[i.to[0].index], low.words, w.exec(), 2);
  merge_rows(w.v[i.to[0].index + 2], high.words, w.exec(), 2);
}

const Row kRows[] = {
    {"v_mqsad_u32_u8", Form::vector, "V:UuV", "valu.int32", four_masked_distances, ""},
    RPL_ROW(v_nop, ":", "valu.other", nothing),
    RPL_ROW(v_mov_b32, "u:u", "valu.other", (lanes<[](u32 a) { return a; }>)),
    RPL_ROW(v_mov_b64, "U:U", "valu.other", (lanes<[](u64 a) { return a; }>)),
    RPL_ROW(v_swap_b32, "u:u", "valu.other", exchange),
    RPL_ROW(v_not_b32, "u:u", "valu.int32", (lanes<[](u32 a) { return ~a; }>)),
    RPL_ROW(v_bfrev_b32, "u:u", "valu.int32", (lanes<[](u32 a) { return reversed(a); }>)),
    RPL_ROW(v_ffbh_u32, "u:u", "valu.int32", (lanes<[](u32 a) { return leading(a); }>)),
    RPL_ROW(v_ffbl_b32, "u:u", "valu.int32", (lanes<[](u32 a) { return trailing(a); }>)),
    RPL_ROW(v_ffbh_i32, "u:u", "valu.int32", (lanes<[](u32 a) { return sign_bits(a); }>)),
    RPL_ROW(v_readfirstlane_b32, "s:u", "valu.other", read_first_lane),
    RPL_ROW(v_readlane_b32, "s:uu", "valu.other", read_lane),
    RPL_ROW(v_writelane_b32, "u:uu", "valu.other", write_lane),
    RPL_ROW(v_mbcnt_lo_u32_b32, "u:uu", "valu.int32", count_low),
    RPL_ROW(v_mbcnt_hi_u32_b32, "u:uu", "valu.int32", count_high),
    RPL_ROW(v_bcnt_u32_b32, "u:uu", "valu.int32",
            (lanes<[](u32 a, u32 b) { return static_cast<u32>(std::popcount(a)) + b; }>)),
    RPL_ROW(v_cndmask_b32, "u:uub", "valu.int32", (lanes<[](u32 a, u32 b, Bit c) { return c.set ? b : a; }>)),
    RPL_ROW(v_add_u32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return a + b; }>)),
    RPL_ROW(v_sub_u32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return a - b; }>)),
    RPL_ROW(v_subrev_u32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return b - a; }>)),
    RPL_ROW(v_add_i32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return a + b; }>)),
    RPL_ROW(v_sub_i32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return a - b; }>)),
    {"v_add_u32.clamp", Form::vector, "u:uu", "valu.int32",
     lanes<[](u32 a, u32 b) { return a + b < a ? ~0U : a + b; }>, ""},
    {"v_sub_u32.clamp", Form::vector, "u:uu", "valu.int32",
     lanes<[](u32 a, u32 b) { return a < b ? 0U : a - b; }>, ""},
    {"v_subrev_u32.clamp", Form::vector, "u:uu", "valu.int32",
     lanes<[](u32 a, u32 b) { return b < a ? 0U : b - a; }>, ""},
    {"v_add_i32.clamp", Form::vector, "u:uu", "valu.int32",
     lanes<[](i32 a, i32 b) { return saturated(i64{a} + b); }>, ""},
    {"v_sub_i32.clamp", Form::vector, "u:uu", "valu.int32",
     lanes<[](i32 a, i32 b) { return saturated(i64{a} - b); }>, ""},
    RPL_ROW(v_add_co_u32, "ub:uu", "valu.int32", (carry_lanes<add_out, false>)),
    RPL_ROW(v_sub_co_u32, "ub:uu", "valu.int32", (carry_lanes<sub_out, false>)),
    RPL_ROW(v_subrev_co_u32, "ub:uu", "valu.int32", (carry_lanes<sub_rev_out, false>)),
    RPL_ROW(v_addc_co_u32, "ub:uub", "valu.int32", (carry_lanes<add_out, true>)),
    RPL_ROW(v_subb_co_u32, "ub:uub", "valu.int32", (carry_lanes<sub_out, true>)),
    RPL_ROW(v_subbrev_co_u32, "ub:uub", "valu.int32", (carry_lanes<sub_rev_out, true>)),
    RPL_ROW(v_and_b32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return a & b; }>)),
    RPL_ROW(v_or_b32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return a | b; }>)),
    RPL_ROW(v_xor_b32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return a ^ b; }>)),
    RPL_ROW(v_xnor_b32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return ~(a ^ b); }>)),
    RPL_ROW(v_lshlrev_b32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return b << (a & 31); }>)),
    RPL_ROW(v_lshrrev_b32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return (b >> (a & 31)); }>)),
    RPL_ROW(v_ashrrev_i32, "u:uu", "valu.int32", (lanes<[](u32 a, i32 b) { return (b >> (a & 31)); }>)),
    RPL_ROW(v_min_u32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return smaller(a, b); }>)),
    RPL_ROW(v_max_u32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return larger(a, b); }>)),
    RPL_ROW(v_min_i32, "u:uu", "valu.int32", (lanes<[](i32 a, i32 b) { return smaller(a, b); }>)),
    RPL_ROW(v_max_i32, "u:uu", "valu.int32", (lanes<[](i32 a, i32 b) { return larger(a, b); }>)),
    RPL_ROW(v_mul_lo_u32, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return a * b; }>)),
    RPL_ROW(v_mul_hi_u32, "u:uu", "valu.int32",
            (lanes<[](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }>)),
    RPL_ROW(v_mul_hi_i32, "u:uu", "valu.int32",
            (lanes<[](i32 a, i32 b) { return static_cast<u32>(static_cast<u64>(i64{a} * b) >> 32); }>)),
    RPL_ROW(v_mul_u32_u24, "u:uu", "valu.int32", (lanes<[](u32 a, u32 b) { return low24(a) * low24(b); }>)),
    RPL_ROW(v_mul_hi_u32_u24, "u:uu", "valu.int32",
            (lanes<[](u32 a, u32 b) { return static_cast<u32>(u64{low24(a)} * low24(b) >> 32); }>)),
    RPL_ROW(v_mul_i32_i24, "u:uu", "valu.int32",
            (lanes<[](u32 a, u32 b) { return static_cast<u32>(i64{signed24(a)} * signed24(b)); }>)),
    RPL_ROW(v_mul_hi_i32_i24, "u:uu", "valu.int32",
            (lanes<[](u32 a, u32 b) { return static_cast<u32>(i64{signed24(a)} * signed24(b) >> 32); }>)),
    RPL_ROW(v_mad_u32_u24, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return low24(a) * low24(b) + c; }>)),
    RPL_ROW(v_mad_i32_i24, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return static_cast<u32>(i64{signed24(a)} * signed24(b)) + c; }>)),
    RPL_ROW(v_lshl_add_u32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }>)),
    RPL_ROW(v_add_lshl_u32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }>)),
    RPL_ROW(v_add3_u32, "u:uuu", "valu.int32", (lanes<[](u32 a, u32 b, u32 c) { return a + b + c; }>)),
    RPL_ROW(v_lshl_or_b32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return a << (b & 31) | c; }>)),
    RPL_ROW(v_and_or_b32, "u:uuu", "valu.int32", (lanes<[](u32 a, u32 b, u32 c) { return (a & b) | c; }>)),
    RPL_ROW(v_or3_b32, "u:uuu", "valu.int32", (lanes<[](u32 a, u32 b, u32 c) { return a | b | c; }>)),
    RPL_ROW(v_xad_u32, "u:uuu", "valu.int32", (lanes<[](u32 a, u32 b, u32 c) { return (a ^ b) + c; }>)),
    RPL_ROW(v_bfi_b32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }>)),
    RPL_ROW(v_bfe_u32, "u:uuu", "valu.int32", (lanes<[](u32 a, u32 b, u32 c) { return extract(a, b, c); }>)),
    RPL_ROW(v_bfe_i32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return extract_signed(a, b, c); }>)),
    RPL_ROW(v_bfm_b32, "u:uu", "valu.int32",
            (lanes<[](u32 a, u32 b) { return field_mask(a) << (b & 31); }>)),
    RPL_ROW(v_alignbit_b32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{a} << 32 | b) >> (c & 31)); }>)),
    RPL_ROW(v_alignbyte_b32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{a} << 32 | b) >> (8 * (c & 3))); }>)),
    RPL_ROW(v_perm_b32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return permuted(a, b, c); }>)),
    RPL_ROW(v_min3_u32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return smaller(smaller(a, b), c); }>)),
    RPL_ROW(v_max3_u32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return larger(larger(a, b), c); }>)),
    RPL_ROW(v_med3_u32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return middle(a, b, c); }>)),
    RPL_ROW(v_min3_i32, "u:uuu", "valu.int32",
            (lanes<[](i32 a, i32 b, i32 c) { return smaller(smaller(a, b), c); }>)),
    RPL_ROW(v_max3_i32, "u:uuu", "valu.int32",
            (lanes<[](i32 a, i32 b, i32 c) { return larger(larger(a, b), c); }>)),
    RPL_ROW(v_med3_i32, "u:uuu", "valu.int32",
            (lanes<[](i32 a, i32 b, i32 c) { return middle(a, b, c); }>)),
    RPL_ROW(v_sad_u8, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return distance8(a, b) + c; }>)),
    RPL_ROW(v_msad_u8, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return masked_distance8(a, b) + c; }>)),
    RPL_ROW(v_qsad_pk_u16_u8, "U:UuU", "valu.int32",
            (lanes<[](u64 a, u32 b, u64 c) { return four_distances([](u32 x, u32 y) { return distance8(x, y); }, a, b, c); }>)),
    RPL_ROW(v_mqsad_pk_u16_u8, "U:UuU", "valu.int32",
            (lanes<[](u64 a, u32 b, u64 c) { return four_distances([](u32 x, u32 y) { return masked_distance8(x, y); }, a, b, c); }>)),
    RPL_ROW(v_sad_hi_u8, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return (distance8(a, b) << 16) + c; }>)),
    RPL_ROW(v_sad_u16, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return distance16(a, b) + c; }>)),
    RPL_ROW(v_sad_u32, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return (a < b ? b - a : a - b) + c; }>)),
    RPL_ROW(v_lerp_u8, "u:uuu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return average8(a, b, c); }>)),
    // 64 bits
    RPL_ROW(v_lshlrev_b64, "U:uU", "valu.int64", (lanes<[](u32 a, u64 b) { return b << (a & 63); }>)),
    RPL_ROW(v_lshrrev_b64, "U:uU", "valu.int64", (lanes<[](u32 a, u64 b) { return (b >> (a & 63)); }>)),
    RPL_ROW(v_ashrrev_i64, "U:uI", "valu.int64", (lanes<[](u32 a, i64 b) { return (b >> (a & 63)); }>)),
    RPL_ROW(v_lshl_add_u64, "U:UuU", "valu.int64",
            (lanes<[](u64 a, u32 b, u64 c) { return (a << (b & 7)) + c; }>)),
    RPL_ROW(v_mad_u64_u32, "Ub:uuU", "valu.int64", wide_multiply_add<false>),
    RPL_ROW(v_mad_i64_i32, "Ub:uuI", "valu.int64", wide_multiply_add<true>),
};

}  // namespace
RowList vector_integer_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
