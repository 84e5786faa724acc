// LDS: loads, stores, atomics, and the permutes that use its crossbar. CDNA3 ISA, section 11 and 12 (DS).
// Operands: from[0] address, from[1] and from[2] data; `offset` is the 16-bit field, or its low byte and
// `extra` the high byte for instructions with two addresses.
#include <bit>

#include "opcodes/atomics.h"
#include "opcodes/near_access.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

// Passes beyond the first that 32 lanes need over the 32 banks of 4 bytes: each takes one word of each bank.
u32 conflicts_of_half(const u32* address, u32 on) {
  u32 passes = 0;
  while (on != 0) {
    u32 word_of[32];
    for (u32 rest = on; rest != 0; rest &= rest - 1) {
      const u32 word = address[std::countr_zero(rest)] / 4;
      word_of[word % 32] = word;
    }
    for (u32 rest = on; rest != 0; rest &= rest - 1) {
      const auto j = static_cast<u32>(std::countr_zero(rest));
      if (word_of[address[j] / 4 % 32] == address[j] / 4) on &= ~(1U << j);
    }
    ++passes;
  }
  return passes - 1;
}
void count_conflicts(Wave& w, const Instruction& i, const u32* address, u64 exec, unsigned bytes) {
  MemoryCount& count = w.memory_count[&i - w.code];
  count.bytes += static_cast<u64>(std::popcount(exec)) * bytes;
  for (unsigned half = 0; half < 2; ++half) {
    const u32* a = address + 32 * half;
    const auto on = static_cast<u32>(exec >> (32 * half));
    if (on == 0) continue;
    u32 least = a[std::countr_zero(on)] / 4, most = least;
    if (on == ~0U) {
      for (unsigned j = 0; j < 32; ++j) {
        const u32 word = a[j] / 4;
        least = word < least ? word : least;
        most = word > most ? word : most;
      }
    } else {
      for (u32 rest = on; rest != 0; rest &= rest - 1) {
        const u32 word = a[std::countr_zero(rest)] / 4;
        least = word < least ? word : least;
        most = word > most ? word : most;
      }
    }
    // Words that follow each other lie in different banks.
    if (most - least >= 32) count.conflicts += conflicts_of_half(a, on);
  }
}

bool locate(Wave& w, const Instruction& i, u64 offset, Access what, Addresses& at) {
  const u64 exec = w.exec();
  const u32* v = w.v[i.from[0].index];
  const u64 end = w.group->lds_bytes;
  u64 most = 0;
  alignas(64) u32 address[kLanes];
  for (unsigned j = 0; j < kLanes; ++j) address[j] = v[j] + static_cast<u32>(offset);
  for (unsigned j = 0; j < kLanes; ++j) at.of[j] = reinterpret_cast<u64>(w.group->lds) + address[j];
  if (exec == ~u64{0}) {
    for (const u32 one : address) most = one > most ? one : most;
  } else {
    for (u64 rest = exec; rest != 0; rest &= rest - 1) {
      const u64 a = address[std::countr_zero(rest)];
      most = a > most ? a : most;
    }
  }
  if (exec != 0 && most + what.bytes > end) {
    for (unsigned j = 0; j < kLanes; ++j) {
      if (!(exec >> j & 1) || address[j] + u64{what.bytes} <= end) continue;
      w.fault(address[j], j, what.write, "outside of the workgroup's LDS");
      return false;
    }
  }
  if (w.memory_count) count_conflicts(w, i, address, exec, what.bytes);
  if (w.group->shadow)
    for (u64 rest = exec; rest != 0; rest &= rest - 1) {
      const auto j = static_cast<unsigned>(std::countr_zero(rest));
      w.group->shadow->access(w, i, j, address[j], what.bytes, what.write, what.atomic, true);
    }
  return true;
}

