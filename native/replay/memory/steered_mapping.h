// Gives the next piece of address space that a library asks for, wherever, a certain place.
//
// No function of the runtime loads code at an address. Its driver library takes the address from mmap, which is
// this program's own: it says where, as the kernel would.
#pragma once

#include "plan/plan.h"

namespace rpl::replay {

// Before the runtime is opened.
void prepare_steering();

// While it lives; the place has to be free. Libraries that don't ask in the usual way are not steered.
class SteeredMapping {
 public:
  explicit SteeredMapping(const Range& range);
  ~SteeredMapping();
  SteeredMapping(const SteeredMapping&) = delete;
  SteeredMapping& operator=(const SteeredMapping&) = delete;
};

}  // namespace rpl::replay
