#include "capture/chunk.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace rpl::isolate {

bool is_zero(Bytes bytes) {
  // Memory that equals itself one byte further is made of one value; the library's comparison is the fastest.
  return bytes.empty() || (bytes.front() == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

uint64_t xxh3(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string hex16(uint64_t hash) {
  constexpr size_t kDigits = 16;
  std::array<char, kDigits> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), hash, kDigits);
  const std::string digits(text.data(), written.ptr);
  return std::string(kDigits - digits.size(), '0') + digits;
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
