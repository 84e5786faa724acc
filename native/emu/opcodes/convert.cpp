// Conversions between number formats. CDNA3 ISA, section 12 (V_CVT_*).
#include <limits>

#include "opcodes/lanes.h"
#include "opcodes/lists.h"
#include "opcodes/numbers.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

// Toward zero; outside of the range the nearest end, not-a-number gives 0.
i32 to_int(float a) {
  const i32 plain = static_cast<i32>(a >= -2147483648.0F && a < 2147483648.0F ? a : 0.0F);
  return a >= 2147483648.0F ? INT32_MAX : a < -2147483648.0F ? INT32_MIN : plain;
}
u32 to_unsigned(float a) {
  const bool upper = a >= 2147483648.0F;
  const float rest = upper ? a - 2147483648.0F : a;
  const u32 plain = static_cast<u32>(static_cast<i32>(rest > 0 && rest < 2147483648.0F ? rest : 0.0F));
  return a >= 4294967296.0F ? ~0U : plain + (upper ? 0x80000000U : 0U);
}
i32 to_int(double a) {
  if (is_nan(a)) return 0;
  return a >= 2147483647.0 ? INT32_MAX : a <= -2147483648.0 ? INT32_MIN : static_cast<i32>(a);
}
u32 to_unsigned(double a) {
  if (is_nan(a) || a <= 0) return 0;
  return a >= 4294967295.0 ? ~0U : static_cast<u32>(a);
}
i32 clamp16(float a) {
  if (is_nan(a)) return 0;
  return a >= 32767.0F ? 32767 : a <= -32768.0F ? -32768 : static_cast<i32>(a);
}
u32 clamp_u16(float a) {
  if (is_nan(a) || a <= 0) return 0;
  return a >= 65535.0F ? 65535 : static_cast<u32>(a);
}
u32 pair(u32 low, u32 high) { return (low & 0xffff) | high << 16; }
u32 narrow16(i32 a) { return static_cast<u32>(a > 32767 ? 32767 : a < -32768 ? -32768 : a); }
u32 narrow8(i32 a) { return static_cast<u32>(a < 0 ? 0 : a > 255 ? 255 : a); }
u32 two_bytes(u32 a) { return narrow8(static_cast<int16_t>(a)) | narrow8(static_cast<i32>(a) >> 16) << 8; }
// The product is exact in a double: one rounding.
u32 norm16(float a) {
  if (is_nan(a)) return 0;
  const float x = a < -1 ? -1.0F : a > 1 ? 1.0F : a;
  return static_cast<u32>(static_cast<i32>(__builtin_roundeven(double{x} * 32767.0)));
}
u32 norm_u16(float a) {
  if (is_nan(a)) return 0;
  const float x = a < 0 ? 0.0F : a > 1 ? 1.0F : a;
  return static_cast<u32>(__builtin_roundeven(double{x} * 65535.0));
}
u32 to_byte(float a) {
  if (is_nan(a) || a <= 0) return 0;
  return a >= 255.0F ? 255 : static_cast<u32>(__builtin_rintf(a));
}

// The word of the destination that is not written stays: the old destination is the last source.
template <Float8 F, bool Stochastic>
void to_8bit_float(Wave& w, const Instruction& i) {
  Temporary ta, tb, tr;
  const u32* a = source_rows<u32>(w, i.from[0], ta);
  const u32* b = source_rows<u32>(w, i.from[1], tb);
  u32* d = w.v[i.to[0].index];
  const unsigned at = i.extra * 8U;  // op_sel: the byte or the half
  constexpr u32 kMask = Stochastic ? 0xff : 0xffff;
  for (unsigned j = 0; j < kLanes; ++j) {
    const u32 low = to_float8(float_of(a[j]), F, Stochastic, b[j]);
    const u32 code = Stochastic ? low : low | to_float8(float_of(b[j]), F, false, 0) << 8;
    tr.words[j] = (d[j] & ~(kMask << at)) | code << at;
  }
  merge_rows(d, tr.words, w.exec(), 1);
}

