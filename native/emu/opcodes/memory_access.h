// Per-lane access to memory, LDS and scratch, with bounds.
#pragma once

#include <atomic>

#include "machine/shadow.h"
#include "machine/touched_lines.h"
#include "machine/traffic.h"
#include "opcodes/lanes.h"
#include "opcodes/lists.h"
#include "opcodes/memory_flags.h"

namespace rpl_emu::inline RPL_EMU_BUILD {

struct alignas(64) Addresses { uint64_t of[kLanes]; };

struct Access { unsigned bytes; bool write; bool atomic; };

// Distinct lines of addresses in any order: neighbours are usually equal; what is left is searched in a table.
inline unsigned lines_in_any_order(const uint64_t* at, unsigned count, unsigned bytes, unsigned shift) {
  uint64_t seen[2 * kLanes];
  unsigned n = 0;
  uint64_t last = ~uint64_t{0}, most = 0;
  for (unsigned j = 0; j < count; ++j)
    for (uint64_t line = at[j] >> shift; line <= (at[j] + bytes - 1) >> shift; ++line) {
      if (line == last) continue;
      last = line;
      // What lies above all others needs no search.
      bool found = false;
      if (line > most) most = line;
      else
        for (unsigned k = 0; k < n && !found; ++k) found = seen[k] == line;
      if (!found && n < 2 * kLanes) seen[n++] = line;
    }
  return n;
}

inline void count_lines_of(MemoryCount& count, const uint64_t* a, unsigned n, unsigned bytes) {
  count.bytes += static_cast<uint64_t>(n) * bytes;
  // Rising addresses that no line's end cuts: a line begins where the number changes.
  uint64_t falls = 0, low = a[0], changes64 = 1, changes128 = 1;
  for (unsigned j = 1; j < n; ++j) {
    falls |= static_cast<uint64_t>(a[j] < a[j - 1]);
    low |= a[j];
    changes64 += static_cast<uint64_t>(a[j] >> 6 != a[j - 1] >> 6);
    changes128 += static_cast<uint64_t>(a[j] >> 7 != a[j - 1] >> 7);
  }
  const bool whole = (bytes & (bytes - 1)) == 0 && (low & (bytes - 1)) == 0;
  count.lines64 += falls == 0 && whole ? changes64 : lines_in_any_order(a, n, bytes, 6);
  count.lines128 += falls == 0 && whole ? changes128 : lines_in_any_order(a, n, bytes, 7);
}
inline void count_lines(Wave& w, const Instruction& i, const Addresses& at, uint64_t exec, unsigned bytes) {
  if (!w.memory_count) return;
  MemoryCount& count = w.memory_count[&i - w.code];
  if (exec == 0) return;
  if (exec == ~uint64_t{0}) {
    count_lines_of(count, at.of, kLanes, bytes);
    return;
  }
  Addresses packed;
  unsigned n = 0;
  for (uint64_t rest = exec; rest != 0; rest &= rest - 1) packed.of[n++] = at.of[std::countr_zero(rest)];
  count_lines_of(count, packed.of, n, bytes);
}

// Lanes in their order: what follows on or overlaps is marked together.
class TouchedRun {
 public:
  TouchedRun(TouchedLines& to, Access what) : to_(to), what_(what) {}
  void add(uint64_t address, uint64_t bytes) {
    const uint64_t first = address >> TouchedLines::kPartShift;
    const uint64_t last = (address + bytes - 1) >> TouchedLines::kPartShift;
    if (first - first_ <= last_ + 1 - first_) {
      last_ = std::max(last_, last);
      return;
    }
    finish();
    first_ = first;
    last_ = last;
  }
  void finish() {
    if (last_ != kNone) to_.mark_parts(first_, last_, !what_.write || what_.atomic, what_.write);
  }

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  TouchedLines& to_;
  Access what_;
  uint64_t first_ = kNone, last_ = kNone;
};

inline void mark_touched(TouchedLines& touched, const Addresses& at, uint64_t lanes, Access what) {
  TouchedRun run(touched, what);
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) run.add(at.of[std::countr_zero(rest)], what.bytes);
  run.finish();
}

