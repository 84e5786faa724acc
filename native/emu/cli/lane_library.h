// The lane functions of the best instruction set that this CPU has, from the library beside the program.
#pragma once

#include <string>

#include "opcodes/table.h"

namespace rpl_emu {

struct LaneLibrary {
  std::string name;  // avx512, avx2, baseline
  RowLists lists{};
};

// `wanted`: a name, or empty for the best. Throws Unavailable.
[[nodiscard]] LaneLibrary load_lanes(const std::string& wanted);
[[nodiscard]] LaneLibrary load_lanes(const std::string& wanted, const std::string& folder);

}  // namespace rpl_emu