// The banks that 32 lanes want, by their chunks.
template <unsigned Bytes>
u32 conflicts_of_chunks(const Near& near, unsigned half) {
  constexpr unsigned kOfHalf = kChunks / 2;
  const Shape* shape = near.shape + half * kOfHalf;
  const u32* offset = near.offset + half * 32;
  const auto begin = static_cast<u32>(near.base);
  bool pieces = true, in_row = true;
  u32 least = ~0U, most = 0;
  for (unsigned c = 0; c < kOfHalf; ++c) {
    const u32 at = begin + offset[c * kChunk];
    pieces &= shape[c] != Shape::other;
    in_row &= shape[c] == Shape::piece && at == begin + offset[0] + Bytes * kChunk * c;
    least = std::min(least, at / 4);
    most = std::max(most, (at + (shape[c] == Shape::piece ? Bytes * (kChunk - 1) : 0)) / 4);
  }
  // Words that follow each other lie in different banks; those of wider pieces meet again after 32 words.
  if (in_row) return std::gcd(Bytes / 4, 32U) - 1;
  if (pieces && most - least < 32) return 0;
  alignas(64) u32 address[32];
  least = ~0U, most = 0;
  for (unsigned j = 0; j < 32; ++j) {
    address[j] = begin + offset[j];
    least = std::min(least, address[j] / 4);
    most = std::max(most, address[j] / 4);
  }
  return most - least < 32 ? 0 : conflicts_of_half(address, ~0U);
}

// The usual access: all lanes, inside of LDS. `Twice`: a second one lies `apart` bytes behind the first.
template <unsigned Bytes, bool Twice>
bool locate_near(Wave& w, const Instruction& i, u64 offset, u64 apart, Near& near) {
  const u64 needed = offset + apart + Bytes, end = w.group->lds_bytes;
  if (w.exec() != ~u64{0} || w.group->shadow || needed > end) return false;
  near.offset = w.v[i.from[0].index];
  if (!all_within(near.offset, 0, static_cast<u32>(end - needed))) return false;
  near.base = offset;
  near.place = reinterpret_cast<u64>(w.group->lds) + offset;
  find_shapes<Bytes>(near);
  if (w.memory_count) {
    MemoryCount& count = w.memory_count[&i - w.code];
    count.bytes += u64{Bytes} * kLanes * (Twice ? 2 : 1);
    const u64 conflicts = u64{conflicts_of_chunks<Bytes>(near, 0)} + conflicts_of_chunks<Bytes>(near, 1);
    count.conflicts += conflicts * (Twice ? 2 : 1);
  }
  return true;
}
template <unsigned Bytes>
bool locate_near(Wave& w, const Instruction& i, Near& near) { return locate_near<Bytes, false>(w, i, static_cast<u64>(i.offset), 0, near); }

// Both accesses of an instruction with two addresses. Words apart: the banks of one are those of the other, turned.
template <unsigned Words, unsigned Stride>
bool locate_two_near(Wave& w, const Instruction& i, Near& one, Near& two) {
  constexpr u64 kUnit = u64{4} * Words * Stride;
  const u64 first = static_cast<u64>(i.offset) * kUnit, second = u64{i.extra} * kUnit;
  const u64 low = std::min(first, second), high = std::max(first, second);
  if (!locate_near<4 * Words, true>(w, i, low, high - low, one)) return false;
  two = one;
  one.place += first - low;
  two.place += second - low;
  return true;
}

