#include "runtime/events.h"

#include <chrono>

#include "plan/failure.h"

namespace rpl::replay {
namespace {

std::string hexadecimal(uint64_t value) {
  constexpr int kHexadecimal = 16;
  constexpr uint64_t kDigit = 15;
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[value & kDigit]);
    value /= kHexadecimal;
  } while (value != 0);
  return "0x" + text;
}

}  // namespace

void Events::watch(const HsaLibrary& hsa) {
  const auto handler = [](const SystemEvent* event, void* data) -> hsa::Status {
    if (event->type != kMemoryFaultEvent) return hsa::kError;
    auto* events = static_cast<Events*>(data);
    events->address_ = event->address;
    events->faulted_ = true;
    return hsa::kSuccess;
  };
  hsa.require(hsa.register_system_event_handler(handler, this), "internal",
              "faults of the GPU can't be watched");
}

void Events::on_queue_error(hsa::Status status, hsa::Queue*, void* data) {
  static_cast<Events*>(data)->queue_error_ = status;
}

void Events::check(const HsaLibrary& hsa, const char* kind, const std::string& during) const {
  if (faulted_) {
    const uint64_t address = address_;
    throw Failure(kind, "the GPU accessed " + hexadecimal(address) + ", which is not mapped, " + during,
                  "the launch reaches memory that the capture does not hold", "", address);
  }
  if (const hsa::Status status = queue_error_; status != hsa::kSuccess) {
    throw Failure(kind, "the GPU stopped " + during, hsa.text_of(status));
  }
}

bool wait_for(const HsaLibrary& hsa, hsa::Signal signal, const Events& events,
              std::optional<uint64_t> limit_ns, const char* kind, const std::string& during) {
  using Clock = std::chrono::steady_clock;
  constexpr uint64_t kSlicesPerSecond = 50;
  uint64_t hz = 0;
  hsa.system_get_info(hsa::kSystemTimestampFrequency, &hz);
  const auto begin = Clock::now();
  while (true) {
    const int64_t value =
        hsa.signal_wait(signal, hsa::kConditionLess, 1, hz / kSlicesPerSecond, hsa::kWaitBlocked);
    events.check(hsa, kind, during);
    if (value < 0) throw Failure(kind, "the GPU failed " + during);
    if (value < 1) return true;
    if (limit_ns && Clock::now() - begin >= std::chrono::nanoseconds(*limit_ns)) return false;
  }
}

}  // namespace rpl::replay
