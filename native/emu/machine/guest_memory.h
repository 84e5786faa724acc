// Memory of this process that kernels may reach. Between allocations lie pages that nobody may touch.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "machine/memory.h"

namespace rpl_emu {

class GuestMemory {
 public:
  GuestMemory() = default;
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;
  ~GuestMemory() {
    for (const auto& [place, bytes] : mappings_) munmap(place, bytes);
  }

  // Zeroed, at a page's start: at `wanted` where that is one and free, else anywhere.
  uint8_t* allocate(uint64_t bytes, bool writable = true, uint64_t wanted = 0) {
    constexpr uint64_t kPage = 4096;
    if (bytes > uint64_t{1} << 46) throw std::bad_alloc();
    const uint64_t whole = (std::max<uint64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
    if (wanted != 0 && wanted % kPage == 0) {
      constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
      void* given = mmap(reinterpret_cast<void*>(wanted), whole, PROT_READ | PROT_WRITE, kFlags, -1, 0);
      if (given == reinterpret_cast<void*>(wanted)) {
        mappings_.emplace_back(given, whole);
        add(wanted, bytes, writable);
        return static_cast<uint8_t*>(given);
      }
      if (given != MAP_FAILED) munmap(given, whole);
    }
    // First touches of small pages take longer than kernels that only copy. A buffer of which little is touched must not
    // take much more memory than it needs, so the largest are left alone.
    constexpr uint64_t kHugePage = uint64_t{2} << 20, kMostHuge = uint64_t{1} << 30;
    const bool huge = whole >= 2 * kHugePage && whole <= kMostHuge;
    const uint64_t reserved = whole + 2 * kPage + (huge ? kHugePage : 0);
    void* place = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) throw std::bad_alloc();
    mappings_.emplace_back(place, reserved);
    auto* begin = static_cast<uint8_t*>(place) + kPage;
    if (huge) begin += -reinterpret_cast<uint64_t>(begin) % kHugePage;
    if (mprotect(begin, whole, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    if (huge) madvise(begin, whole, MADV_HUGEPAGE);
    add(reinterpret_cast<uint64_t>(begin), bytes, writable);
    return begin;
  }
  void add(uint64_t begin, uint64_t bytes, bool writable) {
    ranges_.push_back({begin, begin + bytes, writable});
    std::ranges::sort(ranges_, {}, &Range::begin);
  }
  // Until the next allocation.
  [[nodiscard]] Ranges ranges() const { return {ranges_.data(), static_cast<uint32_t>(ranges_.size())}; }

 private:
  std::vector<std::pair<void*, uint64_t>> mappings_;
  std::vector<Range> ranges_;
};

}  // namespace rpl_emu
