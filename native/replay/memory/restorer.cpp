#include "memory/restorer.h"

#include <algorithm>

#include "capture/chunk.h"
#include "memory/content_file.h"

namespace rpl::replay {
namespace {

using isolate::kChunkBytes;

size_t chunks_of(const Content& region) { return (region.range.size + kChunkBytes - 1) / kChunkBytes; }

}  // namespace

void Restorer::restore() {
  for (size_t i = 0; i < plan_.regions.size(); ++i) {
    if (!changed_.empty()) {
      copier_.write(plan_.regions[i], changed_.at(i));
    } else {
      copier_.write(plan_.regions[i]);
    }
  }
}

uint64_t Restorer::keep_to_what_changed() {
  uint64_t bytes = 0;
  std::vector<Chunks> changed;
  for (const Content& region : plan_.regions) {
    Chunks known = edited(region);
    for (size_t i = 0; !changed_.empty() && i < known.size(); ++i) {
      if (changed_.at(changed.size())[i]) known[i] = true;
    }
    Chunks found = compare(region, known);
    for (size_t i = 0; i < found.size(); ++i) {
      found[i] = found[i] || known[i];
      if (found[i]) bytes += std::min<uint64_t>(kChunkBytes, region.range.size - i * kChunkBytes);
    }
    changed.push_back(std::move(found));
  }
  changed_ = std::move(changed);
  return bytes;
}

bool Restorer::rest_is_untouched() {
  if (changed_.empty()) return true;
  for (size_t i = 0; i < plan_.regions.size(); ++i) {
    const Chunks found = compare(plan_.regions[i], changed_.at(i));
    if (std::ranges::find(found, true) != found.end()) return false;
  }
  return true;
}

Restorer::Chunks Restorer::compare(const Content& region, const Chunks& skipped) {
  ContentFile file(region.file);
  std::vector<std::byte> expected(kChunkBytes);
  Chunks found(chunks_of(region));
  size_t chunk = 0;
  copier_.read(region.range, region.gpu, [&](std::span<const std::byte> bytes) {
    const size_t number = chunk++;
    if (skipped[number]) return;
    const std::span<std::byte> captured(expected.data(), bytes.size());
    if (!file.read(number * kChunkBytes, captured)) std::ranges::fill(captured, std::byte{0});
    found[number] = !std::ranges::equal(captured, bytes);
  });
  return found;
}

Restorer::Chunks Restorer::edited(const Content& region) const {
  Chunks found(chunks_of(region));
  const uint64_t begin = region.range.address;
  const uint64_t end = begin + region.range.size;
  for (const Content& edit : plan_.edits) {
    const uint64_t first = std::max(begin, edit.range.address);
    const uint64_t last = std::min(end, edit.range.address + edit.range.size);
    for (uint64_t at = first; at < last; at = begin + ((at - begin) / kChunkBytes + 1) * kChunkBytes) {
      found[(at - begin) / kChunkBytes] = true;
    }
  }
  return found;
}

}  // namespace rpl::replay
