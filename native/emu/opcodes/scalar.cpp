// Scalar arithmetic and comparisons. CDNA3 ISA, section 12 (SOP1, SOP2, SOPC, SOPK).
#include "opcodes/scalar.h"

#include <bit>

namespace rpl_emu {
namespace {

// D = F(A, B) with the new SCC in the last argument.
template <auto F, class D, class A, class B>
void two(Wave& w, const Instruction& i, D (*)(A, B, u32&)) {
  scalar_put<D>(w, i.to[0], F(scalar_get<A>(w, i.from[0]), scalar_get<B>(w, i.from[1]), w.scc));
}
template <auto F, class D, class A>
void two(Wave& w, const Instruction& i, D (*)(A, u32&)) {
  scalar_put<D>(w, i.to[0], F(scalar_get<A>(w, i.from[0]), w.scc));
}
template <auto F>
void make(Wave& w, const Instruction& i) { two<F>(w, i, +F); }

template <auto F, class A, class B>
void test(Wave& w, const Instruction& i, bool (*)(A, B)) {
  w.scc = F(scalar_get<A>(w, i.from[0]), scalar_get<B>(w, i.from[1])) ? 1 : 0;
}
template <auto F>
void compare(Wave& w, const Instruction& i) { test<F>(w, i, +F); }

// The old EXEC goes to D, the new one is F(S, EXEC).
template <auto F, bool Write>
void save_exec(Wave& w, const Instruction& i) {
  const u64 old = w.exec();
  const u64 now = F(w.scalar64(i.from[0]), old);
  w.set64(i.to[0].index, Write ? now : old);
  w.set_exec(now);
  w.scc = now != 0;
}

// CDNA3 ISA, S_MOVRELS and S_MOVRELD: M0 is added to the number of the source or of the result. What lies beyond the
// registers of the program, and pairs from an odd number on, are left out: the document does not say what they do.
template <unsigned Words, bool OfSource>
void move_relative(Wave& w, const Instruction& i) {
  const Operand& relative = OfSource ? i.from[0] : i.to[0];
  const u64 index = u64{relative.index} + w.s[kM0];
  if (relative.place != Place::scalar || index + Words > kFlatScratch || index % Words != 0) {
    w.refuse("a relative scalar register beyond those of the program, which is not offered");
    return;
  }
  const u64 value = OfSource ? (Words == 2 ? w.get64(static_cast<unsigned>(index)) : w.s[index]) : Words == 2 ? w.scalar64(i.from[0]) : w.scalar(i.from[0]);
  u32* to = &w.s[OfSource ? i.to[0].index : index];
  to[0] = static_cast<u32>(value);
  if (Words == 2) to[1] = static_cast<u32>(value >> 32);
}

u32 signed_overflow_add(u32 a, u32 b) { return (~(a ^ b) & (a ^ (a + b))) >> 31; }
u32 signed_overflow_sub(u32 a, u32 b) { return ((a ^ b) & (a ^ (a - b))) >> 31; }
template <class T> T field(T a, u32 how, bool is_signed) {
  constexpr u32 kBits = 8 * sizeof(T);
  const u32 at = how & (kBits - 1);
  const u32 width = how >> 16 & 0x7f;
  using S = std::make_signed_t<T>;
  if (width == 0) return 0;
  const T moved = is_signed ? static_cast<T>(static_cast<S>(a) >> at) : a >> at;
  if (width >= kBits) return moved;
  const T cut = moved & ((T{1} << width) - 1);
  const T sign = T{1} << (width - 1);
  return is_signed ? (cut ^ sign) - sign : cut;
}
u64 quads(u64 a, unsigned bits) {  // a bit per four that are not all off
  u64 out = 0;
  for (unsigned k = 0; k < bits / 4; ++k) out |= u64{(a >> (4 * k) & 15) != 0} << k;
  return out;
}
u64 whole_quads(u64 a, unsigned bits) {
  u64 out = 0;
  for (unsigned k = 0; k < bits; k += 4) out |= (a >> k & 15) ? u64{15} << k : 0;
  return out;
}
u64 reversed(u64 a, unsigned bits) {
  u64 out = 0;
  for (unsigned k = 0; k < bits; ++k) out |= (a >> k & 1) << (bits - 1 - k);
  return out;
}
u32 first_sign_change(u64 a, unsigned bits) {
  const u64 sign = a >> (bits - 1) & 1;
  for (unsigned k = 1; k < bits; ++k)
    if ((a >> (bits - 1 - k) & 1) != sign) return k;
  return ~0U;
}
u64 doubled_bits(u32 a) {
  u64 out = 0;
  for (unsigned k = 0; k < 32; ++k) out |= u64{a >> k & 1} * 3 << (2 * k);
  return out;
}
template <class T> u32 low_bit(T a) { return a == 0 ? ~0U : static_cast<u32>(std::countr_zero(a)); }
template <class T> u32 high_bit(T a) { return a == 0 ? ~0U : static_cast<u32>(std::countl_zero(a)); }

void conditional_move(Wave& w, const Instruction& i) { if (w.scc) scalar_put<u32>(w, i.to[0], w.scalar(i.from[0])); }
void conditional_move64(Wave& w, const Instruction& i) { if (w.scc) scalar_put<u64>(w, i.to[0], w.scalar64(i.from[0])); }
template <int Value, class T>
void set_bit(Wave& w, const Instruction& i) {
  const T bit = T{1} << (w.scalar(i.from[0]) & (8 * sizeof(T) - 1));
  const Operand self = i.to[0];
  const T old = scalar_get<T>(w, self);
  scalar_put<T>(w, self, Value ? old | bit : old & ~bit);
}
// SOPK: the 16 bits of the instruction, sign extended.
u32 constant16(const Instruction& i) { return static_cast<u32>(static_cast<i32>(static_cast<int16_t>(i.from[0].value))); }
void add_constant(Wave& w, const Instruction& i) {
  const u32 a = w.s[i.to[0].index];
  const u32 b = constant16(i);
  w.s[i.to[0].index] = a + b;
  w.scc = signed_overflow_add(a, b);
}
void multiply_constant(Wave& w, const Instruction& i) {
  w.s[i.to[0].index] *= constant16(i);
}
void conditional_move_constant(Wave& w, const Instruction& i) { if (w.scc) w.s[i.to[0].index] = constant16(i); }
#define RPL_S(name, signature, ...) {#name, Form::scalar, signature, "salu", __VA_ARGS__, ""}
#define RPL_LOGIC(name, body)                                                                               \
  RPL_S(s_##name##_b32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { const u32 d = (body); scc = d != 0; return d; }>)), \
  RPL_S(s_##name##_b64, "S:UU", (make<[](u64 a, u64 b, u32& scc) { const u64 d = (body); scc = d != 0; return d; }>)), \
  RPL_S(s_##name##_saveexec_b64, "S:U", (save_exec<[](u64 a, u64 b) { return (body); }, false>))
#define RPL_UNARY(name, signature, T, body) \
  RPL_S(name, signature, (make<[](T a, u32& scc) { const auto d = (body); scc = d != 0; return d; }>))
#define RPL_PLAIN(name, signature, T, body) \
  RPL_S(name, signature, (make<[](T a, [[maybe_unused]] u32& scc) { return (body); }>))
#define RPL_PLAIN2(name, signature, T, U, body) \
  RPL_S(name, signature, (make<[](T a, U b, [[maybe_unused]] u32& scc) { return (body); }>))
#define RPL_COMPARE(name, op)                                                           \
  RPL_S(s_cmp_##name##_i32, ":uu", (compare<[](i32 a, i32 b) { return (a op b); }>)),    \
  RPL_S(s_cmp_##name##_u32, ":uu", (compare<[](u32 a, u32 b) { return (a op b); }>)),    \
  RPL_S(s_cmpk_##name##_i32, ":uu", (compare<[](i32 a, i32 b) { return (a op static_cast<int16_t>(b)); }>)), \
  RPL_S(s_cmpk_##name##_u32, ":uu", (compare<[](u32 a, u32 b) { return (a op (b & 0xffff)); }>))

const Row kRows[] = {
    RPL_S(s_add_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { scc = a + b < a; return a + b; }>)),
    RPL_S(s_sub_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { scc = a < b; return a - b; }>)),
    RPL_S(s_add_i32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { scc = signed_overflow_add(a, b); return a + b; }>)),
    RPL_S(s_sub_i32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { scc = signed_overflow_sub(a, b); return a - b; }>)),
    RPL_S(s_addc_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) {
            const u64 d = u64{a} + b + scc; scc = static_cast<u32>(d >> 32); return static_cast<u32>(d); }>)),
    RPL_S(s_subb_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) {
            const u32 d = a - b - scc; scc = a < u64{b} + scc; return d; }>)),
    RPL_S(s_min_i32, "s:uu", (make<[](i32 a, i32 b, u32& scc) { scc = a < b; return a < b ? a : b; }>)),
    RPL_S(s_min_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { scc = a < b; return a < b ? a : b; }>)),
    RPL_S(s_max_i32, "s:uu", (make<[](i32 a, i32 b, u32& scc) { scc = a >= b; return a >= b ? a : b; }>)),
    RPL_S(s_max_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { scc = a >= b; return a >= b ? a : b; }>)),
    RPL_PLAIN2(s_cselect_b32, "s:uu", u32, u32, scc ? a : b),
    RPL_PLAIN2(s_cselect_b64, "S:UU", u64, u64, scc ? a : b),
    RPL_LOGIC(and, a & b), RPL_LOGIC(or, a | b), RPL_LOGIC(xor, a ^ b), RPL_LOGIC(andn2, a & ~b),
    RPL_LOGIC(orn2, a | ~b), RPL_LOGIC(nand, ~(a & b)), RPL_LOGIC(nor, ~(a | b)), RPL_LOGIC(xnor, ~(a ^ b)),
    RPL_S(s_andn1_saveexec_b64, "S:U", (save_exec<[](u64 a, u64 b) { return ~a & b; }, false>)),
    RPL_S(s_orn1_saveexec_b64, "S:U", (save_exec<[](u64 a, u64 b) { return ~a | b; }, false>)),
    RPL_S(s_andn1_wrexec_b64, "S:U", (save_exec<[](u64 a, u64 b) { return ~a & b; }, true>)),
    RPL_S(s_andn2_wrexec_b64, "S:U", (save_exec<[](u64 a, u64 b) { return a & ~b; }, true>)),
    RPL_S(s_lshl_b32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { const u32 d = a << (b & 31); scc = d != 0; return d; }>)),
    RPL_S(s_lshl_b64, "S:Uu", (make<[](u64 a, u32 b, u32& scc) { const u64 d = a << (b & 63); scc = d != 0; return d; }>)),
    RPL_S(s_lshr_b32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { const u32 d = (a >> (b & 31)); scc = d != 0; return d; }>)),
    RPL_S(s_lshr_b64, "S:Uu", (make<[](u64 a, u32 b, u32& scc) { const u64 d = (a >> (b & 63)); scc = d != 0; return d; }>)),
    RPL_S(s_ashr_i32, "s:uu", (make<[](i32 a, u32 b, u32& scc) { const i32 d = (a >> (b & 31)); scc = d != 0; return d; }>)),
    RPL_S(s_ashr_i64, "S:Iu", (make<[](i64 a, u32 b, u32& scc) { const i64 d = (a >> (b & 63)); scc = d != 0; return d; }>)),
    RPL_PLAIN2(s_bfm_b32, "s:uu", u32, u32, ((1U << (a & 31)) - 1) << (b & 31)),
    RPL_PLAIN2(s_bfm_b64, "S:uu", u32, u32, ((u64{1} << (a & 63)) - 1) << (b & 63)),
    RPL_S(s_bfe_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { const u32 d = field<u32>(a, b, false); scc = d != 0; return d; }>)),
    RPL_S(s_bfe_i32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { const u32 d = field<u32>(a, b, true); scc = d != 0; return d; }>)),
    RPL_S(s_bfe_u64, "S:Uu", (make<[](u64 a, u32 b, u32& scc) { const u64 d = field<u64>(a, b, false); scc = d != 0; return d; }>)),
    RPL_S(s_bfe_i64, "S:Uu", (make<[](u64 a, u32 b, u32& scc) { const u64 d = field<u64>(a, b, true); scc = d != 0; return d; }>)),
    RPL_PLAIN2(s_mul_i32, "s:uu", u32, u32, a * b),
    RPL_PLAIN2(s_mul_hi_u32, "s:uu", u32, u32, static_cast<u32>(u64{a} * b >> 32)),
    RPL_PLAIN2(s_mul_hi_i32, "s:uu", i32, i32, static_cast<u32>(static_cast<u64>(i64{a} * b) >> 32)),
    RPL_S(s_absdiff_i32, "s:uu", (make<[](u32 a, u32 b, u32& scc) {
            const u32 x = a - b; const u32 d = (x & 0x80000000) ? 0 - x : x; scc = d != 0; return d; }>)),
    RPL_S(s_lshl1_add_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { const u64 d = (u64{a} << 1) + b; scc = 0xffffffff < d; return static_cast<u32>(d); }>)),
    RPL_S(s_lshl2_add_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { const u64 d = (u64{a} << 2) + b; scc = 0xffffffff < d; return static_cast<u32>(d); }>)),
    RPL_S(s_lshl3_add_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { const u64 d = (u64{a} << 3) + b; scc = 0xffffffff < d; return static_cast<u32>(d); }>)),
    RPL_S(s_lshl4_add_u32, "s:uu", (make<[](u32 a, u32 b, u32& scc) { const u64 d = (u64{a} << 4) + b; scc = 0xffffffff < d; return static_cast<u32>(d); }>)),
    RPL_PLAIN2(s_pack_ll_b32_b16, "s:uu", u32, u32, (a & 0xffff) | b << 16),
    RPL_PLAIN2(s_pack_lh_b32_b16, "s:uu", u32, u32, (a & 0xffff) | (b & 0xffff0000)),
    RPL_PLAIN2(s_pack_hh_b32_b16, "s:uu", u32, u32, a >> 16 | (b & 0xffff0000)),
    // one source
    RPL_PLAIN(s_mov_b32, "s:u", u32, a), RPL_PLAIN(s_mov_b64, "S:U", u64, a),
    RPL_PLAIN(s_movk_i32, "s:u", u32, static_cast<u32>(static_cast<i32>(static_cast<int16_t>(a)))),
    RPL_S(s_movrels_b32, "s:u", (move_relative<1, true>)), RPL_S(s_movrels_b64, "S:U", (move_relative<2, true>)),
    RPL_S(s_movreld_b32, "s:u", (move_relative<1, false>)), RPL_S(s_movreld_b64, "S:U", (move_relative<2, false>)),
    RPL_S(s_cmov_b32, "s:u", conditional_move), RPL_S(s_cmov_b64, "S:U", conditional_move64),
    RPL_S(s_cmovk_i32, "s:u", conditional_move_constant),
    RPL_UNARY(s_not_b32, "s:u", u32, ~a), RPL_UNARY(s_not_b64, "S:U", u64, ~a),
    RPL_UNARY(s_wqm_b32, "s:u", u32, static_cast<u32>(whole_quads(a, 32))),
    RPL_UNARY(s_wqm_b64, "S:U", u64, whole_quads(a, 64)),
    RPL_UNARY(s_quadmask_b32, "s:u", u32, static_cast<u32>(quads(a, 32))),
    RPL_UNARY(s_quadmask_b64, "S:U", u64, quads(a, 64)),
    RPL_PLAIN(s_brev_b32, "s:u", u32, static_cast<u32>(reversed(a, 32))),
    RPL_PLAIN(s_brev_b64, "S:U", u64, reversed(a, 64)),
    RPL_UNARY(s_bcnt0_i32_b32, "s:u", u32, static_cast<u32>(std::popcount(~a))),
    RPL_UNARY(s_bcnt0_i32_b64, "s:U", u64, static_cast<u32>(std::popcount(~a))),
    RPL_UNARY(s_bcnt1_i32_b32, "s:u", u32, static_cast<u32>(std::popcount(a))),
    RPL_UNARY(s_bcnt1_i32_b64, "s:U", u64, static_cast<u32>(std::popcount(a))),
    RPL_PLAIN(s_ff0_i32_b32, "s:u", u32, low_bit(~a)), RPL_PLAIN(s_ff0_i32_b64, "s:U", u64, low_bit(~a)),
    RPL_PLAIN(s_ff1_i32_b32, "s:u", u32, low_bit(a)), RPL_PLAIN(s_ff1_i32_b64, "s:U", u64, low_bit(a)),
    RPL_PLAIN(s_flbit_i32_b32, "s:u", u32, high_bit(a)), RPL_PLAIN(s_flbit_i32_b64, "s:U", u64, high_bit(a)),
    RPL_PLAIN(s_flbit_i32, "s:u", u32, first_sign_change(a, 32)),
    RPL_PLAIN(s_flbit_i32_i64, "s:U", u64, first_sign_change(a, 64)),
    RPL_PLAIN(s_sext_i32_i8, "s:u", u32, static_cast<u32>(static_cast<i32>(static_cast<int8_t>(a)))),
    RPL_PLAIN(s_sext_i32_i16, "s:u", u32, static_cast<u32>(static_cast<i32>(static_cast<int16_t>(a)))),
    RPL_S(s_bitset0_b32, "s:u", (set_bit<0, u32>)), RPL_S(s_bitset1_b32, "s:u", (set_bit<1, u32>)),
    RPL_S(s_bitset0_b64, "S:u", (set_bit<0, u64>)), RPL_S(s_bitset1_b64, "S:u", (set_bit<1, u64>)),
    RPL_UNARY(s_abs_i32, "s:u", u32, a >> 31 ? 0 - a : a),
    RPL_PLAIN(s_bitreplicate_b64_b32, "S:u", u32, doubled_bits(a)),
    RPL_S(s_addk_i32, "s:u", add_constant), RPL_S(s_mulk_i32, "s:u", multiply_constant),
    // comparisons
    RPL_COMPARE(eq, ==), RPL_COMPARE(lg, !=), RPL_COMPARE(gt, >), RPL_COMPARE(ge, >=), RPL_COMPARE(lt, <),
    RPL_COMPARE(le, <=),
    RPL_S(s_cmp_eq_u64, ":UU", (compare<[](u64 a, u64 b) { return a == b; }>)),
    RPL_S(s_cmp_lg_u64, ":UU", (compare<[](u64 a, u64 b) { return a != b; }>)),
    RPL_S(s_bitcmp0_b32, ":uu", (compare<[](u32 a, u32 b) { return ((a >> (b & 31)) & 1) == 0; }>)),
    RPL_S(s_bitcmp1_b32, ":uu", (compare<[](u32 a, u32 b) { return ((a >> (b & 31)) & 1) == 1; }>)),
    RPL_S(s_bitcmp0_b64, ":Uu", (compare<[](u64 a, u32 b) { return ((a >> (b & 63)) & 1) == 0; }>)),
    RPL_S(s_bitcmp1_b64, ":Uu", (compare<[](u64 a, u32 b) { return ((a >> (b & 63)) & 1) == 1; }>)),
};

}  // namespace
RowList scalar_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu
