// Which unit an opcode goes to and for how many passes it is taken, after LLVM's scheduling model of gfx942
// (llvm/lib/Target/AMDGPU/SISchedule.td, as llvm-mca prints it; a test compares the whole table with it).
#pragma once

#include "opcodes/table.h"

namespace rpl_emu {

enum class Unit : uint8_t { vector, matrix, scalar, lds_and_scalar_memory, memory, branch, none };
constexpr unsigned kUnits = 6;
constexpr const char* kUnitNames[kUnits] = {"vector", "matrix", "scalar", "lds_and_scalar_memory", "memory", "branch"};

struct Issue {
  Unit unit = Unit::none;
  unsigned passes = 0;  // of four cycles
};
[[nodiscard]] Issue issue_of(const Row& row);

}  // namespace rpl_emu
