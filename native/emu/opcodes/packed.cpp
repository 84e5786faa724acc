// Two values in one register, dot products and mixed precision. CDNA3 ISA, section 12 (VOP3P).
// Flags of an instruction: bits 0-2 op_sel, 3-5 op_sel_hi, 6-8 neg_lo, 9-11 neg_hi, 12 clamp.
#include <algorithm>

#include "opcodes/lanes.h"
#include "opcodes/lists.h"
#include "opcodes/numbers.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

float half(u32 a) { return from_half(a); }
u32 clamp_signed(i32 a) { return low(static_cast<u32>(a > 32767 ? 32767 : a < -32768 ? -32768 : a)); }
u32 least(u32 a, u32 b) { return b < a ? b : a; }
u32 most(u32 a, u32 b) { return a < b ? b : a; }
u32 least_signed(u32 a, u32 b) { return sign(b) < sign(a) ? b : a; }
u32 most_signed(u32 a, u32 b) { return sign(a) < sign(b) ? b : a; }
u32 quiet_half(u32 a) { return a | 0x200; }
bool signalling_half(u32 a) { return (a & 0x7fff) > 0x7c00 && !(a & 0x200); }
u32 least_half(u32 a, u32 b) {
  return signalling_half(a) ? quiet_half(a) : signalling_half(b) ? quiet_half(b) : to_half(minimum(half(a), half(b)));
}
u32 most_half(u32 a, u32 b) {
  return signalling_half(a) ? quiet_half(a) : signalling_half(b) ? quiet_half(b) : to_half(maximum(half(a), half(b)));
}
u32 unit_half(u32 a) { return (a & 0x8000) || (a & 0x7fff) > 0x7c00 ? 0 : a > 0x3c00 ? 0x3c00 : a; }
float unit(float a) { return a > 0 ? (a > 1 ? 1.0F : a) : 0.0F; }

struct Select {
  u32 low, high, negate_low, negate_high;
  Select(const Instruction& i, unsigned k, u32 sign_bit)
      : low(i.flags >> k & 1), high(i.flags >> (3 + k) & 1),
        negate_low(i.flags >> (6 + k) & 1 ? sign_bit : 0), negate_high(i.flags >> (9 + k) & 1 ? sign_bit : 0) {}
};

// F works on the low 16 bits and gives 16 bits.
template <auto F, bool Onto, bool Float>
void halves(Wave& w, const Instruction& i) {
  Temporary ta, tb, tc, tr;
  const u32* a = source_rows<u32>(w, i.from[0], ta);
  const u32* b = source_rows<u32>(w, i.from[1], tb);
  u32* d = w.v[i.to[0].index];
  const u32* c = Onto ? d : i.from[2].place == Place::none ? a : source_rows<u32>(w, i.from[2], tc);
  const Select x(i, 0, 0x8000), y(i, 1, 0x8000), z(i, 2, 0x8000);
  const u32 al = 16 * x.low, ah = 16 * x.high, bl = 16 * y.low, bh = 16 * y.high, cl = 16 * z.low, ch = 16 * z.high;
  const bool clamp = i.flags >> 12 & 1;
  const uint64_t exec = w.exec();
  RPL_LANES {
    u32 l = F(low(a[j] >> al) ^ x.negate_low, low(b[j] >> bl) ^ y.negate_low, low(c[j] >> cl) ^ z.negate_low);
    u32 h = F(low(a[j] >> ah) ^ x.negate_high, low(b[j] >> bh) ^ y.negate_high, low(c[j] >> ch) ^ z.negate_high);
    if (Float && clamp) l = unit_half(l), h = unit_half(h);
    tr.words[j] = l | h << 16;
  }
  merge_rows(d, tr.words, exec, 1);
}

