// How far the emulator is, for who waits at a terminal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace softkfd {

class Progress {
 public:
  // `shown`: a line on the standard error that a thread keeps anew, from when kernels have run for a while.
  explicit Progress(bool shown);

  void launch_ended() { ++launches_; }
  // Wave instructions of all launches; a launch that runs adds to them.
  [[nodiscard]] std::atomic<uint64_t>& instructions() { return instructions_; }
  // "3 launches, 1.25 G wave instructions, 48.1 M/s"; the rate is that of the last `seconds`.
  [[nodiscard]] std::string line(uint64_t before, double seconds) const;

 private:
  [[noreturn]] void show() const;

  std::atomic<uint64_t> launches_ = 0, instructions_ = 0;
};

}  // namespace softkfd
