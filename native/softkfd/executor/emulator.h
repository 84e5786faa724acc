// Kernels by the emulator of gfx942 code (native/emu), over the memory that the page table shows.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "executor/executor.h"
#include "queue/events.h"
#include "queue/log.h"

namespace softkfd {

class Emulator : public Executor {
 public:
  struct Settings {
    std::string program;  // rpl-emu, beside which the emulator's libraries lie
    bool sanitize = false;  // the process ends (1) after the first launch with a race or a read of what nobody wrote
    bool strict_decode = false;  // what is not offered refuses a kernel before it runs, not when it is reached
    std::optional<std::chrono::steady_clock::time_point> deadline;  // the process ends (124)
    bool progress = false;  // a line at the terminal
  };
  // Throws std::runtime_error without the libraries. What launches counted goes to `log`, where that is open; kernels
  // wake who waits for `events`.
  Emulator(const Settings& settings, const Log& log, Events& events);
  ~Emulator() override;

  bool run(const Launch& launch, const PageTable& memory) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace softkfd
