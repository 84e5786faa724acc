// What `--sanitize` is told: every instruction before it runs, every access to LDS and memory by lane.
#pragma once

#include <cstdint>

#include "machine/instruction.h"

namespace rpl_emu {

struct Shadow {
  virtual ~Shadow() = default;
  // `lds`: the address counts from the start of the workgroup's LDS, else it is one of this process.
  void (*access)(Wave& w, const Instruction& i, unsigned lane, uint64_t address, unsigned bytes, bool write,
                 bool atomic, bool lds) = nullptr;
  void (*execute)(Wave& w, const Instruction& i) = nullptr;
};

}  // namespace rpl_emu