template <unsigned Words>
void load(Wave& w, const Instruction& i) {
  if (Near near; locate_near<4 * Words>(w, i, near)) return load_near<Words>(w, i.to[0].index, near);
  Addresses at;
  if (locate(w, i, static_cast<u64>(i.offset), {4 * Words, false, false}, at))
    load_words<Words>(w, i.to[0].index, at, w.exec());
}
template <unsigned Words>
void store(Wave& w, const Instruction& i) {
  if (Near near; locate_near<4 * Words>(w, i, near)) return store_near<Words>(w, i.from[1].index, near);
  Addresses at;
  if (locate(w, i, static_cast<u64>(i.offset), {4 * Words, true, false}, at))
    store_words<Words>(w, i.from[1].index, at, w.exec());
}
// The address may be one of the destinations.
template <unsigned Words>
void load_two_near(Wave& w, unsigned row, const Near& first, const Near& second) {
  alignas(64) u32 offset[kLanes];
  std::memcpy(offset, first.offset, sizeof offset);
  Near later = second;
  later.offset = offset;
  load_near<Words>(w, row, first);
  load_near<Words>(w, row + Words, later);
}
template <unsigned Words, unsigned Stride>
void load_two(Wave& w, const Instruction& i) {
  if (Near first, second; locate_two_near<Words, Stride>(w, i, first, second)) {
    load_two_near<Words>(w, i.to[0].index, first, second);
    return;
  }
  Addresses one, two;
  if (!locate(w, i, static_cast<u64>(i.offset) * 4 * Words * Stride, {4 * Words, false, false}, one)) return;
  if (!locate(w, i, u64{i.extra} * 4 * Words * Stride, {4 * Words, false, false}, two)) return;
  // The address may be one of the destinations: both are known by now.
  load_words<Words>(w, i.to[0].index, one, w.exec());
  load_words<Words>(w, i.to[0].index + Words, two, w.exec());
}
template <unsigned Words, unsigned Stride>
void store_two(Wave& w, const Instruction& i) {
  if (Near first, second; locate_two_near<Words, Stride>(w, i, first, second)) {
    store_near<Words>(w, i.from[1].index, first);
    store_near<Words>(w, i.from[2].index, second);
    return;
  }
  Addresses one, two;
  if (!locate(w, i, static_cast<u64>(i.offset) * 4 * Words * Stride, {4 * Words, true, false}, one)) return;
  if (!locate(w, i, u64{i.extra} * 4 * Words * Stride, {4 * Words, true, false}, two)) return;
  store_words<Words>(w, i.from[1].index, one, w.exec());
  store_words<Words>(w, i.from[2].index, two, w.exec());
}
template <Narrow Kind>
void load_narrow(Wave& w, const Instruction& i) {
  Addresses at;
  if (locate(w, i, static_cast<u64>(i.offset), {narrow_bytes(Kind), false, false}, at))
    load_narrow_lanes(w.v[i.to[0].index], at, w.exec(), Kind);
}
template <unsigned Bytes, unsigned Shift>
void store_narrow(Wave& w, const Instruction& i) {
  Addresses at;
  if (locate(w, i, static_cast<u64>(i.offset), {Bytes, true, false}, at))
    store_narrow_lanes<Bytes, Shift>(w.v[i.from[1].index], at, w.exec());
}
template <class T, auto F, bool Returns>
void atomic(Wave& w, const Instruction& i) {
  Addresses at;
  if (!locate(w, i, static_cast<u64>(i.offset), {sizeof(T), true, true}, at)) return;
  if (at_odd_place(w, at, w.exec(), sizeof(T))) return;
  atomic_lanes<T, F>(w, at, w.exec(), w.v[i.from[1].index], Returns ? w.v[i.to[0].index] : nullptr);
}
template <class T, bool Returns>
void compare_store(Wave& w, const Instruction& i) {
  Addresses at;
  if (!locate(w, i, static_cast<u64>(i.offset), {sizeof(T), true, true}, at)) return;
  if (at_odd_place(w, at, w.exec(), sizeof(T))) return;
  for (u64 rest = w.exec(); rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const T expected = lane_get<T>(w.v[i.from[1].index], j), next = lane_get<T>(w.v[i.from[2].index], j);
    const T old = read_at<T>(at.of[j]);
    if (old == expected) write_at<T>(at.of[j], next);
    if (Returns) lane_put<T>(w.v[i.to[0].index], j, old);
  }
}

