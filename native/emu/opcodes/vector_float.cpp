// Single precision and the division and transcendental functions. CDNA3 ISA, section 12 (VOP1, VOP2, VOP3).
#include <cfenv>
#include <limits>

#include "opcodes/lanes.h"
#include "opcodes/lists.h"
#include "opcodes/numbers.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
float fraction(float a) {
  const float f = a - __builtin_floorf(a);
  return f >= 1.0F ? float_of(0x3f7fffff) : f;
}
float scaled(float a, i32 by) { return std::ldexp(a, by); }

// The hardware's result is within one last place; the nearest one is given here.
float reciprocal(float a) { return static_cast<float>(1.0 / double{a}); }
// Of divisions of integers, which are wrong where it is too large: not rounded up when all else is.
void integer_reciprocal_lanes(Wave& w, const Instruction& i) {
  const bool up = std::fegetround() == FE_UPWARD;
  if (up) std::fesetround(FE_DOWNWARD);
  lanes<[](float a) { return reciprocal(a); }>(w, i);
  if (up) std::fesetround(FE_UPWARD);
}
float root(float a) { return __builtin_sqrtf(a); }
float reciprocal_root(float a) { return static_cast<float>(1.0 / std::sqrt(double{a})); }
float power_of_2(float a) { return static_cast<float>(std::exp2(double{a})); }
float logarithm(float a) { return static_cast<float>(std::log2(double{a})); }
// Of revolutions; outside of +-256 the hardware gives 0 and 1.
constexpr double kTurn = 6.283185307179586476925286766559;
float sine(float a) {
  if (!std::isfinite(a)) return float_of(0x7fc00000);
  if (std::fabs(a) > 256.0F) return 0.0F;
  const double part = std::remainder(double{a}, 1.0);
  return static_cast<float>(part == 0 || std::fabs(part) == 0.5 ? std::copysign(0.0, a) : std::sin(part * kTurn));
}
float cosine(float a) {
  if (!std::isfinite(a)) return float_of(0x7fc00000);
  if (std::fabs(a) > 256.0F) return 1.0F;
  const double part = std::remainder(double{a}, 1.0);
  return static_cast<float>(std::fabs(part) == 0.25 ? 0.0 : std::cos(part * kTurn));
}
i32 exponent_of(float a) {
  if (!std::isfinite(a) || a == 0) return 0;
  int e = 0;
  std::frexp(a, &e);
  return e;
}
float mantissa_of(float a) {
  if (!std::isfinite(a)) return is_nan(a) ? quiet(a) : a;
  int e = 0;
  return std::frexp(a, &e);
}

template <class T> struct Limits;
template <> struct Limits<float> {
  static constexpr int kBias = 127, kTop = 96, kStep = 64, kTiny = 23, kSame = 253;
  static int exponent(float x) { return static_cast<int>(bits_of(x) >> 23 & 0xff); }
};
template <> struct Limits<double> {
  static constexpr int kBias = 1023, kTop = 768, kStep = 128, kTiny = 53, kSame = 2045;
  static int exponent(double x) { return static_cast<int>(bits_of(x) >> 52 & 0x7ff); }
};

template <class T>
T not_a_number() { return std::bit_cast<T>(static_cast<std::conditional_t<kWide<T>, u64, u32>>(
    kWide<T> ? u64{0x7ff8} << 48 : u64{0x7fc00000})); }
template <class T>
bool denormal(T x) { return x != 0 && Limits<T>::exponent(x) == 0; }

