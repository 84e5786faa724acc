// 16-bit integers and halves, one per lane. CDNA3 ISA, section 12.
#include "opcodes/lanes.h"
#include "opcodes/lists.h"
#include "opcodes/numbers.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

float half(u32 a) { return from_half(low(a)); }
u32 least(u32 a, u32 b) { return low(b) < low(a) ? low(b) : low(a); }
u32 most(u32 a, u32 b) { return low(a) < low(b) ? low(b) : low(a); }
u32 least_signed(u32 a, u32 b) { return low(sign(b) < sign(a) ? b : a); }
u32 most_signed(u32 a, u32 b) { return low(sign(a) < sign(b) ? b : a); }
bool half_nan(u32 a) { return (a & 0x7fff) > 0x7c00; }
// Comparing as floats is exact; a signalling NaN becomes quiet on the way.
u32 least_half(u32 a, u32 b) {
  if (half_nan(a) && !(a & 0x200)) return low(a) | 0x200;
  if (half_nan(b) && !(b & 0x200)) return low(b) | 0x200;
  return to_half(minimum(half(a), half(b)));
}
u32 most_half(u32 a, u32 b) {
  if (half_nan(a) && !(a & 0x200)) return low(a) | 0x200;
  if (half_nan(b) && !(b & 0x200)) return low(b) | 0x200;
  return to_half(maximum(half(a), half(b)));
}
u32 middle_half(u32 a, u32 b, u32 c) {
  if (half_nan(a) || half_nan(b) || half_nan(c)) return least_half(least_half(a, b), c);
  return most_half(least_half(a, b), least_half(most_half(a, b), c));
}
u32 exponent_half(u32 a) {
  const float x = half(a);
  if (!std::isfinite(x) || x == 0) return 0;
  int e = 0;
  std::frexp(x, &e);
  return low(static_cast<u32>(e));
}
u32 mantissa_half(u32 a) {
  const float x = half(a);
  if (!std::isfinite(x)) return to_half(x);
  int e = 0;
  return to_half(std::frexp(x, &e));
}
u32 through(u32 a, double (*f)(double)) { return half_of_double(f(half(a))); }
double turned_sine(double a) {
  if (!std::isfinite(a)) return static_cast<double>(float_of(0x7fc00000));
  if (std::fabs(a) > 256.0) return 0.0;
  const double part = std::remainder(a, 1.0);
  return part == 0 || std::fabs(part) == 0.5 ? std::copysign(0.0, a) : std::sin(part * 6.283185307179586476925286766559);
}
double turned_cosine(double a) {
  if (!std::isfinite(a)) return static_cast<double>(float_of(0x7fc00000));
  if (std::fabs(a) > 256.0) return 1.0;
  const double part = std::remainder(a, 1.0);
  return std::fabs(part) == 0.25 ? 0.0 : std::cos(part * 6.283185307179586476925286766559);
}
u32 clamp_signed(i32 a) { return low(static_cast<u32>(a > 32767 ? 32767 : a < -32768 ? -32768 : a)); }
u32 divide_fixup_half(u32 q, u32 b, u32 c) {
  const u32 negative = (b ^ c) & 0x8000;
  const u32 size_b = b & 0x7fff, size_c = c & 0x7fff;
  if (half_nan(c)) return low(c) | 0x200;
  if (half_nan(b)) return low(b) | 0x200;
  if ((size_b == 0 && size_c == 0) || (size_b == 0x7c00 && size_c == 0x7c00)) return 0xfe00;
  if (size_b == 0 || size_c == 0x7c00) return negative | 0x7c00;
  if (size_b == 0x7c00 || size_c == 0) return negative;
  return negative | (q & 0x7fff);
}

