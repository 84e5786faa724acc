// What is to be replayed: lines of a name and values, with tabs between. rpl writes it from a capture that it has
// checked, so that JSON of strangers is not read twice.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rpl_emu {

struct PlannedRegion {
  uint64_t base = 0;
  uint64_t bytes = 0;
  std::string file;
};

struct PlannedVariable {
  std::string name;
  uint64_t bytes = 0;
  std::string file;
};

struct ReplayPlan {
  std::string kernel;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t lds = 0, scratch = 0;  // as launched: with what is dynamic
  std::string kernarg;
  uint64_t kernarg_at = 0;        // 0: not known
  std::string code;
  uint64_t code_at = 0;           // 0: not known
  bool pinned = false;            // captured pointers lead to it: elsewhere it is of no use
  std::vector<PlannedRegion> regions;
  std::vector<PlannedVariable> variables;
};

// Throws BadFile.
[[nodiscard]] ReplayPlan read_plan(const std::string& path);

}  // namespace rpl_emu
