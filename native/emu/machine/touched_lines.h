// Which parts of memory a launch read and which it wrote, each once however often (docs/EMULATOR.md, "Modelled"). For one
// thread; those of several threads are merged, so what comes out does not depend on who ran what.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace rpl_emu {

struct Touched {
  uint64_t read_lines_128 = 0, written_parts_64 = 0;
};

class TouchedLines {
 public:
  static constexpr unsigned kPartShift = 6, kPageShift = 6;  // parts of 64 bytes; pages of 64 parts

  void mark(uint64_t address, uint64_t bytes, bool read, bool write) {
    mark_parts(address >> kPartShift, (address + bytes - 1) >> kPartShift, read, write);
  }
  void mark_parts(uint64_t first, uint64_t last, bool read, bool write) {
    for (;;) {
      const uint64_t until = std::min(last, first | (kPartsPerPage - 1));
      const uint64_t mask = ~uint64_t{0} >> (kPartsPerPage - 1 - (until - first)) << first % kPartsPerPage;
      Page& page = page_of(first >> kPageShift);
      if (read) page.read |= mask;
      if (write) page.written |= mask;
      if (until == last) return;
      first = until + 1;
    }
  }
  void merge(const TouchedLines& other) {
    for (const Page& from : other.pages_) {
      if (from.key == 0) continue;
      Page& page = page_of(from.key - 1);
      page.read |= from.read;
      page.written |= from.written;
    }
  }
  [[nodiscard]] Touched count() const {
    Touched out;
    for (const Page& page : pages_) {
      constexpr uint64_t kFirstOfLine = 0x5555555555555555;
      out.read_lines_128 += static_cast<uint64_t>(std::popcount((page.read | page.read >> 1) & kFirstOfLine));
      out.written_parts_64 += static_cast<uint64_t>(std::popcount(page.written));
    }
    return out;
  }

 private:
  static constexpr uint64_t kPartsPerPage = uint64_t{1} << kPageShift;
  struct Page {
    uint64_t key = 0;  // number of the page and one; 0: nobody's
    uint64_t read = 0, written = 0;  // a bit for each part
  };
  // A table by hash, at most half full.
  std::vector<Page> pages_ = std::vector<Page>(64);
  uint64_t used_ = 0;
  unsigned shift_ = 64 - 6;

  [[nodiscard]] size_t place_of(uint64_t key) const {
    size_t at = key * 0x9e3779b97f4a7c15 >> shift_;
    while (pages_[at].key != key && pages_[at].key != 0) at = (at + 1) & (pages_.size() - 1);
    return at;
  }
  Page& page_of(uint64_t number) {
    Page& page = pages_[place_of(number + 1)];
    return page.key != 0 ? page : insert(number + 1);
  }
  [[gnu::noinline]] Page& insert(uint64_t key) {
    if (2 * ++used_ > pages_.size()) {
      std::vector<Page> old(2 * pages_.size());
      old.swap(pages_);
      --shift_;
      for (const Page& page : old)
        if (page.key != 0) pages_[place_of(page.key)] = page;
    }
    Page& page = pages_[place_of(key)];
    page.key = key;
    return page;
  }
};

}  // namespace rpl_emu
