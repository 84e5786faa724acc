// The runtime as the capture uses it: agents, signals with time limits, copies out of memory that GPUs reach.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hsa/api_tables.h"

namespace rpl::isolate {

struct AgentDescription {
  hsa::Agent agent{};
  uint32_t device = 0;
  uint32_t number = 0;  // among the GPUs
  std::string name, product, uuid, isa, bdf;
  uint32_t node = 0;
  uint32_t compute_units = 0;
  uint32_t wavefront_size = 0;

  // Such as {"sramecc+", "xnack-"}.
  [[nodiscard]] std::vector<std::string> features() const;
};

// All agents, in the order of the runtime.
std::vector<AgentDescription> describe_agents(const hsa::ApiTables& api);

// Path of the library that holds the function; empty when it is unknown.
std::string library_of(const void* function);

class TimedSignal {
 public:
  TimedSignal(const hsa::ApiTables& api, int64_t initial);
  // A signal that something may still write to is kept for good.
  ~TimedSignal();
  TimedSignal(const TimedSignal&) = delete;
  TimedSignal& operator=(const TimedSignal&) = delete;

  [[nodiscard]] bool is_valid() const { return signal_.handle != 0; }
  [[nodiscard]] hsa::Signal get() const { return signal_; }
  // To somebody who will count it down.
  hsa::Signal give() {
    pending_ = true;
    return signal_;
  }
  // Whether it fell below the value in time.
  bool wait_until(std::chrono::steady_clock::time_point deadline, int64_t below = 1);
  void set_again();
  // Nobody will count it down after all.
  void take_back();

 private:
  const hsa::ApiTables& api_;
  hsa::Signal signal_{};
  bool pending_ = false;
};

}  // namespace rpl::isolate
