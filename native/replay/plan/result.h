// What became of the replay, for rpl-vmreplay to read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/failure.h"
#include "plan/plan.h"

namespace rpl::replay {

struct Reserved {
  Range requested;
  std::optional<uint64_t> returned;
};

struct VariableChange {
  std::string name;
  bool changed;
};

struct Result {
  std::string device, product, isa, runtime, runtime_version, interface_version;
  bool software_kfd = false;
  uint32_t attempts = 1;  // of address layouts
  std::vector<Reserved> reservations;
  std::vector<uint64_t> warm_up_ns, times_ns;
  std::vector<VariableChange> variables;
  std::vector<std::string> notes;
  std::optional<Failure> failure;

  // Atomically; false when that fails.
  [[nodiscard]] bool write(const std::string& file) const;
  // Of the process (docs/REPLAY.md).
  [[nodiscard]] int exit_code() const;
};

}  // namespace rpl::replay