// CDNA3 ISA, DS_APPEND and DS_CONSUME: a counter of LDS at M0 and the offset goes up or down by the lanes that are on;
// all of them get what it was.
template <bool Up>
void count_lanes(Wave& w, const Instruction& i) {
  const u64 exec = w.exec(), place = (w.s[kM0] & 0xffff) + static_cast<u64>(i.offset);
  if (exec == 0) return;
  const auto lane = static_cast<unsigned>(std::countr_zero(exec));
  if (place + 4 > w.group->lds_bytes) {
    w.fault(place, lane, true, "outside of the workgroup's LDS");
    return;
  }
  if (w.group->shadow) w.group->shadow->access(w, i, lane, place, 4, true, true, true);
  if (w.memory_count) w.memory_count[&i - w.code].bytes += 4;
  u32 old = 0;
  std::memcpy(&old, w.group->lds + place, 4);
  const u32 next = Up ? old + static_cast<u32>(std::popcount(exec)) : old - static_cast<u32>(std::popcount(exec));
  std::memcpy(w.group->lds + place, &next, 4);
  Temporary out;
  for (unsigned j = 0; j < kLanes; ++j) out.words[j] = old;
  merge_rows(w.v[i.to[0].index], out.words, exec, 1);
}
// DS_MSKOR: the bits of the mask, from[1], are cleared, then those of from[2] are set.
template <class T, bool Returns>
void masked_or(Wave& w, const Instruction& i) {
  Addresses at;
  if (!locate(w, i, static_cast<u64>(i.offset), {sizeof(T), true, true}, at)) return;
  if (at_odd_place(w, at, w.exec(), sizeof(T))) return;
  for (u64 rest = w.exec(); rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const T mask = lane_get<T>(w.v[i.from[1].index], j), bits = lane_get<T>(w.v[i.from[2].index], j);
    const T old = read_at<T>(at.of[j]);
    write_at<T>(at.of[j], static_cast<T>((old & ~mask) | bits));
    if (Returns) lane_put<T>(w.v[i.to[0].index], j, old);
  }
}

// CDNA3 ISA, DS_WRAP_RTN_B32: from[1] is taken off while that is possible, else from[2] added.
void wrap(Wave& w, const Instruction& i) {
  Addresses at;
  if (!locate(w, i, static_cast<u64>(i.offset), {4, true, true}, at)) return;
  if (at_odd_place(w, at, w.exec(), 4)) return;
  for (u64 rest = w.exec(); rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const u32 less = w.v[i.from[1].index][j], more = w.v[i.from[2].index][j];
    const auto old = read_at<u32>(at.of[j]);
    write_at<u32>(at.of[j], old >= less ? old - less : old + more);
    w.v[i.to[0].index][j] = old;
  }
}
// DS_WRXCHG2: each lane reads both of its places, then writes both.
template <class T, unsigned Stride>
void exchange_two(Wave& w, const Instruction& i) {
  constexpr u64 kUnit = sizeof(T) * Stride;
  Addresses one, two;
  if (!locate(w, i, static_cast<u64>(i.offset) * kUnit, {sizeof(T), true, true}, one)) return;
  if (!locate(w, i, u64{i.extra} * kUnit, {sizeof(T), true, true}, two)) return;
  if (at_odd_place(w, one, w.exec(), sizeof(T)) || at_odd_place(w, two, w.exec(), sizeof(T))) return;
  for (u64 rest = w.exec(); rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const T first = lane_get<T>(w.v[i.from[1].index], j), second = lane_get<T>(w.v[i.from[2].index], j);
    const T old_first = read_at<T>(one.of[j]), old_second = read_at<T>(two.of[j]);
    write_at<T>(one.of[j], first);
    write_at<T>(two.of[j], second);
    lane_put<T>(w.v[i.to[0].index], j, old_first);
    lane_put<T>(w.v[i.to[0].index + sizeof(T) / 4], j, old_second);
  }
}
// DS_READ_ADDTID and DS_WRITE_ADDTID: at M0, the offset and four times the lane's number, without a register for the address.
template <bool Write>
void by_lane(Wave& w, const Instruction& i) {
  const u64 begin = (w.s[kM0] & 0xffff) + static_cast<u64>(i.offset);
  u32* v = w.v[Write ? i.from[0].index : i.to[0].index];
  for (u64 rest = w.exec(); rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const u64 place = begin + u64{4} * j;
    if (place + 4 > w.group->lds_bytes) {
      w.fault(place, j, Write, "outside of the workgroup's LDS");
      return;
    }
    if (w.group->shadow) w.group->shadow->access(w, i, j, place, 4, Write, false, true);
    if (w.memory_count) w.memory_count[&i - w.code].bytes += 4;
    if constexpr (Write) std::memcpy(w.group->lds + place, &v[j], 4);
    else std::memcpy(&v[j], w.group->lds + place, 4);
  }
}

