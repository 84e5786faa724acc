// What the runtime gives to a library of kernels: one for each work-item at a time.
#pragma once

namespace rpl_hip {
struct Index { uint32_t x, y, z; };
struct Services {
  Index thread, block, block_size, grid_size;
  void (*wait_for_block)();
  // A lane gives a value of at most 16 bytes to its wave and waits for it; the number of this exchange.
  unsigned (*exchange)(const void* value, unsigned bytes);
  // What `lane` of the own wave gave; false where it has finished or does not exist.
  bool (*given)(unsigned lane, unsigned exchange, void* value, unsigned bytes);
  unsigned (*own_lane)();
};
constexpr unsigned kLdsBytes = 65536;
}  // namespace rpl_hip
