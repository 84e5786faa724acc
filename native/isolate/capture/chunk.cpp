#include "capture/chunk.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace rpl::isolate {

bool is_zero(Bytes bytes) {
  // Memory that equals itself one byte further is made of one value; the library's comparison is the fastest.
  return bytes.empty() || (bytes.front() == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

uint64_t xxh3(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string hex16(uint64_t hash) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016lx", hash);
  return text.data();
}

void ChunkHasher::add(Bytes bytes) {
  static const uint64_t zeros = xxh3(std::vector<std::byte>(kChunkBytes));
  while (!bytes.empty()) {
    const Bytes chunk = bytes.first(std::min(kChunkBytes, bytes.size()));
    hashes_.push_back(chunk.size() == kChunkBytes && is_zero(chunk) ? zeros : xxh3(chunk));
    bytes = bytes.subspan(chunk.size());
  }
}

}  // namespace rpl::isolate
