// What an MI300X needs at the least for the work that was counted: a bound by peak rates, not a prediction.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "machine/launch.h"
#include "machine/traffic.h"
#include "model/issue.h"

namespace rpl_emu {

struct Bound {
  std::string by;  // such as "issue.vector" or "hbm"
  double ns = 0;
};

struct Modelled {
  std::array<uint64_t, kUnits> passes{};  // by Unit, of all waves
  uint64_t simds = 0;                     // that can have had work
  double issue_cycles_per_simd = 0;       // of the unit that is taken longest
  uint64_t lds_bytes = 0, lds_passes_beyond = 0;
  uint64_t bytes = 0, lines_64b = 0, lines_128b = 0;  // of vector memory, counted
  Touched touched;                                    // of all memory but LDS and scratch, counted
  std::optional<Traffic> traffic;         // none: caches were not modelled
  std::vector<Bound> bounds;              // the longest first
  double bound_ns = 0;
  std::string bound_by;
};

[[nodiscard]] Modelled model_launch(const Program& program, const LaunchResult& result);

}  // namespace rpl_emu
