// Kernels by the emulator of gfx942 code (native/emu), over the memory that the page table shows.
#pragma once

#include <memory>
#include <string>

#include "executor/executor.h"
#include "queue/log.h"

namespace softkfd {

class Emulator : public Executor {
 public:
  // `program`: rpl-emu, beside which the emulator's libraries lie. Throws std::runtime_error without them.
  // What launches counted goes to `log`, where that is open. With `sanitize` the process ends (1) after the first launch
  // with a race or a read of what nobody wrote.
  Emulator(const std::string& program, const Log& log, bool sanitize);
  ~Emulator() override;

  bool run(const Launch& launch, const PageTable& memory) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace softkfd
