// What the software GPUs are: facts that the driver reports about them.
#pragma once

#include <cstdint>

namespace softkfd {

// An MI300X in SPX mode. Values are those that a gfx942 node reports in the agent table of a rocprofv3
// recording; device id and memory are the MI300X's own.
struct Mi300x {
  static constexpr uint32_t kGfxTargetVersion = 90402;
  static constexpr uint32_t kDeviceId = 0x74a1;
  static constexpr uint32_t kVendorId = 0x1002;
  static constexpr uint32_t kFamily = 141;
  static constexpr uint32_t kSimds = 1216;
  static constexpr uint32_t kXccs = 8;
  static constexpr uint64_t kMemoryBytes = 192ULL << 30;
  // Ticks per second of the counter that stamps dispatches.
  static constexpr uint64_t kCounterHz = 100'000'000;
  static constexpr const char* kName = "AMD Instinct MI300X (software KFD)";
};

constexpr uint32_t kMaxGpus = 2;
constexpr uint32_t kFirstRenderMinor = 128;

// Node 0 is the CPU; GPU n is node n + 1.
constexpr uint32_t gpu_id(uint32_t gpu) { return 0x5000 + gpu; }
constexpr uint32_t gpu_of_id(uint32_t id) { return id - 0x5000; }

}  // namespace softkfd