// What accesses to memory are told to: counters, the model of caches, and what looks for races.
inline void note_access(Wave& w, const Instruction& i, const Addresses& at, uint64_t lanes, Access what) {
  if (lanes == 0) return;
  count_lines(w, i, at, lanes, what.bytes);
  if (w.touched) mark_touched(*w.touched, at, lanes, what);
  if (w.group->traffic) [[unlikely]] w.group->traffic->vector_access(w, at.of, lanes, what.bytes, what.write, what.atomic);
  if (!w.group->shadow) [[likely]] return;
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    w.group->shadow->access(w, i, j, at.of[j], what.bytes, what.write, what.atomic || (i.flags & kCoherent), false);
  }
}

// Are all addresses of lanes that are on inside of one range? The usual case, and one comparison.
inline bool all_reachable(Wave& w, const Addresses& at, uint64_t exec, unsigned bytes, bool write) {
  uint64_t least = ~uint64_t{0};
  uint64_t most = 0;
  if (exec == ~uint64_t{0}) {
    for (const uint64_t address : at.of) {
      least = address < least ? address : least;
      most = address > most ? address : most;
    }
  } else {
    for (uint64_t rest = exec; rest != 0; rest &= rest - 1) {
      const uint64_t a = at.of[std::countr_zero(rest)];
      least = a < least ? a : least;
      most = a > most ? a : most;
    }
  }
  if (exec == 0) return true;
  if (most + bytes >= most && w.ranges.find(least, most + bytes, write, w.hint)) return true;
  for (uint64_t rest = exec; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    if (!w.ranges.find(at.of[j], at.of[j] + bytes, write, w.hint)) {
      w.fault(at.of[j], j, write, write ? "store outside of mapped memory" : "load outside of mapped memory");
      return false;
    }
  }
  return true;
}

// From addresses of the kernel to addresses of this process, once they are known to be reachable.
inline void find_places(Wave& w, Addresses& at, uint64_t exec, unsigned bytes) {
  if (!w.ranges.shifted) return;
  for (uint64_t rest = exec; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    at.of[j] += w.ranges.find(at.of[j], at.of[j] + bytes, false, w.hint)->shift;
  }
}

template <class T>
inline T read_at(uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}
template <class T>
inline void write_at(uint64_t address, T value) {
  std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}

// Do the lanes' words follow each other in memory?
inline bool in_one_piece(const Addresses& at, unsigned bytes) {
  uint64_t other = 0;
  for (unsigned j = 0; j < kLanes; ++j) other |= at.of[j] ^ (at.of[0] + uint64_t{bytes} * j);
  return other == 0;
}

// Where the lanes' registers and the memory meet. Both sides' `Words` are of 32 bits.
template <unsigned Words>
inline void load_words(Wave& w, unsigned row, const Addresses& at, uint64_t exec) {
  uint32_t(*to)[kLanes] = &w.v[row];
  if (exec == ~uint64_t{0} && in_one_piece(at, 4 * Words)) {
    const auto* from = reinterpret_cast<const uint8_t*>(at.of[0]);
    if constexpr (Words == 1) {
      std::memcpy(to, from, 4 * kLanes);
    } else {
      alignas(64) uint32_t words[Words * kLanes];
      std::memcpy(words, from, sizeof words);
      for (unsigned k = 0; k < Words; ++k)
        for (unsigned j = 0; j < kLanes; ++j) to[k][j] = words[Words * j + k];
    }
    return;
  }
#ifdef __AVX512F__
  for (unsigned c = 0; c < 8; ++c) {
    const auto on = static_cast<__mmask8>(exec >> (8 * c));
    if (on == 0) continue;
    const __m512i places = _mm512_loadu_si512(at.of + 8 * c);
    for (unsigned k = 0; k < Words; ++k) {
      auto* own = reinterpret_cast<__m256i*>(to[k] + 8 * c);
      const __m256i old = _mm256_loadu_si256(own);
      _mm256_storeu_si256(own, _mm512_mask_i64gather_epi32(old, on, _mm512_add_epi64(places, _mm512_set1_epi64(4 * k)), nullptr, 1));
    }
  }
#else
  for (uint64_t rest = exec; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    uint32_t value[Words];
    std::memcpy(value, reinterpret_cast<const void*>(at.of[j]), sizeof value);
    for (unsigned k = 0; k < Words; ++k) to[k][j] = value[k];
  }
#endif
}
template <unsigned Words>
inline void store_words(Wave& w, unsigned row, const Addresses& at, uint64_t exec) {
  const uint32_t(*from)[kLanes] = &w.v[row];
  if (exec == ~uint64_t{0} && in_one_piece(at, 4 * Words)) {
    auto* to = reinterpret_cast<uint8_t*>(at.of[0]);
    if constexpr (Words == 1) {
      std::memcpy(to, from, 4 * kLanes);
    } else {
      alignas(64) uint32_t words[Words * kLanes];
      for (unsigned j = 0; j < kLanes; ++j)
        for (unsigned k = 0; k < Words; ++k) words[Words * j + k] = from[k][j];
      std::memcpy(to, words, sizeof words);
    }
    return;
  }
  for (uint64_t rest = exec; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    for (unsigned k = 0; k < Words; ++k) write_at<uint32_t>(at.of[j] + uint64_t{4} * k, from[k][j]);
  }
}

