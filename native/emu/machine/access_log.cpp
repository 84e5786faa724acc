#include "machine/access_log.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace rpl_emu {

AccessLog::~AccessLog() {
  for (const Watched& w : watched_) munmap(w.marks, w.range.bytes);
}

void AccessLog::watch(AddressRange range) {
  void* marks = mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (marks == MAP_FAILED) throw std::bad_alloc();
  watched_.push_back({range, static_cast<uint8_t*>(marks), std::vector<uint8_t>((range.bytes + kPart - 1) / kPart)});
  std::ranges::sort(watched_, {}, [](const Watched& w) { return w.range.begin; });
}

void AccessLog::clear() {
  for (Watched& w : watched_)
    for (size_t part = 0; part < w.touched.size(); ++part) {
      if (w.touched[part] == 0) continue;
      const uint64_t begin = part * kPart;
      std::fill_n(w.marks + begin, std::min(kPart, w.range.bytes - begin), uint8_t{0});
      w.touched[part] = 0;
    }
}

void AccessLog::vector_access(const Wave&, const uint64_t* addresses, uint64_t lanes, unsigned bytes, bool write, bool atomic) {
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) mark(addresses[std::countr_zero(rest)], bytes, write, atomic);
}

AccessLog::Watched* AccessLog::find(uint64_t address) {
  const auto holds = [address](const Watched& w) { return address - w.range.begin < w.range.bytes; };
  if (last_ < watched_.size() && holds(watched_[last_])) return &watched_[last_];
  const auto behind = std::ranges::upper_bound(watched_, address, {}, [](const Watched& w) { return w.range.begin; });
  if (behind == watched_.begin() || !holds(*(behind - 1))) return nullptr;
  last_ = static_cast<size_t>(behind - 1 - watched_.begin());
  return &watched_[last_];
}

void AccessLog::mark(uint64_t address, unsigned bytes, bool write, bool atomic) {
  Watched* w = find(address);
  if (!w) return;
  const uint64_t offset = address - w->range.begin;
  const uint64_t end = std::min(offset + bytes, w->range.bytes);
  w->touched[offset / kPart] = 1;
  w->touched[(end - 1) / kPart] = 1;
  for (uint64_t at = offset; at < end; ++at) {
    uint8_t& mark = w->marks[at];
    if ((!write || atomic) && !(mark & kWritten)) mark |= kReadFirst;
    if (write) mark |= kWritten;
  }
}

std::vector<AddressRange> AccessLog::runs(uint8_t mark) const {
  std::vector<AddressRange> out;
  for (const Watched& w : watched_)
    for (size_t part = 0; part < w.touched.size(); ++part) {
      if (w.touched[part] == 0) continue;
      const uint64_t end = std::min(w.range.bytes, (part + 1) * kPart);
      for (uint64_t at = part * kPart; at < end; ++at) {
        if (!(w.marks[at] & mark)) continue;
        const uint64_t address = w.range.begin + at;
        if (!out.empty() && out.back().begin + out.back().bytes == address) ++out.back().bytes;
        else out.push_back({address, 1});
      }
    }
  return out;
}

}  // namespace rpl_emu
