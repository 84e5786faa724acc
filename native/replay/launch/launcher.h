// Launches on a queue of its own, one at a time.
#pragma once

#include "runtime/events.h"
#include "runtime/gpus.h"

namespace rpl::replay {

class Launcher {
 public:
  Launcher(const HsaLibrary& hsa, hsa::Agent agent, Events& events);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Nanoseconds by the GPU's clock. Throws Failure gpu_fault or time_limit.
  uint64_t launch(const hsa::DispatchPacket& packet, std::optional<uint64_t> limit_ns);

 private:
  void submit(const hsa::DispatchPacket& packet);

  const HsaLibrary& hsa_;
  hsa::Agent agent_;
  const Events& events_;
  hsa::Queue* queue_ = nullptr;
  hsa::Signal done_{};
};

}  // namespace rpl::replay
