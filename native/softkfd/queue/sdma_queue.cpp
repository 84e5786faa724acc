#include "queue/sdma_queue.h"

#include <algorithm>
#include <atomic>
#include <vector>

namespace softkfd {
namespace {

// sdma_registers.h of ROCR-Runtime
enum Op : uint32_t {
  kNop = 0,
  kCopy = 1,
  kFence = 5,
  kTrap = 6,
  kPoll = 8,
  kAtomic = 10,
  kFill = 11,
  kTimestamp = 13,
};
constexpr uint32_t kCopyLinear = 0;
constexpr uint32_t kCopyRectangle = 4;
constexpr uint32_t kAtomicAdd64 = 47;
constexpr uint32_t kPollMemory = 1U << 31;
constexpr uint64_t kLongestPacketWords = 13;

uint64_t address(std::span<const uint32_t> words, size_t index) {
  return words[index] | (static_cast<uint64_t>(words[index + 1]) << 32);
}

// Base, offsets and pitches of one side of a rectangle copy, in elements.
struct Side {
  uint64_t base, x, y, z, pitch, slice;

  explicit Side(std::span<const uint32_t> words)
      : base(address(words, 0)),
        x(words[2] & 0x3fff),
        y((words[2] >> 16) & 0x3fff),
        z(words[3] & 0x7ff),
        pitch((words[3] >> 13) + 1),
        slice((words[4] & 0xfffffff) + 1) {}

  [[nodiscard]] uint64_t row(uint64_t row, uint64_t layer, uint64_t element) const {
    return base + ((z + layer) * slice + (y + row) * pitch + x) * element;
  }
};

}  // namespace

bool SdmaQueue::process_next() {
  const uint64_t end = doorbell();  // bytes written since the queue began
  if (next_ >= end) return false;
  const uint64_t place = next_ % ring().bytes;
  // A packet never wraps: the runtime fills the end of the ring with no-operations.
  const uint64_t bytes =
      std::min({end - next_, ring().bytes - place, kLongestPacketWords * sizeof(uint32_t)});
  std::vector<uint32_t> words(kLongestPacketWords);
  parts().memory.read(ring().base + place, words.data(), bytes);
  const uint64_t taken = execute(words);
  if (taken == 0) return false;
  next_ += taken * sizeof(uint32_t);
  std::atomic_ref(*ring().read_index).store(next_);
  return true;
}

uint64_t SdmaQueue::execute(std::span<const uint32_t> words) {
  const PageTable& memory = parts().memory;
  const uint32_t header = words[0];
  switch (header & 0xff) {
    case kNop:
      return 1 + ((header >> 16) & 0x3fff);
    case kCopy:
      return copy(words);
    case kFence:
      std::atomic_ref(*memory.object<uint32_t>(address(words, 1))).store(words[3]);
      return 4;
    case kTrap:
      parts().events.set(words[1] & 0xfffffff);
      return 2;
    case kPoll: {
      if ((header & kPollMemory) == 0) return 6;  // a register: the flush of a cache that isn't there
      const uint32_t value = std::atomic_ref(*memory.object<uint32_t>(address(words, 1))).load() & words[4];
      return value == words[3] ? 6 : 0;
    }
    case kAtomic:
      if ((header >> 25) != kAtomicAdd64) break;
      std::atomic_ref(*memory.object<uint64_t>(address(words, 1))).fetch_add(address(words, 3));
      return 8;
    case kFill:
      memory.fill(address(words, 1), words[3], ((words[4] & 0x3fffff) + sizeof(uint32_t)) / sizeof(uint32_t));
      return 5;
    case kTimestamp:
      std::atomic_ref(*memory.object<uint64_t>(address(words, 1))).store(gpu_ticks());
      return 3;
    default:
      break;
  }
  parts().refuse("DMA packet with header " + std::to_string(header) + " is unknown here");
  return 0;
}

void SdmaQueue::fault_if_picked(uint64_t to) {
  if (parts().faults.failing_copy.now()) throw GpuFault(to, Access::kWrite, false);
}

uint64_t SdmaQueue::copy(std::span<const uint32_t> words) {
  const uint32_t kind = (words[0] >> 8) & 0xff;
  if (kind == kCopyRectangle) return copy_rectangle(words);
  if (kind != kCopyLinear) {
    parts().refuse("DMA copy of kind " + std::to_string(kind) + " is unknown here");
    return 0;
  }
  const uint64_t bytes = (words[1] & 0x3fffffff) + 1;
  const uint64_t from = address(words, 3);
  const uint64_t to = address(words, 5);
  parts().log.line("copy gpu=" + std::to_string(parts().gpu) + " bytes=" + std::to_string(bytes));
  fault_if_picked(to);
  parts().memory.copy(to, from, bytes);
  return 7;
}

uint64_t SdmaQueue::copy_rectangle(std::span<const uint32_t> words) {
  const uint64_t element = 1ULL << (words[0] >> 29);
  const Side from(words.subspan(1));
  const Side to(words.subspan(6));
  const uint64_t columns = (words[11] & 0x3fff) + 1;
  const uint64_t rows = ((words[11] >> 16) & 0x3fff) + 1;
  const uint64_t layers = (words[12] & 0x7ff) + 1;
  fault_if_picked(to.base);
  for (uint64_t layer = 0; layer < layers; ++layer) {
    for (uint64_t row = 0; row < rows; ++row) {
      parts().memory.copy(to.row(row, layer, element), from.row(row, layer, element), columns * element);
    }
  }
  return 13;
}

}  // namespace softkfd