// V_DIV_SCALE: scales numerator or denominator away from overflow and denormals. `a` is what is scaled,
// `b` the denominator, `c` the numerator.
template <class T>
T divide_scale(T a, T b, T c, bool& flag) {
  using L = Limits<T>;
  const int eb = L::exponent(b);
  const int ec = L::exponent(c);
  flag = false;
  const bool same = std::bit_cast<std::conditional_t<kWide<T>, u64, u32>>(a) ==
                    std::bit_cast<std::conditional_t<kWide<T>, u64, u32>>(b);
  if (c == 0 || b == 0) return not_a_number<T>();
  if (ec - eb >= L::kTop) {
    flag = true;
    return same ? std::ldexp(a, L::kStep) : a;
  }
  if (denormal(b)) return std::ldexp(a, L::kStep);
  const bool tiny_inverse = denormal(static_cast<T>(T{1} / b));
  const bool tiny_quotient = denormal(static_cast<T>(c / b));
  if (tiny_inverse && tiny_quotient) {
    // The ISA document scales the denominator up, which would overflow; down is what lets the sequence
    // divide right.
    flag = true;
    return same ? std::ldexp(a, -L::kStep) : a;
  }
  if (tiny_inverse) return std::ldexp(a, -L::kStep);
  if (tiny_quotient) {
    flag = true;
    const bool numerator = std::bit_cast<std::conditional_t<kWide<T>, u64, u32>>(a) ==
                           std::bit_cast<std::conditional_t<kWide<T>, u64, u32>>(c);
    return numerator ? std::ldexp(a, L::kStep) : a;
  }
  if (ec <= L::kTiny) return std::ldexp(a, L::kStep);
  return a;
}

template <class T>
void divide_scale_lanes(Wave& w, const Instruction& i) {
  Temporary ta, tb, tc, tr, tm;
  const u32* a = source_rows<T>(w, i.from[0], ta);
  const u32* b = source_rows<T>(w, i.from[1], tb);
  const u32* c = source_rows<T>(w, i.from[2], tc);
  for (unsigned j = 0; j < kLanes; ++j) {
    bool flag = false;
    lane_put<T>(tr.words, j, divide_scale<T>(lane_get<T>(a, j), lane_get<T>(b, j), lane_get<T>(c, j), flag));
    tm.words[j] = flag ? ~0U : 0U;
  }
  const u64 exec = w.exec();
  merge_rows(w.v[i.to[0].index], tr.words, exec, kWide<T> ? 2 : 1);
  w.set64(i.to[1].index, gather_bits(tm.words) & exec);
}

float plain_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
double plain_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
__extension__ using Wide = __float128;
// A sum whose last bit is set where it is not exact: rounding it once more then is right.
Wide odd_sum(Wide a, Wide b) {
  __extension__ using Bits = unsigned __int128;
  const Wide sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
  auto bits = std::bit_cast<Bits>(sum);
  const bool exact_or_none = !(error > 0) && !(error < 0);  // no number is neither above nor below 0
  if (exact_or_none || (bits & 1) != 0) return sum;
  bits += (error > 0) == (sum > 0) ? Bits{1} : ~Bits{0};
  return std::bit_cast<Wide>(bits);
}
template <class T>
T scaled_fma(T x, T y, T z, int by) {
  const Wide sum = odd_sum(Wide{x} * Wide{y}, Wide{z});
  const T step = std::ldexp(T{1}, by / 2);
  return static_cast<T>(sum * Wide{step} * Wide{step});
}

// V_DIV_FMAS: a fused multiply and add, scaled where VCC says that the numerator was.
template <class T>
void divide_fma_lanes(Wave& w, const Instruction& i) {
  Temporary ta, tb, tc, tr;
  const u32* a = source_rows<T>(w, i.from[0], ta);
  const u32* b = source_rows<T>(w, i.from[1], tb);
  const u32* c = source_rows<T>(w, i.from[2], tc);
  const u64 vcc = w.get64(kVcc);
  const u64 exec = w.exec();
  for (unsigned j = 0; j < kLanes; ++j) {
    const T x = lane_get<T>(a, j), y = lane_get<T>(b, j), z = lane_get<T>(c, j);
    const int by = Limits<T>::exponent(z) > Limits<T>::kBias ? Limits<T>::kStep : -Limits<T>::kStep;
    const T r = vcc >> j & 1 ? scaled_fma(x, y, z, by) : plain_fma(x, y, z);
    lane_put<T>(tr.words, j, r);
  }
  merge_rows(w.v[i.to[0].index], tr.words, exec, kWide<T> ? 2 : 1);
}

