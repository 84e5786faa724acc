// Memory is hashed and compared in chunks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/layout.h"
#include "code/elf.h"

namespace rpl::isolate {

bool is_zero(Bytes bytes);
// XXH3, 64 bits, seed 0.
uint64_t xxh3(Bytes bytes);
// In hexadecimal, 16 digits.
std::string hex16(uint64_t hash);

// The hashes of a stream's chunks. Chunks of zeros are recognised and not hashed again.
class ChunkHasher {
 public:
  // Whole chunks; only the last call may bring a shorter one.
  void add(Bytes bytes);
  [[nodiscard]] const std::vector<uint64_t>& hashes() const { return hashes_; }

 private:
  std::vector<uint64_t> hashes_;
};

}  // namespace rpl::isolate
