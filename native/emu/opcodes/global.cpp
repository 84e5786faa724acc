// GLOBAL, FLAT and SCRATCH: loads, stores, atomics. CDNA3 ISA, sections 9 and 10, 12 (FLAT).
// Operands: from[0] address (or off), from[1] data, from[2] scalar base (or off), from[3] a second datum.
#include "opcodes/atomics.h"
#include "opcodes/near_access.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

bool locate_scratch(Wave& w, const Instruction& i, Access what, Addresses& at, u64 exec) {
  const u32 base = i.from[2].place == Place::scalar ? w.s[i.from[2].index] : 0;
  const u32* v = i.from[0].place == Place::vector ? w.v[i.from[0].index] : nullptr;
  for (u64 rest = exec; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const u64 offset = base + (v ? v[j] : 0) + static_cast<u32>(i.offset);
    if (offset + what.bytes > w.scratch_bytes) {
      w.fault(kPrivateBase + offset, j, what.write, "outside of the lane's scratch memory");
      return false;
    }
    at.of[j] = reinterpret_cast<u64>(w.scratch) + u64{j} * w.scratch_bytes + offset;
  }
  return true;
}

// FLAT: an address may be of LDS or scratch.
bool locate_flat(Wave& w, const Instruction& i, Access what, Addresses& at, u64 exec) {
  u64 global = 0;
  for (u64 rest = exec; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const u64 address = at.of[j];
    const u64 offset = address & 0xffffffff;
    if (address >> 32 == kSharedBase >> 32) {
      if (offset + what.bytes > w.group->lds_bytes) {
        w.fault(address, j, what.write, "outside of the workgroup's LDS");
        return false;
      }
      if (w.group->shadow) w.group->shadow->access(w, i, j, offset, what.bytes, what.write, what.atomic || (i.flags & kCoherent), true);
      at.of[j] = reinterpret_cast<u64>(w.group->lds) + offset;
    } else if (address >> 32 == kPrivateBase >> 32) {
      if (offset + what.bytes > w.scratch_bytes) {
        w.fault(address, j, what.write, "outside of the lane's scratch memory");
        return false;
      }
      at.of[j] = reinterpret_cast<u64>(w.scratch) + u64{j} * w.scratch_bytes + offset;
    } else {
      global |= u64{1} << j;
    }
  }
  if (!all_reachable(w, at, global, what.bytes, what.write)) return false;
  note_access(w, i, at, global, what);
  find_places(w, at, global, what.bytes);
  return true;
}

// The lanes' addresses in this process; false after a fault.
bool locate(Wave& w, const Instruction& i, Access what, Addresses& at) {
  const u64 exec = w.exec();
  if (i.flags & kScratch) return locate_scratch(w, i, what, at, exec);
  const auto offset = static_cast<u64>(i.offset);
  const u32* v = w.v[i.from[0].index];
  if (i.from[2].place == Place::scalar) {
    const u64 base = w.get64(i.from[2].index) + offset;
    for (unsigned j = 0; j < kLanes; ++j) at.of[j] = base + v[j];
  } else {
    for (unsigned j = 0; j < kLanes; ++j) at.of[j] = (v[j] | u64{v[kLanes + j]} << 32) + offset;
  }
  if (i.flags & kFlat) return locate_flat(w, i, what, at, exec);
  if (!all_reachable(w, at, exec, what.bytes, what.write)) return false;
  note_access(w, i, at, exec, what);
  find_places(w, at, exec, what.bytes);
  return true;
}

// The usual access; false where `locate` has to look at each lane.
template <unsigned Bytes>
bool locate_near(Wave& w, const Instruction& i, bool write, Near& near) {
  if (w.exec() != ~u64{0} || (i.flags & kScratch) || w.group->shadow || w.group->traffic) return false;
  near.offset = w.v[i.from[0].index];
  if (i.from[2].place == Place::scalar) near.base = w.get64(i.from[2].index);
  else if (all_equal(near.offset + kLanes)) near.base = u64{near.offset[kLanes]} << 32;
  else return false;
  near.base += static_cast<u64>(i.offset);
  const u64 first = near.base + near.offset[0];
  const Range* range = w.ranges.find(first, first + Bytes, write, w.hint);
  if (!range || near.base > range->end) return false;
  constexpr u64 kMost = 0xffffff00;  // what is added to offsets does not overflow
  const u64 low = range->begin > near.base ? range->begin - near.base : 0;
  const u64 high = std::min(range->end - near.base - Bytes, kMost);
  if (low > high || !all_within(near.offset, static_cast<u32>(low), static_cast<u32>(high - low))) return false;
  near.place = near.base + range->shift;
  find_shapes<Bytes>(near);
  if (w.memory_count) count_near<Bytes>(w.memory_count[&i - w.code], near);
  if (w.touched) mark_near<Bytes>(*w.touched, near, write);
  return true;
}

