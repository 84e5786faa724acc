#include "executor/blit_kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace softkfd {
namespace {

template <typename Arguments>
Arguments arguments_of(const Launch& launch, const PageTable& memory) {
  Arguments arguments{};
  memory.read(launch.kernarg, &arguments, sizeof(arguments));
  return arguments;
}

// Kernel arguments of amd_blit_kernel.h of ROCR-Runtime. Copies are cut into phases by alignment; together
// they move the bytes from the first phase's begin to the last one's end.
struct CopyAligned {
  uint64_t from, to;
  std::array<uint64_t, 6> phases;
  uint64_t from_end, to_end;
};

struct CopyMisaligned {
  uint64_t from, to;
  std::array<uint64_t, 2> phases;
  uint64_t from_end, to_end;
};

struct Fill {
  uint64_t to, phase, to_end;
  uint32_t value;
};

// HIP's program of copies and fills (rocclr, device/blitcl.cpp) changed its arguments between ROCm 5.7
// and 6.1.
struct OldHipCopy {
  uint64_t from, to, from_offset, to_offset, words_and_one;
  uint32_t bytes_left;
};

struct HipCopy {
  uint64_t from, to, bytes;
  uint32_t remainder, word_bytes;
  uint64_t end;
};

struct OldHipFill {
  std::array<uint64_t, 4> to;  // one is not null: the words are as wide as its place says
  uint64_t pattern;
  uint32_t pattern_words;
  uint64_t offset_words, patterns;
};

struct HipFill {
  uint64_t to, pattern;
  uint32_t pattern_words, word_bytes;
  uint64_t end;
};

void hip_copy(const Launch& launch, const PageTable& memory) {
  const auto given = arguments_of<HipCopy>(launch, memory);
  // The fifth argument is an address behind the target now and was a count.
  if (given.end >= given.to) {
    memory.copy(given.to, given.from, given.bytes);
    return;
  }
  const auto old = arguments_of<OldHipCopy>(launch, memory);
  const uint64_t bytes = (old.words_and_one - 1) * sizeof(uint32_t) + old.bytes_left;
  memory.copy(old.to + old.to_offset, old.from + old.from_offset, bytes);
}

void fill(uint64_t to, uint64_t end, uint64_t pattern, uint64_t pattern_bytes, const PageTable& memory) {
  std::vector<std::byte> bytes(pattern_bytes);
  memory.read(pattern, bytes.data(), bytes.size());
  const bool narrow = sizeof(uint32_t) % pattern_bytes == 0 && (end - to) % sizeof(uint32_t) == 0;
  if (narrow) {  // zeroed memory stays sparse
    uint32_t word = 0;
    for (uint64_t i = 0; i < sizeof(word); i += pattern_bytes) {
      std::memcpy(reinterpret_cast<std::byte*>(&word) + i, bytes.data(), pattern_bytes);
    }
    memory.fill(to, word, (end - to) / sizeof(word));
    return;
  }
  for (; to < end; to += pattern_bytes) memory.write(to, bytes.data(), std::min(pattern_bytes, end - to));
}

void hip_fill(const Launch& launch, const PageTable& memory) {
  const auto given = arguments_of<HipFill>(launch, memory);
  if (given.to != 0 && given.pattern != 0) {
    fill(given.to, given.end, given.pattern, uint64_t{given.pattern_words} * given.word_bytes, memory);
    return;
  }
  const auto old = arguments_of<OldHipFill>(launch, memory);
  for (size_t width = 0; width < old.to.size(); ++width) {
    if (old.to[width] == 0) continue;
    const uint64_t word_bytes = 1ULL << width;
    const uint64_t to = old.to[width] + old.offset_words * word_bytes;
    const uint64_t pattern_bytes = old.pattern_words * word_bytes;
    fill(to, to + old.patterns * pattern_bytes, old.pattern, pattern_bytes, memory);
  }
}

}  // namespace

// By the first 64 bytes of blit_copyAligned.s, blit_copyMisaligned.s and blit_fill.s of ROCR-Runtime,
// assembled for gfx9: the same in ROCr 6.1 to 7.2.
bool RocrBlitKernels::run(const Launch& launch, const PageTable& memory) {
  if (launch.kernel == "code:afc618bfea840bd9") {
    const auto given = arguments_of<CopyAligned>(launch, memory);
    memory.copy(given.to, given.from, given.to_end - given.to);
  } else if (launch.kernel == "code:989df1731849e2fd") {
    const auto given = arguments_of<CopyMisaligned>(launch, memory);
    memory.copy(given.to, given.from, given.to_end - given.to);
  } else if (launch.kernel == "code:ebcb1c6d46f18372") {
    const auto given = arguments_of<Fill>(launch, memory);
    memory.fill(given.to, given.value, (given.to_end - given.to) / sizeof(given.value));
  } else {
    return false;
  }
  return true;
}

bool HipBlitKernels::run(const Launch& launch, const PageTable& memory) {
  if (launch.kernel == "__amd_rocclr_copyBuffer") {
    hip_copy(launch, memory);
  } else if (launch.kernel == "__amd_rocclr_fillBufferAligned") {
    hip_fill(launch, memory);
  } else {
    return false;
  }
  return true;
}

}  // namespace softkfd