// Lane j gets what the lane that it names has; lanes that are off give 0.
void gather_lanes(Wave& w, const Instruction& i) {
  Temporary out;
  const u64 exec = w.exec();
  const u32* a = w.v[i.from[0].index];
  const u32* v = w.v[i.from[1].index];
  for (unsigned j = 0; j < kLanes; ++j) {
    const u32 from = (a[j] + static_cast<u32>(i.offset)) >> 2 & 63;
    out.words[j] = exec >> from & 1 ? v[from] : 0;
  }
  merge_rows(w.v[i.to[0].index], out.words, exec, 1);
}
// Lane j gives to the lane that it names; of several the highest wins, who gets nothing has 0.
void scatter_lanes(Wave& w, const Instruction& i) {
  Temporary out;
  const u64 exec = w.exec();
  const u32* a = w.v[i.from[0].index];
  const u32* v = w.v[i.from[1].index];
  for (unsigned j = 0; j < kLanes; ++j) out.words[j] = 0;
  for (unsigned j = 0; j < kLanes; ++j)
    if (exec >> j & 1) out.words[(a[j] + static_cast<u32>(i.offset)) >> 2 & 63] = v[j];
  merge_rows(w.v[i.to[0].index], out.words, exec, 1);
}
// Which lane a lane reads. Below 0x8000 lanes of 32 by and, or, xor masks; then lanes of four by two bits each; from
// 0xc000 on lanes of 32 rotated, from 0xe000 on in the order of a Fourier transform.
u32 swizzled(u32 how, u32 lane) {
  const u32 place = lane & 31, half = lane & 32, mask = how & 31;
  if (how >= 0xe000) {
    u32 reversed = 0;
    for (unsigned k = 0; k < 5; ++k) reversed |= (place >> k & 1) << (4 - k);
    return half | (place & mask) | reversed >> std::popcount(mask);
  }
  if (how >= 0xc000) {
    const u32 by = how >> 5 & 31;
    return half | (place & mask) | ((how >> 10 & 1 ? place - by : place + by) & 31 & ~mask);
  }
  if (how >= 0x8000) return (lane & ~3U) | (how >> (2 * (lane & 3)) & 3);
  return half | (((place & mask) | (how >> 5 & 31)) ^ (how >> 10 & 31));
}
void swizzle(Wave& w, const Instruction& i) {
  Temporary out;
  const u64 exec = w.exec();
  const u32* v = w.v[i.from[0].index];
  const auto how = static_cast<u32>(i.offset);
  for (unsigned j = 0; j < kLanes; ++j) {
    const u32 from = swizzled(how, j);
    out.words[j] = exec >> from & 1 ? v[from] : 0;
  }
  merge_rows(w.v[i.to[0].index], out.words, exec, 1);
}
void nothing(Wave&, const Instruction&) {}