template <unsigned Words>
void load(Wave& w, const Instruction& i) {
  if (Near near; locate_near<4 * Words>(w, i, false, near)) return load_near<Words>(w, i.to[0].index, near);
  Addresses at;
  if (locate(w, i, {4 * Words, false, false}, at)) load_words<Words>(w, i.to[0].index, at, w.exec());
}
template <unsigned Words>
void store(Wave& w, const Instruction& i) {
  if (Near near; locate_near<4 * Words>(w, i, true, near)) return store_near<Words>(w, i.from[1].index, near);
  Addresses at;
  if (locate(w, i, {4 * Words, true, false}, at)) store_words<Words>(w, i.from[1].index, at, w.exec());
}
template <Narrow Kind>
void load_narrow(Wave& w, const Instruction& i) {
  Addresses at;
  if (locate(w, i, {narrow_bytes(Kind), false, false}, at)) load_narrow_lanes(w.v[i.to[0].index], at, w.exec(), Kind);
}
void load_to_lds(Wave& w, const Instruction& i) {
  Addresses at;
  if (locate(w, i, {4, false, false}, at)) put_in_lds(w, i, w.exec(), [&](unsigned j) { return read_at<u32>(at.of[j]); });
}
template <Narrow Kind>
void load_narrow_to_lds(Wave& w, const Instruction& i) {
  Addresses at;
  if (locate(w, i, {narrow_bytes(Kind), false, false}, at)) put_in_lds(w, i, w.exec(), [&](unsigned j) { return widened(at.of[j], Kind, 0); });
}
template <unsigned Bytes, unsigned Shift>
void store_narrow(Wave& w, const Instruction& i) {
  Addresses at;
  if (locate(w, i, {Bytes, true, false}, at)) store_narrow_lanes<Bytes, Shift>(w.v[i.from[1].index], at, w.exec());
}

template <class T, auto F>
void atomic(Wave& w, const Instruction& i) {
  Addresses at;
  if (!locate(w, i, {sizeof(T), true, true}, at)) return;
  const u64 exec = w.exec();
  if (at_odd_place(w, at, exec, sizeof(T))) return;
  atomic_lanes<T, F>(w, at, exec, w.v[i.from[1].index], i.flags & kReturns ? w.v[i.to[0].index] : nullptr);
}
template <class T>
void compare_swap(Wave& w, const Instruction& i) {
  Addresses at;
  if (!locate(w, i, {sizeof(T), true, true}, at)) return;
  const u64 exec = w.exec();
  if (at_odd_place(w, at, exec, sizeof(T))) return;
  compare_swap_lanes<T>(at, exec, w.v[i.from[1].index], i.flags & kReturns ? w.v[i.to[0].index] : nullptr);
}

#define RPL_MEM(name, signature, counter, function)                                     \
  {"global_" name, Form::global, signature, "global." counter, function, ""},            \
  {"flat_" name, Form::global, signature, "flat." counter, function, ""}
#define RPL_ALL(name, signature, counter, function)                                     \
  RPL_MEM(name, signature, counter, function),                                           \
  {"scratch_" name, Form::global, signature, "scratch." counter, function, ""}
#define RPL_TO_LDS(name, function)                                     \
  {"global_" name, Form::global, ":a", "global.read", function, ""},     \
  {"scratch_" name, Form::global, ":a", "scratch.read", function, ""}
constexpr const char* kDenormals = "denormals are kept; whether the hardware keeps them is not public";
#define RPL_FLOAT_ATOMIC(name, code, T, op)                                                              \
  {"global_atomic_" name, Form::global, code, "global.atomic", (atomic<T, op>), kDenormals},              \
  {"flat_atomic_" name, Form::global, code, "flat.atomic", (atomic<T, op>), kDenormals}
#define RPL_ATOMIC(name, code, T, op) RPL_MEM("atomic_" name, code, "atomic", (atomic<T, op>))

