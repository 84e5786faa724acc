#include "model/caches.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <span>

#include "machine/wave.h"

namespace rpl_emu {
namespace {

constexpr unsigned kPart = 64, kPartsPerLine = 2;

// Workgroups go round the XCDs, then round the compute units of each.
unsigned xcc_of(const Wave& w) { return w.group->number % kModelXccs; }
unsigned unit_of(const Wave& w) { return xcc_of(w) * kModelUnitsPerXcc + w.group->number / kModelXccs % kModelUnitsPerXcc; }

uint64_t bytes_mask(unsigned first, unsigned count) {
  return (count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

}  // namespace

Cache::Cache(const CacheSize& size)
    : sets_(size.bytes / size.line / size.ways), ways_(size.ways),
      lines_(static_cast<Line*>(std::calloc(uint64_t{sets_} * ways_, sizeof(Line)))) {
  if (!lines_) throw std::bad_alloc();
}

Cache::Line* Cache::find(uint64_t number) {
  Line* first = set(number);
  for (uint32_t k = 0; k < ways_ && first[k].tag != 0; ++k) {
    if (first[k].tag != number + 1) continue;
    std::rotate(first, first + k, first + k + 1);
    return first;
  }
  return nullptr;
}
Cache::Line& Cache::insert(uint64_t number, Line& evicted) {
  Line* first = set(number);
  evicted = first[ways_ - 1];
  std::move_backward(first, first + ways_ - 1, first + ways_);
  *first = {number + 1, 0, 0};
  return *first;
}
void Cache::drop(uint64_t number) {
  Line* first = set(number);
  if (!find(number)) return;
  std::move(first + 1, first + ways_, first);
  first[ways_ - 1] = {};
}

CacheModel::CacheModel() : infinity_(kInfinitySize) {
  for (unsigned k = 0; k < kModelUnits; ++k) l1_.emplace_back(kL1Size);
  for (unsigned k = 0; k < kModelUnits / kUnitsPerScalarCache; ++k) scalar_.emplace_back(kScalarCacheSize);
  for (unsigned k = 0; k < kModelXccs; ++k) l2_.emplace_back(kL2Size);
}

void CacheModel::vector_access(const Wave& w, const uint64_t* addresses, uint64_t lanes, unsigned bytes, bool write, bool atomic) {
  std::array<Part, size_t{2} * kLanes> parts;
  size_t count = 0;
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const uint64_t begin = addresses[std::countr_zero(rest)];
    const uint64_t end = begin + bytes;
    for (uint64_t number = begin / kPart; number <= (end - 1) / kPart; ++number) {
      size_t k = count;
      while (k != 0 && parts[k - 1].number != number) --k;
      if (k == 0) parts[k = count++] = {number, 0};
      else --k;
      const uint64_t low = std::max(begin, number * kPart);
      const uint64_t high = std::min(end, (number + 1) * kPart);
      parts[k].written |= bytes_mask(static_cast<unsigned>(low % kPart), static_cast<unsigned>(high - low));
    }
  }
  std::ranges::sort(std::span(parts).first(count), {}, &Part::number);
  const unsigned xcc = xcc_of(w);
  Cache& l1 = l1_[unit_of(w)];
  for (size_t k = 0; k < count; ++k) {
    const uint64_t line = parts[k].number / kPartsPerLine;
    if (write || atomic) {
      l1.drop(line);
      ++(atomic ? traffic_.l2_atomics_64 : traffic_.l2_writes_64);
      write_l2(xcc, parts[k], atomic);
      continue;
    }
    if (k != 0 && parts[k - 1].number / kPartsPerLine == line) continue;
    ++traffic_.l1_reads;
    if (l1.find(line)) {
      ++traffic_.l1_hits;
      continue;
    }
    Cache::Line evicted;
    l1.insert(line, evicted);
    ++traffic_.l2_reads_128;
    read_l2(xcc, line);
  }
}

void CacheModel::scalar_access(const Wave& w, uint64_t address, unsigned bytes) {
  Cache& cache = scalar_[unit_of(w) / kUnitsPerScalarCache];
  for (uint64_t part = address / kPart; part <= (address + bytes - 1) / kPart; ++part) {
    ++traffic_.scalar_reads;
    if (cache.find(part)) {
      ++traffic_.scalar_hits;
      continue;
    }
    Cache::Line evicted;
    cache.insert(part, evicted);
    ++traffic_.l2_reads_64;
    read_l2(xcc_of(w), part / kPartsPerLine);
  }
}

Cache::Line& CacheModel::l2_line(unsigned xcc, uint64_t line, bool read) {
  Cache& l2 = l2_[xcc];
  Cache::Line* found = l2.find(line);
  const bool hit = found && (!read || found->present == 3);
  ++(hit ? traffic_.l2_hits : traffic_.l2_misses);
  if (!found) {
    Cache::Line evicted;
    found = &l2.insert(line, evicted);
    write_back(evicted);
  }
  if (read && !hit) {
    fabric_read(line);
    found->present = 3;
  }
  return *found;
}
void CacheModel::read_l2(unsigned xcc, uint64_t line) { l2_line(xcc, line, true); }
void CacheModel::write_l2(unsigned xcc, const Part& part, bool needs_old) {
  Cache::Line& line = l2_line(xcc, part.number / kPartsPerLine, needs_old);
  const auto bit = static_cast<uint8_t>(1U << part.number % kPartsPerLine);
  line.dirty |= bit;
  if (part.written == ~uint64_t{0}) line.present |= bit;
}

void CacheModel::write_back(const Cache::Line& line) {
  if (line.tag == 0 || line.dirty == 0) return;
  traffic_.fabric_writes_64 += static_cast<uint64_t>(std::popcount(line.dirty));
  Cache::Line* there = infinity_.find(line.tag - 1);
  if (!there) {
    Cache::Line evicted;
    there = &infinity_.insert(line.tag - 1, evicted);
    traffic_.hbm_writes_64 += static_cast<uint64_t>(std::popcount(evicted.dirty));
  }
  there->dirty |= line.dirty;
}
void CacheModel::fabric_read(uint64_t line) {
  ++traffic_.fabric_reads_128;
  if (infinity_.find(line)) {
    ++traffic_.infinity_hits;
    return;
  }
  ++traffic_.hbm_reads_128;
  Cache::Line evicted;
  infinity_.insert(line, evicted);
  traffic_.hbm_writes_64 += static_cast<uint64_t>(std::popcount(evicted.dirty));
}

Traffic CacheModel::finish() {
  for (const Cache& l2 : l2_) l2.each([&](const Cache::Line& line) { write_back(line); });
  return traffic_;
}

}  // namespace rpl_emu
