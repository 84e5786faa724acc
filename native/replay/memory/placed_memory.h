// Memory at the addresses of the capture: reserved, backed, mapped, and given back in order.
#pragma once

#include <vector>

#include "memory/address_ranges.h"
#include "plan/result.h"
#include "runtime/gpus.h"

namespace rpl::replay {

class PlacedMemory {
 public:
  PlacedMemory(const HsaLibrary& hsa, const Gpus& gpus) : hsa_(hsa), gpus_(gpus) {}
  ~PlacedMemory();
  PlacedMemory(const PlacedMemory&) = delete;
  PlacedMemory& operator=(const PlacedMemory&) = delete;

  // Asks for the addresses, of which `held` lets go one by one. What the runtime answers is added to
  // `result`; throws Failure reserve_failed, or relocated for other addresses unless `go_on`.
  void reserve(const std::vector<Pages>& pages, HeldPages& held, Result& result, bool go_on);
  // Backs all of it, within reach of all GPUs. Throws Failure map_failed.
  void map();

 private:
  struct Place {
    void* address;
    size_t size;
    uint32_t gpu;
    hsa::VmemHandle handle;
    bool backed, mapped;
  };
  void map(Place& place) const;

  const HsaLibrary& hsa_;
  const Gpus& gpus_;
  std::vector<Place> places_;
};

}  // namespace rpl::replay