const Row kRows[] = {
    RPL_ALL("load_dword", "1:a", "read", load<1>),
    RPL_ALL("load_dwordx2", "2:a", "read", load<2>),
    RPL_ALL("load_dwordx3", "3:a", "read", load<3>),
    RPL_ALL("load_dwordx4", "4:a", "read", load<4>),
    RPL_ALL("load_ubyte", "1:a", "read", load_narrow<Narrow::u8>),
    RPL_ALL("load_sbyte", "1:a", "read", load_narrow<Narrow::i8>),
    RPL_ALL("load_ushort", "1:a", "read", load_narrow<Narrow::u16>),
    RPL_ALL("load_sshort", "1:a", "read", load_narrow<Narrow::i16>),
    RPL_ALL("load_ubyte_d16", "1:a", "read", load_narrow<Narrow::low_u8>),
    RPL_ALL("load_ubyte_d16_hi", "1:a", "read", load_narrow<Narrow::high_u8>),
    RPL_ALL("load_sbyte_d16", "1:a", "read", load_narrow<Narrow::low_i8>),
    RPL_ALL("load_sbyte_d16_hi", "1:a", "read", load_narrow<Narrow::high_i8>),
    RPL_ALL("load_short_d16", "1:a", "read", load_narrow<Narrow::low_u16>),
    RPL_ALL("load_short_d16_hi", "1:a", "read", load_narrow<Narrow::high_u16>),
    RPL_TO_LDS("load_lds_dword", load_to_lds),
    RPL_TO_LDS("load_lds_ubyte", load_narrow_to_lds<Narrow::u8>),
    RPL_TO_LDS("load_lds_sbyte", load_narrow_to_lds<Narrow::i8>),
    RPL_TO_LDS("load_lds_ushort", load_narrow_to_lds<Narrow::u16>),
    RPL_TO_LDS("load_lds_sshort", load_narrow_to_lds<Narrow::i16>),
    RPL_ALL("store_dword", ":a1", "write", store<1>),
    RPL_ALL("store_dwordx2", ":a2", "write", store<2>),
    RPL_ALL("store_dwordx3", ":a3", "write", store<3>),
    RPL_ALL("store_dwordx4", ":a4", "write", store<4>),
    RPL_ALL("store_byte", ":a1", "write", (store_narrow<1, 0>)),
    RPL_ALL("store_byte_d16_hi", ":a1", "write", (store_narrow<1, 16>)),
    RPL_ALL("store_short", ":a1", "write", (store_narrow<2, 0>)),
    RPL_ALL("store_short_d16_hi", ":a1", "write", (store_narrow<2, 16>)),
    RPL_ATOMIC("swap", "1:a1", u32, kSwap), RPL_ATOMIC("swap_x2", "2:a2", u64, kSwap),
    RPL_ATOMIC("add", "1:a1", u32, kAdd), RPL_ATOMIC("add_x2", "2:a2", u64, kAdd),
    RPL_ATOMIC("sub", "1:a1", u32, kSub), RPL_ATOMIC("sub_x2", "2:a2", u64, kSub),
    RPL_ATOMIC("smin", "1:a1", int32_t, kMin), RPL_ATOMIC("smin_x2", "2:a2", int64_t, kMin),
    RPL_ATOMIC("umin", "1:a1", u32, kMin), RPL_ATOMIC("umin_x2", "2:a2", u64, kMin),
    RPL_ATOMIC("smax", "1:a1", int32_t, kMax), RPL_ATOMIC("smax_x2", "2:a2", int64_t, kMax),
    RPL_ATOMIC("umax", "1:a1", u32, kMax), RPL_ATOMIC("umax_x2", "2:a2", u64, kMax),
    RPL_ATOMIC("and", "1:a1", u32, kAnd), RPL_ATOMIC("and_x2", "2:a2", u64, kAnd),
    RPL_ATOMIC("or", "1:a1", u32, kOr), RPL_ATOMIC("or_x2", "2:a2", u64, kOr),
    RPL_ATOMIC("xor", "1:a1", u32, kXor), RPL_ATOMIC("xor_x2", "2:a2", u64, kXor),
    RPL_ATOMIC("inc", "1:a1", u32, kInc), RPL_ATOMIC("inc_x2", "2:a2", u64, kInc),
    RPL_ATOMIC("dec", "1:a1", u32, kDec), RPL_ATOMIC("dec_x2", "2:a2", u64, kDec),
    RPL_FLOAT_ATOMIC("add_f32", "1:a1", float, kAdd), RPL_ATOMIC("add_f64", "2:a2", double, kAdd),
    RPL_ATOMIC("min_f64", "2:a2", double, kMinFloat), RPL_ATOMIC("max_f64", "2:a2", double, kMaxFloat),
    RPL_FLOAT_ATOMIC("pk_add_f16", "1:a1", u32, kAddHalves), RPL_FLOAT_ATOMIC("pk_add_bf16", "1:a1", u32, kAddBfloats),
    RPL_MEM("atomic_cmpswap", "1:a2", "atomic", compare_swap<u32>),
    RPL_MEM("atomic_cmpswap_x2", "2:a4", "atomic", compare_swap<u64>),
};

}  // namespace
RowList global_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
