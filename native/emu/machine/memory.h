// Memory that a kernel may reach: ranges of its addresses. Everything else is a fault.
#pragma once

#include <cstdint>

namespace rpl_emu {

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool writable = true;
  uint64_t shift = 0;  // what leads from an address of the kernel to one of this process
};

// Sorted, disjoint.
struct Ranges {
  const Range* first = nullptr;
  uint32_t count = 0;
  bool shifted = false;  // some range lies elsewhere in this process

  // `hint` is the place of the last answer.
  [[nodiscard]] const Range* find(uint64_t begin, uint64_t end, bool write, uint32_t& hint) const {
    const Range& last = first[hint];
    if (begin >= last.begin && end <= last.end && begin <= end) return !write || last.writable ? &last : nullptr;
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (first[middle].end <= begin) low = middle + 1;
      else high = middle;
    }
    if (low == count || begin < first[low].begin || end > first[low].end || begin > end) return nullptr;
    hint = low;
    return !write || first[low].writable ? &first[low] : nullptr;
  }
};

// Apertures of FLAT addresses; no address of this process has these upper halves.
constexpr uint64_t kSharedBase = uint64_t{1} << 48;
constexpr uint64_t kPrivateBase = uint64_t{2} << 48;

}  // namespace rpl_emu
