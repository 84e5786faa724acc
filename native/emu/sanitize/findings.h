// What `--sanitize` finds: diagnostics, never traps, since hardware goes on too.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "machine/shadow.h"
#include "machine/wave.h"

namespace rpl_emu {

struct Finding {
  std::string kind;      // such as "lds-race"
  uint64_t pc = 0;       // word of code of the later access
  uint64_t other_pc = 0; // of the earlier one; equal when there is only one
  uint64_t address = 0;   // of registers: the number
  uint32_t group[3] = {0, 0, 0};
  uint32_t wave = 0, other_wave = 0, lane = 0;
  uint64_t times = 1;
};

class Cooperation;

class Findings {
 public:
  // `cooperation` is told everything, too. For one thread then.
  explicit Findings(Cooperation* cooperation = nullptr);
  ~Findings();
  Findings(const Findings&) = delete;
  Findings& operator=(const Findings&) = delete;

  Shadow* open_group(const Workgroup& group, uint32_t lds_bytes, uint32_t waves, uint32_t rows);
  void close_group(const Workgroup& group);
  // `scalars`: those that the launch has set.
  static void wave_started(const Wave& w, const std::array<bool, kScalars>& scalars);
  void wave_waits(const Wave& w);
  void wave_ended(const Wave& w);
  void barrier_passed(const Workgroup& group);
  [[nodiscard]] std::vector<Finding> all() const;

  struct Parts;

 private:
  Parts* parts_;
};

}  // namespace rpl_emu