template <auto F, unsigned Sources>
void floats(Wave& w, const Instruction& i) {
  Temporary ta, tb, tc, tr;
  const u32* a = source_rows<uint64_t>(w, i.from[0], ta);
  const u32* b = source_rows<uint64_t>(w, i.from[1], tb);
  const u32* c = Sources == 3 ? source_rows<uint64_t>(w, i.from[2], tc) : a;
  const Select x(i, 0, 0x80000000), y(i, 1, 0x80000000), z(i, 2, 0x80000000);
  const u32 *al = a + kLanes * x.low, *ah = a + kLanes * x.high, *bl = b + kLanes * y.low, *bh = b + kLanes * y.high,
            *cl = c + kLanes * z.low, *ch = c + kLanes * z.high;
  const bool clamp = i.flags >> 12 & 1;
  const uint64_t exec = w.exec();
  u32* d = w.v[i.to[0].index];
  if (((i.flags >> 6 & 0x3f) | (clamp ? 1 : 0)) == 0) {
    u32* r = exec == ~uint64_t{0} ? d : tr.words;
    // Both results of a lane before either is written: they may be among its sources.
    RPL_LANES {
      const u32 l = bits_of(F(float_of(al[j]), float_of(bl[j]), float_of(cl[j])));
      const u32 h = bits_of(F(float_of(ah[j]), float_of(bh[j]), float_of(ch[j])));
      r[j] = l;
      r[kLanes + j] = h;
    }
    if (r == d) return;
  } else {
    for (unsigned j = 0; j < kLanes; ++j) {
      float l = F(float_of(al[j] ^ x.negate_low), float_of(bl[j] ^ y.negate_low), float_of(cl[j] ^ z.negate_low));
      float h = F(float_of(ah[j] ^ x.negate_high), float_of(bh[j] ^ y.negate_high), float_of(ch[j] ^ z.negate_high));
      if (clamp) l = unit(l), h = unit(h);
      tr.words[j] = bits_of(l);
      tr.words[kLanes + j] = bits_of(h);
    }
  }
  merge_rows(d, tr.words, exec, 2);
}

void move_pair(Wave& w, const Instruction& i) {
  Temporary ta, tb, tr;
  const u32* a = source_rows<uint64_t>(w, i.from[0], ta) + kLanes * (i.flags & 1);
  const u32* b = source_rows<uint64_t>(w, i.from[1], tb) + kLanes * (i.flags >> 1 & 1);
  for (unsigned j = 0; j < kLanes; ++j) {
    tr.words[j] = a[j];
    tr.words[kLanes + j] = b[j];
  }
  merge_rows(w.v[i.to[0].index], tr.words, w.exec(), 2);
}

// A source is a half where op_sel_hi says so, else a float; neg_lo negates, neg_hi takes the magnitude.
float mixed_source(u32 a, const Instruction& i, unsigned k) {
  float x = i.flags >> (3 + k) & 1 ? half(low(a >> (16 * (i.flags >> k & 1)))) : float_of(a);
  if (i.flags >> (9 + k) & 1) x = float_of(bits_of(x) & 0x7fffffff);
  if (i.flags >> (6 + k) & 1) x = float_of(bits_of(x) ^ 0x80000000);
  return x;
}
template <int To>  // 0 float, 1 low half, 2 high half
void mixed_fma(Wave& w, const Instruction& i) {
  Temporary ta, tb, tc, tr;
  const u32* a = source_rows<u32>(w, i.from[0], ta);
  const u32* b = source_rows<u32>(w, i.from[1], tb);
  const u32* c = source_rows<u32>(w, i.from[2], tc);
  u32* d = w.v[i.to[0].index];
  for (unsigned j = 0; j < kLanes; ++j) {
    float r = __builtin_fmaf(mixed_source(a[j], i, 0), mixed_source(b[j], i, 1), mixed_source(c[j], i, 2));
    if (i.flags >> 12 & 1) r = unit(r);
    tr.words[j] = To == 0 ? bits_of(r) : To == 1 ? (d[j] & 0xffff0000) | to_half(r) : low(d[j]) | to_half(r) << 16;
  }
  merge_rows(d, tr.words, w.exec(), 1);
}

