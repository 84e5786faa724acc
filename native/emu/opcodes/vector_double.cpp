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
    RPL_APPROXIMATE(v_rcp_f64, "F:F", "valu.trans.f64", (lanes<[](double a) { return 1.0 / a; }>)),
    RPL_APPROXIMATE(v_sqrt_f64, "F:F", "valu.trans.f64", (lanes<[](double a) { return __builtin_sqrt(a); }>)),
    RPL_APPROXIMATE(v_rsq_f64, "F:F", "valu.trans.f64",
                    (lanes<[](double a) { return 1.0 / __builtin_sqrt(a); }>)),
};

}  // namespace
RowList vector_double_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
