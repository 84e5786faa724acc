// Floating-point formats and rules that the host's types do not have: halves, bfloat, 8-bit floats, IEEE mode.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "opcodes/table.h"

namespace rpl_emu::inline RPL_EMU_BUILD {

inline uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
inline uint64_t bits_of(double x) { return std::bit_cast<uint64_t>(x); }
inline float float_of(uint32_t x) { return std::bit_cast<float>(x); }
inline double double_of(uint64_t x) { return std::bit_cast<double>(x); }
inline bool is_nan(float x) { return (bits_of(x) & 0x7fffffff) > 0x7f800000; }
inline bool is_nan(double x) { return (bits_of(x) & ~(uint64_t{1} << 63)) > uint64_t{0x7ff} << 52; }
inline bool is_signalling(float x) { return is_nan(x) && !(bits_of(x) & 0x400000); }
inline bool is_signalling(double x) { return is_nan(x) && !(bits_of(x) & uint64_t{1} << 51); }
inline float quiet(float x) { return float_of(bits_of(x) | 0x400000); }
inline double quiet(double x) { return double_of(bits_of(x) | uint64_t{1} << 51); }

// The low 16 bits, as they are and as a signed number.
constexpr uint32_t low(uint32_t a) { return a & 0xffff; }
constexpr int32_t sign(uint32_t a) { return static_cast<int16_t>(a); }

// A half, of its 16 low bits, as a float: exact. Without branches, so that loops become vector code.
inline float from_half(uint32_t h) {
  const uint32_t sign = (h & 0x8000) << 16;
  const uint32_t rest = h & 0x7fff;
  const float scaled = float_of(rest << 13) * float_of(0x77800000);  // 2^112
  const uint32_t special = rest << 13 | 0x7f800000;
  return float_of((rest >= 0x7c00 ? special : bits_of(scaled)) | sign);
}

// Whether halves are rounded in the host's direction, which `--rounding` sets, and tell the host that they are inexact.
inline bool round_halves = false;

// To as many bits as a half has there, by the host's sum with a number whose last place is that of the half. From 2^16 on
// the host's sum of the greatest floats tells whether what is too large becomes infinite.
inline float rounded_to_half(float x) {
  const uint32_t sign = bits_of(x) & 0x80000000, rest = bits_of(x) & 0x7fffffff;
  const uint32_t exponent = std::clamp(rest & 0x7f800000, 0x38800000U, 0x47000000U);  // 2^-14 to 2^15
  const float large = float_of(sign | (exponent + (13U << 23)));
  const float greatest = float_of(sign | 0x7f7fffff);
  const bool stays = rest < 0x7f800000 && bits_of(greatest + greatest) == bits_of(greatest);
  const float beyond = stays ? float_of(sign | 0x477fe000) : x;
  return rest < 0x47800000 ? (x + large) - large : beyond;
}

// To the nearest even, but for `round_halves`. Not-a-number becomes quiet.
inline uint32_t to_half(float x) {
  const uint32_t sign = bits_of(x) >> 16 & 0x8000;
  const uint32_t rest = bits_of(round_halves ? rounded_to_half(x) : x) & 0x7fffffff;
  const uint32_t normal = (rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13;
  const uint32_t denormal = bits_of(float_of(rest) + 0.5F) - 0x3f000000;  // 2^-24 is the last place of 0.5
  const uint32_t nan = 0x7e00 | (rest >> 13 & 0x1ff);
  const uint32_t finite = rest < 0x38800000 ? denormal : normal;
  const uint32_t bounded = rest >= 0x477ff000 ? 0x7c00 : finite;
  return sign | (rest > 0x7f800000 ? nan : bounded);
}

inline uint32_t to_half_toward_zero(float x) {
  const uint32_t sign = bits_of(x) >> 16 & 0x8000;
  const uint32_t rest = bits_of(x) & 0x7fffffff;
  if (rest > 0x7f800000) return sign | 0x7e00 | (rest >> 13 & 0x1ff);
  if (rest == 0x7f800000) return sign | 0x7c00;
  if (rest >= 0x47800000) return sign | 0x7bff;
  if (rest >= 0x38800000) return sign | (rest - 0x38000000) >> 13;
  return sign | static_cast<uint32_t>(float_of(rest) * 16777216.0F);
}

// The nearest half of a double that may have more bits than a float: by a float rounded to odd.
inline float to_odd(double x) {
  const auto near = static_cast<float>(x);
  const double back = near;
  if (back == x || std::isnan(x) || std::isinf(near) || (bits_of(near) & 1)) return near;
  const bool away = std::fabs(back) > std::fabs(x);
  return float_of(bits_of(near) + (away ? -1U : 1U));
}
inline uint32_t half_of_double(double x) {
  if (std::isinf(static_cast<float>(x)) && !std::isinf(x)) return x < 0 ? 0xfc00 : 0x7c00;
  return to_half(to_odd(x));
}

// a * b + c with one rounding. The product is exact in double; the sum is rounded to odd, then to the half.
inline uint32_t half_fma(uint32_t a, uint32_t b, uint32_t c) {
  const double product = double{from_half(a)} * double{from_half(b)};
  const double add = from_half(c);
  double sum = product + add;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (add - part);
  if (error != 0 && std::isfinite(sum) && !(bits_of(sum) & 1)) {
    const bool outward = (error > 0) == (sum > 0);
    sum = double_of(bits_of(sum) + (outward ? 1U : ~uint64_t{0}));
  }
  return half_of_double(sum);
}

inline float from_bfloat(uint32_t b) { return float_of(b << 16); }
inline uint32_t to_bfloat(float x) {
  if (is_nan(x)) return (bits_of(x) >> 16 & 0xffff) | 0x40;
  return (bits_of(x) + 0x7fff + (bits_of(x) >> 16 & 1)) >> 16;
}

// CDNA3 ISA, V_MIN_F32 and V_MAX_F32: -0 is smaller than +0, a signalling NaN becomes quiet, else the number wins.
template <class T>
inline T number_or(T a, T b, T both) {
  if (is_signalling(a)) return quiet(a);
  if (is_signalling(b)) return quiet(b);
  if (is_nan(a)) return b;
  if (is_nan(b)) return a;
  return both;
}
template <class T>
inline T minimum(T a, T b) {
  const T both = a == b ? (std::signbit(a) ? a : b) : (a < b ? a : b);
  return number_or(a, b, both);
}
template <class T>
inline T maximum(T a, T b) {
  const T both = a == b ? (std::signbit(a) ? b : a) : (a > b ? a : b);
  return number_or(a, b, both);
}
template <class T>
inline T median(T a, T b, T c) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return minimum(minimum(a, b), c);
  return maximum(minimum(a, b), minimum(maximum(a, b), c));
}

// The 8-bit floats of gfx942: one NaN (0x80), no infinity, no negative zero ("FNUZ").
struct Float8 { int exponent_bits, mantissa_bits, bias; };
constexpr Float8 kFp8{4, 3, 8};
constexpr Float8 kBf8{5, 2, 16};

inline float from_float8(uint32_t code, Float8 f) {
  code &= 0xff;
  if (code == 0x80) return float_of(0x7fc00000);
  const auto mantissa = static_cast<int>(code & ((1U << f.mantissa_bits) - 1));
  const auto exponent = static_cast<int>(code >> f.mantissa_bits & ((1U << f.exponent_bits) - 1));
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << f.mantissa_bits);
  const int power = (exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits;
  const float magnitude = static_cast<float>(whole) * float_of(static_cast<uint32_t>(power + 127) << 23);
  return code & 0x80 ? -magnitude : magnitude;
}

// To the nearest even; what is too large becomes not-a-number: HIP's headers clamp before they convert.
// `noise` adds below the last place (stochastic rounding) instead.
inline uint32_t to_float8(float x, Float8 f, bool stochastic, uint32_t noise) {
  if (!std::isfinite(x)) return 0x80;
  const uint32_t sign = bits_of(x) >> 24 & 0x80;
  const uint32_t rest = bits_of(x) & 0x7fffffff;
  if (rest == 0) return 0;
  const int exponent = static_cast<int>(rest >> 23 == 0 ? 1 : rest >> 23) - 127;
  const uint64_t mantissa = (rest & 0x7fffff) | (rest >> 23 == 0 ? 0 : 0x800000);
  const int lowest = 1 - f.bias;  // the exponent of denormals
  int drop = 23 - f.mantissa_bits + (exponent < lowest ? lowest - exponent : 0);
  drop = std::min(drop, 40);
  uint64_t kept = mantissa >> drop;
  const uint64_t lost = mantissa & ((uint64_t{1} << drop) - 1);
  if (stochastic) {
    const uint64_t add = drop >= 32 ? uint64_t{noise} << (drop - 32) : noise >> (32 - drop);
    kept = (mantissa + add) >> drop;
  } else {
    const uint64_t half = uint64_t{1} << (drop - 1);
    if (lost > half || (lost == half && (kept & 1))) ++kept;
  }
  const int biased = exponent < lowest ? 0 : exponent + f.bias - 1;
  const uint64_t code = kept + (static_cast<uint64_t>(biased) << f.mantissa_bits);
  if (code == 0) return 0;
  return code > 0x7f ? 0x80 : sign | static_cast<uint32_t>(code);
}

}  // namespace rpl_emu::inline RPL_EMU_BUILD