#define RPL_DS(name, signature, counter, ...) {#name, Form::lds, signature, "lds." counter, __VA_ARGS__, ""}
#define RPL_DS_ATOMIC(name, ending, rtn, code, T, op)                                                  \
  RPL_DS(ds_##name##_##ending, ":a" code, "atomic", (atomic<T, op, false>)),                            \
  RPL_DS(ds_##rtn##_rtn_##ending, code ":a" code, "atomic", (atomic<T, op, true>))
#define RPL_DS_BOTH(name, kind32, kind64, T32, T64, op)                                                \
  RPL_DS_ATOMIC(name, kind32, name, "1", T32, op), RPL_DS_ATOMIC(name, kind64, name, "2", T64, op)

const Row kRows[] = {
    RPL_DS(ds_read_b32, "1:a", "read", load<1>), RPL_DS(ds_read_b64, "2:a", "read", load<2>),
    RPL_DS(ds_read_b96, "3:a", "read", load<3>), RPL_DS(ds_read_b128, "4:a", "read", load<4>),
    RPL_DS(ds_write_b32, ":a1", "write", store<1>), RPL_DS(ds_write_b64, ":a2", "write", store<2>),
    RPL_DS(ds_write_b96, ":a3", "write", store<3>), RPL_DS(ds_write_b128, ":a4", "write", store<4>),
    RPL_DS(ds_read2_b32, "2:a", "read", (load_two<1, 1>)), RPL_DS(ds_read2st64_b32, "2:a", "read", (load_two<1, 64>)),
    RPL_DS(ds_read2_b64, "4:a", "read", (load_two<2, 1>)), RPL_DS(ds_read2st64_b64, "4:a", "read", (load_two<2, 64>)),
    RPL_DS(ds_write2_b32, ":a11", "write", (store_two<1, 1>)),
    RPL_DS(ds_write2st64_b32, ":a11", "write", (store_two<1, 64>)),
    RPL_DS(ds_write2_b64, ":a22", "write", (store_two<2, 1>)),
    RPL_DS(ds_write2st64_b64, ":a22", "write", (store_two<2, 64>)),
    RPL_DS(ds_read_u8, "1:a", "read", load_narrow<Narrow::u8>),
    RPL_DS(ds_read_i8, "1:a", "read", load_narrow<Narrow::i8>),
    RPL_DS(ds_read_u16, "1:a", "read", load_narrow<Narrow::u16>),
    RPL_DS(ds_read_i16, "1:a", "read", load_narrow<Narrow::i16>),
    RPL_DS(ds_read_u8_d16, "1:a", "read", load_narrow<Narrow::low_u8>),
    RPL_DS(ds_read_u8_d16_hi, "1:a", "read", load_narrow<Narrow::high_u8>),
    RPL_DS(ds_read_i8_d16, "1:a", "read", load_narrow<Narrow::low_i8>),
    RPL_DS(ds_read_i8_d16_hi, "1:a", "read", load_narrow<Narrow::high_i8>),
    RPL_DS(ds_read_u16_d16, "1:a", "read", load_narrow<Narrow::low_u16>),
    RPL_DS(ds_read_u16_d16_hi, "1:a", "read", load_narrow<Narrow::high_u16>),
    RPL_DS(ds_write_b8, ":a1", "write", (store_narrow<1, 0>)), RPL_DS(ds_write_b16, ":a1", "write", (store_narrow<2, 0>)),
    RPL_DS(ds_write_b8_d16_hi, ":a1", "write", (store_narrow<1, 16>)),
    RPL_DS(ds_write_b16_d16_hi, ":a1", "write", (store_narrow<2, 16>)),
    RPL_DS_BOTH(add, u32, u64, u32, u64, kAdd), RPL_DS_BOTH(sub, u32, u64, u32, u64, kSub),
    RPL_DS_BOTH(rsub, u32, u64, u32, u64, kReverseSub), RPL_DS_BOTH(inc, u32, u64, u32, u64, kInc),
    RPL_DS_BOTH(dec, u32, u64, u32, u64, kDec), RPL_DS_BOTH(min, i32, i64, int32_t, int64_t, kMin),
    RPL_DS_BOTH(max, i32, i64, int32_t, int64_t, kMax), RPL_DS_BOTH(min, u32, u64, u32, u64, kMin),
    RPL_DS_BOTH(max, u32, u64, u32, u64, kMax), RPL_DS_BOTH(and, b32, b64, u32, u64, kAnd),
    RPL_DS_BOTH(or, b32, b64, u32, u64, kOr), RPL_DS_BOTH(xor, b32, b64, u32, u64, kXor),
    RPL_DS_BOTH(min, f32, f64, float, double, kMinFloat), RPL_DS_BOTH(max, f32, f64, float, double, kMaxFloat),
    RPL_DS_BOTH(add, f32, f64, float, double, kAdd),
    RPL_DS_ATOMIC(pk_add, f16, pk_add, "1", u32, kAddHalves), RPL_DS_ATOMIC(pk_add, bf16, pk_add, "1", u32, kAddBfloats),
    RPL_DS(ds_wrxchg_rtn_b32, "1:a1", "atomic", (atomic<u32, kSwap, true>)),
    RPL_DS(ds_wrxchg_rtn_b64, "2:a2", "atomic", (atomic<u64, kSwap, true>)),
    RPL_DS(ds_cmpst_b32, ":a11", "atomic", (compare_store<u32, false>)),
    RPL_DS(ds_cmpst_b64, ":a22", "atomic", (compare_store<u64, false>)),
    RPL_DS(ds_cmpst_rtn_b32, "1:a11", "atomic", (compare_store<u32, true>)),
    RPL_DS(ds_cmpst_rtn_b64, "2:a22", "atomic", (compare_store<u64, true>)),
    RPL_DS(ds_append, "1:", "atomic", count_lanes<true>), RPL_DS(ds_consume, "1:", "atomic", count_lanes<false>),
    RPL_DS(ds_mskor_b32, ":a11", "atomic", (masked_or<u32, false>)), RPL_DS(ds_mskor_b64, ":a22", "atomic", (masked_or<u64, false>)),
    RPL_DS(ds_mskor_rtn_b32, "1:a11", "atomic", (masked_or<u32, true>)),
    RPL_DS(ds_mskor_rtn_b64, "2:a22", "atomic", (masked_or<u64, true>)),
    RPL_DS(ds_cmpst_f32, ":a11", "atomic", (compare_store<float, false>)),
    RPL_DS(ds_cmpst_f64, ":a22", "atomic", (compare_store<double, false>)),
    RPL_DS(ds_cmpst_rtn_f32, "1:a11", "atomic", (compare_store<float, true>)),
    RPL_DS(ds_cmpst_rtn_f64, "2:a22", "atomic", (compare_store<double, true>)),
    RPL_DS(ds_wrap_rtn_b32, "1:a11", "atomic", wrap),
    RPL_DS(ds_wrxchg2_rtn_b32, "2:a11", "atomic", (exchange_two<u32, 1>)),
    RPL_DS(ds_wrxchg2st64_rtn_b32, "2:a11", "atomic", (exchange_two<u32, 64>)),
    RPL_DS(ds_wrxchg2_rtn_b64, "4:a22", "atomic", (exchange_two<u64, 1>)),
    RPL_DS(ds_wrxchg2st64_rtn_b64, "4:a22", "atomic", (exchange_two<u64, 64>)),
    RPL_DS(ds_read_addtid_b32, "1:", "read", by_lane<false>), RPL_DS(ds_write_addtid_b32, ":1", "write", by_lane<true>),
    RPL_DS(ds_bpermute_b32, "1:a1", "permute", gather_lanes),
    RPL_DS(ds_permute_b32, "1:a1", "permute", scatter_lanes),
    RPL_DS(ds_swizzle_b32, "1:a", "permute", swizzle),
    RPL_DS(ds_nop, ":", "other", nothing),
};

}  // namespace
RowList lds_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