// V_DIV_FIXUP: `q` is the quotient, `b` the denominator, `c` the numerator.
template <class T>
T divide_fixup(T q, T b, T c) {
  using L = Limits<T>;
  const bool negative = std::signbit(b) != std::signbit(c);
  const T infinity = std::numeric_limits<T>::infinity();
  if (is_nan(c)) return quiet(c);
  if (is_nan(b)) return quiet(b);
  if ((c == 0 && b == 0) || (std::isinf(c) && std::isinf(b)))
    return -not_a_number<T>();
  if (b == 0 || std::isinf(c)) return negative ? -infinity : infinity;
  if (std::isinf(b) || c == 0) return negative ? -T{0} : T{0};
  const int difference = L::exponent(c) - L::exponent(b);
  if (difference < (kWide<T> ? -1075 : -150)) {
    // Below the least denormal: rounds to zero, but for nothing that is nearest even.
    return negative ? -T{0} : T{0};
  }
  if (is_nan(q)) return negative ? -infinity : infinity;  // the quotient was too large on the way
  const T size = std::fabs(q);
  return negative ? -size : size;
}

// CDNA3 ISA, V_CUBE*: the axis with the greatest magnitude, z before y before x.
unsigned cube_axis(float x, float y, float z) {
  const float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
  if (az >= ax && az >= ay) return 2;
  return ay >= ax ? 1 : 0;
}
float cube_face(float x, float y, float z) {
  const unsigned axis = cube_axis(x, y, z);
  const float along = axis == 2 ? z : axis == 1 ? y : x;
  return static_cast<float>(2 * axis) + (along < 0 ? 1.0F : 0.0F);
}
float cube_s(float x, float y, float z) {
  const unsigned axis = cube_axis(x, y, z);
  if (axis == 2) return z < 0 ? -x : x;
  if (axis == 1) return x;
  return x < 0 ? z : -z;
}
float cube_t(float x, float y, float z) {
  if (cube_axis(x, y, z) != 1) return -y;
  return y < 0 ? -z : z;
}
float cube_major(float x, float y, float z) {
  const unsigned axis = cube_axis(x, y, z);
  return 2.0F * (axis == 2 ? z : axis == 1 ? y : x);
}

