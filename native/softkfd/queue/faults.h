// Knobs that make the software GPU misbehave, so that tests see how a tool takes it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace softkfd {

// Counts calls and picks one of them.
class Nth {
 public:
  void pick(uint64_t number) { picked_ = number; }
  bool now() { return picked_ != 0 && ++seen_ == picked_; }

 private:
  uint64_t picked_ = 0;  // 1-based; 0: never
  std::atomic<uint64_t> seen_ = 0;
};

enum class Reservation { kAsAsked, kRelocated, kRefused };

struct Faults {
  // `knob=value` joined by commas: slow=MILLISECONDS or slow=MILLISECONDS:KERNEL (every matching kernel takes
  // that long before it does anything), lost=N (the Nth kernel's completion never comes), map=N (the Nth
  // mapping on a GPU fails), copy=N (the Nth copy of a DMA engine faults), reserve=relocate|refuse (address
  // ranges that ask for a place), version=N (the driver's interface is 1.N). Throws std::invalid_argument naming what it does not know.
  void parse(std::string_view text);

  [[nodiscard]] std::chrono::milliseconds delay(std::string_view kernel) const;

  Nth lost_completion;
  Nth failing_map;
  Nth failing_copy;
  Reservation reservation = Reservation::kAsAsked;
  // 1.17 is the first whose interrupts carry ages and whose buffers can be exported.
  uint32_t interface_minor = 17;

 private:
  void set(std::string_view knob, std::string_view value);

  std::chrono::milliseconds slow_{0};
  std::string slow_kernel_;
};

}  // namespace softkfd
