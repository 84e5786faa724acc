#include "memory/address_ranges.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace rpl::replay {

Range rounded(const Range& range) {
  const uint64_t begin = range.address / kPageBytes * kPageBytes;
  const uint64_t last = range.address + range.size - 1;
  if (range.size == 0 || last < range.address || last > UINT64_MAX - kPageBytes) {
    throw std::invalid_argument("a region that no process has");
  }
  return {begin, (last / kPageBytes + 1) * kPageBytes - begin};
}

namespace {

std::vector<Pages> in_pieces(const std::vector<Pages>& pages) {
  std::vector<Pages> pieces;
  for (const Pages& one : pages) {
    for (uint64_t begin = one.range.address; begin < one.end(); begin += kLargestPiece) {
      pieces.push_back({{begin, std::min(kLargestPiece, one.end() - begin)}, one.gpu});
    }
  }
  return pieces;
}

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

std::vector<Pages> pages_of(std::vector<Content> contents) {
  std::ranges::sort(contents, {}, [](const Content& one) { return one.range.address; });
  std::vector<Pages> found;
  for (const Content& one : contents) {
    const Range range = rounded(one.range);
    const bool shares = !found.empty() && range.address < found.back().end();
    const bool follows = !found.empty() && range.address == found.back().end() && one.gpu == found.back().gpu;
    if (!shares && !follows) {
      found.push_back({range, one.gpu});
      continue;
    }
    const uint64_t end = std::max(found.back().end(), range.address + range.size);
    found.back().range.size = end - found.back().range.address;
  }
  return in_pieces(found);
}

HeldPages::HeldPages(const std::vector<Pages>& pages) {
  for (const Pages& one : pages) {
    const Range& range = one.range;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void* place = mmap(pointer(range.address), range.size, PROT_NONE, flags, -1, 0);
    if (place != pointer(range.address)) {
      if (place != MAP_FAILED) munmap(place, range.size);  // a kernel before 4.17 takes it for a hint
      taken_ = range;
      return;
    }
    held_.push_back(range);
  }
}

HeldPages::~HeldPages() {
  for (const Range& range : held_) munmap(pointer(range.address), range.size);
}

void HeldPages::release(const Range& range) {
  const auto same = [&](const Range& one) { return one.address == range.address; };
  if (const auto found = std::ranges::find_if(held_, same); found != held_.end()) {
    munmap(pointer(found->address), found->size);
    held_.erase(found);
  }
}

std::string occupant_of(const Range& range) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    constexpr int kHexadecimal = 16;
    char* dash = nullptr;
    const uint64_t begin = std::strtoull(line.c_str(), &dash, kHexadecimal);
    if (*dash != '-') continue;
    const uint64_t end = std::strtoull(dash + 1, nullptr, kHexadecimal);
    if (begin < range.address + range.size && range.address < end) return line;
  }
  return "";
}

}  // namespace rpl::replay
