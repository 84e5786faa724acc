// MUBUF: memory by a buffer descriptor, with its bounds. CDNA3 ISA, section 9.1. Linear buffers, structured or
// raw; swizzled ones are refused when they are met, since the descriptor is data.
// Operands: from[0] address (offset, index, or both), from[1] data, from[2] descriptor, from[3] scalar offset.
#include "opcodes/atomics.h"
#include "opcodes/memory_access.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

// Addresses of the lanes that are inside of the buffer, and which these are; loads of the others give 0,
// stores do nothing.
bool locate(Wave& w, const Instruction& i, Access what, Addresses& at, u64& inside) {
  const u32* d = &w.s[i.from[2].index];
  const u64 base = d[0] | u64{d[1] & 0xffff} << 32;
  const u32 stride = d[1] >> 16 & 0x3fff, records = d[2];
  if (d[1] >> 31 || d[3] >> 23 & 1) {  // swizzle, add thread id
    w.refuse("a buffer descriptor with swizzling or thread ids, which is not offered");
    return false;
  }
  const u32 scalar = w.scalar(i.from[3]);
  const u32* first = i.from[0].place == Place::vector ? w.v[i.from[0].index] : nullptr;
  const u32* index = i.flags & kIndexed ? first : nullptr;
  const u32* offset = i.flags & kOffset ? (index ? first + kLanes : first) : nullptr;
  inside = 0;
  for (u64 rest = w.exec(); rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const u64 own = (offset ? offset[j] : 0) + static_cast<u64>(i.offset);
    const bool structured = stride != 0 && index != nullptr;
    const u64 place = own + (index ? u64{index[j]} * stride : 0);
    const bool fits = structured ? index[j] < records && own + what.bytes <= stride : own + what.bytes <= (stride ? u64{stride} * records : records);
    if (!fits) continue;
    inside |= u64{1} << j;
    at.of[j] = base + scalar + place;
  }
  if (!all_reachable(w, at, inside, what.bytes, what.write)) return false;
  note_access(w, i, at, inside, what);
  find_places(w, at, inside, what.bytes);
  return true;
}

