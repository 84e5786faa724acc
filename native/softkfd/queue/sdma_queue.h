// A DMA engine's side of its queue. Packets: those that ROCr's blit_sdma writes for gfx9.
#pragma once

#include <span>

#include "queue/hardware_queue.h"

namespace softkfd {

class SdmaQueue : public HardwareQueue {
 public:
  using HardwareQueue::HardwareQueue;

 protected:
  bool process_next() override;

 private:
  // Words that the packet took; 0: it waits.
  uint64_t execute(std::span<const uint32_t> words);
  uint64_t copy(std::span<const uint32_t> words);
  uint64_t copy_rectangle(std::span<const uint32_t> words);
  void fault_if_picked(uint64_t to);

  uint64_t next_ = 0;  // bytes since the queue began
};

}  // namespace softkfd