template <Float8 F>
void from_8bit_float(Wave& w, const Instruction& i) {
  Temporary ta, tr;
  const u32* a = source_rows<u32>(w, i.from[0], ta);
  for (unsigned j = 0; j < kLanes; ++j) tr.words[j] = bits_of(from_float8(a[j] >> (8 * i.extra), F));
  merge_rows(w.v[i.to[0].index], tr.words, w.exec(), 1);
}
template <Float8 F>
void from_8bit_pair(Wave& w, const Instruction& i) {
  Temporary ta, tr;
  const u32* a = source_rows<u32>(w, i.from[0], ta);
  for (unsigned j = 0; j < kLanes; ++j) {
    const u32 both = a[j] >> (8 * i.extra);
    tr.words[j] = bits_of(from_float8(both, F));
    tr.words[kLanes + j] = bits_of(from_float8(both >> 8, F));
  }
  merge_rows(w.v[i.to[0].index], tr.words, w.exec(), 2);
}

constexpr const char* kEightBit = "overflow gives not-a-number; stochastic rounding adds the upper bits of its number";
const Row kRows[] = {
    // CDNA3 ISA, V_CVT_OFF_F32_I4: sixteenths.
    RPL_ROW(v_cvt_off_f32_i4, "f:u", "valu.cvt", (lanes<[](u32 a) { return static_cast<float>(static_cast<i32>(a << 28) >> 28) * 0.0625F; }>)),
    RPL_ROW(v_cvt_f32_i32, "f:u", "valu.cvt", (lanes<[](i32 a) { return static_cast<float>(a); }>)),
    RPL_ROW(v_cvt_f32_u32, "f:u", "valu.cvt", (lanes<[](u32 a) { return static_cast<float>(a); }>)),
    RPL_ROW(v_cvt_i32_f32, "u:f", "valu.cvt", (lanes<[](float a) { return to_int(a); }>)),
    RPL_ROW(v_cvt_u32_f32, "u:f", "valu.cvt", (lanes<[](float a) { return to_unsigned(a); }>)),
    RPL_ROW(v_cvt_rpi_i32_f32, "u:f", "valu.cvt",
            (lanes<[](float a) { return to_int(std::floor(double{a} + 0.5)); }>)),
    RPL_ROW(v_cvt_flr_i32_f32, "u:f", "valu.cvt",
            (lanes<[](float a) { return to_int(__builtin_floorf(a)); }>)),
    RPL_ROW(v_cvt_f32_f16, "f:h", "valu.cvt", (lanes<[](u32 a) { const float x = from_half(a & 0xffff); return is_nan(x) ? quiet(x) : x; }>)),
    RPL_ROW(v_cvt_f16_f32, "h:f", "valu.cvt", (lanes<[](float a) { return to_half(a); }>)),
    RPL_ROW(v_cvt_f64_f32, "F:f", "valu.cvt", (lanes<[](float a) { return static_cast<double>(a); }>)),
    RPL_ROW(v_cvt_f32_f64, "f:F", "valu.cvt", (lanes<[](double a) { return static_cast<float>(a); }>)),
    RPL_ROW(v_cvt_f64_i32, "F:u", "valu.cvt", (lanes<[](i32 a) { return static_cast<double>(a); }>)),
    RPL_ROW(v_cvt_f64_u32, "F:u", "valu.cvt", (lanes<[](u32 a) { return static_cast<double>(a); }>)),
    RPL_ROW(v_cvt_i32_f64, "u:F", "valu.cvt", (lanes<[](double a) { return to_int(a); }>)),
    RPL_ROW(v_cvt_u32_f64, "u:F", "valu.cvt", (lanes<[](double a) { return to_unsigned(a); }>)),
    RPL_ROW(v_cvt_f32_ubyte0, "f:u", "valu.cvt",
            (lanes<[](u32 a) { return static_cast<float>(static_cast<i32>(a & 0xff)); }>)),
    RPL_ROW(v_cvt_f32_ubyte1, "f:u", "valu.cvt",
            (lanes<[](u32 a) { return static_cast<float>(static_cast<i32>((a >> 8) & 0xff)); }>)),
    RPL_ROW(v_cvt_f32_ubyte2, "f:u", "valu.cvt",
            (lanes<[](u32 a) { return static_cast<float>(static_cast<i32>((a >> 16) & 0xff)); }>)),
    RPL_ROW(v_cvt_f32_ubyte3, "f:u", "valu.cvt",
            (lanes<[](u32 a) { return static_cast<float>(static_cast<i32>((a >> 24))); }>)),
    RPL_ROW(v_cvt_f16_u16, "h:w", "valu.cvt",
            (lanes<[](u32 a) { return to_half(static_cast<float>(static_cast<i32>(a & 0xffff))); }>)),
    RPL_ROW(v_cvt_f16_i16, "h:w", "valu.cvt",
            (lanes<[](u32 a) { return to_half(static_cast<float>(static_cast<int16_t>(a))); }>)),
    RPL_ROW(v_cvt_u16_f16, "w:h", "valu.cvt", (lanes<[](u32 a) { return clamp_u16(from_half(a & 0xffff)); }>)),
    RPL_ROW(v_cvt_i16_f16, "w:h", "valu.cvt",
            (lanes<[](u32 a) { return static_cast<u32>(clamp16(from_half(a & 0xffff))) & 0xffff; }>)),
    RPL_ROW(v_cvt_pkrtz_f16_f32, "u:ff", "valu.cvt",
            (lanes<[](float a, float b) { return pair(to_half_toward_zero(a), to_half_toward_zero(b)); }>)),
    RPL_ROW(v_cvt_pk_u16_u32, "u:uu", "valu.cvt",
            (lanes<[](u32 a, u32 b) { return pair(a > 65535 ? 65535 : a, b > 65535 ? 65535 : b); }>)),
    RPL_ROW(v_cvt_pk_i16_i32, "u:uu", "valu.cvt",
            (lanes<[](i32 a, i32 b) { return pair(narrow16(a), narrow16(b)); }>)),
    RPL_ROW(v_cvt_pknorm_i16_f32, "u:ff", "valu.cvt",
            (lanes<[](float a, float b) { return pair(norm16(a), norm16(b)); }>)),
    RPL_ROW(v_cvt_pknorm_u16_f32, "u:ff", "valu.cvt",
            (lanes<[](float a, float b) { return pair(norm_u16(a), norm_u16(b)); }>)),
    RPL_ROW(v_cvt_pk_u8_f32, "u:fuu", "valu.cvt", (lanes<[](float a, u32 b, u32 c) {
              const u32 at = 8 * (b & 3);
              return (c & ~(0xffU << at)) | to_byte(a) << at;
            }>)),
    RPL_ROW(v_sat_pk_u8_i16, "u:u", "valu.cvt", (lanes<[](u32 a) { return two_bytes(a); }>)),
    {"v_cvt_pk_fp8_f32", Form::vector, "u:ff", "valu.cvt", to_8bit_float<kFp8, false>, kEightBit},
    {"v_cvt_pk_bf8_f32", Form::vector, "u:ff", "valu.cvt", to_8bit_float<kBf8, false>, kEightBit},
    {"v_cvt_sr_fp8_f32", Form::vector, "u:fu", "valu.cvt", to_8bit_float<kFp8, true>, kEightBit},
    {"v_cvt_sr_bf8_f32", Form::vector, "u:fu", "valu.cvt", to_8bit_float<kBf8, true>, kEightBit},
    RPL_ROW(v_cvt_f32_fp8, "f:u", "valu.cvt", from_8bit_float<kFp8>),
    RPL_ROW(v_cvt_f32_bf8, "f:u", "valu.cvt", from_8bit_float<kBf8>),
    RPL_ROW(v_cvt_pk_f32_fp8, "P:u", "valu.cvt", from_8bit_pair<kFp8>),
    RPL_ROW(v_cvt_pk_f32_bf8, "P:u", "valu.cvt", from_8bit_pair<kBf8>),
};

}  // namespace
RowList convert_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
