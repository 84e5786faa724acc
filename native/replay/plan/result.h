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
  std::optional<uint64_t> address;  // in the code; without one its bytes in the file of variables say nothing
};

struct Result {
  std::string device, product, isa, runtime, runtime_version, interface_version;
  bool software_kfd = false;
  uint32_t attempts = 1;  // of address layouts
  std::vector<Reserved> reservations;
  std::vector<uint64_t> warm_up_ns, times_ns;
  std::vector<uint64_t> other_times_ns;  // pair by pair with `times_ns`
  std::vector<VariableChange> variables, other_variables;
  uint64_t flushed_bytes = 0;              // before each launch
  std::optional<uint64_t> restored_bytes;  // before later launches, where that is not all
  std::vector<std::string> notes;
  std::optional<Failure> failure;

  // Atomically; false when that fails.
  [[nodiscard]] bool write(const std::string& file) const;
  // Of the process (docs/REPLAY.md).
  [[nodiscard]] int exit_code() const;
};

}  // namespace rpl::replay