// Kinds of narrow loads and stores.
enum class Narrow : uint8_t { u8, i8, u16, i16, low_u8, low_i8, low_u16, high_u8, high_i8, high_u16 };

inline uint32_t widened(uint64_t address, Narrow kind, uint32_t old) {
  const uint32_t byte = read_at<uint8_t>(address);
  const bool two = kind == Narrow::u16 || kind == Narrow::i16 || kind == Narrow::low_u16 || kind == Narrow::high_u16;
  const uint32_t both = two ? read_at<uint16_t>(address) : 0;
  const auto extended = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(byte)));
  switch (kind) {
    case Narrow::u8: return byte;
    case Narrow::i8: return extended;
    case Narrow::u16: return both;
    case Narrow::i16: return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(both)));
    case Narrow::low_u8: return (old & 0xffff0000) | byte;
    case Narrow::low_i8: return (old & 0xffff0000) | (extended & 0xffff);
    case Narrow::low_u16: return (old & 0xffff0000) | both;
    case Narrow::high_u8: return (old & 0xffff) | byte << 16;
    case Narrow::high_i8: return (old & 0xffff) | extended << 16;
    case Narrow::high_u16: return (old & 0xffff) | both << 16;
  }
  return 0;
}
constexpr unsigned narrow_bytes(Narrow kind) {
  return kind == Narrow::u16 || kind == Narrow::i16 || kind == Narrow::low_u16 || kind == Narrow::high_u16 ? 2 : 1;
}

inline void load_narrow_lanes(uint32_t* to, const Addresses& at, uint64_t lanes, Narrow kind) {
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    to[j] = widened(at.of[j], kind, to[j]);
  }
}
template <unsigned Bytes, unsigned Shift>
inline void store_narrow_lanes(const uint32_t* from, const Addresses& at, uint64_t lanes) {
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    if constexpr (Bytes == 1) write_at<uint8_t>(at.of[j], static_cast<uint8_t>(from[j] >> Shift));
    else write_at<uint16_t>(at.of[j], static_cast<uint16_t>(from[j] >> Shift));
  }
}

// What is loaded goes to LDS, a word of each lane: at M0, the offset and four times the lane, whose place in the wave
// counts, not in memory (CDNA3 ISA, section 9; LLVM, IntrinsicsAMDGPU.td: the offset is added to both addresses).
// Lanes that are not `inside` of a buffer give 0.
template <class Value>
inline void put_in_lds(Wave& w, const Instruction& i, uint64_t inside, const Value& value) {
  const uint64_t begin = (w.s[kM0] & 0xffff) + static_cast<uint64_t>(i.offset);
  for (uint64_t rest = w.exec(); rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const uint64_t place = begin + uint64_t{4} * j;
    if (place + 4 > w.group->lds_bytes) {
      w.fault(place, j, true, "outside of the workgroup's LDS");
      return;
    }
    if (w.group->shadow) w.group->shadow->access(w, i, j, place, 4, true, false, true);
    const uint32_t word = inside >> j & 1 ? value(j) : 0;
    std::memcpy(w.group->lds + place, &word, 4);
  }
}

// Atomic update of memory that other threads may update too.
template <class T, class F>
inline T update(uint64_t address, F next) {
  auto* place = reinterpret_cast<T*>(address);
  T old;
  __atomic_load(place, &old, __ATOMIC_SEQ_CST);
  for (;;) {
    T wanted = next(old);
    if (__atomic_compare_exchange(place, &old, &wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return old;
  }
}

}  // namespace rpl_emu::inline RPL_EMU_BUILD
