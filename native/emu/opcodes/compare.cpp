// Comparisons into masks. CDNA3 ISA, section 12 (VOPC).
#include "opcodes/lanes.h"
#include "opcodes/lists.h"
#include "opcodes/numbers.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

struct AsHalf { u32 bits; };
struct AsShort { u32 bits; };
struct AsUnsignedShort { u32 bits; };
template <class T> struct Number { static T of(T a) { return a; } };
template <> struct Number<AsHalf> { static float of(AsHalf a) { return from_half(a.bits & 0xffff); } };
template <> struct Number<AsShort> { static i32 of(AsShort a) { return static_cast<int16_t>(a.bits); } };
template <> struct Number<AsUnsignedShort> { static u32 of(AsUnsignedShort a) { return a.bits & 0xffff; } };

// Bits of the second source: 0 signalling NaN, 1 quiet NaN, 2 -inf, 3 -normal, 4 -denormal, 5 -0, 6 +0,
// 7 +denormal, 8 +normal, 9 +inf.
bool in_class(u32 wanted, bool negative, bool nan, bool is_quiet, bool infinite, bool zero, bool tiny) {
  u32 bit = 0;
  if (nan) bit = is_quiet ? 1 : 0;
  else if (infinite) bit = negative ? 2 : 9;
  else if (zero) bit = negative ? 5 : 6;
  else if (tiny) bit = negative ? 4 : 7;
  else bit = negative ? 3 : 8;
  return wanted >> bit & 1;
}
bool class_of(u32 a, u32 wanted) {
  const u32 e = a >> 23 & 0xff, m = a & 0x7fffff;
  return in_class(wanted, a >> 31, e == 255 && m, m >> 22, e == 255, e == 0 && m == 0, e == 0);
}
bool class_of_double(u64 a, u32 wanted) {
  const u64 e = a >> 52 & 0x7ff, m = a & ((u64{1} << 52) - 1);
  return in_class(wanted, a >> 63, e == 2047 && m, m >> 51, e == 2047, e == 0 && m == 0, e == 0);
}
bool class_of_half(u32 a, u32 wanted) {
  const u32 e = a >> 10 & 31, m = a & 0x3ff;
  return in_class(wanted, a >> 15 & 1, e == 31 && m, m >> 9, e == 31, e == 0 && m == 0, e == 0);
}

#define RPL_ONE(name, type, letters, test)                                                        \
  RPL_ROW(v_cmp_##name, "b:" letters, "valu.compare",                                               \
          (compare<[](type a_, type b_) { [[maybe_unused]] const auto a = Number<type>::of(a_);   \
            [[maybe_unused]] const auto b = Number<type>::of(b_); return (test); }>)),            \
  RPL_ROW(v_cmpx_##name, "b:" letters, "valu.compare",                                              \
          (compare_to_exec<[](type a_, type b_) { [[maybe_unused]] const auto a = Number<type>::of(a_); \
            [[maybe_unused]] const auto b = Number<type>::of(b_); return (test); }>))
#define RPL_INTEGERS(kind, type, letters)          \
  RPL_ONE(f_##kind, type, letters, false),         \
  RPL_ONE(lt_##kind, type, letters, a < b),        \
  RPL_ONE(eq_##kind, type, letters, a == b),       \
  RPL_ONE(le_##kind, type, letters, a <= b),       \
  RPL_ONE(gt_##kind, type, letters, a > b),        \
  RPL_ONE(ne_##kind, type, letters, a != b),       \
  RPL_ONE(ge_##kind, type, letters, a >= b),       \
  RPL_ONE(t_##kind, type, letters, true)
#define RPL_FLOATS(kind, type, letters)            \
  RPL_ONE(f_##kind, type, letters, false),         \
  RPL_ONE(lt_##kind, type, letters, a < b),        \
  RPL_ONE(eq_##kind, type, letters, a == b),       \
  RPL_ONE(le_##kind, type, letters, a <= b),       \
  RPL_ONE(gt_##kind, type, letters, a > b),        \
  RPL_ONE(lg_##kind, type, letters, a < b || a > b), \
  RPL_ONE(ge_##kind, type, letters, a >= b),       \
  RPL_ONE(o_##kind, type, letters, a == a && b == b), \
  RPL_ONE(u_##kind, type, letters, !(a == a && b == b)), \
  RPL_ONE(nge_##kind, type, letters, !(a >= b)),   \
  RPL_ONE(nlg_##kind, type, letters, !(a < b || a > b)), \
  RPL_ONE(ngt_##kind, type, letters, !(a > b)),    \
  RPL_ONE(nle_##kind, type, letters, !(a <= b)),   \
  RPL_ONE(neq_##kind, type, letters, !(a == b)),   \
  RPL_ONE(nlt_##kind, type, letters, !(a < b)),    \
  RPL_ONE(tru_##kind, type, letters, true)

const Row kRows[] = {
    RPL_INTEGERS(i32, i32, "uu"),
    RPL_INTEGERS(u32, u32, "uu"),
    RPL_INTEGERS(i64, i64, "II"),
    RPL_INTEGERS(u64, u64, "UU"),
    RPL_INTEGERS(i16, AsShort, "ww"),
    RPL_INTEGERS(u16, AsUnsignedShort, "ww"),
    // "Not less" is no "greater or equal" where a number is none.
    // NOLINTBEGIN(readability-simplify-boolean-expr)
    RPL_FLOATS(f32, float, "ff"),
    RPL_FLOATS(f64, double, "FF"),
    RPL_FLOATS(f16, AsHalf, "hh"),
    // NOLINTEND(readability-simplify-boolean-expr)
    RPL_ROW(v_cmp_class_f32, "b:fu", "valu.compare", (compare<[](u32 a, u32 b) { return class_of(a, b); }>)),
    RPL_ROW(v_cmp_class_f64, "b:Fu", "valu.compare",
            (compare<[](u64 a, u32 b) { return class_of_double(a, b); }>)),
    RPL_ROW(v_cmp_class_f16, "b:hu", "valu.compare",
            (compare<[](u32 a, u32 b) { return class_of_half(a, b); }>)),
    RPL_ROW(v_cmpx_class_f32, "b:fu", "valu.compare",
            (compare_to_exec<[](u32 a, u32 b) { return class_of(a, b); }>)),
    RPL_ROW(v_cmpx_class_f64, "b:Fu", "valu.compare",
            (compare_to_exec<[](u64 a, u32 b) { return class_of_double(a, b); }>)),
    RPL_ROW(v_cmpx_class_f16, "b:hu", "valu.compare",
            (compare_to_exec<[](u32 a, u32 b) { return class_of_half(a, b); }>)),
};

}  // namespace
RowList compare_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