template <unsigned Bits, bool Signed>
u32 dot(u32 a, u32 b, u32 c) {
  for (unsigned k = 0; k < 32; k += Bits) {
    if (Signed) {
      c += static_cast<u32>((static_cast<i32>(a << (32 - Bits - k)) >> (32 - Bits)) *
                            (static_cast<i32>(b << (32 - Bits - k)) >> (32 - Bits)));
    } else {
      c += (a >> k & ((1U << Bits) - 1)) * (b >> k & ((1U << Bits) - 1));
    }
  }
  return c;
}
// With clamp: the exact sum, brought to the nearest number of 32 bits.
template <unsigned Bits, bool Signed>
u32 dot_clamped(u32 a, u32 b, u32 c) {
  i64 sum = Signed ? i64{static_cast<i32>(c)} : i64{c};
  for (unsigned k = 0; k < 32; k += Bits) {
    const u32 x = a << (32 - Bits - k), y = b << (32 - Bits - k);
    if (Signed) sum += i64{static_cast<i32>(x) >> (32 - Bits)} * (static_cast<i32>(y) >> (32 - Bits));
    else sum += static_cast<i64>(u64{x >> (32 - Bits)} * (y >> (32 - Bits)));
  }
  const i64 least = Signed ? INT32_MIN : 0, most = Signed ? INT32_MAX : i64{~0U};
  return static_cast<u32>(std::clamp(sum, least, most));
}
template <auto F, bool Onto>
void dots(Wave& w, const Instruction& i) {
  Temporary ta, tb, tc, tr;
  const u32* a = source_rows<u32>(w, i.from[0], ta);
  const u32* b = source_rows<u32>(w, i.from[1], tb);
  u32* d = w.v[i.to[0].index];
  const u32* c = Onto ? d : source_rows<u32>(w, i.from[2], tc);
  for (unsigned j = 0; j < kLanes; ++j) tr.words[j] = F(a[j], b[j], c[j]);
  merge_rows(d, tr.words, w.exec(), 1);
}
// The order and rounding inside of the hardware's dot product are not public: high product first here.
u32 dot_halves(u32 a, u32 b, u32 c) {
  const float high = __builtin_fmaf(half(a >> 16), half(b >> 16), float_of(c));
  return bits_of(__builtin_fmaf(half(low(a)), half(low(b)), high));
}

u32 dot_halves_clamped(u32 a, u32 b, u32 c) { return bits_of(unit(float_of(dot_halves(a, b, c)))); }

using h3 = u32 (*)(u32, u32, u32);
constexpr h3 kFma = [](u32 a, u32 b, u32 c) { return half_fma(a, b, c); };
constexpr const char* kOneClamp = "clamped once, after an exact sum; whether the hardware clamps between is not public";
#define RPL_HALVES(name, signature, counter, Float, body)          \
  { #name, Form::packed, signature, counter,                        \
    halves<[]([[maybe_unused]] u32 a, [[maybe_unused]] u32 b, [[maybe_unused]] u32 c) { return (body); }, false, Float>, "" }

