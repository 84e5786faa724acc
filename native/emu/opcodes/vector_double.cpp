// Double precision. CDNA3 ISA, section 12.
#include "opcodes/lanes.h"
#include "opcodes/lists.h"
#include "opcodes/numbers.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
double fraction(double a) {
  const double f = a - __builtin_floor(a);
  return f >= 1.0 ? double_of(0x3fefffffffffffff) : f;
}
i32 exponent_of(double a) {
  if (!std::isfinite(a) || a == 0) return 0;
  int e = 0;
  std::frexp(a, &e);
  return e;
}
double mantissa_of(double a) {
  if (!std::isfinite(a)) return is_nan(a) ? quiet(a) : a;
  int e = 0;
  return std::frexp(a, &e);
}

// The 1201 bits of 2/pi behind the point, the highest first.
constexpr u64 kTwoOverPi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b0000};
// CDNA3 ISA, section 12, V_TRIG_PREOP_F64: 53 bits of 2/pi, by the segment and from where the argument's exponent leaves
// something of a fraction; small enough that the compiler's large argument, scaled by 2^-128, fits to it.
double two_over_pi_part(double a, u32 segment) {
  constexpr u32 kWords = sizeof kTwoOverPi / sizeof *kTwoOverPi;
  const auto exponent = static_cast<u32>(bits_of(a) >> 52 & 0x7ff);
  const u32 shift = (segment & 31) * 53 + (exponent > 1077 ? exponent - 1077 : 0);
  const u32 word = shift / 64, bit = shift % 64;
  const u64 high = word < kWords ? kTwoOverPi[word] : 0, low = word + 1 < kWords ? kTwoOverPi[word + 1] : 0;
  const u64 part = (bit == 0 ? high : high << bit | low >> (64 - bit)) >> 11;
  return std::ldexp(static_cast<double>(part), -53 - static_cast<int>(shift) + (exponent >= 1968 ? 128 : 0));
}

const Row kRows[] = {
    RPL_ROW(v_add_f64, "F:FF", "valu.add.f64", (lanes<[](double a, double b) { return a + b; }>)),
    RPL_ROW(v_mul_f64, "F:FF", "valu.mul.f64", (lanes<[](double a, double b) { return a * b; }>)),
    RPL_ROW(v_min_f64, "F:FF", "valu.add.f64", (lanes<[](double a, double b) { return minimum(a, b); }>)),
    RPL_ROW(v_max_f64, "F:FF", "valu.add.f64", (lanes<[](double a, double b) { return maximum(a, b); }>)),
    RPL_ROW(v_fma_f64, "F:FFF", "valu.fma.f64",
            (lanes<[](double a, double b, double c) { return fused(a, b, c); }>)),
    RPL_ROW(v_fmac_f64, "F:FF", "valu.fma.f64",
            (lanes_onto<[](double a, double b, double c) { return fused(a, b, c); }>)),
    RPL_ROW(v_floor_f64, "F:F", "valu.add.f64", (lanes<[](double a) { return is_nan(a) ? quiet(a) : __builtin_floor(a); }>)),
    RPL_ROW(v_ceil_f64, "F:F", "valu.add.f64", (lanes<[](double a) { return is_nan(a) ? quiet(a) : __builtin_ceil(a); }>)),
    RPL_ROW(v_trunc_f64, "F:F", "valu.add.f64", (lanes<[](double a) { return is_nan(a) ? quiet(a) : __builtin_trunc(a); }>)),
    RPL_ROW(v_rndne_f64, "F:F", "valu.add.f64", (lanes<[](double a) { return is_nan(a) ? quiet(a) : __builtin_roundeven(a); }>)),
    RPL_ROW(v_fract_f64, "F:F", "valu.add.f64", (lanes<[](double a) { return fraction(a); }>)),
    RPL_ROW(v_ldexp_f64, "F:Fu", "valu.add.f64",
            (lanes<[](double a, i32 b) { return std::ldexp(a, b); }>)),
    RPL_ROW(v_frexp_exp_i32_f64, "u:F", "valu.add.f64", (lanes<[](double a) { return exponent_of(a); }>)),
    RPL_ROW(v_frexp_mant_f64, "F:F", "valu.add.f64", (lanes<[](double a) { return mantissa_of(a); }>)),
    RPL_ROW(v_trig_preop_f64, "F:Fu", "valu.add.f64", (lanes<[](double a, u32 b) { return two_over_pi_part(a, b); }>)),
    RPL_APPROXIMATE(v_rcp_f64, "F:F", "valu.trans.f64", (lanes<[](double a) { return 1.0 / a; }>)),
    RPL_APPROXIMATE(v_sqrt_f64, "F:F", "valu.trans.f64", (lanes<[](double a) { return __builtin_sqrt(a); }>)),
    RPL_APPROXIMATE(v_rsq_f64, "F:F", "valu.trans.f64",
                    (lanes<[](double a) { return 1.0 / __builtin_sqrt(a); }>)),
};

}  // namespace
RowList vector_double_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