const Row kRows[] = {
    RPL_ROW(v_add_u16, "w:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return low(a + b); }>)),
    RPL_ROW(v_sub_u16, "w:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return low(a - b); }>)),
    RPL_ROW(v_subrev_u16, "w:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return low(b - a); }>)),
    {"v_add_u16.clamp", Form::vector, "w:ww", "valu.int32",
     lanes<[](u32 a, u32 b) { return 0xffff < low(a) + low(b) ? 0xffffU : low(a + b); }>, ""},
    {"v_sub_u16.clamp", Form::vector, "w:ww", "valu.int32",
     lanes<[](u32 a, u32 b) { return low(a) < low(b) ? 0U : low(a - b); }>, ""},
    RPL_ROW(v_add_i16, "W:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return low(a + b); }>)),
    RPL_ROW(v_sub_i16, "W:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return low(a - b); }>)),
    {"v_add_i16.clamp", Form::vector, "W:ww", "valu.int32",
     lanes<[](u32 a, u32 b) { return clamp_signed(sign(a) + sign(b)); }>, ""},
    {"v_sub_i16.clamp", Form::vector, "W:ww", "valu.int32",
     lanes<[](u32 a, u32 b) { return clamp_signed(sign(a) - sign(b)); }>, ""},
    RPL_ROW(v_mul_lo_u16, "w:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return low(low(a) * low(b)); }>)),
    RPL_ROW(v_lshlrev_b16, "w:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return low(b << (a & 15)); }>)),
    RPL_ROW(v_lshrrev_b16, "w:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return (low(b) >> (a & 15)); }>)),
    RPL_ROW(v_ashrrev_i16, "w:ww", "valu.int32",
            (lanes<[](u32 a, u32 b) { return low(static_cast<u32>(sign(b) >> (a & 15))); }>)),
    RPL_ROW(v_min_u16, "w:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return least(a, b); }>)),
    RPL_ROW(v_max_u16, "w:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return most(a, b); }>)),
    RPL_ROW(v_min_i16, "w:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return least_signed(a, b); }>)),
    RPL_ROW(v_max_i16, "w:ww", "valu.int32", (lanes<[](u32 a, u32 b) { return most_signed(a, b); }>)),
    RPL_ROW(v_min3_u16, "W:www", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return least(least(a, b), c); }>)),
    RPL_ROW(v_max3_u16, "W:www", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return most(most(a, b), c); }>)),
    RPL_ROW(v_med3_u16, "W:www", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return most(least(a, b), least(most(a, b), c)); }>)),
    RPL_ROW(v_min3_i16, "W:www", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return least_signed(least_signed(a, b), c); }>)),
    RPL_ROW(v_max3_i16, "W:www", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return most_signed(most_signed(a, b), c); }>)),
    RPL_ROW(v_med3_i16, "W:www", "valu.int32", (lanes<[](u32 a, u32 b, u32 c) {
              return most_signed(least_signed(a, b), least_signed(most_signed(a, b), c));
            }>)),
    RPL_ROW(v_mad_u16, "W:www", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return low(low(a) * low(b) + c); }>)),
    RPL_ROW(v_mad_i16, "W:www", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return low(low(a) * low(b) + c); }>)),
    RPL_ROW(v_mad_legacy_u16, "w:www", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return low(low(a) * low(b) + c); }>)),
    RPL_ROW(v_mad_legacy_i16, "w:www", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return low(low(a) * low(b) + c); }>)),
    RPL_ROW(v_mad_u32_u16, "u:wwu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return low(a) * low(b) + c; }>)),
    RPL_ROW(v_mad_i32_i16, "u:wwu", "valu.int32",
            (lanes<[](u32 a, u32 b, u32 c) { return static_cast<u32>(sign(a) * sign(b)) + c; }>)),
    RPL_ROW(v_pack_b32_f16, "u:hh", "valu.other",
            (lanes<[](u32 a, u32 b) { return low(a) | b << 16; }>)),
    // halves
    RPL_ROW(v_add_f16, "h:hh", "valu.add.f16", (lanes<[](u32 a, u32 b) { return to_half(half(a) + half(b)); }>)),
    RPL_ROW(v_sub_f16, "h:hh", "valu.add.f16", (lanes<[](u32 a, u32 b) { return to_half(half(a) - half(b)); }>)),
    RPL_ROW(v_subrev_f16, "h:hh", "valu.add.f16",
            (lanes<[](u32 a, u32 b) { return to_half(half(b) - half(a)); }>)),
    RPL_ROW(v_mul_f16, "h:hh", "valu.mul.f16", (lanes<[](u32 a, u32 b) { return to_half(half(a) * half(b)); }>)),
    RPL_ROW(v_min_f16, "h:hh", "valu.add.f16", (lanes<[](u32 a, u32 b) { return least_half(a, b); }>)),
    RPL_ROW(v_max_f16, "h:hh", "valu.add.f16", (lanes<[](u32 a, u32 b) { return most_half(a, b); }>)),
    RPL_ROW(v_min3_f16, "H:hhh", "valu.add.f16",
            (lanes<[](u32 a, u32 b, u32 c) { return least_half(least_half(a, b), c); }>)),
    RPL_ROW(v_max3_f16, "H:hhh", "valu.add.f16",
            (lanes<[](u32 a, u32 b, u32 c) { return most_half(most_half(a, b), c); }>)),
    RPL_ROW(v_med3_f16, "H:hhh", "valu.add.f16",
            (lanes<[](u32 a, u32 b, u32 c) { return middle_half(a, b, c); }>)),
    RPL_ROW(v_fma_f16, "H:hhh", "valu.fma.f16",
            (lanes<[](u32 a, u32 b, u32 c) { return half_fma(low(a), low(b), low(c)); }>)),
    RPL_ROW(v_ldexp_f16, "h:hw", "valu.add.f16",
            (lanes<[](u32 a, u32 b) { return half_of_double(std::ldexp(double{half(a)}, sign(b))); }>)),
    RPL_ROW(v_floor_f16, "h:h", "valu.add.f16",
            (lanes<[](u32 a) { return to_half(__builtin_floorf(half(a))); }>)),
    RPL_ROW(v_ceil_f16, "h:h", "valu.add.f16", (lanes<[](u32 a) { return to_half(__builtin_ceilf(half(a))); }>)),
    RPL_ROW(v_trunc_f16, "h:h", "valu.add.f16",
            (lanes<[](u32 a) { return to_half(__builtin_truncf(half(a))); }>)),
    RPL_ROW(v_rndne_f16, "h:h", "valu.add.f16",
            (lanes<[](u32 a) { return to_half(__builtin_roundevenf(half(a))); }>)),
    RPL_ROW(v_fract_f16, "h:h", "valu.add.f16", (lanes<[](u32 a) {
              const u32 f = to_half(half(a) - __builtin_floorf(half(a)));
              return f == 0x3c00 ? 0x3bffU : f;
            }>)),
    RPL_ROW(v_frexp_exp_i16_f16, "w:h", "valu.add.f16", (lanes<[](u32 a) { return exponent_half(a); }>)),
    RPL_ROW(v_frexp_mant_f16, "h:h", "valu.add.f16", (lanes<[](u32 a) { return mantissa_half(a); }>)),
    RPL_ROW(v_div_fixup_f16, "H:hhh", "valu.add.f16",
            (lanes<[](u32 a, u32 b, u32 c) { return divide_fixup_half(a, b, c); }>)),
    RPL_APPROXIMATE(v_rcp_f16, "h:h", "valu.trans.f16",
                    (lanes<[](u32 a) { return through(a, [](double x) { return 1.0 / x; }); }>)),
    RPL_APPROXIMATE(v_sqrt_f16, "h:h", "valu.trans.f16",
                    (lanes<[](u32 a) { return through(a, [](double x) { return std::sqrt(x); }); }>)),
    RPL_APPROXIMATE(v_rsq_f16, "h:h", "valu.trans.f16",
                    (lanes<[](u32 a) { return through(a, [](double x) { return 1.0 / std::sqrt(x); }); }>)),
    RPL_APPROXIMATE(v_exp_f16, "h:h", "valu.trans.f16",
                    (lanes<[](u32 a) { return through(a, [](double x) { return std::exp2(x); }); }>)),
    RPL_APPROXIMATE(v_log_f16, "h:h", "valu.trans.f16",
                    (lanes<[](u32 a) { return through(a, [](double x) { return std::log2(x); }); }>)),
    RPL_APPROXIMATE(v_sin_f16, "h:h", "valu.trans.f16", (lanes<[](u32 a) { return through(a, turned_sine); }>)),
    RPL_APPROXIMATE(v_cos_f16, "h:h", "valu.trans.f16", (lanes<[](u32 a) { return through(a, turned_cosine); }>)),
};

}  // namespace
RowList vector_16_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