const Row kRows[] = {
    RPL_HALVES(v_pk_add_f16, "q:qq", "valu.add.f16", true, to_half(half(a) + half(b))),
    RPL_HALVES(v_pk_mul_f16, "q:qq", "valu.mul.f16", true, to_half(half(a) * half(b))),
    RPL_HALVES(v_pk_min_f16, "q:qq", "valu.add.f16", true, least_half(a, b)),
    RPL_HALVES(v_pk_max_f16, "q:qq", "valu.add.f16", true, most_half(a, b)),
    {"v_pk_fma_f16", Form::packed, "q:qqq", "valu.fma.f16", halves<kFma, false, true>, ""},
    {"v_pk_fmac_f16", Form::packed, "q:qq", "valu.fma.f16", halves<kFma, true, true>, ""},
    RPL_HALVES(v_pk_add_u16, "k:kk", "valu.int32", false, low(a + b)),
    RPL_HALVES(v_pk_sub_u16, "k:kk", "valu.int32", false, low(a - b)),
    RPL_HALVES(v_pk_add_i16, "k:kk", "valu.int32", false, low(a + b)),
    RPL_HALVES(v_pk_sub_i16, "k:kk", "valu.int32", false, low(a - b)),
    RPL_HALVES(v_pk_add_u16.clamp, "k:kk", "valu.int32", false, least(a + b, 0xffff)),
    RPL_HALVES(v_pk_sub_u16.clamp, "k:kk", "valu.int32", false, a < b ? 0U : a - b),
    RPL_HALVES(v_pk_add_i16.clamp, "k:kk", "valu.int32", false, clamp_signed(sign(a) + sign(b))),
    RPL_HALVES(v_pk_sub_i16.clamp, "k:kk", "valu.int32", false, clamp_signed(sign(a) - sign(b))),
    RPL_HALVES(v_pk_mul_lo_u16, "k:kk", "valu.int32", false, low(a * b)),
    RPL_HALVES(v_pk_mad_u16, "k:kkk", "valu.int32", false, low(a * b + c)),
    RPL_HALVES(v_pk_mad_i16, "k:kkk", "valu.int32", false, low(a * b + c)),
    RPL_HALVES(v_pk_lshlrev_b16, "k:kk", "valu.int32", false, low(b << (a & 15))),
    RPL_HALVES(v_pk_lshrrev_b16, "k:kk", "valu.int32", false, b >> (a & 15)),
    RPL_HALVES(v_pk_ashrrev_i16, "k:kk", "valu.int32", false, low(static_cast<u32>(sign(b) >> (a & 15)))),
    RPL_HALVES(v_pk_min_u16, "k:kk", "valu.int32", false, least(a, b)),
    RPL_HALVES(v_pk_max_u16, "k:kk", "valu.int32", false, most(a, b)),
    RPL_HALVES(v_pk_min_i16, "k:kk", "valu.int32", false, least_signed(a, b)),
    RPL_HALVES(v_pk_max_i16, "k:kk", "valu.int32", false, most_signed(a, b)),
    {"v_pk_fma_f32", Form::packed, "P:PPP", "valu.fma.f32",
     floats<[](float a, float b, float c) { return __builtin_fmaf(a, b, c); }, 3>, ""},
    {"v_pk_mul_f32", Form::packed, "P:PP", "valu.mul.f32", floats<[](float a, float b, float) { return a * b; }, 2>, ""},
    {"v_pk_add_f32", Form::packed, "P:PP", "valu.add.f32", floats<[](float a, float b, float) { return a + b; }, 2>, ""},
    {"v_pk_mov_b32", Form::packed, "P:PP", "valu.other", move_pair, ""},
    {"v_fma_mix_f32", Form::packed, "f:mmm", "valu.fma.f32", mixed_fma<0>, ""},
    {"v_fma_mixlo_f16", Form::packed, "h:mmm", "valu.fma.f16", mixed_fma<1>, ""},
    {"v_fma_mixhi_f16", Form::packed, "h:mmm", "valu.fma.f16", mixed_fma<2>, ""},
    {"v_dot4_i32_i8", Form::packed, "u:uuu", "valu.int32", dots<dot<8, true>, false>, ""},
    {"v_dot4_u32_u8", Form::packed, "u:uuu", "valu.int32", dots<dot<8, false>, false>, ""},
    {"v_dot8_i32_i4", Form::packed, "u:uuu", "valu.int32", dots<dot<4, true>, false>, ""},
    {"v_dot8_u32_u4", Form::packed, "u:uuu", "valu.int32", dots<dot<4, false>, false>, ""},
    {"v_dot2_i32_i16", Form::packed, "u:uuu", "valu.int32", dots<dot<16, true>, false>, ""},
    {"v_dot2_u32_u16", Form::packed, "u:uuu", "valu.int32", dots<dot<16, false>, false>, ""},
    {"v_dot2_f32_f16", Form::packed, "f:qqf", "valu.fma.f32", dots<dot_halves, false>,
     "the order and rounding inside of the hardware are not public: two fused steps, high half first"},
    {"v_dot4_i32_i8.clamp", Form::packed, "u:uuu", "valu.int32", dots<dot_clamped<8, true>, false>, kOneClamp},
    {"v_dot4_u32_u8.clamp", Form::packed, "u:uuu", "valu.int32", dots<dot_clamped<8, false>, false>, kOneClamp},
    {"v_dot8_i32_i4.clamp", Form::packed, "u:uuu", "valu.int32", dots<dot_clamped<4, true>, false>, kOneClamp},
    {"v_dot8_u32_u4.clamp", Form::packed, "u:uuu", "valu.int32", dots<dot_clamped<4, false>, false>, kOneClamp},
    {"v_dot2_i32_i16.clamp", Form::packed, "u:uuu", "valu.int32", dots<dot_clamped<16, true>, false>, kOneClamp},
    {"v_dot2_u32_u16.clamp", Form::packed, "u:uuu", "valu.int32", dots<dot_clamped<16, false>, false>, kOneClamp},
    {"v_dot2_f32_f16.clamp", Form::packed, "f:qqf", "valu.fma.f32", dots<dot_halves_clamped, false>,
     "the order and rounding inside of the hardware are not public: two fused steps, high half first"},
    {"v_dot2c_i32_i16", Form::packed, "u:uu", "valu.int32", dots<dot<16, true>, true>, ""},
    {"v_dot4c_i32_i8", Form::packed, "u:uu", "valu.int32", dots<dot<8, true>, true>, ""},
    {"v_dot8c_i32_i4", Form::packed, "u:uu", "valu.int32", dots<dot<4, true>, true>, ""},
    {"v_dot2c_f32_f16", Form::packed, "f:qq", "valu.fma.f32", dots<dot_halves, true>,
     "the order and rounding inside of the hardware are not public: two fused steps, high half first"},
};

}  // namespace
RowList packed_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