void zero_outside(Wave& w, unsigned row, unsigned words, u64 inside, u32 kept = 0) {
  for (u64 rest = w.exec() & ~inside; rest != 0; rest &= rest - 1)
    for (unsigned k = 0; k < words; ++k) w.v[row + k][std::countr_zero(rest)] &= kept;
}
// Of a load of a half the other half stays.
constexpr u32 kept_bits(Narrow kind) {
  if (kind == Narrow::low_u8 || kind == Narrow::low_i8 || kind == Narrow::low_u16) return 0xffff0000;
  return kind == Narrow::high_u8 || kind == Narrow::high_i8 || kind == Narrow::high_u16 ? 0xffff : 0;
}
template <unsigned Words>
void load(Wave& w, const Instruction& i) {
  Addresses at;
  u64 inside = 0;
  if (!locate(w, i, {4 * Words, false, false}, at, inside)) return;
  load_words<Words>(w, i.to[0].index, at, inside);
  zero_outside(w, i.to[0].index, Words, inside);
}
template <unsigned Words>
void store(Wave& w, const Instruction& i) {
  Addresses at;
  u64 inside = 0;
  if (locate(w, i, {4 * Words, true, false}, at, inside)) store_words<Words>(w, i.from[1].index, at, inside);
}
template <Narrow Kind>
void load_narrow(Wave& w, const Instruction& i) {
  Addresses at;
  u64 inside = 0;
  if (!locate(w, i, {narrow_bytes(Kind), false, false}, at, inside)) return;
  load_narrow_lanes(w.v[i.to[0].index], at, inside, Kind);
  zero_outside(w, i.to[0].index, 1, inside, kept_bits(Kind));
}
void load_to_lds(Wave& w, const Instruction& i) {
  Addresses at;
  u64 inside = 0;
  if (locate(w, i, {4, false, false}, at, inside)) put_in_lds(w, i, inside, [&](unsigned j) { return read_at<u32>(at.of[j]); });
}
template <Narrow Kind>
void load_narrow_to_lds(Wave& w, const Instruction& i) {
  Addresses at;
  u64 inside = 0;
  if (locate(w, i, {narrow_bytes(Kind), false, false}, at, inside)) put_in_lds(w, i, inside, [&](unsigned j) { return widened(at.of[j], Kind, 0); });
}
template <unsigned Bytes, unsigned Shift>
void store_narrow(Wave& w, const Instruction& i) {
  Addresses at;
  u64 inside = 0;
  if (locate(w, i, {Bytes, true, false}, at, inside)) store_narrow_lanes<Bytes, Shift>(w.v[i.from[1].index], at, inside);
}
template <class T, auto F>
void atomic(Wave& w, const Instruction& i) {
  Addresses at;
  u64 inside = 0;
  if (!locate(w, i, {sizeof(T), true, true}, at, inside) || at_odd_place(w, at, inside, sizeof(T))) return;
  u32* d = w.v[i.to[0].index];
  atomic_lanes<T, F>(w, at, inside, w.v[i.from[1].index], i.flags & kReturns ? d : nullptr);
  if (i.flags & kReturns) zero_outside(w, i.to[0].index, sizeof(T) / 4, inside);
}
template <class T>
void compare_swap(Wave& w, const Instruction& i) {
  Addresses at;
  u64 inside = 0;
  if (!locate(w, i, {sizeof(T), true, true}, at, inside) || at_odd_place(w, at, inside, sizeof(T))) return;
  const bool returns = i.flags & kReturns;
  compare_swap_lanes<T>(at, inside, w.v[i.from[1].index], returns ? w.v[i.to[0].index] : nullptr);
  if (returns) zero_outside(w, i.to[0].index, sizeof(T) / 4, inside);
}
void nothing(Wave&, const Instruction&) {}

