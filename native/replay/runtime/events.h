// What can go wrong while a signal is waited for.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/hsa_library.h"

namespace rpl::replay {

// Told by threads of the runtime.
class Events {
 public:
  // Faults of memory come here instead of ending the process.
  void watch(const HsaLibrary& hsa);
  // For hsa_queue_create; `data` is the Events.
  static void on_queue_error(hsa::Status status, hsa::Queue* queue, void* data);

  [[nodiscard]] bool any() const { return faulted_ || queue_error_ != hsa::kSuccess; }
  // Throws Failure of that kind when there is any.
  void check(const HsaLibrary& hsa, const char* kind, const std::string& during) const;

 private:
  std::atomic<bool> faulted_{false};
  std::atomic<uint64_t> address_{0};
  std::atomic<hsa::Status> queue_error_{hsa::kSuccess};
};

// Until the signal is below 1. False when that takes longer than `limit_ns`; throws Failure of `kind`.
bool wait_for(const HsaLibrary& hsa, hsa::Signal signal, const Events& events,
              std::optional<uint64_t> limit_ns, const char* kind, const std::string& during);

}  // namespace rpl::replay