const Row kRows[] = {
    RPL_ROW(v_cubeid_f32, "f:fff", "valu.other", (lanes<[](float a, float b, float c) { return cube_face(a, b, c); }>)),
    RPL_ROW(v_cubesc_f32, "f:fff", "valu.other", (lanes<[](float a, float b, float c) { return cube_s(a, b, c); }>)),
    RPL_ROW(v_cubetc_f32, "f:fff", "valu.other", (lanes<[](float a, float b, float c) { return cube_t(a, b, c); }>)),
    RPL_ROW(v_cubema_f32, "f:fff", "valu.other", (lanes<[](float a, float b, float c) { return cube_major(a, b, c); }>)),
    RPL_ROW(v_add_f32, "f:ff", "valu.add.f32", (lanes<[](float a, float b) { return a + b; }>)),
    RPL_ROW(v_sub_f32, "f:ff", "valu.add.f32", (lanes<[](float a, float b) { return a - b; }>)),
    RPL_ROW(v_subrev_f32, "f:ff", "valu.add.f32", (lanes<[](float a, float b) { return b - a; }>)),
    RPL_ROW(v_mul_f32, "f:ff", "valu.mul.f32", (lanes<[](float a, float b) { return a * b; }>)),
    RPL_ROW(v_mul_legacy_f32, "f:ff", "valu.mul.f32",
            (lanes<[](float a, float b) { return a == 0 || b == 0 ? 0.0F : a * b; }>)),
    RPL_ROW(v_min_f32, "f:ff", "valu.add.f32", (lanes<[](float a, float b) { return minimum(a, b); }>)),
    RPL_ROW(v_max_f32, "f:ff", "valu.add.f32", (lanes<[](float a, float b) { return maximum(a, b); }>)),
    RPL_ROW(v_fma_f32, "f:fff", "valu.fma.f32",
            (lanes<[](float a, float b, float c) { return fused(a, b, c); }>)),
    RPL_ROW(v_fmac_f32, "f:ff", "valu.fma.f32",
            (lanes_onto<[](float a, float b, float c) { return fused(a, b, c); }>)),
    RPL_ROW(v_fmamk_f32, "f:fff", "valu.fma.f32",
            (lanes<[](float a, float k, float b) { return fused(a, k, b); }>)),
    RPL_ROW(v_fmaak_f32, "f:fff", "valu.fma.f32",
            (lanes<[](float a, float b, float k) { return fused(a, b, k); }>)),
    RPL_ROW(v_min3_f32, "f:fff", "valu.add.f32",
            (lanes<[](float a, float b, float c) { return minimum(minimum(a, b), c); }>)),
    RPL_ROW(v_max3_f32, "f:fff", "valu.add.f32",
            (lanes<[](float a, float b, float c) { return maximum(maximum(a, b), c); }>)),
    RPL_ROW(v_med3_f32, "f:fff", "valu.add.f32",
            (lanes<[](float a, float b, float c) { return median(a, b, c); }>)),
    RPL_ROW(v_floor_f32, "f:f", "valu.add.f32", (lanes<[](float a) { return is_nan(a) ? quiet(a) : __builtin_floorf(a); }>)),
    RPL_ROW(v_ceil_f32, "f:f", "valu.add.f32", (lanes<[](float a) { return is_nan(a) ? quiet(a) : __builtin_ceilf(a); }>)),
    RPL_ROW(v_trunc_f32, "f:f", "valu.add.f32", (lanes<[](float a) { return is_nan(a) ? quiet(a) : __builtin_truncf(a); }>)),
    RPL_ROW(v_rndne_f32, "f:f", "valu.add.f32", (lanes<[](float a) { return is_nan(a) ? quiet(a) : __builtin_roundevenf(a); }>)),
    RPL_ROW(v_fract_f32, "f:f", "valu.add.f32", (lanes<[](float a) { return fraction(a); }>)),
    RPL_ROW(v_ldexp_f32, "f:fu", "valu.add.f32", (lanes<[](float a, i32 b) { return scaled(a, b); }>)),
    RPL_ROW(v_frexp_exp_i32_f32, "u:f", "valu.add.f32", (lanes<[](float a) { return exponent_of(a); }>)),
    RPL_ROW(v_frexp_mant_f32, "f:f", "valu.add.f32", (lanes<[](float a) { return mantissa_of(a); }>)),
    RPL_APPROXIMATE(v_rcp_f32, "f:f", "valu.trans.f32", (lanes<[](float a) { return reciprocal(a); }>)),
    RPL_APPROXIMATE(v_rcp_iflag_f32, "f:f", "valu.trans.f32", integer_reciprocal_lanes),
    RPL_APPROXIMATE(v_sqrt_f32, "f:f", "valu.trans.f32", (lanes<[](float a) { return root(a); }>)),
    RPL_APPROXIMATE(v_rsq_f32, "f:f", "valu.trans.f32", (lanes<[](float a) { return reciprocal_root(a); }>)),
    RPL_APPROXIMATE(v_exp_f32, "f:f", "valu.trans.f32", (lanes<[](float a) { return power_of_2(a); }>)),
    RPL_APPROXIMATE(v_log_f32, "f:f", "valu.trans.f32", (lanes<[](float a) { return logarithm(a); }>)),
    RPL_APPROXIMATE(v_exp_legacy_f32, "f:f", "valu.trans.f32", (lanes<[](float a) { return power_of_2(a); }>)),
    RPL_APPROXIMATE(v_log_legacy_f32, "f:f", "valu.trans.f32", (lanes<[](float a) { return logarithm(a); }>)),
    RPL_APPROXIMATE(v_sin_f32, "f:f", "valu.trans.f32", (lanes<[](float a) { return sine(a); }>)),
    RPL_APPROXIMATE(v_cos_f32, "f:f", "valu.trans.f32", (lanes<[](float a) { return cosine(a); }>)),
    RPL_ROW(v_div_scale_f32, "fb:fff", "valu.add.f32", divide_scale_lanes<float>),
    RPL_ROW(v_div_fmas_f32, "f:fff", "valu.fma.f32", divide_fma_lanes<float>),
    RPL_ROW(v_div_fixup_f32, "f:fff", "valu.add.f32",
            (lanes<[](float a, float b, float c) { return divide_fixup(a, b, c); }>)),
    RPL_ROW(v_div_scale_f64, "Fb:FFF", "valu.add.f64", divide_scale_lanes<double>),
    RPL_ROW(v_div_fmas_f64, "F:FFF", "valu.fma.f64", divide_fma_lanes<double>),
    RPL_ROW(v_div_fixup_f64, "F:FFF", "valu.add.f64",
            (lanes<[](double a, double b, double c) { return divide_fixup(a, b, c); }>)),
};

}  // namespace
RowList vector_float_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