#define RPL_BUF(name, signature, counter, ...) {"buffer_" name, Form::buffer, signature, counter, __VA_ARGS__, ""}
#define RPL_BUF_ATOMIC(name, code, T, op) RPL_BUF("atomic_" name, code ":a" code, "buffer.atomic", (atomic<T, op>))
const Row kRows[] = {
    RPL_BUF("load_dword", "1:a", "buffer.read", load<1>), RPL_BUF("load_dwordx2", "2:a", "buffer.read", load<2>),
    RPL_BUF("load_dwordx3", "3:a", "buffer.read", load<3>), RPL_BUF("load_dwordx4", "4:a", "buffer.read", load<4>),
    RPL_BUF("load_ubyte", "1:a", "buffer.read", load_narrow<Narrow::u8>),
    RPL_BUF("load_sbyte", "1:a", "buffer.read", load_narrow<Narrow::i8>),
    RPL_BUF("load_ushort", "1:a", "buffer.read", load_narrow<Narrow::u16>),
    RPL_BUF("load_sshort", "1:a", "buffer.read", load_narrow<Narrow::i16>),
    RPL_BUF("store_dword", ":a1", "buffer.write", store<1>), RPL_BUF("store_dwordx2", ":a2", "buffer.write", store<2>),
    RPL_BUF("store_dwordx3", ":a3", "buffer.write", store<3>), RPL_BUF("store_dwordx4", ":a4", "buffer.write", store<4>),
    RPL_BUF("store_byte", ":a1", "buffer.write", (store_narrow<1, 0>)), RPL_BUF("store_short", ":a1", "buffer.write", (store_narrow<2, 0>)),
    RPL_BUF("store_byte_d16_hi", ":a1", "buffer.write", (store_narrow<1, 16>)),
    RPL_BUF("store_short_d16_hi", ":a1", "buffer.write", (store_narrow<2, 16>)),
    RPL_BUF("load_ubyte_d16", "1:a", "buffer.read", load_narrow<Narrow::low_u8>),
    RPL_BUF("load_ubyte_d16_hi", "1:a", "buffer.read", load_narrow<Narrow::high_u8>),
    RPL_BUF("load_sbyte_d16", "1:a", "buffer.read", load_narrow<Narrow::low_i8>),
    RPL_BUF("load_sbyte_d16_hi", "1:a", "buffer.read", load_narrow<Narrow::high_i8>),
    RPL_BUF("load_short_d16", "1:a", "buffer.read", load_narrow<Narrow::low_u16>),
    RPL_BUF("load_short_d16_hi", "1:a", "buffer.read", load_narrow<Narrow::high_u16>),
    RPL_BUF("load_dword.lds", ":a", "buffer.read", load_to_lds),
    RPL_BUF("load_ubyte.lds", ":a", "buffer.read", load_narrow_to_lds<Narrow::u8>),
    RPL_BUF("load_sbyte.lds", ":a", "buffer.read", load_narrow_to_lds<Narrow::i8>),
    RPL_BUF("load_ushort.lds", ":a", "buffer.read", load_narrow_to_lds<Narrow::u16>),
    RPL_BUF("load_sshort.lds", ":a", "buffer.read", load_narrow_to_lds<Narrow::i16>),
    RPL_BUF_ATOMIC("swap", "1", u32, kSwap), RPL_BUF_ATOMIC("add", "1", u32, kAdd), RPL_BUF_ATOMIC("sub", "1", u32, kSub),
    RPL_BUF_ATOMIC("umin", "1", u32, kMin), RPL_BUF_ATOMIC("umax", "1", u32, kMax), RPL_BUF_ATOMIC("smin", "1", int32_t, kMin),
    RPL_BUF_ATOMIC("smax", "1", int32_t, kMax), RPL_BUF_ATOMIC("and", "1", u32, kAnd), RPL_BUF_ATOMIC("or", "1", u32, kOr),
    RPL_BUF_ATOMIC("xor", "1", u32, kXor), RPL_BUF_ATOMIC("add_f32", "1", float, kAdd), RPL_BUF_ATOMIC("add_f64", "2", double, kAdd),
    RPL_BUF_ATOMIC("inc", "1", u32, kInc), RPL_BUF_ATOMIC("dec", "1", u32, kDec),
    RPL_BUF_ATOMIC("swap_x2", "2", u64, kSwap), RPL_BUF_ATOMIC("sub_x2", "2", u64, kSub), RPL_BUF_ATOMIC("inc_x2", "2", u64, kInc),
    RPL_BUF_ATOMIC("dec_x2", "2", u64, kDec), RPL_BUF_ATOMIC("umin_x2", "2", u64, kMin), RPL_BUF_ATOMIC("umax_x2", "2", u64, kMax),
    RPL_BUF_ATOMIC("smin_x2", "2", int64_t, kMin), RPL_BUF_ATOMIC("smax_x2", "2", int64_t, kMax), RPL_BUF_ATOMIC("and_x2", "2", u64, kAnd),
    RPL_BUF_ATOMIC("or_x2", "2", u64, kOr), RPL_BUF_ATOMIC("xor_x2", "2", u64, kXor), RPL_BUF_ATOMIC("min_f64", "2", double, kMinFloat),
    RPL_BUF_ATOMIC("max_f64", "2", double, kMaxFloat),
    RPL_BUF("atomic_cmpswap", "1:a2", "buffer.atomic", compare_swap<u32>),
    RPL_BUF("atomic_cmpswap_x2", "2:a4", "buffer.atomic", compare_swap<u64>),
    RPL_BUF_ATOMIC("add_x2", "2", u64, kAdd), RPL_BUF_ATOMIC("pk_add_f16", "1", u32, kAddHalves),
    RPL_BUF("inv", ":", "cache", nothing), RPL_BUF("wbl2", ":", "cache", nothing), RPL_BUF("wbinvl1", ":", "cache", nothing),
    RPL_BUF("wbinvl1_vol", ":", "cache", nothing),
};

}  // namespace
RowList buffer_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
