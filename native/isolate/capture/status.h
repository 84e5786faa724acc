// What a process tells its launcher, in files (docs/REPLAY.md).
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "capture/settings.h"

namespace rpl::isolate {

class Status {
 public:
  explicit Status(const Settings& settings);

  // Replaces <pid>.json. `captured`, `not_drained`, `not_finished` and `failed` are last words.
  void set(const std::string& state, const std::string& reason = {});
  // `failed` for want of space: the capture takes `needed` bytes at most, and `free` are left.
  void set_full(const std::string& reason, uint64_t needed, uint64_t free);
  // Once more with the numbers of now.
  void end();
  // One line in <pid>.kernels.
  void saw_kernel(const std::string& name, const std::string& readable);
  void log(const std::string& message) const;

  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> matches{0};

 private:
  void write();

  std::string file_, kernels_, log_, output_;
  std::mutex mutex_;
  std::string state_, reason_;
  std::optional<uint64_t> needed_, free_;
};

}  // namespace rpl::isolate
